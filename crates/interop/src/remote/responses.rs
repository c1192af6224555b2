//! The features of a remote agent behind Responses that a model lacks: it stores the conversation
//! and runs tools of its own.

use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use upp::{AssistantMessage, StreamEvent, ToolCall};

/// The parameters of a request to a remote agent: the configured ones, and those that make it store
/// the conversation.
pub fn params(
    configured: &Map<String, Value>,
    background: bool,
    previous: Option<&str>,
) -> Map<String, Value> {
    let mut params = configured.clone();
    params.insert("store".to_owned(), json!(true));
    if background {
        params.insert("background".to_owned(), json!(true));
    }
    if let Some(previous) = previous {
        params.insert("previous_response_id".to_owned(), json!(previous));
    }
    params
}

/// Separates the calls that an agent makes and answers itself from those for its client.
#[derive(Clone, Debug, Default)]
pub struct OwnCalls {
    answered: BTreeSet<String>,
}

impl OwnCalls {
    /// Reads an event of the stream, or a whole response.
    pub fn see(&mut self, event: &Value) {
        let response = event.get("response").unwrap_or(event);
        let items = response.get("output").and_then(Value::as_array);
        for item in items.into_iter().flatten().chain(event.get("item")) {
            let kind = item.get("type").and_then(Value::as_str);
            if matches!(
                kind,
                Some("function_call_output" | "custom_tool_call_output")
            ) && let Some(id) = item.get("call_id").and_then(Value::as_str)
            {
                self.answered.insert(id.to_owned());
            }
        }
    }

    /// The calls of an answer that the client must run.
    pub fn left(&self, message: &AssistantMessage) -> Vec<ToolCall> {
        let calls = message.tool_calls.iter();
        let left = calls.filter(|call| !self.answered.contains(call.tool_call_id.as_str()));
        left.cloned().collect()
    }
}

/// Whether an event is streamed during the answer. Calls are not: only the end shows which of them
/// are the client's.
pub fn is_visible(event: &StreamEvent) -> bool {
    !matches!(event, StreamEvent::ToolCallDelta { .. })
}

/// The id of the response and the number of the event, if the event has them.
pub fn position_of(event: &Value) -> (Option<&str>, Option<u64>) {
    let id = event.get("response").and_then(|it| it.get("id"));
    let whole = event.get("object").and_then(Value::as_str) == Some("response");
    let id = id.or_else(|| event.get("id").filter(|_| whole));
    let number = event.get("sequence_number").and_then(Value::as_u64);
    (id.and_then(Value::as_str), number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use upp::{Arguments, MessageOptions};

    #[test]
    fn calls_that_the_agent_answers_itself_are_not_the_clients() {
        let mut own = OwnCalls::default();
        own.see(
            &json!({"type": "response.output_item.done", "item": {"type": "function_call_output", "call_id": "a"}}),
        );
        own.see(
            &json!({"type": "response.completed", "response": {"output": [{"type": "function_call", "call_id": "b"}]}}),
        );
        let call = |id: &str| ToolCall {
            tool_call_id: id.into(),
            tool_name: "t".into(),
            arguments: Arguments::from_text("{}"),
            after: Vec::new(),
        };
        let message = AssistantMessage::new(
            Vec::new(),
            vec![call("a"), call("b")],
            MessageOptions::default(),
        );
        let left = own.left(&message);
        assert_eq!(left, [call("b")]);
    }

    #[test]
    fn an_event_says_the_response_and_its_own_number() {
        let event =
            json!({"type": "response.created", "sequence_number": 0, "response": {"id": "resp_1"}});
        assert_eq!(position_of(&event), (Some("resp_1"), Some(0)));
        let item = json!({"type": "x", "id": "item_1"});
        assert_eq!(position_of(&item), (None, None));
        let whole = json!({"object": "response", "id": "resp_2"});
        assert_eq!(position_of(&whole), (Some("resp_2"), None));
    }
}
