//! The prompts that a strategy sends to the model as the user: parts at the front of the step that
//! sent them.

use crate::parts::PROMPT;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use timeline::Payload;
use upp::{MessageOptions, Metadata, UserContent, UserMessage};

/// The metadata namespace that marks a message as a prompt.
const NAMESPACE: &str = "uap";

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PromptPart {
    #[serde(rename = "type")]
    part_type: String,
    /// The purpose of the prompt.
    kind: String,
    text: String,
    /// The message's id.
    id: String,
    timestamp: jiff::Timestamp,
    /// The other members of the message's mark: its step and the first step of the run.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    mark: Map<String, Value>,
}

/// The part of a prompt; `None` if the message is not marked as one.
pub fn prompt_part(message: &UserMessage) -> Option<Payload> {
    let mut mark = message.metadata.get(NAMESPACE)?.as_object()?.clone();
    let Some(Value::String(kind)) = mark.remove("prompt") else {
        return None;
    };
    let texts = message.content.iter().filter_map(|block| match block {
        UserContent::Text { text } => Some(text.as_str()),
        UserContent::Image(_)
        | UserContent::Document(_)
        | UserContent::Audio(_)
        | UserContent::Video(_)
        | UserContent::Binary(_) => None,
    });
    let part = PromptPart {
        part_type: PROMPT.to_owned(),
        kind,
        text: texts.collect(),
        id: message.id.as_str().to_owned(),
        timestamp: message.timestamp,
        mark,
    };
    Payload::write(&part).ok()
}

/// The message of a prompt's part; `None` if the part is not a prompt.
pub fn prompt_message(part: &Payload) -> Option<UserMessage> {
    if !part.text().contains(PROMPT) {
        return None;
    }
    let part: PromptPart = part.read().ok()?;
    if part.part_type != PROMPT {
        return None;
    }
    let mut mark = part.mark;
    mark.insert("prompt".to_owned(), part.kind.into());
    let options = MessageOptions {
        id: Some(part.id.as_str().into()),
        timestamp: Some(part.timestamp),
        metadata: Some(Metadata::from_iter([(NAMESPACE.to_owned(), json!(mark))])),
    };
    let text = UserContent::Text { text: part.text };
    Some(UserMessage::new(vec![text], options))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_comes_back_from_its_part_with_its_mark() {
        let mark = json!({"prompt": "act", "step": 3, "firstStep": 2});
        let options = MessageOptions {
            metadata: Some(Metadata::from_iter([(NAMESPACE.to_owned(), mark)])),
            ..MessageOptions::default()
        };
        let text = UserContent::Text { text: "Go.".into() };
        let message = UserMessage::new(vec![text], options);
        let part = prompt_part(&message).unwrap();
        assert_eq!(prompt_message(&part), Some(message));
        assert_eq!(prompt_part(&UserMessage::text("hello")), None);
        assert_eq!(prompt_message(&json!({"type": "app-x"}).into()), None);
    }
}
