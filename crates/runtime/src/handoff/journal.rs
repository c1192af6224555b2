//! Selects the call of a response that hands over, and the results of the other calls.

use super::{Handoff, target_of};
use crate::reactor::Children;
use agents::{Agent, AgentStreamEvent, Journal, Stopped, SubagentExecutionTrace};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use interop::parts::{ToolPart, ToolState};
use std::sync::{Arc, Mutex, PoisonError};
use timeline::Payload;
use upp::{Response, ToolExecution, UserMessage};

/// A journal that replaces the result of a refused handoff by an error. A handoff is refused if it
/// is not the first of its response, if it exceeds the limit, or if its agent does not exist. All
/// other data passes unchanged.
pub(crate) struct HandoffJournal<'a> {
    inner: &'a dyn Journal,
    agent: &'a Agent,
    children: &'a dyn Children,
    /// The position of the first call that hands over. It is no id, because ids may repeat.
    first: Mutex<Option<usize>>,
}

impl<'a> HandoffJournal<'a> {
    /// Creates the journal of one step; `parts` are those of an earlier attempt.
    pub(crate) fn new(
        inner: &'a dyn Journal,
        agent: &'a Agent,
        children: &'a dyn Children,
        parts: &[Payload],
    ) -> Self {
        let calls = parts.iter().filter_map(ToolPart::read);
        let first = first(agent, calls.map(|tool| tool.tool_name().to_owned()));
        Self {
            inner,
            agent,
            children,
            first: Mutex::new(first),
        }
    }

    /// The call's record with the error in place of its result.
    fn refused(&self, position: usize, execution: &ToolExecution) -> Option<ToolExecution> {
        let target = target_of(self.agent.tool(&execution.tool_name)?)?;
        let first = *self.first.lock().unwrap_or_else(PoisonError::into_inner);
        let why = if first != Some(position) {
            "Not transferred: another transfer of the same response comes first.".to_owned()
        } else if !self.children.may_hand_over() {
            "Not transferred: agents have handed over too often since the user spoke.".to_owned()
        } else if !self.children.has(target) {
            format!("Not transferred: there is no agent named {target:?} any more.")
        } else {
            return None;
        };
        Some(ToolExecution {
            result: why.into(),
            is_error: true,
            ..execution.clone()
        })
    }
}

fn first(agent: &Agent, mut names: impl Iterator<Item = impl AsRef<str>>) -> Option<usize> {
    names.position(|name| agent.tool(name.as_ref()).and_then(target_of).is_some())
}

/// The agent that a step's calls hand over to, if one of them was a handoff. It also counts if it
/// was refused because the run may have no more handoffs.
pub(crate) fn decided(
    agent: &Agent,
    parts: &[Payload],
    children: &dyn Children,
) -> Option<Handoff> {
    parts.iter().filter_map(ToolPart::read).find_map(|call| {
        let to = target_of(agent.tool(call.tool_name())?)?.to_owned();
        let decides = call.state == ToolState::OutputAvailable || !children.may_hand_over();
        Some(decides.then(|| {
            Handoff {
                to,
                reason: call
                    .input
                    .as_ref()
                    .and_then(|input| input.str_field("reason")),
                tool_call_id: call.tool_call_id.clone(),
            }
        }))
    })?
}

impl Journal for HandoffJournal<'_> {
    fn emit(&self, event: AgentStreamEvent) -> BoxFuture<'_, Result<(), Stopped>> {
        self.inner.emit(event)
    }

    fn prompted<'a>(&'a self, message: &'a Arc<UserMessage>) -> BoxFuture<'a, Result<(), Stopped>> {
        self.inner.prompted(message)
    }

    fn responded<'a>(&'a self, response: &'a Response) -> BoxFuture<'a, Result<(), Stopped>> {
        let calls = response.message.tool_calls.iter();
        let first = first(self.agent, calls.map(|call| Arc::clone(&call.tool_name)));
        *self.first.lock().unwrap_or_else(PoisonError::into_inner) = first;
        self.inner.responded(response)
    }

    fn returned<'a>(
        &'a self,
        position: usize,
        execution: &'a ToolExecution,
    ) -> BoxFuture<'a, Result<(), Stopped>> {
        async move {
            if self.children.is_abandoned() {
                // A sub-agent could not be written of: its call has no result yet.
                return Err(Stopped);
            }
            match self.refused(position, execution) {
                Some(refused) => self.inner.returned(position, &refused).await,
                None => self.inner.returned(position, execution).await,
            }
        }
        .boxed()
    }

    fn traced<'a>(
        &'a self,
        trace: &'a SubagentExecutionTrace,
    ) -> BoxFuture<'a, Result<(), Stopped>> {
        self.inner.traced(trace)
    }
}
