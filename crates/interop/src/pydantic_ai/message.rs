//! One message of a history on its way into a document.

use super::PydanticAiError;
use crate::Loss;
use jiff::Timestamp;
use jiff::civil::DateTime;
use thread::{Json, Object};

/// The instants of a history: what has none gets the one before it.
pub(super) struct Times {
    last: String,
}

impl Times {
    pub(super) fn new(messages: &[Json], now: &str) -> Self {
        let first = messages
            .iter()
            .find_map(|message| own(message).and_then(instant));
        Self {
            last: first.unwrap_or_else(|| now.to_owned()),
        }
    }

    pub(super) fn last(&self) -> &str {
        &self.last
    }

    fn of(&mut self, message: &Json) -> String {
        if let Some(instant) = own(message).and_then(instant) {
            self.last = instant;
        }
        self.last.clone()
    }
}

/// A message's own timestamp, or that of its first part that has one.
fn own(message: &Json) -> Option<&str> {
    fn text(json: &Json) -> Option<&str> {
        json.get("timestamp")?.as_str()
    }
    let parts = || message.get("parts")?.as_array()?.iter().find_map(text);
    text(message).or_else(parts)
}

/// An instant as it is spelled; one without an offset is taken for UTC.
fn instant(text: &str) -> Option<String> {
    if text.parse::<Timestamp>().is_ok() {
        return Some(text.to_owned());
    }
    let local: DateTime = text.parse().ok()?;
    Some(format!("{local}Z"))
}

/// A message whose parts and instant are ready for a document.
pub(super) struct Draft<'a> {
    source: &'a Object,
    /// Where it stands in the history.
    pub(super) place: usize,
    /// When it was made.
    pub(super) timestamp: String,
    parts: Vec<Json>,
    /// Whether it is only left of a request of system prompts.
    pub(super) is_void: bool,
}

impl<'a> Draft<'a> {
    pub(super) fn read(
        json: &'a Json,
        place: usize,
        times: &mut Times,
        losses: &mut Vec<Loss>,
    ) -> Result<Self, PydanticAiError> {
        let refused = || PydanticAiError::NotAMessage {
            pointer: format!("/{place}"),
        };
        let source = json.as_object().ok_or_else(refused)?;
        let known = matches!(source.get_str("kind"), Some("request" | "response"));
        let original = source.get("parts").and_then(Json::as_array);
        let original = original.filter(|_| known).ok_or_else(refused)?;
        let mut lost = |pointer: String, what: &str| {
            losses.push(Loss {
                pointer,
                what: what.to_owned(),
            });
        };
        let mut parts = Vec::with_capacity(original.len());
        for (part_place, part) in original.iter().enumerate() {
            match part.get("part_kind").and_then(Json::as_str) {
                Some("system-prompt") => {
                    lost(format!("/{place}/parts/{part_place}"), "a system prompt");
                }
                Some("tool-return") => parts.push(with_status(part)),
                Some(_) | None => parts.push(part.clone()),
            }
        }
        if source
            .get("instructions")
            .is_some_and(|text| !text.is_null())
        {
            lost(format!("/{place}/instructions"), "instructions");
        }
        let is_void = parts.is_empty() && !original.is_empty();
        Ok(Self {
            source,
            place,
            timestamp: times.of(json),
            parts,
            is_void,
        })
    }

    pub(super) fn text(&self, key: &str) -> Option<&'a str> {
        self.source.get_str(key)
    }

    pub(super) fn is_response(&self) -> bool {
        self.text("kind") == Some("response")
    }

    pub(super) fn is_interrupted(&self) -> bool {
        self.text("state") == Some("interrupted")
    }

    /// Whether a user says something in it.
    pub(super) fn prompts(&self) -> bool {
        !self.is_response() && self.has(&["user-prompt"])
    }

    /// Whether it goes on with what an earlier response asked for.
    pub(super) fn answers(&self) -> bool {
        self.has(&["tool-return", "retry-prompt", "retry-feedback"])
    }

    fn has(&self, kinds: &[&str]) -> bool {
        let mut found = self
            .parts
            .iter()
            .map(|part| part.get("part_kind").and_then(Json::as_str));
        found.any(|kind| kind.is_some_and(|kind| kinds.contains(&kind)))
    }

    /// The turn of the user who prompted.
    pub(super) fn into_user_turn(self) -> Object {
        let turn = Object::new()
            .with("turn_type", "user")
            .with("submitted_at", self.timestamp.as_str());
        self.with_rest(turn)
    }

    /// The message of the agent's turn.
    pub(super) fn into_message(self, agent_id: &str) -> Object {
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
        let own = |key: &str| matches!(key, "parts" | "kind" | "timestamp");
        for (key, value) in self.source {
            let instructions = key == "instructions" && !value.is_null();
            if !own(key) && !instructions {
                whole.insert(key, value.clone());
            }
        }
        whole
    }
}

/// A tool's return with the protocol's `status`, which follows from what the library says
/// (ruling 18); the library's words stay.
fn with_status(part: &Json) -> Json {
    let Some(part) = part.as_object() else {
        return part.clone();
    };
    let cause = part.get("retry").and_then(|retry| retry.get("cause"));
    let cause = cause.and_then(Json::as_str);
    let status = match part.get_str("outcome") {
        None | Some("success") => "success",
        Some("retried") if cause == Some("validation_error") => "validation_error",
        Some(_) => "error",
    };
    part.clone().with("status", status).into()
}
