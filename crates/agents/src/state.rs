//! The immutable state of an agent (UAP §6).

mod calls;
mod json;

pub(crate) use calls::matched;
pub(crate) use json::StateTail;
pub use json::{StateError, StateLimits};

use crate::id;
use crate::plan::PlanStep;
use crate::trace::SubagentExecutionTrace;
use serde_json::{Map, Value};
use std::sync::Arc;
use upp::{AssistantMessage, Message, Messages, Prefix, Response};

/// A snapshot of an agent's execution (UAP §6.1).
///
/// It never changes: each `with_*` returns another state with an id of its own, and shares with the
/// original all that stayed the same. Cloning keeps the id, for a clone is the same snapshot.
/// Appending a message is O(log n) whatever the length of the history.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentState {
    id: Arc<str>,
    messages: Messages,
    step: u64,
    metadata: Arc<Map<String, Value>>,
    reasoning: rpds::VectorSync<Arc<str>>,
    plan: Option<Arc<[PlanStep]>>,
    phase: Option<Arc<str>>,
    last_request: LastRequest,
    subagent_traces: rpds::VectorSync<Arc<SubagentExecutionTrace>>,
}

/// Equal to any other: what was sent says nothing about what there is.
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
            id: id::random(),
            messages: Messages::new_sync(),
            step: 0,
            metadata: Arc::default(),
            reasoning: rpds::VectorSync::new_sync(),
            plan: None,
            phase: None,
            last_request: LastRequest::default(),
            subagent_traces: rpds::VectorSync::new_sync(),
        }
    }

    /// The snapshot's id, a random UUID (v4; UAP §3.4).
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The conversation so far (UAP §6.1).
    pub fn messages(&self) -> &Messages {
        &self.messages
    }

    /// How many steps were taken (UAP §6.1); it counts on over calls of one agent.
    pub fn step(&self) -> u64 {
        self.step
    }

    /// What the application keeps with the state (UAP §6.1).
    pub fn metadata(&self) -> &Map<String, Value> {
        &self.metadata
    }

    /// The reasoning of each `ReAct` step, in order (UAP §6.1).
    pub fn reasoning(&self) -> impl ExactSizeIterator<Item = &str> {
        self.reasoning.iter().map(AsRef::as_ref)
    }

    /// The plan, where there is one (UAP §6.1).
    pub fn plan(&self) -> Option<&[PlanStep]> {
        self.plan.as_deref()
    }

    /// Where in a step the run stands, in the strategy's own word; none between steps.
    ///
    /// A step may take several model calls (UAP §5.3, §5.4). While it is not over, its next cycle is
    /// read from here, so that a run goes on from the state alone.
    pub fn phase(&self) -> Option<&str> {
        self.phase.as_deref()
    }

    /// What sub-agents did (UAP §8.8): response by response, in the order of the calls that spawned
    /// them. A sub-agent's own sub-agents come right before it.
    pub fn subagent_traces(&self) -> impl ExactSizeIterator<Item = &SubagentExecutionTrace> {
        self.subagent_traces.iter().map(AsRef::as_ref)
    }

    /// The last thing the model said.
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
        Self {
            messages: self.messages.push_back(message.into()),
            ..self.renewed()
        }
    }

    /// Appends what the model answered, and remembers the request that it answered, so that the
    /// next one can be compared with it.
    #[must_use]
    pub fn with_response(&self, response: Response) -> Self {
        let mut state = self.with_message(response.message);
        if let Some(sent) = response.request {
            state.last_request = LastRequest(Some(sent.prefix));
        }
        state
    }

    /// The fingerprint of the last request for this conversation. It is no part of the content: it
    /// is neither compared nor written, and a state from JSON has none.
    pub fn last_request(&self) -> Option<&Arc<Prefix>> {
        self.last_request.0.as_ref()
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

    /// Sets the number of steps taken (UAP §6.2).
    #[must_use]
    pub fn with_step(&self, step: u64) -> Self {
        Self {
            step,
            ..self.renewed()
        }
    }

    /// Sets one entry of the metadata (UAP §6.2).
    #[must_use]
    pub fn with_metadata(&self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        let mut state = self.renewed();
        Arc::make_mut(&mut state.metadata).insert(key.into(), value.into());
        state
    }

    /// Appends the reasoning of one step (UAP §6.2).
    #[must_use]
    pub fn with_reasoning(&self, reasoning: impl Into<Arc<str>>) -> Self {
        Self {
            reasoning: self.reasoning.push_back(reasoning.into()),
            ..self.renewed()
        }
    }

    /// Sets the plan (UAP §6.2).
    #[must_use]
    pub fn with_plan(&self, plan: impl Into<Arc<[PlanStep]>>) -> Self {
        Self {
            plan: Some(plan.into()),
            ..self.renewed()
        }
    }

    /// Sets where in a step the run stands; `None` says that the step is over.
    #[must_use]
    pub fn with_phase(&self, phase: Option<Arc<str>>) -> Self {
        Self {
            phase,
            ..self.renewed()
        }
    }

    /// Appends the trace of a sub-agent (UAP §8.8).
    #[must_use]
    pub fn with_subagent_trace(&self, trace: SubagentExecutionTrace) -> Self {
        Self {
            subagent_traces: self.subagent_traces.push_back(Arc::new(trace)),
            ..self.renewed()
        }
    }

    /// [`with_context`](Self::with_context) without a copy.
    pub(crate) fn with_shared_context(&self, messages: Messages) -> Self {
        Self {
            messages,
            ..self.renewed()
        }
    }

    pub(crate) fn shared_id(&self) -> Arc<str> {
        Arc::clone(&self.id)
    }

    /// The same snapshot, which was written without these messages, with them in front.
    pub(crate) fn with_inherited(self, messages: &Messages) -> Self {
        let mut whole = messages.clone();
        for message in &self.messages {
            whole.push_back_mut(message.clone());
        }
        Self {
            messages: whole,
            ..self
        }
    }

    /// The same content under an id of its own.
    fn renewed(&self) -> Self {
        Self {
            id: id::random(),
            ..self.clone()
        }
    }
}

#[cfg(test)]
mod tests;
