//! Runs cycle by cycle, by a keeper that may crash.

use crate::strategies::kinds;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use loomline_agents::{
    Agent, AgentError, AgentState, AgentStreamEvent, Journal, Next, StepContext, Stopped,
    SubagentExecutionTrace,
};
use std::future::ready;
use std::sync::{Arc, Mutex};
use upp::{Message, Response, ToolExecution, ToolResult, UserMessage};

/// A keeper that holds what it was told since the last commit, and refuses the n-th entry.
#[derive(Default)]
pub(crate) struct Crashing {
    pub(crate) refuses_at: Option<usize>,
    n_entries: Mutex<usize>,
    messages: Mutex<Vec<Message>>,
    answered: Mutex<Vec<ToolResult>>,
    traces: Mutex<Vec<SubagentExecutionTrace>>,
}

impl Crashing {
    fn entry(&self, keep: impl FnOnce()) -> BoxFuture<'_, Result<(), Stopped>> {
        let mut n = self.n_entries.lock().unwrap();
        *n += 1;
        // Half of the entries are kept before the crash, half are lost with it.
        let crashes = self.refuses_at == Some(*n - 1);
        if !crashes || (*n).is_multiple_of(2) {
            keep();
        }
        ready(if crashes { Err(Stopped) } else { Ok(()) }).boxed()
    }
}

impl Journal for Crashing {
    fn emit(&self, _: AgentStreamEvent) -> BoxFuture<'_, Result<(), Stopped>> {
        ready(Ok(())).boxed()
    }

    fn prompted<'a>(&'a self, message: &'a Arc<UserMessage>) -> BoxFuture<'a, Result<(), Stopped>> {
        let message = Message::User(Arc::clone(message));
        self.entry(|| self.messages.lock().unwrap().push(message))
    }

    fn responded<'a>(&'a self, response: &'a Response) -> BoxFuture<'a, Result<(), Stopped>> {
        let message = response.message.clone().into();
        self.entry(|| self.messages.lock().unwrap().push(message))
    }

    fn returned<'a>(
        &'a self,
        _position: usize,
        execution: &'a ToolExecution,
    ) -> BoxFuture<'a, Result<(), Stopped>> {
        let result = ToolResult::from(execution);
        self.entry(|| self.answered.lock().unwrap().push(result))
    }

    fn traced<'a>(
        &'a self,
        trace: &'a SubagentExecutionTrace,
    ) -> BoxFuture<'a, Result<(), Stopped>> {
        let trace = trace.clone();
        self.entry(|| self.traces.lock().unwrap().push(trace))
    }
}

/// Runs cycle by cycle, with nothing between two cycles but the text of the state. The keeper
/// refuses the entry `crash`, after which the run goes on from the last commit and what was kept.
pub(crate) async fn cycle_by_cycle(
    agent: &Agent,
    mut state: AgentState,
    crash: Option<usize>,
) -> Result<AgentState, AgentError> {
    let mut keeper = Crashing {
        refuses_at: crash,
        ..Crashing::default()
    };
    loop {
        let restored = AgentState::from_json(&state.to_json().unwrap()).unwrap();
        let kept = std::mem::take(&mut *keeper.messages.lock().unwrap());
        let answered = std::mem::take(&mut *keeper.answered.lock().unwrap());
        // A trace counts when its call has its result; else the call runs again.
        let mut traces = std::mem::take(&mut *keeper.traces.lock().unwrap());
        traces.retain(|trace| {
            let mut ids = answered.iter().map(|result| &result.tool_call_id);
            ids.any(|id| *id == trace.parent_tool_call_id)
        });
        let resumed = traces
            .into_iter()
            .fold(restored.with_messages(kept.clone()), |state, trace| {
                state.with_subagent_trace(trace)
            });
        let context = StepContext {
            agent,
            journal: &keeper,
            signal: upp::Signal::new(),
            answered: &answered,
            answers: None,
            n_calls_left: None,
            host: None,
            call_record: None,
            scope: "thread",
        };
        match agent.run_step(resumed, &context).await {
            Ok(outcome) if outcome.next == Next::Done => return Ok(outcome.state),
            Ok(outcome) => {
                state = outcome.state;
                keeper.messages.lock().unwrap().clear();
                keeper.answered.lock().unwrap().clear();
                keeper.traces.lock().unwrap().clear();
            }
            Err(AgentError::Cancelled) if keeper.refuses_at.take().is_some() => {
                // The model's last word to the user needs no further cycle.
                let kept = keeper.messages.lock().unwrap().clone();
                if let ([Message::Assistant(last)], true) = (kept.as_slice(), has_no_prompt(&state))
                    && last.tool_calls.is_empty()
                {
                    return Ok(state.with_step(state.step() + 1).with_messages(kept));
                }
            }
            Err(error) => return Err(error),
        }
    }
}

fn has_no_prompt(state: &AgentState) -> bool {
    kinds(state)
        .iter()
        .all(|kind| ["user", "says", "calls", "results"].contains(&kind.as_str()))
}
