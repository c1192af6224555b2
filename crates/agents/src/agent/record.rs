//! Records a run's events for its turn.

use super::GenerateResult;
use crate::error::AgentError;
use crate::event::AgentStreamEvent;
use crate::journal::{Journal, Stopped};
use crate::state::AgentState;
use crate::strategy::Next;
use crate::trace::SubagentExecutionTrace;
use futures_util::future::BoxFuture;
use serde_json::Value;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use upp::{
    AssistantMessage, Message, MessageId, MessageOptions, RequestReport, Response, StopReason,
    TokenUsage, ToolExecution, Turn, UserMessage,
};

/// The data of a turn besides its messages.
#[derive(Debug, Default)]
pub(crate) struct Record {
    usage: TokenUsage,
    executions: Vec<ToolExecution>,
    n_cycles: u32,
    data: Option<Value>,
    stop_reason: Option<StopReason>,
    requests: Vec<RequestReport>,
}

impl Record {
    /// Adds a later record.
    fn append(&mut self, later: Self) {
        if self.is_empty() {
            *self = later;
            return;
        }
        for cycle in later.usage.cycles {
            self.usage.push(cycle);
        }
        self.executions.extend(later.executions);
        self.requests.extend(later.requests);
        self.n_cycles = self.n_cycles.saturating_add(later.n_cycles);
        if later.n_cycles > 0 {
            self.data = later.data;
            self.stop_reason = later.stop_reason;
        }
    }

    /// Whether there was no model call and no tool call.
    fn is_empty(&self) -> bool {
        self.n_cycles == 0 && self.executions.is_empty()
    }

    /// The turn of what was recorded, with these messages.
    pub(crate) fn turn(
        self,
        messages: Vec<Message>,
        state: &AgentState,
    ) -> Result<Turn, AgentError> {
        let response = state.last_response().ok_or(AgentError::NoResponse)?;
        Ok(self.into_turn(messages, Arc::clone(response), state))
    }

    fn into_turn(
        self,
        messages: Vec<Message>,
        response: Arc<AssistantMessage>,
        state: &AgentState,
    ) -> Turn {
        Turn {
            messages,
            response,
            tool_executions: self.executions,
            usage: self.usage,
            cycles: self.n_cycles,
            data: self.data,
            stop_reason: self.stop_reason.unwrap_or_else(|| standing(state)),
            requests: self.requests,
        }
    }
}

/// The results of a run so far, and its current step.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// All steps that are over.
    done: Record,
    /// The open step, over the cycles it has had.
    step: Record,
    n_before: Option<usize>,
}

impl Progress {
    /// Starts a step.
    pub(crate) fn begin_step(&mut self) {
        self.n_before = None;
    }

    /// Starts a cycle; `n_messages` is the number of messages before it.
    pub(crate) fn begin_cycle(&mut self, n_messages: usize) {
        self.n_before.get_or_insert(n_messages);
    }

    /// A cycle has ended.
    pub(crate) fn end_cycle(&mut self, cycle: Record) {
        self.step.append(cycle);
    }

    /// Ends the step: passes the step's results up to `state` to `look`. If the run continues, the
    /// model may have no response yet; then the response is empty.
    ///
    /// To avoid copies, the step's record and state are moved into the result and then back.
    pub(crate) fn end_step(
        &mut self,
        state: AgentState,
        next: Next,
        look: impl FnOnce(&GenerateResult),
    ) -> Result<AgentState, AgentError> {
        let response = match (state.last_response(), next) {
            (Some(response), _) => Arc::clone(response),
            (None, Next::Continue) => Arc::new(AssistantMessage::new(
                Vec::new(),
                Vec::new(),
                MessageOptions::default(),
            )),
            (None, Next::Wait | Next::Done) => return Err(AgentError::NoResponse),
        };
        let messages = state.messages();
        let added = (self.n_before.take().unwrap_or_default()..messages.len())
            .filter_map(|at| messages.get(at).cloned())
            .collect();
        let step = std::mem::take(&mut self.step);
        let was_asked = step.stop_reason.is_some();
        let result = GenerateResult {
            turn: step.into_turn(added, response, &state),
            state,
            pending: Vec::new(),
        };
        look(&result);
        let GenerateResult { turn, state, .. } = result;
        self.done.append(Record {
            usage: turn.usage,
            executions: turn.tool_executions,
            n_cycles: turn.cycles,
            data: turn.data,
            stop_reason: was_asked.then_some(turn.stop_reason),
            requests: turn.requests,
        });
        Ok(state)
    }

    /// The record of the whole run, with the open step.
    pub(crate) fn into_record(mut self) -> Record {
        self.done.append(self.step);
        self.done
    }
}

/// The stop reason of a run without a model call: `ToolUse` if calls are open, else `EndTurn`.
fn standing(state: &AgentState) -> StopReason {
    if state.open_calls().is_empty() {
        StopReason::EndTurn
    } else {
        StopReason::ToolUse
    }
}

/// The messages of `state` from `first` on; all messages if the strategy has removed `first`.
pub(crate) fn messages_from(state: &AgentState, first: &MessageId, hint: usize) -> Vec<Message> {
    let messages = state.messages();
    let is_first = |at: usize| {
        messages
            .get(at)
            .is_some_and(|message| message.id() == first)
    };
    let start = if is_first(hint) {
        hint
    } else {
        (0..messages.len())
            .rev()
            .find(|at| is_first(*at))
            .unwrap_or(0)
    };
    (start..messages.len())
        .filter_map(|at| messages.get(at).cloned())
        .collect()
}

/// The messages of `state` after the message `last`, which was number `n`.
pub(crate) fn messages_after(state: &AgentState, last: &MessageId, n: usize) -> Vec<Message> {
    let mut messages = messages_from(state, last, n.saturating_sub(1));
    if messages.first().is_some_and(|message| message.id() == last) {
        messages.remove(0);
    }
    messages
}

/// Passes all events to the journal, and stores the data for the turn.
pub(crate) struct Recorder<'a> {
    journal: &'a dyn Journal,
    record: Mutex<Record>,
}

impl<'a> Recorder<'a> {
    pub(crate) fn new(journal: &'a dyn Journal) -> Self {
        Self {
            journal,
            record: Mutex::default(),
        }
    }

    pub(crate) fn into_record(self) -> Record {
        self.record
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Journal for Recorder<'_> {
    fn emit(&self, event: AgentStreamEvent) -> BoxFuture<'_, Result<(), Stopped>> {
        self.journal.emit(event)
    }

    fn try_emit(&self, event: AgentStreamEvent) -> Option<AgentStreamEvent> {
        self.journal.try_emit(event)
    }

    fn prompted<'a>(&'a self, message: &'a Arc<UserMessage>) -> BoxFuture<'a, Result<(), Stopped>> {
        self.journal.prompted(message)
    }

    fn responded<'a>(&'a self, response: &'a Response) -> BoxFuture<'a, Result<(), Stopped>> {
        // What is kept here counts only if the journal has it too: else the run ends.
        let mut record = self.record();
        record.usage.push(response.usage.clone());
        record
            .requests
            .extend(response.request.as_ref().map(|sent| sent.report.clone()));
        record.n_cycles = record.n_cycles.saturating_add(1);
        record.data.clone_from(&response.data);
        record.stop_reason = Some(response.stop_reason.clone());
        drop(record);
        self.journal.responded(response)
    }

    fn returned<'a>(
        &'a self,
        position: usize,
        execution: &'a ToolExecution,
    ) -> BoxFuture<'a, Result<(), Stopped>> {
        // Tools end side by side: the order is that in which they come here.
        self.record().executions.push(execution.clone());
        self.journal.returned(position, execution)
    }

    fn traced<'a>(
        &'a self,
        trace: &'a SubagentExecutionTrace,
    ) -> BoxFuture<'a, Result<(), Stopped>> {
        self.journal.traced(trace)
    }
}
