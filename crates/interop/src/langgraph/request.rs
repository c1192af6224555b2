//! Requests, read.

mod query;
mod run;
mod thread;

pub use query::{HistoryQuery, JoinQuery, RunsQuery, RunsSearch, StateQuery, read_cancel};
pub(super) use run::MODES;
pub use run::{Multitask, ResumeValues, RunCreate, StreamMode};
pub use thread::{StateUpdate, ThreadCreate, ThreadPatch, ThreadSearch};

use super::error::RequestError;
use super::fields::Fields;
use serde_json::Value;
use uuid::Uuid;

/// The protocol of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speaks {
    /// `LangGraph`'s: a run has an `assistant_id`.
    LangGraph,
    /// The Agent Protocol: a run has an `agent_id`.
    AgentProtocol,
}

impl Speaks {
    /// The member of a run that names its agent.
    pub fn agent_key(self) -> &'static str {
        match self {
            Self::LangGraph => "assistant_id",
            Self::AgentProtocol => "agent_id",
        }
    }
}

/// An id in the usual spelling of a UUID, if it is one.
pub fn uuid_of(id: &str) -> Option<String> {
    Some(Uuid::try_parse(id).ok()?.hyphenated().to_string())
}

/// A member that is a UUID.
fn uuid(fields: &Fields<'_>, key: &str) -> Result<Option<String>, RequestError> {
    let text = fields.text(key, super::fields::MAX_ID)?;
    let read = text.map(|text| {
        let wrong = || fields.wrong(key, "expected a UUID");
        uuid_of(text).ok_or_else(wrong)
    });
    read.transpose()
}

/// The checkpoint that an object or its `checkpoint_id` names.
fn checkpoint(fields: &Fields<'_>) -> Result<Option<String>, RequestError> {
    if let Some(id) = fields.text("checkpoint_id", super::fields::MAX_ID)? {
        return Ok(Some(id.to_owned()));
    }
    let named = fields.get("checkpoint");
    Ok(named
        .map(|value| checkpoint_of(value, &fields.at("checkpoint")))
        .transpose()?
        .flatten())
}

/// The id in a checkpoint's object.
fn checkpoint_of(value: &Value, pointer: &str) -> Result<Option<String>, RequestError> {
    let fields = Fields::of(value, pointer)?;
    let ns = fields.text("checkpoint_ns", super::fields::MAX_ID)?;
    if ns.is_some_and(|ns| !ns.is_empty()) {
        let what = "there are no subgraphs here: expected \"\"";
        return Err(fields.wrong("checkpoint_ns", what));
    }
    let id = fields.text("checkpoint_id", super::fields::MAX_ID)?;
    Ok(id.map(str::to_owned))
}
