//! One message of a run on its way into a document.

use crate::Losses;
use crate::runs::ModelMessage;
use jiff::Timestamp;
use jiff::civil::DateTime;
use thread::validate::is_instant;
use thread::{Json, Object};
use uuid::Uuid;

/// The namespace for identifiers of content without one.
const NAMESPACE: Uuid = Uuid::from_u128(0x0f6a_6f0e_51c4_4c2b_a1d7_3e8b_5c90_4d22);

/// The timestamps of an archive: data without one gets the previous one.
pub(super) struct Times {
    last: String,
}

impl Times {
    /// The timestamp for data without one.
    pub(super) fn last(&self) -> &str {
        &self.last
    }

    pub(super) fn new(first: &str) -> Self {
        Self {
            last: first.to_owned(),
        }
    }

    fn of(&mut self, message: &Object) -> String {
        if let Some(instant) = own(message).and_then(instant) {
            self.last = instant;
        }
        self.last.clone()
    }
}

/// A message's own timestamp, or that of its first part that has one.
fn own(message: &Object) -> Option<&str> {
    let text = |json: &Json| json.as_str().is_some();
    let of_message = message.get("timestamp").filter(|json| text(json));
    let parts = || {
        let parts = message.get("parts")?.as_array()?.iter();
        parts
            .filter_map(|part| part.get("timestamp"))
            .find(|json| text(json))
    };
    of_message.or_else(parts)?.as_str()
}

/// The original text of a timestamp; without an offset it counts as UTC.
pub(crate) fn instant(text: &str) -> Option<String> {
    if is_instant(text) {
        return Some(text.to_owned());
    }
    if let Ok(instant) = text.parse::<Timestamp>() {
        return Some(instant.to_string());
    }
    let local: DateTime = text.parse().ok()?;
    Some(format!("{local}Z"))
}

/// Members to which the protocol assigns a meaning of its own.
const OURS: [&str; 5] = [
    "message_type",
    "turn_type",
    "submitted_at",
    "agent_id",
    "timestamp",
];

/// A message whose parts and timestamp are ready for a document.
pub(super) struct Draft {
    source: Object,
    /// Its JSON Pointer in the archive.
    pub(super) pointer: String,
    /// When it was made.
    pub(super) timestamp: String,
    parts: Vec<Json>,
    /// Whether it is the rest of a request with system prompts only.
    pub(super) is_void: bool,
    /// Whether it is a message of the protocol already, not of a model.
    pub(super) is_system: bool,
}

impl Draft {
    pub(super) fn read(
        message: ModelMessage,
        times: &mut Times,
        losses: &mut Losses,
    ) -> Option<Self> {
        let ModelMessage { json, pointer } = message;
        let Some(mut source) = json.into_object() else {
            losses.push(pointer, "what is no message");
            return None;
        };
        let is_system = source.get_str("message_type") == Some("system");
        let timestamp = times.of(&source);
        if is_system {
            return Some(Self {
                source,
                pointer,
                timestamp,
                parts: Vec::new(),
                is_void: false,
                is_system,
            });
        }
        let original = source.get_mut("parts").map(std::mem::take);
        let original = original.and_then(Json::into_array).unwrap_or_default();
        let n_original = original.len();
        let mut parts = Vec::with_capacity(n_original);
        for (place, part) in original.into_iter().enumerate() {
            let what = match part.get("part_kind").and_then(Json::as_str) {
                Some("system-prompt") => Some("a system prompt"),
                Some("instruction-delta" | "instruction-baseline") => Some("instructions"),
                _ => None,
            };
            match what {
                Some(what) => losses.push(format!("{pointer}/parts/{place}"), what),
                None => parts.push(ready(part, || format!("{pointer}/parts/{place}"), losses)),
            }
        }
        let said = |key: &str| source.get(key).is_some_and(|value| !value.is_null());
        if said("instructions") {
            losses.push(format!("{pointer}/instructions"), "instructions");
        }
        for key in OURS.iter().take(4) {
            if source.remove(key).is_some() {
                losses.push(
                    format!("{pointer}/{key}"),
                    "a member of a name that the protocol uses",
                );
            }
        }
        let is_void = parts.is_empty() && n_original > 0;
        match source.get("timestamp").map(Json::as_str) {
            _ if is_void => {}
            Some(Some(own)) if own == timestamp => {}
            Some(Some(_)) => {
                losses.push(format!("{pointer}/timestamp"), "how an instant is spelled");
            }
            Some(None) | None => {
                losses.push(
                    format!("{pointer}/timestamp"),
                    "the source has no timestamp; one was made up",
                );
            }
        }
        Some(Self {
            source,
            pointer,
            timestamp,
            parts,
            is_void,
            is_system,
        })
    }

    pub(super) fn is_response(&self) -> bool {
        self.source.get_str("kind") == Some("response")
    }

    /// Whether it contains a user prompt.
    pub(super) fn prompts(&self) -> bool {
        let prompt =
            |part: &Json| part.get("part_kind").and_then(Json::as_str) == Some("user-prompt");
        !self.is_response() && self.parts.iter().any(prompt)
    }

    /// The message as a user's turn.
    pub(super) fn into_user_turn(self) -> Object {
        let turn = Object::new()
            .with("turn_type", "user")
            .with("submitted_at", self.timestamp.as_str());
        self.with_rest(turn)
    }

    /// The message of the agent's turn.
    pub(super) fn into_message(self, agent_id: &str) -> Object {
        if self.is_system {
            return self.source;
        }
        let kind = if self.is_response() {
            "response"
        } else {
            "request"
        };
        let message = Object::new()
            .with("message_type", kind)
            .with("timestamp", self.timestamp.as_str())
            .with("agent_id", agent_id);
        self.with_rest(message)
    }

    fn with_rest(self, head: Object) -> Object {
        let mut whole = head.with("parts", Json::Array(self.parts));
        for (key, value) in self.source {
            let own = matches!(&*key, "parts" | "kind" | "timestamp");
            let instructions = &*key == "instructions" && !value.is_null();
            if !own && !instructions {
                whole.insert(key, value);
            }
        }
        whole
    }
}

/// A part with the members that the protocol requires beyond the library.
fn ready(part: Json, pointer: impl Fn() -> String, losses: &mut Losses) -> Json {
    let Json::Object(mut part) = part else {
        return part;
    };
    match part.get_str("part_kind") {
        Some("tool-return") => {
            let status = status(&part);
            let own = part.insert("status", status);
            if own.is_some_and(|own| own.as_str() != Some(status)) {
                losses.push(format!("{}/status", pointer()), "a status of its own");
            }
        }
        Some("tool-call") if !part.contains_key("args") => {
            part.insert("args", Json::Null);
        }
        Some("user-prompt") => {
            let items = part.get_mut("content").and_then(Json::as_array_mut);
            items.into_iter().flatten().for_each(identify);
        }
        Some("file") => part.get_mut("content").into_iter().for_each(identify),
        _ => {}
    }
    part.into()
}

/// The protocol's `status`, derived from the library's members (ruling 18), which stay.
fn status(part: &Object) -> &'static str {
    let cause = part.get("retry").and_then(|retry| retry.get("cause"));
    let cause = cause.and_then(Json::as_str);
    match part.get_str("outcome") {
        None | Some("success") => "success",
        Some("retried") if cause == Some("validation_error") => "validation_error",
        Some(_) => "error",
    }
}

/// Adds a derived identifier to media without one.
fn identify(media: &mut Json) {
    let Some(media) = media.as_object_mut() else {
        return;
    };
    if media.get("identifier").is_some_and(|id| !id.is_null()) {
        return;
    }
    if let Some(of) = media.get_str("url").or(media.get_str("data")) {
        let id = Uuid::new_v5(&NAMESPACE, of.as_bytes()).simple().to_string();
        media.insert("identifier", id.get(..6).unwrap_or_default());
    }
}
