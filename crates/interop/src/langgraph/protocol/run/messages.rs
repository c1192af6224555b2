//! The messages of a run, block by block.

use super::{Channel, MessageWriter, ProtocolRun};
use crate::langgraph::message::usage;
use crate::langgraph::updates::Piece;
use serde_json::{Value, json};

impl ProtocolRun {
    /// The message that is being written grows.
    pub(super) fn piece(&mut self, piece: &Piece<'_>) {
        let id = self.run.message_id();
        self.write(&id, |writer, out| writer.piece(piece, out));
        if let Piece::Response(response) = piece
            && let Some(usage) = usage(response)
        {
            self.usage = usage;
        }
    }

    /// A message is written whole, because what was streamed of it is void.
    pub(super) fn replace_message(&mut self, message: &Value) {
        let id = message["id"].as_str().unwrap_or_default();
        self.write(id, |writer, out| writer.message(message, out));
        self.usage = message["usage_metadata"].clone();
        self.finish_message();
    }

    /// A message is void. It may have been finished. Results stay as they are: this protocol can't take
    /// them back.
    pub(super) fn remove_message(&mut self, id: &str) {
        let why = "what was said does not count";
        if self.writer.as_ref().is_some_and(|it| it.id == id) {
            self.fail_message(why);
        } else if self.finished.take_if(|it| it == id).is_some() {
            self.push_all(id, vec![json!({"event": "error", "message": why})]);
        }
    }

    /// Writes to a message. If it is not the one in progress, that one ends and this one starts.
    fn write(&mut self, id: &str, write: impl FnOnce(&mut MessageWriter, &mut Vec<Value>)) {
        if !self.request.wants(Channel::Messages) {
            return;
        }
        if self.writer.as_ref().is_none_or(|it| it.id != id) {
            self.finish_message();
            self.writer = Some(MessageWriter::new(id));
            let metadata = json!({
                "run_id": self.run.run_id, "thread_id": self.run.thread_id,
                "langgraph_node": self.run.agent,
            });
            let start =
                json!({"event": "message-start", "role": "ai", "id": id, "metadata": metadata});
            self.push(Channel::Messages, "messages", || start);
        }
        let mut out = Vec::new();
        if let Some(writer) = &mut self.writer {
            write(writer, &mut out);
        }
        self.push_all(id, out);
    }

    /// Adds events of a message, each with its own id.
    fn push_all(&mut self, id: &str, events: Vec<Value>) {
        for mut data in events {
            data["id"] = id.into();
            self.push(Channel::Messages, "messages", || data);
        }
    }

    pub(super) fn finish_message(&mut self) {
        let Some(writer) = self.writer.take() else {
            return;
        };
        let (id, mut out) = (writer.id.clone(), Vec::new());
        writer.finish(&mut out);
        let mut last = json!({"event": "message-finish"});
        if !self.usage.is_null() {
            last["usage"] = self.usage.take();
        }
        out.push(last);
        self.push_all(&id, out);
        self.finished = Some(id);
    }

    /// The message that is being written is void.
    pub(super) fn fail_message(&mut self, why: &str) {
        if let Some(writer) = self.writer.take() {
            self.push_all(&writer.id, vec![json!({"event": "error", "message": why})]);
        }
        self.usage = Value::Null;
    }
}
