//! Where a conversation stands elsewhere.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use upp::{AssistantMessage, Metadata};

/// The namespace of this system's entries in a message's metadata.
const NAMESPACE: &str = "loomline";
/// The entry.
const ENTRY: &str = "remote";

/// Where a conversation stands elsewhere: kept with the last answer from there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Place {
    /// The agent here, by name.
    pub agent: String,
    /// The address it is asked at.
    pub at: String,
    /// The thread here. A thread that was forked off goes on in a conversation of its own there.
    pub conversation: String,
    /// The conversation there: a context of A2A, a thread of the Threads API. Responses has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// What was answered there: a task, a run, a response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// What it asks; it goes on when all of that is answered.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub asks: Vec<Ask>,
    /// What that has said by now, by the names there, where it goes on when it is answered: so that it is known again
    /// when it is told again.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub said: Vec<String>,
}

/// Something that an agent elsewhere asks: a call here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Ask {
    /// The id of the call here.
    pub call: String,
    /// The id there, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The thread there whose call it is, where it is another's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread_key: Option<String>,
    /// What is asked.
    pub kind: AskKind,
}

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum AskKind {
    /// The result of a call.
    Result,
    /// Whether a call may run: `{"approved": true}`, perhaps with `arguments`, or `{"approved": false}`,
    /// perhaps with a `message`.
    Approval,
    /// Words, or anything.
    Words,
}

impl Place {
    /// What the message says of it, if anything.
    pub fn of(message: &AssistantMessage) -> Option<Self> {
        let entry = message.metadata.get(NAMESPACE)?.get(ENTRY)?;
        Self::deserialize(entry).ok()
    }

    /// As the metadata of a message.
    pub fn metadata(&self) -> Metadata {
        let place = serde_json::to_value(self).unwrap_or_default();
        let mut metadata = Metadata::new();
        let entry = Value::Object(Map::from_iter([(ENTRY.to_owned(), place)]));
        metadata.insert(NAMESPACE.to_owned(), entry);
        metadata
    }

    /// What this call is there.
    pub fn ask(&self, call: &str) -> Option<&Ask> {
        self.asks.iter().find(|ask| ask.call == call)
    }
}
