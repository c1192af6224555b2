//! Writes a body whose conversation comes last.

use super::{Encoded, Omission};
use crate::message::{AssistantMessage, MessageId};
use crate::tool::ToolResult;
use serde_json::{Map, Value};

/// A request's conversation as it is written: one text a message.
#[derive(Debug, Default)]
pub(crate) struct Conversation {
    messages: Vec<String>,
    omitted: Vec<Omission>,
}

impl Conversation {
    /// Adds a message.
    pub(crate) fn push(&mut self, message: &Value) {
        self.push_text(message.to_string());
    }

    /// Adds a message that is JSON text already.
    pub(crate) fn push_text(&mut self, message: String) {
        self.messages.push(message);
    }

    /// Lists something that is not sent.
    pub(crate) fn omit(&mut self, message: &AssistantMessage, what: &str, why: &str) {
        self.omit_of(&message.id, what, why);
    }

    /// Lists something that is not sent.
    pub(crate) fn omit_of(&mut self, message_id: &MessageId, what: &str, why: &str) {
        self.omitted.push(Omission {
            message_id: message_id.clone(),
            what: what.to_owned(),
            why: why.to_owned(),
        });
    }

    /// Writes the body: `head`, then the conversation as an array under `key`, which `head` must
    /// not have.
    pub(crate) fn encode(self, head: &Map<String, Value>, key: &str) -> Encoded {
        self.encode_then(head, key, &Map::new())
    }

    /// Writes the body with a `tail` after the conversation. `tail` has the members that may change
    /// between requests of a growing conversation, such as whether a tool must be called.
    pub(crate) fn encode_then(
        self,
        head: &Map<String, Value>,
        key: &str,
        tail: &Map<String, Value>,
    ) -> Encoded {
        let mut body = Value::Object(head.clone()).to_string();
        body.pop();
        if !head.is_empty() {
            body.push(',');
        }
        body.push_str(&Value::from(key).to_string());
        body.push_str(":[");
        let mut messages = Vec::with_capacity(self.messages.len());
        for (at, message) in self.messages.iter().enumerate() {
            let start = body.len();
            if at > 0 {
                body.push(',');
            }
            body.push_str(message);
            messages.push(start..body.len());
        }
        body.push(']');
        if tail.is_empty() {
            body.push('}');
        } else {
            let tail = Value::Object(tail.clone()).to_string();
            body.push(',');
            body.push_str(tail.strip_prefix('{').unwrap_or_default());
        }
        Encoded {
            body,
            messages,
            omitted: self.omitted,
        }
    }
}

/// A result as the model sees it: a string unchanged, anything else as JSON.
pub(crate) fn tool_result_text(result: &ToolResult) -> String {
    result.text().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_longer_conversation_begins_with_the_shorter_ones_bytes() {
        let head = Map::from_iter([("model".to_owned(), json!("m"))]);
        let of = |n: usize| {
            let mut conversation = Conversation::default();
            for at in 0..n {
                conversation.push(&json!({"at": at}));
            }
            conversation.encode(&head, "messages")
        };
        for n in 0..4 {
            let (shorter, longer) = (of(n), of(n + 1));
            assert!(longer.body.starts_with(shorter.conversation()));
            let read: Value = serde_json::from_str(&longer.body).unwrap();
            assert_eq!(read["messages"].as_array().unwrap().len(), n + 1);
        }
        assert_eq!(of(0).body, r#"{"model":"m","messages":[]}"#);
    }

    #[test]
    fn a_tail_stands_after_the_conversation_and_outside_of_its_prefix() {
        let tail = Map::from_iter([("choice".to_owned(), json!("none"))]);
        let of = |tail: &Map<String, Value>| {
            let mut conversation = Conversation::default();
            conversation.push(&json!(1));
            conversation.encode_then(&Map::new(), "m", tail)
        };
        assert_eq!(of(&tail).body, r#"{"m":[1],"choice":"none"}"#);
        assert_eq!(of(&tail).conversation(), of(&Map::new()).conversation());
    }
}
