//! Tools, calls and results (UPP §10, UAP §8.5).

mod arguments;

pub use arguments::{Arguments, ArgumentsError};

use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Correlates a tool call with its result; opaque, kept byte for byte.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ToolCallId(pub Arc<str>);

impl ToolCallId {
    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for ToolCallId {
    fn from(id: &str) -> Self {
        Self(id.into())
    }
}

impl std::fmt::Display for ToolCallId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// A model's request to run a tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolCall {
    /// The provider's id of the call.
    pub tool_call_id: ToolCallId,
    /// The tool's name.
    pub tool_name: String,
    /// The arguments as the provider sent them.
    pub arguments: Arguments,
    /// Calls of the same response that must end first (UAP §8.6).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<ToolCallId>,
}

/// The answer to a call, as the model sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolResult {
    /// The call this answers.
    pub tool_call_id: ToolCallId,
    /// The value; a string is shown to the model as it is, anything else as JSON.
    pub result: Value,
    /// Whether the tool failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
}

/// The record of one run of a tool (UPP §7).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolExecution {
    /// The tool's name.
    pub tool_name: String,
    /// The call.
    pub tool_call_id: ToolCallId,
    /// The arguments the tool got.
    pub arguments: Value,
    /// What it gave; the error's text when `is_error`.
    pub result: Value,
    /// Whether it failed.
    pub is_error: bool,
    /// How long it ran, in milliseconds.
    pub duration: u64,
    /// The approval handler's word; absent where there is no handler.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved: Option<bool>,
}

/// What may happen to a call whose outcome a crash hid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Effect {
    /// Changes nothing: it runs again.
    Pure,
    /// Changes something once per idempotency key: it runs again with the same key.
    Idempotent,
    /// Changes something each time: it never runs twice; the model gets an interrupted result.
    #[default]
    Effect,
}

/// What a running tool knows of its call (UAP §8.4).
#[derive(Clone, Debug)]
pub struct ToolContext {
    /// The call's id.
    pub tool_call_id: ToolCallId,
    /// The same for every attempt at this call; derived from thread and call, never from the attempt.
    pub idempotency_key: Arc<str>,
    /// The calling agent's id.
    pub agent_id: Arc<str>,
    /// Cancelled when the result is no longer wanted.
    pub signal: CancellationToken,
}

/// What a tool gives back.
pub type ToolOutput = Result<Value, ToolFailure>;

/// Why a tool failed; the text is shown to the model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ToolFailure {
    /// What went wrong and what to do instead, for the model.
    pub message: String,
}

impl ToolFailure {
    /// Makes a failure.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
        }
    }
}

/// The code of a tool. Dropping the future cancels it.
pub trait ToolRun: Send + Sync {
    /// Runs the tool once.
    fn run(&self, arguments: Value, context: ToolContext) -> BoxFuture<'static, ToolOutput>;
}

impl<F> ToolRun for F
where
    F: Fn(Value, ToolContext) -> BoxFuture<'static, ToolOutput> + Send + Sync,
{
    fn run(&self, arguments: Value, context: ToolContext) -> BoxFuture<'static, ToolOutput> {
        self(arguments, context)
    }
}

/// Decides, each time, whether a call with these arguments may run. A failure ends the generation.
pub type Approval =
    Arc<dyn Fn(&Value) -> BoxFuture<'static, Result<bool, ToolFailure>> + Send + Sync>;

/// A tool: what the model sees, and the code behind it.
#[derive(Clone)]
pub struct Tool {
    /// Unique among the tools of one agent.
    pub name: String,
    /// Shown to the model.
    pub description: String,
    /// A JSON Schema whose root is an object; shown to the model.
    pub parameters: Arc<Value>,
    /// Provider-namespaced extras.
    pub metadata: serde_json::Map<String, Value>,
    /// What happens to a call whose outcome is unknown.
    pub effect: Effect,
    /// Must end before other tools of the response start (UAP §8.5).
    pub sequential: bool,
    /// Names of tools that must end first (UAP §8.5).
    pub depends_on: Vec<String>,
    /// Asked before each run, where there is one.
    pub approval: Option<Approval>,
    /// The code.
    pub run: Arc<dyn ToolRun>,
}

impl Tool {
    /// Makes a tool that runs in parallel with others and never runs twice.
    pub fn new(
        name: impl Into<String>,
        description: impl Into<String>,
        parameters: Value,
        run: impl ToolRun + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            parameters: Arc::new(parameters),
            metadata: serde_json::Map::new(),
            effect: Effect::default(),
            sequential: false,
            depends_on: Vec::new(),
            approval: None,
            run: Arc::new(run),
        }
    }

    /// Declares what happens to a call whose outcome is unknown.
    #[must_use]
    pub fn with_effect(mut self, effect: Effect) -> Self {
        self.effect = effect;
        self
    }

    /// Asks `approval` before each run.
    #[must_use]
    pub fn with_approval(
        mut self,
        approval: impl Fn(&Value) -> BoxFuture<'static, Result<bool, ToolFailure>>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        self.approval = Some(Arc::new(approval));
        self
    }
}

impl std::fmt::Debug for Tool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tool")
            .field("name", &self.name)
            .field("effect", &self.effect)
            .finish_non_exhaustive()
    }
}
