//! A message that is being written, as blocks that are told one after the other.

use crate::langgraph::content::{reasoning_block, text_block};
use serde_json::{Map, Value, json};

/// Which block of its message something belongs to: its kind, and its place among those of its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    Text(u64),
    Reasoning(u64),
    Call(u64),
    /// Whole at once.
    File,
}

#[derive(Clone, Debug)]
struct Block {
    key: Key,
    /// What it begins with; a file is whole at once.
    begin: Value,
    /// What it has come to: text, or the text of arguments.
    text: String,
    /// How many bytes of that were told; none before it has begun.
    told: Option<usize>,
}

impl Block {
    /// The delta that is this text.
    fn delta(&self, text: &str) -> Value {
        match self.key {
            Key::Text(_) | Key::File => json!({"type": "text-delta", "text": text}),
            Key::Reasoning(_) => json!({"type": "reasoning-delta", "reasoning": text}),
            Key::Call(_) => json!({"type": "tool-call-delta", "args": text}),
        }
    }

    /// The block as it is in the end.
    fn whole(&self) -> Value {
        match self.key {
            Key::File => self.begin.clone(),
            Key::Text(_) => text_block(&self.text),
            Key::Reasoning(_) => reasoning_block(&self.text),
            Key::Call(_) => self.call(),
        }
    }

    /// Tells what was not told yet; `index` is its place in the message.
    fn tell(&mut self, index: usize, out: &mut Vec<Value>) {
        if self.told.is_none() {
            let content = &self.begin;
            out.push(json!({"event": "content-block-start", "index": index, "content": content}));
        }
        let more = self
            .text
            .get(self.told.unwrap_or_default()..)
            .unwrap_or_default();
        if !more.is_empty() {
            let delta = self.delta(more);
            out.push(json!({"event": "content-block-delta", "index": index, "delta": delta}));
        }
        self.told = Some(self.text.len());
    }

    /// Tells the rest, and that this was all.
    fn finish(&mut self, index: usize, out: &mut Vec<Value>) {
        self.tell(index, out);
        let content = self.whole();
        out.push(json!({"event": "content-block-finish", "index": index, "content": content}));
    }

    fn call(&self) -> Value {
        let (id, name) = (&self.begin["id"], &self.begin["name"]);
        let blank = self.text.trim().is_empty();
        let args = if blank {
            Some(Map::new())
        } else {
            serde_json::from_str(&self.text).ok()
        };
        match args {
            Some(args) => json!({"type": "tool_call", "id": id, "name": name, "args": args}),
            None => json!({
                "type": "invalid_tool_call", "id": id, "name": name, "args": self.text,
                "error": "the arguments are no JSON object",
            }),
        }
    }
}

/// A message that is being written.
///
/// Blocks don't interleave in this protocol. Text ends where another block begins. A call is told until the message is
/// over, for only then are its arguments complete for sure; what begins beside it is held until then. Costs what is said.
#[derive(Clone, Debug)]
pub(super) struct Writing {
    /// The message's id.
    pub(super) id: String,
    blocks: Vec<Block>,
    /// How many of them are finished. The next one is being told.
    n_finished: usize,
}

impl Writing {
    pub(super) fn new(id: &str) -> Self {
        Self {
            id: id.to_owned(),
            blocks: Vec::new(),
            n_finished: 0,
        }
    }

    /// What content and pieces of calls come to, as messages of `LangChain` have them.
    pub(super) fn piece(&mut self, content: &Value, calls: &[Value], out: &mut Vec<Value>) {
        match content {
            Value::String(text) if text.is_empty() => {}
            Value::String(text) => self.more(Key::Text(0), text_block(""), text, out),
            Value::Array(blocks) => {
                for block in blocks {
                    self.block(block, out);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => {}
        }
        for call in calls {
            let key = Key::Call(call["index"].as_u64().unwrap_or_default());
            let begin = json!({
                "type": "tool_call_chunk", "id": call["id"], "name": call["name"], "args": "",
            });
            self.more(key, begin, call["args"].as_str().unwrap_or_default(), out);
        }
    }

    fn block(&mut self, block: &Value, out: &mut Vec<Value>) {
        let place = block["index"].as_u64().unwrap_or_default();
        let text = |key: &str| block[key].as_str().unwrap_or_default();
        match text("type") {
            "text" => self.more(Key::Text(place), text_block(""), text("text"), out),
            "reasoning" => {
                let begin = reasoning_block("");
                self.more(Key::Reasoning(place), begin, text("reasoning"), out);
            }
            _ => {
                let mut begin = block.clone();
                if let Value::Object(begin) = &mut begin {
                    begin.remove("index");
                }
                self.begin(Key::File, begin, out);
            }
        }
    }

    /// More of a block.
    fn more(&mut self, key: Key, begin: Value, text: &str, out: &mut Vec<Value>) {
        let mut rest = self.blocks.iter().skip(self.n_finished);
        let place = match rest.position(|it| it.key == key) {
            Some(place) => self.n_finished + place,
            None => self.begin(key, begin, out),
        };
        let is_told = place == self.n_finished;
        if let Some(block) = self.blocks.get_mut(place) {
            block.text.push_str(text);
            if is_told {
                block.tell(place, out);
            }
        }
    }

    /// A block begins; gives its place.
    fn begin(&mut self, key: Key, begin: Value, out: &mut Vec<Value>) -> usize {
        if let Some(open) = self.blocks.get_mut(self.n_finished)
            && !matches!(open.key, Key::Call(_))
        {
            open.finish(self.n_finished, out);
            self.n_finished += 1;
        }
        let text = String::new();
        self.blocks.push(Block {
            key,
            begin,
            text,
            told: None,
        });
        self.blocks.len() - 1
    }

    /// The message is over.
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

    fn told(pieces: &[(Value, Value)]) -> Vec<Value> {
        let (mut writing, mut out) = (Writing::new("m"), Vec::new());
        for (content, calls) in pieces {
            writing.piece(content, calls.as_array().unwrap(), &mut out);
        }
        writing.finish(&mut out);
        out
    }

    /// Each block's index, and the events of each in order.
    fn shape(events: &[Value]) -> Vec<(u64, &str)> {
        let of = |it: &'_ Value| it["index"].as_u64().unwrap();
        events
            .iter()
            .map(|it| {
                (
                    of(it),
                    it["event"]
                        .as_str()
                        .unwrap()
                        .trim_start_matches("content-block-"),
                )
            })
            .collect()
    }

    #[test]
    fn blocks_that_are_written_at_once_are_told_one_after_the_other() {
        let call = |index: u64, id: &str, args: &str| json!([{"id": id, "name": "f", "args": args, "index": index}]);
        let events = told(&[
            ("Let me ".into(), json!([])),
            ("see.".into(), json!([])),
            ("".into(), call(0, "a", "")),
            ("".into(), call(1, "b", "{")),
            ("".into(), call(0, "a", "{\"x\":1}")),
            ("".into(), call(1, "b", "oops")),
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
    fn what_is_said_after_a_call_has_begun_follows_it() {
        let call = json!([{"id": "a", "name": "f", "args": "", "index": 0}]);
        let text = json!([{"type": "text", "text": "Wait.", "index": 1}]);
        let thought = json!([{"type": "reasoning", "reasoning": "hm", "index": 0}]);
        let events = told(&[(thought, json!([])), ("".into(), call), (text, json!([]))]);
        let finished: Vec<&Value> = events
            .iter()
            .filter(|it| it["event"] == "content-block-finish")
            .map(|it| &it["content"]["type"])
            .collect();
        assert_eq!(finished, ["reasoning", "tool_call", "text"]);
    }
}
