//! Answers to a waiting run: approvals, and results of external calls.

use crate::depth::MAX_DEPTH;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use upp::{ToolCall, ToolCallId};

/// A call that waits for an answer from outside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingCall {
    /// The call, as the model made it.
    pub call: ToolCall,
    /// The kind of answer it waits for.
    pub kind: PendingKind,
}

/// The kinds of answers that a call can wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PendingKind {
    /// A [`Verdict`]: may the tool run?
    Approval,
    /// An [`ExternalResult`]: the client executes the call.
    External,
    /// A [`Resumption`]: the call's sub-agent waits on its host. The call runs again when the
    /// sub-agent continues.
    Subagent,
}

/// Whether a call may run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum Verdict {
    /// It runs.
    Approve {
        /// Arguments to run with instead of the model's; they must match the tool's schema.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        arguments: Option<Value>,
    },
    /// The call does not run, and the model gets a denial as its result.
    Deny {
        /// The text of the denial. Default: `The tool call was denied.`
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    },
}

/// The result of a call that the client executed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExternalResult {
    /// The value, or the error, as in [`upp::ToolResult`].
    pub result: Value,
    /// Whether it failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
}

/// Reports that a call's sub-agent continues. The call runs again, and its host finds the
/// sub-agents that the call has started.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resumption {
    /// The arguments it ran with, if they were not the model's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
    /// Whether it ran because of an approval.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub approved: bool,
}

/// Answers to pending calls, by call id. Calls without an answer continue to wait.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Answers {
    /// For calls that wait for an approval.
    pub approvals: BTreeMap<ToolCallId, Verdict>,
    /// Results of calls that the client executed.
    pub results: BTreeMap<ToolCallId, ExternalResult>,
    /// For calls whose sub-agents waited.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub resumptions: BTreeMap<ToolCallId, Resumption>,
}

impl Answers {
    /// No answers yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets a call run as the model made it.
    #[must_use]
    pub fn approve(self, call: impl Into<ToolCallId>) -> Self {
        self.verdict(call, Verdict::Approve { arguments: None })
    }

    /// Lets a call run with other arguments.
    #[must_use]
    pub fn approve_with(self, call: impl Into<ToolCallId>, arguments: Value) -> Self {
        let arguments = Some(arguments);
        self.verdict(call, Verdict::Approve { arguments })
    }

    /// Denies a call.
    #[must_use]
    pub fn deny(self, call: impl Into<ToolCallId>) -> Self {
        self.verdict(call, Verdict::Deny { message: None })
    }

    /// Denies a call, with a reason for the model.
    #[must_use]
    pub fn deny_because(self, call: impl Into<ToolCallId>, message: impl Into<String>) -> Self {
        let message = Some(message.into());
        self.verdict(call, Verdict::Deny { message })
    }

    /// Adds the result of an external call.
    #[must_use]
    pub fn result(self, call: impl Into<ToolCallId>, result: impl Into<Value>) -> Self {
        self.returned(call, result.into(), false)
    }

    /// Adds the failure of an external call.
    #[must_use]
    pub fn failure(self, call: impl Into<ToolCallId>, message: impl Into<String>) -> Self {
        self.returned(call, Value::String(message.into()), true)
    }

    /// Whether there is no answer.
    pub fn is_empty(&self) -> bool {
        self.approvals.is_empty() && self.results.is_empty() && self.resumptions.is_empty()
    }

    /// Lets a call run again, as its sub-agent continues.
    #[must_use]
    pub fn resume(mut self, call: impl Into<ToolCallId>, resumption: Resumption) -> Self {
        self.resumptions.insert(call.into(), resumption);
        self
    }

    fn verdict(mut self, call: impl Into<ToolCallId>, verdict: Verdict) -> Self {
        self.approvals.insert(call.into(), verdict);
        self
    }

    fn returned(mut self, call: impl Into<ToolCallId>, result: Value, is_error: bool) -> Self {
        let result = ExternalResult { result, is_error };
        self.results.insert(call.into(), result);
        self
    }
}

/// Why answers are refused; nothing has run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
    /// The conversation does not end with open calls, so there is nothing to continue.
    #[error("no tool call waits for an answer")]
    NothingWaits,
    /// The last response has no such call.
    #[error("'{call}' is no tool call of the last response")]
    UnknownCall {
        /// The id the answer names.
        call: ToolCallId,
    },
    /// The call has a result already.
    #[error("the tool call '{call}' has its result already")]
    AlreadyAnswered {
        /// The call.
        call: ToolCallId,
    },
    /// The call waits for an answer of the other kind, or for none.
    #[error("the tool call '{call}' got {}, but waits for {}", answer(Some(*.given)), answer(*.expected))]
    WrongKind {
        /// The call.
        call: ToolCallId,
        /// The kind of the answer.
        given: PendingKind,
        /// The kind the call waits for; `None` if it waits for no answer.
        expected: Option<PendingKind>,
    },
    /// The call can't be answered yet, because it depends on another call that still waits.
    #[error("the tool call '{call}' comes after another one that still waits for its own answer")]
    Early {
        /// The call.
        call: ToolCallId,
    },
    /// The edited arguments, or the result, are nested more deeply than [`MAX_DEPTH`].
    #[error(
        "the answer to the tool call '{call}' is nested too deeply: more than {MAX_DEPTH} levels"
    )]
    TooDeep {
        /// The call.
        call: ToolCallId,
    },
    /// The edited arguments do not match the tool's schema.
    #[error("the edited arguments of the tool call '{call}' do not match the schema:{breaches}")]
    Arguments {
        /// The call.
        call: ToolCallId,
        /// The mismatches, one for each line.
        breaches: String,
    },
    /// The result of an external call does not match the schema that its tool declares.
    #[error("the result of the tool call '{call}' does not match the schema:{breaches}")]
    Result {
        /// The call.
        call: ToolCallId,
        /// The mismatches, one for each line.
        breaches: String,
    },
}

fn answer(kind: Option<PendingKind>) -> &'static str {
    match kind {
        Some(PendingKind::Approval) => "an approval",
        Some(PendingKind::External) => "a result",
        Some(PendingKind::Subagent) => "its sub-agent to go on",
        None => "no answer",
    }
}
