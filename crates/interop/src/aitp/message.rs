//! Capability messages in a message's text parts: JSON objects with a `$schema`.

use super::family::{Family, FamilyVersion, capability_of};
use super::kind::Kind;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use timeline::{MessagePartKind, Payload, part_kind};

/// The longest text that is read as a capability message, in bytes. A longer one is text.
pub const MAX_MESSAGE: usize = 256 * 1024;
/// The most capability messages of one item.
pub const MAX_MESSAGES: usize = 64;

/// One capability message. It is serialised as the object that it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(into = "Map<String, Value>", try_from = "Map<String, Value>")]
pub struct Message {
    /// The URL of its schema, unchanged.
    pub schema: String,
    /// The capability and its version; `None` for an unknown one, whose messages pass unchanged.
    pub capability: Option<(Family, FamilyVersion)>,
    /// The type, if the message has exactly one known payload.
    pub kind: Option<Kind>,
    /// The whole object.
    pub value: Map<String, Value>,
}

/// An item has more capability messages than [`MAX_MESSAGES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an item has at most {MAX_MESSAGES} capability messages")]
pub struct TooManyMessages;

impl Message {
    /// Reads the text of a part, if it is a capability message.
    pub fn read(text: &str) -> Option<Self> {
        // Most texts are none, and are not parsed to know it.
        let candidate = text.len() <= MAX_MESSAGE && text.trim_start().starts_with('{');
        if !candidate || !may_name_a_schema(text) {
            return None;
        }
        Self::from_value(serde_json::from_str(text).ok()?)
    }

    /// Reads an object, if it is a capability message.
    pub fn from_value(value: Map<String, Value>) -> Option<Self> {
        let schema = value.get("$schema")?.as_str()?.to_owned();
        let capability = capability_of(&schema).filter(|(_, version)| version.is_known());
        let kind = capability.and_then(|(family, _)| {
            let mut kinds = value.keys().filter_map(|key| Kind::find(family, key));
            let first = kinds.next();
            first.filter(|_| kinds.next().is_none())
        });
        Some(Self {
            schema,
            capability,
            kind,
            value,
        })
    }

    /// A message of this type with this payload.
    pub fn new(schema: &str, kind: Kind, payload: Value) -> Self {
        let mut value = Map::new();
        value.insert("$schema".to_owned(), schema.into());
        value.insert(kind.key().to_owned(), payload);
        Self {
            schema: schema.to_owned(),
            capability: capability_of(schema),
            kind: Some(kind),
            value,
        }
    }

    /// The value of the member that names the message's type.
    pub fn payload(&self) -> Option<&Value> {
        self.value.get(self.kind?.key())
    }

    /// The text of the part that carries it.
    pub fn text(&self) -> String {
        // A map of values always has a text.
        serde_json::to_string(&self.value).unwrap_or_default()
    }

    /// The part of a user's message that carries it.
    pub fn input_part(&self) -> Value {
        serde_json::json!({"type": "input_text", "text": self.text()})
    }

    /// The part of an agent's message that carries it.
    pub fn output_part(&self) -> Value {
        serde_json::json!({"type": "output_text", "text": self.text()})
    }
}

impl From<Message> for Map<String, Value> {
    fn from(message: Message) -> Self {
        message.value
    }
}

impl TryFrom<Map<String, Value>> for Message {
    type Error = &'static str;

    fn try_from(value: Map<String, Value>) -> Result<Self, Self::Error> {
        Self::from_value(value).ok_or("a capability message has a \"$schema\"")
    }
}

/// Whether a JSON text can have a member `$schema`, also one that is spelled with escapes: no letter
/// of it has another escape than `\u`. Most texts have neither, and are not parsed to know it.
fn may_name_a_schema(json: &str) -> bool {
    json.contains("$schema") || json.contains("\\u")
}

/// The capability messages in the content of an item, each with the place of its part.
pub fn find(content: &Payload) -> Result<Vec<(usize, Message)>, TooManyMessages> {
    let mut found = Vec::new();
    if !may_name_a_schema(content.text()) {
        return Ok(found);
    }
    let parts: Vec<&RawValue> = content.read().unwrap_or_default();
    for (place, part) in parts.into_iter().enumerate() {
        if let Some(message) = in_part(part.get()) {
            if found.len() == MAX_MESSAGES {
                return Err(TooManyMessages);
            }
            found.push((place, message));
        }
    }
    Ok(found)
}

/// The capability message in one part.
pub fn find_in_part(part: &Payload) -> Option<Message> {
    in_part(part.text())
}

fn in_part(part: &str) -> Option<Message> {
    if !may_name_a_schema(part) {
        return None;
    }
    let part: Map<String, Value> = serde_json::from_str(part).ok()?;
    let text = |key: &str| part.get(key).and_then(Value::as_str);
    match part_kind(text("type")?)? {
        MessagePartKind::InputText | MessagePartKind::OutputText => Message::read(text("text")?),
        MessagePartKind::Reasoning
        | MessagePartKind::InputImage
        | MessagePartKind::InputFile
        | MessagePartKind::Refusal
        | MessagePartKind::Tool(_)
        | MessagePartKind::Extension(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const DECISIONS: &str = "https://aitp.dev/v1/decisions/schema.json";

    #[test]
    fn several_messages_and_plain_text_share_one_item() {
        let ask = json!({"$schema": DECISIONS, "request_decision": {"id": "d", "options": [{"id": "a"}]}}).to_string();
        let other = json!({"$schema": "https://example.com/poll.json", "poll": 1}).to_string();
        let content = json!([
            {"type": "output_text", "text": "Please choose. See {\"$schema\"}."},
            {"type": "output_text", "text": format!("\n {ask} ")},
            {"type": "reasoning", "text": ask},
            {"type": "app-x", "text": ask},
            {"type": "input_text", "text": other},
        ]);
        let found = find(&content.into()).unwrap();
        let places: Vec<usize> = found.iter().map(|(place, _)| *place).collect();
        assert_eq!(places, [1, 4]);
        let kinds: Vec<_> = found.iter().map(|(_, message)| message.kind).collect();
        assert_eq!(kinds, [Some(Kind::RequestDecision), None]);
        assert_eq!(found[1].1.capability, None);
    }

    #[test]
    fn what_is_no_object_with_a_schema_is_text() {
        for text in [
            "",
            "hello",
            "[{\"$schema\":\"x\"}]",
            "{\"$schema\":7}",
            "{\"schema\":\"x\"}",
            "{\"$schema\":\"x\"",
        ] {
            assert_eq!(Message::read(text), None, "{text}");
        }
        let long = format!("{{\"$schema\":\"{}\"}}", "x".repeat(MAX_MESSAGE));
        assert_eq!(Message::read(&long), None);
    }

    #[test]
    fn a_message_of_another_major_version_is_not_known() {
        let url = "https://aitp.dev/capabilities/aitp-02-decisions/v2.0.0/schema.json";
        let message = Message::read(&json!({"$schema": url, "decision": {}}).to_string()).unwrap();
        assert_eq!((message.capability, message.kind), (None, None));
    }

    #[test]
    fn two_payloads_are_no_type() {
        let text = json!({"$schema": DECISIONS, "decision": {}, "request_decision": {}});
        assert_eq!(Message::read(&text.to_string()).unwrap().kind, None);
    }

    #[test]
    fn a_message_comes_back_from_its_part() {
        let message = Message::new(DECISIONS, Kind::Decision, json!({"options": [{"id": "a"}]}));
        for part in [message.input_part(), message.output_part()] {
            let found = find(&json!([part]).into());
            assert_eq!(found, Ok(vec![(0, message.clone())]));
        }
    }

    #[test]
    fn a_schema_that_is_spelled_with_escapes_is_seen() {
        let plain = format!("{{\"$schema\":\"{DECISIONS}\",\"decision\":{{}}}}");
        for spelled in [
            "\\u0024schema",
            "$\\u0073chema",
            "\\u0024\\u0073chem\\u0061",
        ] {
            let text = plain.replace("$schema", spelled);
            assert_eq!(Message::read(&text), Message::read(&plain), "{text}");
            let part = json!({"type": "input_text", "text": text});
            assert!(find_in_part(&part.clone().into()).is_some(), "{text}");
            assert_eq!(find(&json!([part]).into()).unwrap().len(), 1);
            // The part's own text may have the escape too.
            let part =
                serde_json::to_string(&json!({"type": "input_text", "text": plain})).unwrap();
            let part = part.replace("$schema", spelled);
            let part = Payload::from_text(part).unwrap();
            assert!(find_in_part(&part).is_some(), "{part:?}");
        }
    }

    #[test]
    fn an_item_has_a_bounded_number_of_messages() {
        let part = Message::new(DECISIONS, Kind::Decision, json!({})).input_part();
        let content = |n: usize| Payload::from(Value::Array(vec![part.clone(); n]));
        assert_eq!(find(&content(MAX_MESSAGES)).unwrap().len(), MAX_MESSAGES);
        assert_eq!(find(&content(MAX_MESSAGES + 1)), Err(TooManyMessages));
    }

    #[test]
    fn a_message_is_kept_as_the_object_it_is() {
        let message = Message::new(DECISIONS, Kind::Decision, json!({"options": []}));
        let text = serde_json::to_string(&message).unwrap();
        assert_eq!(text, message.text());
        assert_eq!(serde_json::from_str::<Message>(&text).unwrap(), message);
        assert!(serde_json::from_str::<Message>("{}").is_err());
    }
}
