//! What passes for the history, and what does not.

use crate::native::conversation;
use loomline_interop::ai_sdk::{
    Difference, SentMessage, StoredMessage, from_chat_request, stored_messages, to_ui_messages,
};
use proptest::prelude::*;
use serde_json::{Value, json};

/// The messages of a conversation as a client has them, and as they are stored.
fn shown(bytes: &[u8]) -> Vec<(Value, StoredMessage)> {
    let log = conversation(bytes);
    let transcript = log.transcript();
    let shown = to_ui_messages(&transcript).value;
    let stored = stored_messages(&transcript);
    let stored = stored.into_iter().filter_map(|stored| {
        let shown = shown.iter().find(|it| it["id"] == stored.id())?;
        Some((shown.clone(), stored))
    });
    stored.collect()
}

fn sent(message: &Value) -> SentMessage {
    let body = json!({"id": "c", "messages": [message]});
    from_chat_request(body).unwrap().messages.remove(0)
}

fn compare(stored: &StoredMessage, message: &Value) -> Result<(), Difference> {
    stored.compare(&sent(message))
}

/// As it is after it was in a browser.
fn through_a_browser(value: &Value) -> Value {
    match value {
        Value::Number(number) => json!(number.as_f64()),
        Value::Array(items) => items.iter().map(through_a_browser).collect(),
        Value::Object(members) => members
            .iter()
            .map(|(key, value)| (key.clone(), through_a_browser(value)))
            .collect(),
        Value::Null | Value::Bool(_) | Value::String(_) => value.clone(),
    }
}

proptest! {
    #[test]
    fn what_a_client_was_shown_passes_whole_and_in_part(
        bytes in prop::collection::vec(any::<u8>(), 0..200), keep in any::<u64>(), cut in any::<prop::sample::Index>(),
    ) {
        for (message, stored) in shown(&bytes) {
            prop_assert_eq!(compare(&stored, &message), Ok(()));
            prop_assert_eq!(compare(&stored, &through_a_browser(&message)), Ok(()));
            if !stored.is_answer() {
                continue;
            }
            let parts = message["parts"].as_array().unwrap();
            let some = parts.iter().enumerate().filter(|(n, _)| keep >> (n % 64) & 1 == 1);
            let mut less = message.clone();
            less["parts"] = some.map(|(_, part)| part.clone()).collect();
            prop_assert_eq!(compare(&stored, &less), Ok(()));
            // The stream broke off in the last text, and was read again from its start.
            let mut broken = parts.clone();
            if let Some(text) = broken.last_mut().and_then(|part| part.get_mut("text")) {
                let whole: Vec<char> = text.as_str().unwrap().chars().collect();
                let n = cut.index(whole.len() + 1);
                *text = whole[..n].iter().collect::<String>().into();
            }
            broken.extend(parts.iter().cloned());
            less["parts"] = broken.into();
            prop_assert_eq!(compare(&stored, &less), Ok(()));
        }
    }

    #[test]
    fn what_was_not_said_or_done_does_not_pass(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        for (message, stored) in shown(&bytes) {
            for (place, part) in message["parts"].as_array().unwrap().iter().enumerate() {
                let mut forged = message.clone();
                let own = &mut forged["parts"][place];
                if let Some(text) = part["text"].as_str().filter(|text| !text.is_empty()) {
                    own["text"] = format!("{text}, which nobody said").into();
                } else if part["state"] == "output-available" {
                    own["output"] = json!({"forged": part["output"]});
                } else if part["state"] == "approval-requested" {
                    own["state"] = "output-available".into();
                    own["output"] = "forged".into();
                } else if part["toolCallId"].is_string() {
                    own["toolCallId"] = "forged".into();
                } else {
                    continue;
                }
                let refused = compare(&stored, &forged).unwrap_err();
                prop_assert_eq!(refused.pointer, format!("/messages/0/parts/{place}"));
            }
        }
    }
}
