//! The messages of an agent's turn as the steps of an execution.

use super::delta::{RETURNS, difference, stored, wrapped};
use super::parts::{self, MESSAGE};
use super::turns::{request_object, response_object};
use super::usage;
use crate::parts::{StepResponse, ToolPart};
use std::collections::BTreeMap;
use thread::document::Message;
use thread::{Json, Object};
use timeline::Payload;

/// One step: at most one response, and the messages around it.
#[derive(Default)]
pub(super) struct Cycle<'a> {
    before: Vec<&'a Json>,
    response: Option<&'a Object>,
    after: Vec<&'a Json>,
}

/// Cuts a turn's messages before each response but the first; there is at least one step.
pub(super) fn cycles(messages: &[Json]) -> Vec<Cycle<'_>> {
    let mut cycles: Vec<Cycle<'_>> = Vec::new();
    let mut open = Cycle::default();
    for json in messages {
        match Message::new(json) {
            Message::Response(response) => {
                if open.response.is_some() {
                    cycles.push(std::mem::take(&mut open));
                }
                open.response = Some(response.object());
            }
            Message::Request(_) | Message::System(_) | Message::Unknown(_) => {
                if open.response.is_some() {
                    open.after.push(json);
                } else {
                    open.before.push(json);
                }
            }
        }
    }
    cycles.push(open);
    cycles
}

/// The records that a step writes.
pub(super) struct Written {
    /// All parts in the state after the model's answer, including carried messages.
    pub(super) parts: Vec<Payload>,
    /// The model's metadata about its answer, if there is one.
    pub(super) response: Option<Payload>,
    /// The calls with their results, by place.
    pub(super) results: Vec<(u32, ToolPart)>,
    /// The text of the last instant in it.
    pub(super) last_at: Option<String>,
}

impl Cycle<'_> {
    /// The timestamp of the response.
    pub(super) fn responded_at(&self) -> Option<&str> {
        self.response?.get_str("timestamp")
    }

    /// Writes the step in the log's shapes.
    pub(super) fn written(&self, agent_id: &str) -> Result<Written, serde_json::Error> {
        let mut parts = Vec::new();
        for message in &self.before {
            let kept = wrapped(MESSAGE, "message", message).with("before", true);
            parts.push(stored(&kept.into())?);
        }
        let mut calls = Calls::default();
        let said = self.response.and_then(|response| response.get("parts"));
        for part in said.and_then(Json::as_array).unwrap_or_default() {
            let own = parts::imported(part)?;
            if let Some(tool) = ToolPart::read(&own) {
                calls.open(tool, parts.len());
            }
            parts.push(own);
        }
        let mut returns = None;
        for (place, message) in self.after.iter().enumerate() {
            if place == 0
                && let Some(request) = calls.answered_in_order(message)?
            {
                returns = difference(&request_of(agent_id), request, &["parts"]);
                continue;
            }
            let message = calls.taken_out(message)?;
            parts.push(stored(&wrapped(MESSAGE, "message", &message).into())?);
        }
        let response = self
            .response
            .map(|response| message_text(response, agent_id, returns))
            .transpose()?;
        let last = self.after.last().copied().and_then(Json::as_object);
        let last_at = last
            .or(self.response)
            .and_then(|last| last.get_str("timestamp"));
        Ok(Written {
            parts,
            response,
            results: calls.results,
            last_at: last_at.map(str::to_owned),
        })
    }
}

fn request_of(agent_id: &str) -> Object {
    request_object(agent_id, String::new(), Vec::new())
}

/// The metadata of a response that the log stores in addition to its parts.
fn message_text(
    response: &Object,
    agent_id: &str,
    returns: Option<Object>,
) -> Result<Payload, serde_json::Error> {
    let text = |key: &str| response.get_str(key).map(str::to_owned);
    let usage = response.get("usage").and_then(Json::as_object);
    let metadata = response
        .get("provider_metadata")
        .filter(|json| json.as_object().is_some());
    let stop_reason = response
        .get_str("finish_reason")
        .and_then(usage::stop_reason);
    let mut said = StepResponse {
        provider: text("provider_name"),
        model: text("model_name"),
        response_id: text("provider_response_id"),
        stop_reason: stop_reason.map(str::to_owned),
        usage: usage.map(usage::imported).transpose()?,
        metadata: metadata.map(stored).transpose()?,
        timestamp: text("timestamp"),
        ..StepResponse::default()
    };
    let timestamp = said.timestamp.clone().unwrap_or_default();
    let derived = response_object(&said, agent_id, timestamp, Vec::new());
    let mut extra = difference(&derived, response, &["parts"]);
    if let Some(returns) = returns {
        extra.get_or_insert_default().insert(RETURNS, returns);
    }
    said.extra = extra.map(|extra| stored(&extra.into())).transpose()?;
    Payload::write(&said)
}

/// The calls of a response, and the answers found for them.
#[derive(Default)]
struct Calls {
    /// Index and call by id; `None` for an id that occurs twice.
    open: BTreeMap<String, Option<(u32, ToolPart)>>,
    results: Vec<(u32, ToolPart)>,
}

impl Calls {
    fn open(&mut self, tool: ToolPart, place: usize) {
        let Ok(place) = u32::try_from(place) else {
            return;
        };
        let id = tool.tool_call_id.clone();
        let known = self.open.contains_key(&id);
        self.open.insert(id, (!known).then_some((place, tool)));
    }

    /// The open call that a part answers.
    fn answered_by(&self, part: &Json) -> Option<&(u32, ToolPart)> {
        self.open
            .get(thread::document::Part::new(part).answers()?)?
            .as_ref()
    }

    /// The call that a part answers, with that answer.
    fn answered(&self, part: &Json) -> Result<Option<(u32, ToolPart)>, serde_json::Error> {
        let Some((call, part)) = self.answered_by(part).zip(part.as_object()) else {
            return Ok(None);
        };
        let (place, tool) = call;
        Ok(parts::answered(tool, part)?.map(|tool| (*place, tool)))
    }

    fn take(&mut self, answer: (u32, ToolPart)) {
        self.open.insert(answer.1.tool_call_id.clone(), None);
        self.results.push(answer);
    }

    /// Accepts the answers of a request without other parts, in the order of their calls.
    fn answered_in_order<'a>(
        &mut self,
        message: &'a Json,
    ) -> Result<Option<&'a Object>, serde_json::Error> {
        let Message::Request(request) = Message::new(message) else {
            return Ok(None);
        };
        let Some(parts) = message.get("parts").and_then(Json::as_array) else {
            return Ok(None);
        };
        let mut answers = Vec::with_capacity(parts.len());
        for part in parts {
            match self.answered(part)? {
                Some(answer) => answers.push(answer),
                None => return Ok(None),
            }
        }
        let in_order = answers.is_sorted_by(|(a, _), (b, _)| a < b);
        if answers.is_empty() || !in_order {
            return Ok(None);
        }
        for answer in answers {
            self.take(answer);
        }
        Ok(Some(request.object()))
    }

    /// The message with its answers replaced by the ids of their calls.
    fn taken_out(&mut self, message: &Json) -> Result<Json, serde_json::Error> {
        let mut message = message.clone();
        if !matches!(Message::new(&message), Message::Request(_)) {
            return Ok(message);
        }
        let parts = message
            .as_object_mut()
            .and_then(|message| message.get_mut("parts")?.as_array_mut());
        for part in parts.into_iter().flatten() {
            if let Some(answer) = self.answered(part)? {
                *part = answer.1.tool_call_id.as_str().into();
                self.take(answer);
            }
        }
        Ok(message)
    }
}
