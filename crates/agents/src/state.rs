//! The immutable state of an agent (UAP §6).

mod calls;
mod json;

pub(crate) use calls::matched;
pub(crate) use json::StateTail;
pub use json::{StateError, StateLimits};

use crate::id::Id;
use crate::plan::PlanStep;
use crate::trace::SubagentExecutionTrace;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::sync::Arc;
use upp::{AssistantMessage, Message, Messages, Prefix, Response, Sent, ToolCallId};

/// A snapshot of an agent's execution (UAP §6.1).
///
/// It is immutable: each `with_*` returns another state with a new id, which shares all unchanged
/// data with the original. A clone has the same id, as it is the same snapshot. Appending a message
/// is O(log n) in the length of the history.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentState {
    id: Id,
    messages: Messages,
    step: u64,
    /// The fields that rarely change; shared, because a state is copied several times in a step.
    rest: Arc<Rest>,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Rest {
    metadata: Arc<Map<String, Value>>,
    reasoning: rpds::VectorSync<Arc<str>>,
    plan: Option<Arc<[PlanStep]>>,
    phase: Option<Arc<str>>,
    last_request: LastRequest,
    subagent_traces: rpds::VectorSync<Arc<SubagentExecutionTrace>>,
    suspended: BTreeSet<ToolCallId>,
}

/// Equal to any other value, so that the last request does not affect the equality of states.
#[derive(Clone, Debug, Default)]
struct LastRequest(Option<Arc<Prefix>>);

impl PartialEq for LastRequest {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Default for AgentState {
    fn default() -> Self {
        Self::initial()
    }
}

impl AgentState {
    /// The empty state (UAP §6.2).
    pub fn initial() -> Self {
        Self {
            id: Id::random(),
            messages: Messages::new(),
            step: 0,
            rest: Arc::default(),
        }
    }

    /// The snapshot's id, a random UUID (v4; UAP §3.4).
    pub fn id(&self) -> &str {
        self.id.as_str()
    }

    /// The conversation so far (UAP §6.1).
    pub fn messages(&self) -> &Messages {
        &self.messages
    }

    /// Number of steps so far (UAP §6.1), over all calls of the agent.
    pub fn step(&self) -> u64 {
        self.step
    }

    /// Application data of the state (UAP §6.1).
    pub fn metadata(&self) -> &Map<String, Value> {
        &self.rest.metadata
    }

    /// The reasoning of each `ReAct` step, in order (UAP §6.1).
    pub fn reasoning(&self) -> impl ExactSizeIterator<Item = &str> {
        self.rest.reasoning.iter().map(AsRef::as_ref)
    }

    /// The [`reasoning`](Self::reasoning) after the first `n`; the cost does not depend on `n`.
    pub fn reasoning_since(&self, n: usize) -> impl Iterator<Item = &str> {
        since(&self.rest.reasoning, n).map(AsRef::as_ref)
    }

    /// The plan, if there is one (UAP §6.1).
    pub fn plan(&self) -> Option<&[PlanStep]> {
        self.rest.plan.as_deref()
    }

    /// The run's phase within a step, in a word of the strategy; none between steps.
    ///
    /// A step may take several model calls (UAP §5.3, §5.4). Until it is over, the strategy reads
    /// its next cycle from the phase, so the state alone suffices to continue a run.
    pub fn phase(&self) -> Option<&str> {
        self.rest.phase.as_deref()
    }

    /// The traces of sub-agents (UAP §8.8): response by response, in the order of the calls that
    /// spawned them. A sub-agent's own sub-agents come directly before it.
    pub fn subagent_traces(&self) -> impl ExactSizeIterator<Item = &SubagentExecutionTrace> {
        self.rest.subagent_traces.iter().map(AsRef::as_ref)
    }

    /// The [traces](Self::subagent_traces) after the first `n`; the cost does not depend on `n`.
    pub fn subagent_traces_since(&self, n: usize) -> impl Iterator<Item = &SubagentExecutionTrace> {
        since(&self.rest.subagent_traces, n).map(AsRef::as_ref)
    }

    /// The open calls at the end of the conversation whose sub-agents wait on a host. The calls run
    /// again when the sub-agents continue.
    pub fn suspended(&self) -> &BTreeSet<ToolCallId> {
        &self.rest.suspended
    }

    /// The model's last message.
    pub fn last_response(&self) -> Option<&Arc<AssistantMessage>> {
        (0..self.messages.len())
            .rev()
            .find_map(|at| match self.messages.get(at) {
                Some(Message::Assistant(message)) => Some(message),
                Some(Message::User(_) | Message::ToolResult(_)) | None => None,
            })
    }

    /// Appends a message (UAP §6.2).
    #[must_use]
    pub fn with_message(&self, message: impl Into<Message>) -> Self {
        self.clone().and_message(message.into())
    }

    /// Appends the model's response, and stores the fingerprint of its request, so that the next
    /// request can be compared with it.
    #[must_use]
    pub fn with_response(&self, response: Response) -> Self {
        let Response {
            message, request, ..
        } = response;
        self.clone().and_answer(message, request)
    }

    /// The fingerprint of the last request for this conversation. It is no part of the content: it
    /// is neither compared nor written, and a state from JSON has none.
    pub fn last_request(&self) -> Option<&Arc<Prefix>> {
        self.rest.last_request.0.as_ref()
    }

    /// Appends messages (UAP §6.2).
    #[must_use]
    pub fn with_messages(&self, messages: impl IntoIterator<Item = Message>) -> Self {
        let mut state = self.renewed();
        for message in messages {
            state.messages.push_back_mut(message);
        }
        state
    }

    /// **Replaces** the conversation (UAP §6.2).
    #[must_use]
    pub fn with_context(&self, messages: impl IntoIterator<Item = Message>) -> Self {
        Self {
            messages: messages.into_iter().collect(),
            ..self.renewed()
        }
    }

    /// Sets the number of steps so far (UAP §6.2).
    #[must_use]
    pub fn with_step(&self, step: u64) -> Self {
        let mut state = self.renewed();
        state.step = step;
        state
    }

    /// Sets one entry of the metadata (UAP §6.2).
    #[must_use]
    pub fn with_metadata(&self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.changed(|rest| {
            Arc::make_mut(&mut rest.metadata).insert(key.into(), value.into());
        })
    }

    /// Appends the reasoning of one step (UAP §6.2).
    #[must_use]
    pub fn with_reasoning(&self, reasoning: impl Into<Arc<str>>) -> Self {
        self.changed(|rest| rest.reasoning.push_back_mut(reasoning.into()))
    }

    /// Sets the plan (UAP §6.2).
    #[must_use]
    pub fn with_plan(&self, plan: impl Into<Arc<[PlanStep]>>) -> Self {
        self.changed(|rest| rest.plan = Some(plan.into()))
    }

    /// Sets the run's phase within a step; `None` ends the step.
    #[must_use]
    pub fn with_phase(&self, phase: Option<Arc<str>>) -> Self {
        self.changed(|rest| rest.phase = phase)
    }

    /// Appends the trace of a sub-agent (UAP §8.8).
    #[must_use]
    pub fn with_subagent_trace(&self, trace: SubagentExecutionTrace) -> Self {
        self.changed(|rest| rest.subagent_traces.push_back_mut(Arc::new(trace)))
    }

    /// Sets which open calls wait for their sub-agents.
    #[must_use]
    pub fn with_suspended(&self, calls: BTreeSet<ToolCallId>) -> Self {
        self.changed(|rest| rest.suspended = calls)
    }

    /// [`with_context`](Self::with_context) without a copy: the list is shared.
    #[must_use]
    pub fn with_shared_context(&self, messages: Messages) -> Self {
        Self {
            messages,
            ..self.renewed()
        }
    }

    /// [`with_message`](Self::with_message) for a state that is no longer needed. If no other state
    /// shares its messages, the message is appended in place.
    pub(crate) fn and_message(mut self, message: Message) -> Self {
        if matches!(message, Message::Assistant(_)) && !self.rest.suspended.is_empty() {
            // They were calls of the response before.
            Arc::make_mut(&mut self.rest).suspended.clear();
        }
        self.messages.push_back_mut(message);
        self.id = Id::random();
        self
    }

    /// [`with_response`](Self::with_response) for a state that is no longer needed.
    pub(crate) fn and_response(self, response: Box<Response>) -> Self {
        let Response {
            message, request, ..
        } = *response;
        self.and_answer(message, request)
    }

    fn and_answer(self, message: AssistantMessage, request: Option<Sent>) -> Self {
        let mut state = self.and_message(message.into());
        if let Some(sent) = request {
            Arc::make_mut(&mut state.rest).last_request = LastRequest(Some(sent.prefix));
        }
        state
    }

    /// [`with_suspended`](Self::with_suspended) for a state that is no longer needed. Without a
    /// change, the state is returned as it is.
    pub(crate) fn and_suspended(self, calls: BTreeSet<ToolCallId>) -> Self {
        if self.rest.suspended == calls {
            return self;
        }
        self.with_suspended(calls)
    }

    pub(crate) fn shared_id(&self) -> Arc<str> {
        Arc::clone(self.id.shared())
    }

    /// Adds inherited messages before those of a snapshot that was written without them.
    pub(crate) fn with_inherited(self, mut messages: Messages) -> Self {
        messages.extend(self.messages.iter().cloned());
        Self { messages, ..self }
    }

    /// A state with other rarely changed fields.
    fn changed(&self, change: impl FnOnce(&mut Rest)) -> Self {
        let mut state = self.renewed();
        change(Arc::make_mut(&mut state.rest));
        state
    }

    /// A copy of the state under an id of its own.
    fn renewed(&self) -> Self {
        let mut state = self.clone();
        state.id = Id::random();
        state
    }
}

/// The elements of a list after the first `n`.
fn since<T>(list: &rpds::VectorSync<T>, n: usize) -> impl Iterator<Item = &T> {
    (n..list.len()).filter_map(|at| list.get(at))
}

/// The first `n` elements of a list that has at least `n`; the result shares memory with the list.
fn first<T: Clone>(list: &rpds::VectorSync<T>, n: usize) -> rpds::VectorSync<T> {
    let n_dropped = list.len().saturating_sub(n);
    if n < n_dropped {
        return list.iter().take(n).cloned().collect();
    }
    let mut list = list.clone();
    for _ in 0..n_dropped {
        list.drop_last_mut();
    }
    list
}

/// Equality; messages that share memory are equal without a comparison.
pub(crate) fn is_same(a: &Message, b: &Message) -> bool {
    let is_shared = match (a, b) {
        (Message::User(a), Message::User(b)) => Arc::ptr_eq(a, b),
        (Message::Assistant(a), Message::Assistant(b)) => Arc::ptr_eq(a, b),
        (Message::ToolResult(a), Message::ToolResult(b)) => Arc::ptr_eq(a, b),
        (Message::User(_) | Message::Assistant(_) | Message::ToolResult(_), _) => false,
    };
    is_shared || a == b
}

#[cfg(test)]
mod tests;
