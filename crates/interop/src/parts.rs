//! The parts that reactions write (EK §4.4), as types: views of a [`Payload`], never storage.

use crate::document::data_url;
use crate::run::streamed_texts;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use timeline::{Entry, Item, ItemType, NewItem, Payload, StepRecord, Transcript};

/// The state of a tool call. The names are those of the AI SDK's tool parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ToolState {
    /// Called; no result yet.
    #[default]
    InputAvailable,
    /// The call runs once a person approves it.
    ApprovalRequested,
    /// A person approved or denied the call; it has no result yet.
    ApprovalResponded,
    /// The call has a result.
    OutputAvailable,
    /// The call failed.
    OutputError,
}

/// A tool call and, once there is one, its result: `{"type": "tool-<name>", …}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolPart {
    /// `tool-<name>`.
    #[serde(rename = "type")]
    pub part_type: String,
    /// Correlates the call with its result.
    pub tool_call_id: String,
    /// The state of the call. A part without one is a call that was just made (EK §14).
    #[serde(default)]
    pub state: ToolState,
    /// The arguments, if their text is JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Payload>,
    /// The arguments' text, if `input` alone can't restore it: malformed JSON, or not an object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_text: Option<String>,
    /// The result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Payload>,
    /// The error message of a failed call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_text: Option<String>,
    /// More than success or failure: `interrupted`, `denied`, `retried`, …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    /// The duration of the tool's run, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// Calls of the same response that must end first (UAP §8.6).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<String>,
    /// The approval of the call, if one was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<ToolApproval>,
    /// The work of the call's sub-agents (UAP §8.8), in the format that agents write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subagents: Option<Payload>,
    /// Fields of a foreign format's call, never interpreted here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_extra: Option<Payload>,
    /// Fields of a foreign format's result, never interpreted here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub return_extra: Option<Payload>,
}

impl ToolPart {
    /// A call without a result. Keeps the arguments' text byte for byte.
    pub fn call(tool_name: &str, tool_call_id: &str, arguments: &str) -> Self {
        // What reads as no value (too deep, a number beyond all doubles) is text to everyone.
        let readable =
            serde_json::from_str::<Value>(arguments).is_ok_and(|value| value.is_object());
        let input = Payload::from_text(arguments.to_owned())
            .ok()
            .filter(|_| readable);
        let same = input
            .as_ref()
            .is_some_and(|input| input.text() == arguments);
        Self {
            part_type: format!("tool-{tool_name}"),
            tool_call_id: tool_call_id.to_owned(),
            state: ToolState::InputAvailable,
            input,
            input_text: (!same).then(|| arguments.to_owned()),
            output: None,
            error_text: None,
            outcome: None,
            duration_ms: None,
            after: Vec::new(),
            approval: None,
            subagents: None,
            call_extra: None,
            return_extra: None,
        }
    }

    /// Reads a part, if it is a tool call.
    pub fn read(part: &Payload) -> Option<Self> {
        let tool: Self = part.read().ok()?;
        tool.part_type.starts_with("tool-").then_some(tool)
    }

    /// The part as it is stored.
    pub fn write(&self) -> Result<Payload, serde_json::Error> {
        Payload::write(self)
    }

    /// The tool's name.
    pub fn tool_name(&self) -> &str {
        self.part_type
            .strip_prefix("tool-")
            .unwrap_or(&self.part_type)
    }

    /// The arguments' text, as the model sent it.
    pub fn arguments(&self) -> &str {
        self.input_text
            .as_deref()
            .or(self.input.as_ref().map(Payload::text))
            .unwrap_or_default()
    }

    /// The arguments as an object, empty if there are none. `None` if they are not an object.
    pub fn input_object(&self) -> Option<Map<String, Value>> {
        match self.arguments() {
            blank if blank.trim().is_empty() => Some(Map::new()),
            arguments => serde_json::from_str(arguments).ok(),
        }
    }

    /// Whether a person denied the call.
    pub fn is_denied(&self) -> bool {
        self.outcome.as_deref() == Some("denied")
    }

    /// Whether it has a result, good or bad.
    pub fn is_answered(&self) -> bool {
        match self.state {
            ToolState::InputAvailable
            | ToolState::ApprovalRequested
            | ToolState::ApprovalResponded => false,
            ToolState::OutputAvailable | ToolState::OutputError => true,
        }
    }

    /// The result as text, if there is one: the error message, or the tool's output as a string or
    /// as JSON.
    pub fn result_text(&self) -> Option<String> {
        let output = || self.output.as_ref().map(text_of);
        let text = match self.state {
            ToolState::InputAvailable
            | ToolState::ApprovalRequested
            | ToolState::ApprovalResponded => return None,
            ToolState::OutputAvailable => output(),
            ToolState::OutputError => self.error_text.clone().or_else(output),
        };
        Some(text.unwrap_or_default())
    }
}

/// A tool's output as text: a string unchanged, anything else as JSON.
pub(crate) fn text_of(output: &Payload) -> String {
    let text = output.read::<String>();
    text.unwrap_or_else(|_| output.text().to_owned())
}

/// A request for approval of a call, with its answer. The members are those of the AI SDK's tool
/// parts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolApproval {
    /// Correlates the question with its answer.
    pub id: String,
    /// The answer; `None` if the approval is still pending.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved: Option<bool>,
    /// The reason for the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The type of a part with a prompt that a strategy sent to the model as the user. The part
/// precedes the answer; only the model receives it.
pub const PROMPT: &str = "loomline-prompt";

/// Whether a part is a prompt.
pub fn is_prompt(part: &Payload) -> bool {
    part.text().contains(PROMPT) && part.str_field("type").as_deref() == Some(PROMPT)
}

/// A file whose bytes are in its part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InlineFile {
    /// Its media type.
    pub media_type: String,
    /// Its bytes, in base64.
    pub data: String,
}

impl InlineFile {
    /// The file of a part: an image or a file as a `data:` URL, or base64. `None` if the part has no
    /// bytes, such as a file at an address.
    pub fn read(part: &Payload) -> Option<Self> {
        let text = |key: &str| part.str_field(key);
        let named = text("media_type");
        if let Some(url) = text("image_url") {
            let (media_type, data) = data_url(&url)?;
            return Some(Self {
                media_type: media_type.to_owned(),
                data: data.to_owned(),
            });
        }
        let data = text("file_data")?;
        let (found, data) = match data_url(&data) {
            Some((media_type, data)) => (Some(media_type.to_owned()), data.to_owned()),
            None => (None, data),
        };
        Some(Self {
            media_type: named
                .or(found)
                .unwrap_or_else(|| "application/octet-stream".to_owned()),
            data,
        })
    }
}

/// The type of a part that is a file a model has made: `file_data` or `file_url`, and `media_type`.
pub const OUTPUT_FILE: &str = "loomline-output-file";

/// Text the model wrote: `{"type": "output_text", …}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TextPart {
    /// `output_text`, or `input_text` in users' messages.
    #[serde(rename = "type")]
    pub part_type: String,
    /// The text.
    pub text: String,
    /// Fields of a foreign format, never interpreted here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extra: Option<Payload>,
}

/// Reasoning the model showed: `{"type": "reasoning", …}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReasoningPart {
    /// `reasoning`.
    #[serde(rename = "type")]
    pub part_type: String,
    /// The text; empty if the provider hides it.
    pub text: String,
    /// The provider's proof or encrypted form of this text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
    /// The provider that signed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// Fields of a foreign format, never interpreted here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extra: Option<Payload>,
}

/// The answer of a step that was cut off, as parts: its reasoning, then its texts. It needs the
/// chunks of the log. It is empty if the answer is complete or the step has parts.
pub fn cut_off_parts(step: &StepRecord) -> Vec<Payload> {
    let left_parts = step.parts.iter().any(|part| !is_prompt(&part.part));
    if step.response.is_some() || left_parts {
        return Vec::new();
    }
    let (texts, reasonings) = streamed_texts(step);
    let reasonings = reasonings.into_iter().map(|text| {
        Payload::write(&ReasoningPart {
            part_type: "reasoning".to_owned(),
            text,
            signature: None,
            provider: None,
            extra: None,
        })
    });
    let texts = texts.into_iter().map(|text| {
        Payload::write(&TextPart {
            part_type: "output_text".to_owned(),
            text,
            extra: None,
        })
    });
    // Strings are always JSON.
    reasonings.chain(texts).flatten().collect()
}

/// A model's metadata about its answer, stored with the step (`data-step-response`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StepResponse {
    /// The provider's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// The model's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The provider's id of the response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_id: Option<String>,
    /// The id of the message, stored so that a resumed run uses it again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    /// The model's stop reason (UPP §12): `end_turn`, `tool_use`, …
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<String>,
    /// The token usage: `inputTokens`, `outputTokens`, …
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Payload>,
    /// The provider-namespaced metadata of the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Payload>,
    /// Measurements of the request to the model: `bytes`, `commonPrefixBytes`, `cacheBreak`,
    /// `omitted`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<Payload>,
    /// Whether the step called no model and holds only the results of calls that were pending.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub answers: bool,
    /// The time of the answer, if it differs from the record's time: for imports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<String>,
    /// Fields of a foreign format, never interpreted here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extra: Option<Payload>,
}

/// An event of a step that is not output of its model: an event of `ThreadProtocol` (0.0.4 "Tier
/// 1"), in the shape of a client's data part:
/// `{"type": "data-tp-thread_spawn", "id": …, "data": {…}}`.
///
/// The document holds it as a system message of the turn. `data` is the body of that message, with
/// agent names where the document has agent ids.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventPart {
    /// One of the names below.
    #[serde(rename = "type")]
    pub part_type: String,
    /// Identifies the event among the events of its type.
    pub id: String,
    /// The body of the event.
    pub data: Payload,
}

impl EventPart {
    /// A thread was started from this one: `spawned_thread_id`, `tool_call_id`, `subagent_id`,
    /// `subagent_type`.
    pub const THREAD_SPAWN: &str = "data-tp-thread_spawn";
    /// A thread that was started from this one has ended: `thread_id`, `tool_call_id`, `reason`.
    pub const THREAD_END: &str = "data-tp-thread_end";
    /// Control passed to another agent: `from`, `to`, `reason`.
    pub const AGENT_HANDOFF: &str = "data-tp-agent_handoff";

    /// All of them. Only the runtime writes them; in an imported document they are messages.
    pub const NAMES: [&str; 3] = [Self::THREAD_SPAWN, Self::THREAD_END, Self::AGENT_HANDOFF];

    /// Reads a part, if it is such an event.
    pub fn read(part: &Payload) -> Option<Self> {
        // Most parts are none, and are not parsed to know it.
        if !part.text().contains("\"data-tp-") {
            return None;
        }
        let event: Self = part.read().ok()?;
        Self::NAMES
            .contains(&event.part_type.as_str())
            .then_some(event)
    }

    /// Whether control passed to another agent.
    pub fn is_handoff(&self) -> bool {
        self.part_type == Self::AGENT_HANDOFF
    }

    /// The part as it is stored.
    pub fn write(&self) -> Result<Payload, serde_json::Error> {
        Payload::write(self)
    }
}

/// An event of the thread outside of any execution, such as an actor that joined: an item with
/// exactly this part, `{"type": "data-app-…", "id": …, "data": {…}}`.
///
/// Its item has the type `item_reference` and no role, so it is not a message: it starts no run,
/// leaves pending calls unchanged, and no model receives it. In the document it is a turn with one
/// system message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadEvent {
    /// The type of the event, in one of the tiers of `ThreadProtocol` 0.0.4: `data-app-actor_join`.
    #[serde(rename = "type")]
    pub part_type: String,
    /// Identifies the event among the events of its type.
    pub id: String,
    /// The body of the event, a JSON object.
    pub data: Payload,
}

impl ThreadEvent {
    /// The prefix of every event's type.
    const PREFIX: &str = "data-";

    /// The event that an item is, if it is one.
    pub fn of_item(item: &Item) -> Option<Self> {
        let content = item.content.as_ref();
        if item.item_type != ItemType::ItemReference {
            return None;
        }
        let [event]: [Self; 1] = content?.read::<Vec<Self>>().ok()?.try_into().ok()?;
        let is_event = event.part_type.starts_with(Self::PREFIX);
        (is_event && event.data.text().starts_with('{')).then_some(event)
    }

    /// The item that stores the event. `metadata` stays in the log and enters no document.
    pub fn into_item(self, metadata: Option<Payload>) -> Result<NewItem, serde_json::Error> {
        Ok(NewItem {
            content: Some(Payload::write(&[&self])?),
            metadata,
            ..NewItem::reference(self.id.as_str(), None)
        })
    }
}

/// Whether an agent has made a call in this piece of a thread.
pub fn has_call(transcript: &Transcript, tool_call_id: &str) -> bool {
    let steps = transcript.entries.iter().flat_map(|entry| match entry {
        Entry::Reaction(reaction) => reaction.steps.as_slice(),
        Entry::Item(_) => &[],
    });
    let mut parts = steps.flat_map(|step| &step.parts);
    parts.any(|part| {
        ToolPart::read(&part.part).is_some_and(|tool| tool.tool_call_id == tool_call_id)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_tool_part_without_a_state_is_of_a_call_just_made() {
        let part =
            json!({"type": "tool-plan_writer", "toolCallId": "tc_1", "input": {"scope": "full"}});
        let tool = ToolPart::read(&part.into()).unwrap();
        assert_eq!(tool.state, ToolState::InputAvailable);
        assert!(!tool.is_answered());
    }
}
