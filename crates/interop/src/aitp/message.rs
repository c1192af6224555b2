//! Capability messages in what is said: JSON objects with a `$schema`, in text parts.

use super::family::{Family, Version, capability_of};
use super::kind::Kind;
use serde_json::{Map, Value};
use timeline::{PartKind, Payload, part_kind};

/// The longest text that is read as a capability message, in bytes. A longer one is text.
pub const MAX_MESSAGE: usize = 256 * 1024;

/// One capability message.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// The URL of its schema, as it stands there.
    pub schema: String,
    /// The capability and its version; nothing for one that is not known here, which passes as it is.
    pub capability: Option<(Family, Version)>,
    /// Its type, if it has exactly one payload and that is known.
    pub kind: Option<Kind>,
    /// The whole object.
    pub value: Map<String, Value>,
}

impl Message {
    /// Reads the text of a part, if it is a capability message.
    pub fn read(text: &str) -> Option<Self> {
        // Most texts are none, and are not parsed to know it.
        let candidate = text.len() <= MAX_MESSAGE && text.trim_start().starts_with('{');
        if !candidate || !text.contains("$schema") {
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

    /// What stands under the member that names its type.
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

/// The capability messages in the content of an item, each with the place of its part.
pub fn find(content: &Payload) -> Vec<(usize, Message)> {
    if !content.text().contains("$schema") {
        return Vec::new();
    }
    let parts: Vec<Payload> = content.read().unwrap_or_default();
    let messages = parts
        .iter()
        .enumerate()
        .filter_map(|(place, part)| Some((place, find_in_part(part)?)));
    messages.collect()
}

/// The capability message in one part.
pub fn find_in_part(part: &Payload) -> Option<Message> {
    if !part.text().contains("$schema") {
        return None;
    }
    let name = part.str_field("type")?;
    match part_kind(&name)? {
        PartKind::InputText | PartKind::OutputText => Message::read(&part.str_field("text")?),
        PartKind::Reasoning
        | PartKind::InputImage
        | PartKind::InputFile
        | PartKind::Refusal
        | PartKind::Tool(_)
        | PartKind::Extension(_) => None,
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
        let found = find(&content.into());
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
            assert_eq!(find(&json!([part]).into()), [(0, message.clone())]);
        }
    }
}
