//! Calls that wait for an answer.

use timeline::OpenKind;

/// A pending call of a thread or of its sub-agents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingCall {
    /// The id of the call in its thread.
    pub call_id: String,
    /// The key of its thread.
    pub thread_key: String,
    /// The answer that it waits for.
    pub kind: OpenKind,
    /// The tool.
    pub tool: String,
    /// The text of the arguments.
    pub arguments: String,
    /// The calls of sub-agents that lead to it, the thread's own first; empty for the thread's own
    /// calls.
    pub path: Vec<String>,
}
