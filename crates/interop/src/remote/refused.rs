//! Refusals of remote agents that are final.

use super::position::{NAMESPACE, put};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;
use timeline::{StepRecord, chunk_type};
use upp::{Message, Metadata};

/// The entry.
const ENTRY: &str = "refused";

/// A remote agent's final refusal of the messages it received. The step records the refusal; in the
/// conversation the last of those messages carries it as metadata.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RemoteRefusal {
    /// The agent here, by name.
    pub agent: String,
    /// The agent's address, as an [`Address`](super::Address) shows it.
    pub at: String,
}

impl RemoteRefusal {
    /// The note that a step records.
    pub fn note(&self) -> Value {
        json!({ ENTRY: self })
    }

    /// Reads the refusal from a step's note, if it is one.
    pub fn noted(note: &Value) -> Option<Self> {
        Self::deserialize(note.get(ENTRY)?).ok()
    }

    /// The refusal that a step without an answer recorded in its last note.
    pub(crate) fn of_step(step: &StepRecord) -> Option<Self> {
        let mut chunks = step.chunks.iter().rev();
        let (_, note) = chunks.find(|(kind, _)| kind == chunk_type::STEP_NOTED)?;
        Self::noted(&note.as_ref()?.value())
    }

    /// The refusal in a message's metadata. It covers this message and the earlier ones that the
    /// agent had not received.
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
