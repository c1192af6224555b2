//! Messages that a client sends again although its thread has them.

use super::error::RequestError;
use super::input::Input;
use serde_json::Value;
use std::collections::BTreeMap;

/// Why a message can't make calls.
pub(super) const NO_CALLS: &str = "calls are made by agents, and can't be said";

/// Removes known messages from an input, and refuses calls in the others.
pub(super) fn leave_out(input: &mut Input, known: &[Value]) -> Result<(), RequestError> {
    let known = Known::of(known);
    let mut refused = None;
    input.messages.retain(|said| {
        let text = text_of(&said.content.value());
        match known.has(said.id.as_deref(), &text, &said.pointer) {
            Err(error) => drop(refused.get_or_insert(error)),
            Ok(false) => {
                if let Some(calls) = &said.calls {
                    refused.get_or_insert_with(|| RequestError::at(calls.as_str(), NO_CALLS));
                }
                return true;
            }
            Ok(true) => {}
        }
        false
    });
    input.results.retain(|result| {
        let has = known.has(result.id.as_deref(), &result.text, &result.pointer);
        match has {
            Err(error) => drop(refused.get_or_insert(error)),
            Ok(has) => return !has,
        }
        false
    });
    refused.map_or(Ok(()), Err)
}

/// The messages of a thread by their ids.
struct Known<'a>(BTreeMap<&'a str, &'a Value>);

impl<'a> Known<'a> {
    fn of(messages: &'a [Value]) -> Self {
        let messages = messages.iter();
        Self(
            messages
                .filter_map(|message| Some((message["id"].as_str()?, &message["content"])))
                .collect(),
        )
    }

    /// Whether the thread has a message with this id. Fails if that has another text.
    fn has(&self, id: Option<&str>, text: &str, pointer: &str) -> Result<bool, RequestError> {
        let Some((id, content)) = id.and_then(|id| Some((id, self.0.get(id)?))) else {
            return Ok(false);
        };
        if text_of(content) == text {
            return Ok(true);
        }
        let what = format!("the thread has a message {id:?} already, and it says something else");
        Err(RequestError::conflict(pointer, what))
    }
}

/// The text of a message's content.
fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|it| it["text"].as_str()).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn known() -> Vec<Value> {
        vec![
            json!({"type": "human", "id": "u1", "content": "Hi"}),
            json!({"type": "ai", "id": "s1", "content": [{"type": "text", "text": "Well"}]}),
            json!({"type": "tool", "id": "s1:0", "content": "42", "tool_call_id": "c"}),
        ]
    }

    fn left(messages: &Value) -> Result<Input, RequestError> {
        let mut input = Input::default();
        input.messages(messages, "/input/messages")?;
        input.leave_out(&known())?;
        Ok(input)
    }

    #[test]
    fn known_messages_are_left_out_and_new_ones_stay() {
        let call = json!({"name": "compute", "args": {}, "id": "c", "type": "tool_call"});
        let input = left(&json!([
            {"type": "human", "id": "u1", "content": [{"type": "text", "text": "Hi"}]},
            {"type": "ai", "id": "s1", "content": "Well", "tool_calls": [call]},
            {"type": "tool", "id": "s1:0", "content": "42", "tool_call_id": "c"},
            {"type": "tool", "id": "t9", "content": "43", "tool_call_id": "d"},
            {"type": "human", "id": "u2", "content": "Hi"},
            {"type": "human", "content": "Hi"},
        ]));
        let input = input.unwrap();
        let ids: Vec<Option<&str>> = input.messages.iter().map(|it| it.id.as_deref()).collect();
        assert_eq!(ids, [Some("u2"), None]);
        assert_eq!(input.results.len(), 1);
        assert_eq!(input.ids().collect::<Vec<_>>(), ["u2", "t9"]);
    }

    #[test]
    fn a_known_message_that_says_something_else_is_a_conflict() {
        for message in [
            json!({"type": "human", "id": "u1", "content": "Hello"}),
            json!({"type": "tool", "id": "s1:0", "content": "43", "tool_call_id": "c"}),
        ] {
            let error = left(&json!([message])).unwrap_err();
            assert_eq!(error.kind, crate::langgraph::ErrorKind::Conflict);
        }
    }

    #[test]
    fn a_new_message_makes_no_calls() {
        let call = json!({"name": "compute", "args": {}, "id": "c", "type": "tool_call"});
        let message = json!([{"type": "ai", "id": "a9", "content": "", "tool_calls": [call]}]);
        let error = left(&message).unwrap_err();
        let place = "/input/messages/0/tool_calls";
        assert_eq!(error.pointer.as_deref(), Some(place));
    }
}
