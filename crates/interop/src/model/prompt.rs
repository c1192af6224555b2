//! What a strategy says to the model in the user's place: parts at the front of the step that asked.

use crate::parts::PROMPT;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use timeline::Payload;
use upp::{MessageOptions, Metadata, UserContent, UserMessage};

/// The namespace in which a message says that it is a prompt.
const NAMESPACE: &str = "uap";

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PromptPart {
    #[serde(rename = "type")]
    part_type: String,
    /// What it asks for.
    kind: String,
    text: String,
    /// The message's id.
    id: String,
    timestamp: jiff::Timestamp,
    /// What else the message's mark says: its step and the first of the run.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    mark: Map<String, Value>,
}

/// The part of a prompt; none where the message is not marked as one.
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

/// The message of a prompt's part; none where the part is none.
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
