//! The frames of messages, in chunks and whole, and of the messages that steps add.

use super::{RunEventStream, StreamMode};
use crate::langgraph::message::{base, put_response};
use crate::langgraph::updates::{Piece, RunUpdates, Update, block};
use serde_json::{Value, json};

impl RunEventStream {
    pub(super) fn update(&mut self, update: Update<'_>) {
        match update {
            Update::Piece(piece) => self.piece(&piece),
            Update::Result(message) => self.message(&message, |_| "tools", true),
            Update::Removed(id) => {
                self.message(&base("remove", &id, "".into()), RunUpdates::node, true);
            }
            Update::Completed {
                message,
                is_replaced,
                results,
            } => {
                if let Some(message) = &message {
                    self.message(message, RunUpdates::node, is_replaced);
                }
                self.node_updated(RunUpdates::node, message.as_slice());
                self.node_updated(|_| "tools", &results);
            }
            Update::Custom { name, data } => self.push(
                StreamMode::Custom,
                "custom",
                |_| json!({"name": name, "data": data}),
            ),
        }
    }

    fn node_updated(&mut self, node: fn(&RunUpdates) -> &str, messages: &[Value]) {
        if !messages.is_empty() {
            self.push(
                StreamMode::Updates,
                "updates",
                |this| json!({ node(&this.run): {"messages": messages} }),
            );
        }
    }

    /// Sends a whole message. Readers of chunks receive it only if they lack it.
    fn message(&mut self, message: &Value, node: fn(&RunUpdates) -> &str, for_pieces: bool) {
        if for_pieces {
            self.push(StreamMode::MessagesTuple, "messages", |this| {
                json!([message, this.origin(node(&this.run))])
            });
        }
        self.push(StreamMode::Messages, "messages/complete", |_| {
            json!([message])
        });
    }

    fn piece(&mut self, piece: &Piece<'_>) {
        self.push(StreamMode::MessagesTuple, "messages", |this| {
            json!([this.chunk(piece), this.origin(this.run.node())])
        });
        let is_text = matches!(piece, Piece::Text { .. });
        if is_text && self.run.draft.n_pieces == 1 {
            self.push(
                StreamMode::Messages,
                "messages/metadata",
                |this| json!({ this.run.message_id(): {"metadata": this.origin(this.run.node())} }),
            );
        }
        let is_content = is_text || matches!(piece, Piece::File { .. });
        if is_content && self.run.draft.take_snapshot_due() {
            self.push(StreamMode::Messages, "messages/partial", |this| {
                json!([this.draft("ai", this.run.draft.content())])
            });
        }
    }

    /// The metadata of a message of this node.
    fn origin(&self, node: &str) -> Value {
        let agent = self.run.agent.as_deref();
        json!({
            "run_id": self.run.run_id, "thread_id": self.run.thread_id,
            "assistant_id": agent, "graph_id": agent,
            "langgraph_node": node, "langgraph_step": self.run.iteration + 1,
        })
    }

    /// The message that is being written, with this content and without calls.
    fn draft(&self, kind: &str, content: Value) -> Value {
        let mut message = base(kind, &self.run.message_id(), content);
        message["name"] = self.run.agent.as_deref().into();
        message["tool_calls"] = json!([]);
        message["invalid_tool_calls"] = json!([]);
        message["usage_metadata"] = Value::Null;
        message
    }

    /// A message chunk, which clients append to the earlier ones.
    fn chunk(&self, piece: &Piece<'_>) -> Value {
        let content = match piece {
            Piece::Text { kind, index, text } if self.run.draft.is_list => {
                indexed(block(*kind, text), *index)
            }
            Piece::Text { text, .. } => (*text).into(),
            Piece::File { index, block } => indexed(block.clone(), *index),
            Piece::Call(_) | Piece::Response(_) => "".into(),
        };
        let mut chunk = self.draft("AIMessageChunk", content);
        chunk["tool_call_chunks"] = json!([]);
        if let Piece::Response(response) = piece {
            put_response(&mut chunk, response);
        }
        if let Piece::Call(call) = piece {
            chunk["tool_call_chunks"] = json!([call]);
        }
        chunk
    }
}

/// A list of this block, as content.
fn indexed(mut block: Value, index: usize) -> Value {
    block["index"] = index.into();
    json!([block])
}
