//! The tools phase of a step: every call that does not wait gets exactly one result.

use super::round::Round;
use super::schedule;
use crate::answers::{ExternalResult, PendingKind, Verdict};
use crate::depth::{self, MAX_DEPTH};
use crate::error::AgentError;
use crate::id;
use crate::journal::show;
use crate::strategy::StepContext;
use crate::subagent::{Host, Hosted, InMemoryHost};
use crate::trace::SubagentExecutionTrace;
use futures_util::future::{Either, select};
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use upp::{
    SharedJson, Signal, StreamEvent, ToolCall, ToolCallId, ToolContext, ToolExecution, ToolFailure,
    ToolResult,
};

/// The default result of a denied call.
const DENIED: &str = "The tool call was denied.";

/// The result of a call beyond the run's limit.
const BEYOND: &str = "The tool was not run: the run has made all the tool calls that it may.";

/// The result of a tools phase, in call order.
#[derive(Default)]
pub(crate) struct Outcome {
    /// The new results.
    pub(crate) results: Vec<ToolResult>,
    /// The traces of sub-agents.
    pub(crate) traces: Vec<SubagentExecutionTrace>,
    /// The calls that stay open because their sub-agents wait on a host.
    pub(crate) suspended: BTreeSet<ToolCallId>,
}

/// Answers all calls of one response that can be answered.
///
/// Existing results are used. Calls that wait for an outside answer stay open, and so do the calls
/// that depend on them. The others are checked and then run in the order their dependencies
/// require. A call that can't run gets an error result with the reason.
pub(crate) async fn answer(
    context: &StepContext<'_>,
    round: &Round<'_>,
    state_id: Arc<str>,
    step: u64,
) -> Result<Outcome, AgentError> {
    let host = match &context.host {
        Some(host) => Host::Other(Arc::clone(host)),
        None => Host::Memory(InMemoryHost::new(context.agent.shared_id(), step)),
    };
    let phase = Phase {
        context,
        round,
        state_id,
        hosted: Arc::new(Hosted::new(host)),
        signal: context.signal.child(),
        is_over: AtomicBool::new(false),
    };
    // Pinned here, for a future that is handed on is copied.
    let run = pin!(phase.run());
    match phase.hosted.in_memory() {
        Some(host) => host.relayed(run, context.journal).await,
        None => run.await,
    }
}

/// The action for an open call.
enum Task {
    /// Its tool runs.
    Run(Result<Value, ToolFailure>, Approved),
    /// An answer from outside settles it.
    Settle(ToolExecution),
    /// It stays open.
    Wait,
}

type Approved = bool;
type Ended = (ToolResult, Vec<SubagentExecutionTrace>);

struct Phase<'a> {
    context: &'a StepContext<'a>,
    round: &'a Round<'a>,
    state_id: Arc<str>,
    hosted: Arc<Hosted>,
    /// The signal of the only tool, or the parent of the tools' signals. Cancelling a tool's signal
    /// does not stop the run. If the phase is dropped early, the signal is cancelled.
    signal: Signal,
    is_over: AtomicBool,
}

impl Drop for Phase<'_> {
    fn drop(&mut self) {
        if !*self.is_over.get_mut() {
            self.signal.cancel();
        }
    }
}

impl Phase<'_> {
    async fn run(&self) -> Result<Outcome, AgentError> {
        let outcome = match self.round.calls {
            // Most responses have one call, which needs no schedule.
            [call] if self.context.answered.is_empty() && self.round.recorded.is_empty() => {
                self.alone(call).await
            }
            // In a box, so that the usual response has no room for it.
            calls => Box::pin(self.scheduled(calls)).await,
        }?;
        self.is_over.store(true, Ordering::Relaxed);
        Ok(outcome)
    }

    async fn alone(&self, call: &ToolCall) -> Result<Outcome, AgentError> {
        let (result, traces) = match self.task(0, call) {
            Task::Run(arguments, approved) => {
                // Nobody else hears the phase's own signal.
                let signal = self.signal.clone();
                let run = pin!(self.execute(0, call, arguments, approved, signal));
                let stuck = pin!(self.hosted.stuck(1));
                match select(run, stuck).await {
                    Either::Left((ended, _)) => ended?,
                    Either::Right((left, _)) => return Ok(self.suspended(left, [call])),
                }
            }
            Task::Settle(execution) => self.finish_call(0, execution).await?,
            Task::Wait => return Ok(self.suspended(BTreeSet::new(), [call])),
        };
        Ok(Outcome {
            results: vec![result],
            traces,
            suspended: BTreeSet::new(),
        })
    }

    /// The outcome when no more calls can end. Its open calls are those suspended now, and those
    /// suspended earlier without a resumption.
    fn suspended<'c>(
        &self,
        mut suspended: BTreeSet<ToolCallId>,
        calls: impl IntoIterator<Item = &'c ToolCall>,
    ) -> Outcome {
        let answers = self.context.answers;
        let is_left = |id: &ToolCallId| {
            let resumed = answers.is_some_and(|answers| answers.resumptions.contains_key(id));
            self.round.suspended.contains(id) && !resumed
        };
        let left = calls.into_iter().map(|call| &call.tool_call_id);
        suspended.extend(left.filter(|id| is_left(id)).cloned());
        Outcome {
            suspended,
            ..Outcome::default()
        }
    }

    async fn scheduled(&self, calls: &[ToolCall]) -> Result<Outcome, AgentError> {
        let (mut n_open, needed_by) = schedule::inverted(&self.round.needs);
        let mut ended: BTreeMap<usize, Ended> = BTreeMap::new();
        let mut taken = self.take_results();
        let mut running = FuturesUnordered::new();
        let mut ready: Vec<usize> = (0..calls.len())
            .filter(|at| n_open.get(*at) == Some(&0))
            .collect();
        let left = loop {
            // What has its result has ended, which may free others.
            let mut next = 0;
            while let Some(at) = ready.get(next).copied() {
                next += 1;
                if let Some(result) = taken.remove(&at) {
                    ended.insert(at, (result, Vec::new()));
                    ready.extend(schedule::freed(&mut n_open, &needed_by, at));
                } else if self.round.recorded.contains_key(&at) {
                    ready.extend(schedule::freed(&mut n_open, &needed_by, at));
                } else if let Some(call) = calls.get(at) {
                    match self.task(at, call) {
                        // A tool that cancels its own signal stops no other tool.
                        Task::Run(arguments, approved) => running.push(Either::Left(
                            self.execute(at, call, arguments, approved, self.signal.child())
                                .map(move |ended| (at, ended)),
                        )),
                        Task::Settle(execution) => running.push(Either::Right(
                            self.finish_call(at, execution)
                                .map(move |ended| (at, ended)),
                        )),
                        Task::Wait => {}
                    }
                }
            }
            ready.clear();
            let stuck = pin!(self.hosted.stuck(running.len()));
            match select(running.next(), stuck).await {
                Either::Left((Some((at, result)), _)) => {
                    ended.insert(at, result?);
                    ready.extend(schedule::freed(&mut n_open, &needed_by, at));
                }
                Either::Left((None, _)) => break BTreeSet::new(),
                Either::Right((left, _)) => break left,
            }
        };
        // A result that is kept stays, whatever its call would wait for by now.
        ended.extend(taken.into_iter().map(|(at, it)| (at, (it, Vec::new()))));
        let mut outcome = self.suspended(left, calls);
        drop(running);
        for (result, traces) in ended.into_values() {
            outcome.results.push(result);
            outcome.traces.extend(traces);
        }
        Ok(outcome)
    }

    /// The results from before a crash, by position.
    fn take_results(&self) -> BTreeMap<usize, ToolResult> {
        let matched = crate::state::matched(self.round.calls, self.context.answered);
        matched
            .into_iter()
            .filter(|(at, _)| !self.round.recorded.contains_key(at))
            .map(|(at, result)| (at, result.clone()))
            .collect()
    }

    fn task(&self, at: usize, call: &ToolCall) -> Task {
        let answers = self.context.answers;
        // Somebody else has run it: what is known of its tool here makes no difference.
        if let Some(result) = answers.and_then(|it| it.results.get(&call.tool_call_id))
            && !self.round.repeated.contains(&at)
        {
            return Task::Settle(brought(call, result));
        }
        let checked = || self.context.agent.toolbox().check(call);
        match self.round.asks(at) {
            None => Task::Run(self.arguments(at, call), false),
            Some(PendingKind::Approval) => {
                match answers.and_then(|it| it.approvals.get(&call.tool_call_id)) {
                    Some(Verdict::Approve { arguments }) => {
                        let arguments = arguments.clone().map_or_else(checked, Ok);
                        Task::Run(arguments, true)
                    }
                    Some(Verdict::Deny { message }) => {
                        Task::Settle(denied(call, message.as_deref()))
                    }
                    None => Task::Wait,
                }
            }
            Some(PendingKind::External) => Task::Wait,
            Some(PendingKind::Subagent) => {
                match answers.and_then(|it| it.resumptions.get(&call.tool_call_id)) {
                    Some(resumption) => {
                        let arguments = resumption.arguments.clone();
                        Task::Run(arguments.map_or_else(checked, Ok), resumption.approved)
                    }
                    None => Task::Wait,
                }
            }
        }
    }

    /// The arguments of a call that may run, or the error result for the model.
    fn arguments(&self, at: usize, call: &ToolCall) -> Result<Value, ToolFailure> {
        if let Some(refusal) = &self.round.refusal {
            return Err(ToolFailure::new(refusal.as_str()));
        }
        if self.round.repeated.contains(&at) {
            return Err(ToolFailure::new(format!(
                "The tool was not run: the call id '{}' is used twice.",
                call.tool_call_id
            )));
        }
        if self.round.is_beyond(at) {
            return Err(ToolFailure::new(BEYOND));
        }
        self.context.agent.toolbox().check(call)
    }

    /// The prefix that makes call ids unique.
    fn scope(&self) -> &str {
        match self.context.scope {
            "" => self.round.response.as_str(),
            given => given,
        }
    }

    async fn execute(
        &self,
        at: usize,
        call: &ToolCall,
        arguments: Result<Value, ToolFailure>,
        approved: Approved,
        signal: Signal,
    ) -> Result<Ended, AgentError> {
        if self.context.signal.is_cancelled() {
            return Err(AgentError::Cancelled);
        }
        let start = StreamEvent::ToolExecutionStart {
            index: index(at),
            tool_call_id: call.tool_call_id.clone(),
            tool_name: call.tool_name.clone(),
            timestamp: id::now_ms(),
        };
        show(self.context.journal, start).await?;
        let options = self.context.agent.options();
        let tool = self.context.agent.tool(&call.tool_name);
        let context = ToolContext {
            tool_call_id: call.tool_call_id.clone(),
            idempotency_key: [self.scope(), call.tool_call_id.as_str()].join(":").into(),
            agent_id: self.context.agent.shared_id(),
            state_id: Arc::clone(&self.state_id),
            parent_model: Some(Arc::clone(&options.model)),
            parent_params: Arc::clone(&options.params),
            approved,
            signal,
            host: Some(Arc::clone(&self.hosted) as _),
        };
        let execution =
            upp::execute(call, tool, arguments, &options.tool_strategy, context).await?;
        self.finish_call(at, execution).await
    }

    /// Stores the end of a call in the journal, then emits its event.
    async fn finish_call(&self, at: usize, execution: ToolExecution) -> Result<Ended, AgentError> {
        let execution = readable(execution);
        let journal = self.context.journal;
        let traces = self.hosted.take(&execution.tool_call_id);
        for trace in &traces {
            journal.traced(trace).await?;
        }
        journal.returned(at, &execution).await?;
        let result = ToolResult::from(&execution);
        let end = StreamEvent::ToolExecutionEnd {
            index: index(at),
            tool_call_id: execution.tool_call_id,
            tool_name: execution.tool_name,
            result: execution.result,
            is_error: execution.is_error,
            timestamp: id::now_ms(),
        };
        show(journal, end).await?;
        Ok((result, traces))
    }
}

/// The execution with a result that can be written and read again; a result that is nested too
/// deeply becomes an error.
fn readable(execution: ToolExecution) -> ToolExecution {
    if !depth::is_too_deep(&execution.result) {
        return execution;
    }
    let result = format!(
        "The result is nested too deeply: the tool '{}' has run, but more than {MAX_DEPTH} levels are \
         not taken.",
        execution.tool_name
    );
    ToolExecution {
        result: result.into(),
        is_error: true,
        ..execution
    }
}

fn index(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

fn denied(call: &ToolCall, message: Option<&str>) -> ToolExecution {
    let result = ExternalResult {
        result: Value::from(message.unwrap_or(DENIED)),
        is_error: true,
    };
    ToolExecution {
        approved: Some(false),
        ..brought(call, &result)
    }
}

/// The record of a call whose tool did not run here.
fn brought(call: &ToolCall, result: &ExternalResult) -> ToolExecution {
    let arguments = call.arguments.parse();
    ToolExecution {
        tool_name: call.tool_name.clone(),
        tool_call_id: call.tool_call_id.clone(),
        arguments: arguments.map_or_else(|_| call.arguments.text().into(), SharedJson::from),
        result: result.result.clone().into(),
        is_error: result.is_error,
        duration: 0,
        approved: None,
    }
}
