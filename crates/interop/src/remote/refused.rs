//! What an agent elsewhere has refused for good.

use super::position::{NAMESPACE, put};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;
use timeline::{StepRecord, chunk_type};
use upp::{Message, Metadata};

/// The entry.
const ENTRY: &str = "refused";

/// That an agent elsewhere refuses what it is told, and will refuse it again. Its step notes that; in the conversation
/// it stands with the last message of what was told.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RemoteRefusal {
    /// The agent here, by name.
    pub agent: String,
    /// The address it is asked at, as an [`Address`](super::Address) shows it.
    pub at: String,
}

impl RemoteRefusal {
    /// What a step notes of it.
    pub fn note(&self) -> Value {
        json!({ ENTRY: self })
    }

    /// What a step has noted of it, if that was the last.
    pub fn noted(note: &Value) -> Option<Self> {
        Self::deserialize(note.get(ENTRY)?).ok()
    }

    /// What a step that has no answer says of it.
    pub(crate) fn of_step(step: &StepRecord) -> Option<Self> {
        let mut chunks = step.chunks.iter().rev();
        let (_, note) = chunks.find(|(kind, _)| kind == chunk_type::STEP_NOTED)?;
        Self::noted(&note.as_ref()?.value())
    }

    /// What a message says of it: with this one, and those before it that the agent had not heard.
    pub fn of(message: &Message) -> Option<Self> {
        Self::noted(message.metadata().get(NAMESPACE)?)
    }

    /// The message, with which that ended.
    #[must_use]
    pub(crate) fn marked(&self, message: Message) -> Message {
        match message {
            Message::User(mut said) => {
                self.mark(&mut Arc::make_mut(&mut said).metadata);
                Message::User(said)
            }
            Message::Assistant(mut said) => {
                self.mark(&mut Arc::make_mut(&mut said).metadata);
                Message::Assistant(said)
            }
            Message::ToolResult(mut said) => {
                self.mark(&mut Arc::make_mut(&mut said).metadata);
                Message::ToolResult(said)
            }
        }
    }

    fn mark(&self, metadata: &mut Metadata) {
        put(metadata, ENTRY, json!(self));
    }
}
