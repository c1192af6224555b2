//! A streaming turn as JSON.

use super::{Open, PartialTurn, Streamed, StreamedKind};
use crate::json::{Json, Object};
use crate::path::{Step, pointer};

/// The error for a value that is not a streaming turn.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{pointer:?} is no {expected}")]
pub struct PartialError {
    /// The JSON Pointer of the faulty or missing value.
    pub pointer: String,
    /// The expected value.
    pub expected: &'static str,
}

impl PartialTurn {
    /// The turn as JSON, which [`PartialTurn::from_json`] reads back to the same.
    #[must_use]
    pub fn to_json(&self) -> Json {
        let response = self.response.as_ref().map(|open| {
            let parts: Json = open.parts.iter().map(Streamed::to_json).collect();
            open.members.clone().with("parts", parts)
        });
        Object::new()
            .with("turn_type", "partial")
            .with("agent_id", self.agent_id.as_str())
            .with("started_at", self.started_at.as_str())
            .with_some("last_event", self.last_event)
            .with("messages", Json::Array(self.messages.clone()))
            .with_some("response", response)
            .into()
    }

    /// Reads a turn back.
    pub fn from_json(json: &Json) -> Result<Self, PartialError> {
        let text = |key: &'static str| {
            let found = json.get(key).and_then(Json::as_str);
            found.ok_or_else(|| wrong([Step::Key(key)], "string"))
        };
        if text("turn_type")? != "partial" {
            return Err(wrong([Step::Key("turn_type")], "`partial`"));
        }
        let last_event = json.get("last_event").map(|number| {
            let number = number.as_u64();
            number.ok_or_else(|| wrong([Step::Key("last_event")], "event number"))
        });
        let messages = json.get("messages").and_then(Json::as_array);
        Ok(Self {
            agent_id: text("agent_id")?.to_owned(),
            started_at: text("started_at")?.to_owned(),
            last_event: last_event.transpose()?,
            messages: messages
                .ok_or_else(|| wrong([Step::Key("messages")], "array"))?
                .to_vec(),
            response: json.get("response").map(Open::from_json).transpose()?,
        })
    }
}

fn wrong<'a>(steps: impl IntoIterator<Item = Step<'a>>, expected: &'static str) -> PartialError {
    let pointer = pointer(steps);
    PartialError { pointer, expected }
}

impl Open {
    fn from_json(json: &Json) -> Result<Self, PartialError> {
        let at = Step::Key("response");
        let object = json.as_object().ok_or_else(|| wrong([at], "object"))?;
        let parts = object.get("parts").and_then(Json::as_array);
        let parts = parts.ok_or_else(|| wrong([at, Step::Key("parts")], "array"))?;
        let parts = parts.iter().enumerate();
        let mut members = object.clone();
        members.remove("parts");
        Ok(Self {
            members,
            parts: parts
                .map(|(place, part)| Streamed::from_json(place, part))
                .collect::<Result<_, _>>()?,
        })
    }
}

impl Streamed {
    fn to_json(&self) -> Json {
        let state = if self.done { "done" } else { "streaming" };
        let mut part = Object::new()
            .with("part_kind", self.kind.as_str())
            .with("state", state)
            .with(self.kind.text_key(), self.text.as_str());
        for (key, value) in &self.members {
            part.insert(key, value.clone());
        }
        part.into()
    }

    fn from_json(place: usize, json: &Json) -> Result<Self, PartialError> {
        let at = |key| {
            [
                Step::Key("response"),
                Step::Key("parts"),
                Step::Index(place),
                Step::Key(key),
            ]
        };
        let text = |key| json.get(key).and_then(Json::as_str);
        let kind = text("part_kind").and_then(|kind| StreamedKind::try_from(kind).ok());
        let kind =
            kind.ok_or_else(|| wrong(at("part_kind"), "`text`, `thinking` or `tool-call`"))?;
        let done = match text("state") {
            Some("streaming") => false,
            Some("done") => true,
            Some(_) | None => return Err(wrong(at("state"), "`streaming` or `done`")),
        };
        let key = kind.text_key();
        let mut members = json.as_object().cloned().unwrap_or_default();
        members.retain(|key, _| !kind.reserves(key));
        Ok(Self {
            kind,
            members,
            text: text(key)
                .ok_or_else(|| wrong(at(key), "string"))?
                .to_owned(),
            done,
        })
    }
}
