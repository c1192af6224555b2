//! A message that is being written, as blocks one after the other.

use crate::langgraph::message::arguments;
use crate::langgraph::updates::{Piece, block};
use serde::Serialize;
use serde_json::{Value, json};
use timeline::BlockKind;

/// Identifies a block of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    /// By its position in the content.
    Text(BlockKind, usize),
    /// By its position among the calls.
    Call(usize),
    /// A file, which is complete when it starts.
    File,
}

#[derive(Clone, Debug)]
struct Block {
    key: Key,
    /// The content at its start, of a file all of it.
    start: Value,
    /// The text, or the text of the arguments.
    text: String,
    /// How many bytes of the text were sent; none before the start.
    sent: Option<usize>,
}

impl Block {
    /// The delta with this text.
    fn delta(&self, text: &str) -> Value {
        match self.key {
            Key::Text(BlockKind::Text, _) | Key::File => {
                json!({"type": "text-delta", "text": text})
            }
            Key::Text(BlockKind::Reasoning, _) => {
                json!({"type": "reasoning-delta", "reasoning": text})
            }
            Key::Call(_) => json!({"type": "tool-call-delta", "args": text}),
        }
    }

    /// The content at its end.
    fn whole(&self) -> Value {
        match self.key {
            Key::File => self.start.clone(),
            Key::Text(kind, _) => block(kind, &self.text),
            Key::Call(_) => self.call(),
        }
    }

    /// Sends the part that was not sent yet; `index` is the block's position in the message.
    fn send(&mut self, index: usize, out: &mut Vec<Value>) {
        if self.sent.is_none() {
            let content = &self.start;
            out.push(json!({"event": "content-block-start", "index": index, "content": content}));
        }
        let rest = self.text.get(self.sent.unwrap_or_default()..);
        if let Some(rest) = rest.filter(|rest| !rest.is_empty()) {
            let delta = self.delta(rest);
            out.push(json!({"event": "content-block-delta", "index": index, "delta": delta}));
        }
        self.sent = Some(self.text.len());
    }

    /// Sends the rest, and the end.
    fn finish(&mut self, index: usize, out: &mut Vec<Value>) {
        self.send(index, out);
        let content = self.whole();
        out.push(json!({"event": "content-block-finish", "index": index, "content": content}));
    }

    fn call(&self) -> Value {
        let (id, name) = (&self.start["id"], &self.start["name"]);
        match arguments(&self.text) {
            Some(args) => json!({"type": "tool_call", "id": id, "name": name, "args": args}),
            None => json!({
                "type": "invalid_tool_call", "id": id, "name": name, "args": self.text,
                "error": "the arguments are no JSON object",
            }),
        }
    }
}

/// Writes a message in progress.
///
/// Blocks don't interleave in this protocol. A text ends where another block starts. A call is open
/// until the message ends, because its arguments may grow until then. Blocks that start while a call
/// is open follow it. The cost of each addition is its length.
#[derive(Clone, Debug)]
pub(super) struct MessageWriter {
    /// The message's id.
    pub(super) id: String,
    blocks: Vec<Block>,
    /// How many of them are finished. The next one is open.
    n_finished: usize,
}

impl MessageWriter {
    pub(super) fn new(id: &str) -> Self {
        Self {
            id: id.to_owned(),
            blocks: Vec::new(),
            n_finished: 0,
        }
    }

    /// Writes an addition.
    pub(super) fn piece(&mut self, piece: &Piece<'_>, out: &mut Vec<Value>) {
        match piece {
            Piece::Text { kind, index, text } => self.text(*kind, *index, text, out),
            Piece::File { block, .. } => {
                self.begin(Key::File, block.clone(), out);
            }
            Piece::Call(call) => self.call(call.index, (&call.id, &call.name), call.args, out),
            Piece::Response(_) => {}
        }
    }

    /// Writes a whole message of `LangChain`'s shape.
    pub(super) fn message(&mut self, message: &Value, out: &mut Vec<Value>) {
        if let Some(text) = message["content"].as_str().filter(|text| !text.is_empty()) {
            self.text(BlockKind::Text, 0, text, out);
        }
        for block in message["content"].as_array().into_iter().flatten() {
            let text = |key: &str| block[key].as_str().unwrap_or_default();
            match text("type") {
                "text" => self.text(BlockKind::Text, 0, text("text"), out),
                "reasoning" => self.text(BlockKind::Reasoning, 0, text("reasoning"), out),
                _ => {
                    self.begin(Key::File, block.clone(), out);
                }
            }
        }
        let calls = ["tool_calls", "invalid_tool_calls"].map(|key| message[key].as_array());
        for (index, call) in calls.into_iter().flatten().flatten().enumerate() {
            let text = call["args"].as_str();
            let args = text.map_or_else(|| call["args"].to_string(), str::to_owned);
            self.call(index, (&call["id"], &call["name"]), &args, out);
        }
    }

    fn call<T: Serialize>(
        &mut self,
        index: usize,
        (id, name): (T, T),
        args: &str,
        out: &mut Vec<Value>,
    ) {
        let start = json!({"type": "tool_call_chunk", "id": id, "name": name, "args": ""});
        self.grow(Key::Call(index), start, args, out);
    }

    fn text(&mut self, kind: BlockKind, index: usize, text: &str, out: &mut Vec<Value>) {
        self.grow(Key::Text(kind, index), block(kind, ""), text, out);
    }

    /// Appends to a block, or starts it.
    fn grow(&mut self, key: Key, start: Value, text: &str, out: &mut Vec<Value>) {
        let mut rest = self.blocks.iter().skip(self.n_finished);
        let position = match rest.position(|block| block.key == key) {
            Some(position) => self.n_finished + position,
            None => self.begin(key, start, out),
        };
        let is_open = position == self.n_finished;
        if let Some(block) = self.blocks.get_mut(position) {
            block.text.push_str(text);
            if is_open {
                block.send(position, out);
            }
        }
    }

    /// Starts a block. Returns its position.
    fn begin(&mut self, key: Key, start: Value, out: &mut Vec<Value>) -> usize {
        if let Some(open) = self.blocks.get_mut(self.n_finished)
            && !matches!(open.key, Key::Call(_))
        {
            open.finish(self.n_finished, out);
            self.n_finished += 1;
        }
        let text = String::new();
        self.blocks.push(Block {
            key,
            start,
            text,
            sent: None,
        });
        self.blocks.len() - 1
    }

    /// The message is complete.
    pub(super) fn finish(mut self, out: &mut Vec<Value>) {
        let rest = self.blocks.iter_mut().enumerate().skip(self.n_finished);
        for (index, block) in rest {
            block.finish(index, out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(pieces: &[Piece<'_>]) -> Vec<Value> {
        let (mut writer, mut out) = (MessageWriter::new("m"), Vec::new());
        for piece in pieces {
            writer.piece(piece, &mut out);
        }
        writer.finish(&mut out);
        out
    }

    fn text(kind: BlockKind, index: usize, text: &str) -> Piece<'_> {
        Piece::Text { kind, index, text }
    }

    fn call<'e>(index: usize, id: &'e str, args: &'e str) -> Piece<'e> {
        Piece::call(index, Some((id, "f")), args)
    }

    /// Each block's index, and the events of each in order.
    fn shape(events: &[Value]) -> Vec<(u64, &str)> {
        let shape = events.iter().map(|event| {
            let name = event["event"].as_str().unwrap();
            let name = name.trim_start_matches("content-block-");
            (event["index"].as_u64().unwrap(), name)
        });
        shape.collect()
    }

    #[test]
    fn blocks_that_grow_at_once_are_written_one_after_the_other() {
        let events = events(&[
            text(BlockKind::Text, 0, "Let me "),
            text(BlockKind::Text, 0, "see."),
            call(0, "a", ""),
            call(1, "b", "{"),
            call(0, "a", "{\"x\":1}"),
            call(1, "b", "oops"),
        ]);
        assert_eq!(
            shape(&events),
            [
                (0, "start"),
                (0, "delta"),
                (0, "delta"),
                (0, "finish"),
                (1, "start"),
                (1, "delta"),
                (1, "finish"),
                (2, "start"),
                (2, "delta"),
                (2, "finish"),
            ]
        );
        assert_eq!(
            events[3]["content"],
            json!({"type": "text", "text": "Let me see."})
        );
        let whole = json!({"type": "tool_call", "id": "a", "name": "f", "args": {"x": 1}});
        assert_eq!(events[6]["content"], whole);
        assert_eq!(events[9]["content"]["type"], "invalid_tool_call");
        assert_eq!(events[9]["content"]["args"], "{oops");
    }

    #[test]
    fn a_text_that_begins_beside_an_open_call_follows_the_call() {
        let events = events(&[
            text(BlockKind::Reasoning, 0, "hm"),
            call(0, "a", ""),
            text(BlockKind::Text, 1, "Wait."),
        ]);
        let finished: Vec<&Value> = events
            .iter()
            .filter(|it| it["event"] == "content-block-finish")
            .map(|it| &it["content"]["type"])
            .collect();
        assert_eq!(finished, ["reasoning", "tool_call", "text"]);
    }
}
