//! The tools phase of a step: every call gets exactly one result, in call order.

use super::schedule;
use crate::error::AgentError;
use crate::id;
use crate::strategy::StepContext;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use tokio_util::sync::CancellationToken;
use upp::{StreamEvent, ToolCall, ToolCallId, ToolContext, ToolFailure, ToolResult};

/// Answers all calls of one response.
///
/// Calls already answered are taken as they are. The others are checked, then run as their order
/// allows; what can't run gets an error result that tells the model why.
pub(crate) async fn answer(
    context: &StepContext<'_>,
    calls: &[ToolCall],
) -> Result<Vec<ToolResult>, AgentError> {
    let (refusal, needs) = match schedule::order(calls, |name| context.agent.tool(name)) {
        Ok(needs) => (None, needs),
        Err(disorder) => (
            Some(disorder.to_string()),
            vec![BTreeSet::new(); calls.len()],
        ),
    };
    let phase = Phase {
        context,
        calls,
        repeated: repeated(calls),
        refusal,
        signal: context.signal.child_token(),
    };
    // Dropped before its end, the phase tells the tools that nobody wants their results.
    let guard = phase.signal.clone().drop_guard();
    let results = phase.run(&needs).await?;
    guard.disarm();
    Ok(results)
}

/// The positions whose call id occurs before; it is not run, for its results could not be told
/// apart and both would have one idempotency key.
fn repeated(calls: &[ToolCall]) -> BTreeSet<usize> {
    let mut seen: BTreeSet<&ToolCallId> = BTreeSet::new();
    (0..)
        .zip(calls)
        .filter(|(_, call)| !seen.insert(&call.tool_call_id))
        .map(|(at, _)| at)
        .collect()
}

struct Phase<'a> {
    context: &'a StepContext<'a>,
    calls: &'a [ToolCall],
    repeated: BTreeSet<usize>,
    refusal: Option<String>,
    signal: CancellationToken,
}

impl Phase<'_> {
    async fn run(&self, needs: &[BTreeSet<usize>]) -> Result<Vec<ToolResult>, AgentError> {
        let (mut n_open, needed_by) = schedule::inverted(needs);
        let mut results = self.recorded();
        let mut running = FuturesUnordered::new();
        let mut ready: Vec<usize> = (0..self.calls.len())
            .filter(|at| n_open.get(*at) == Some(&0))
            .collect();
        loop {
            // What is recorded has ended, which may free others.
            let mut next = 0;
            while let Some(at) = ready.get(next).copied() {
                next += 1;
                if results.contains_key(&at) {
                    ready.extend(freed(&mut n_open, &needed_by, at));
                } else if let Some(call) = self.calls.get(at) {
                    running.push(self.one(at, call).map(move |result| (at, result)));
                }
            }
            ready.clear();
            let Some((at, result)) = running.next().await else {
                break;
            };
            results.insert(at, result?);
            ready.extend(freed(&mut n_open, &needed_by, at));
        }
        Ok(results.into_values().collect())
    }

    /// The results from before a crash, by position.
    fn recorded(&self) -> BTreeMap<usize, ToolResult> {
        let mut by_id: BTreeMap<&ToolCallId, &ToolResult> = BTreeMap::new();
        for result in self.context.answered {
            by_id.entry(&result.tool_call_id).or_insert(result);
        }
        (0..)
            .zip(self.calls)
            .filter_map(|(at, call)| {
                let result = by_id.remove(&call.tool_call_id)?;
                Some((at, result.clone()))
            })
            .collect()
    }

    async fn one(&self, at: usize, call: &ToolCall) -> Result<ToolResult, AgentError> {
        let index = u32::try_from(at).unwrap_or(u32::MAX);
        let journal = self.context.journal;
        if self.signal.is_cancelled() {
            return Err(AgentError::Cancelled);
        }
        let start = StreamEvent::ToolExecutionStart {
            index,
            tool_call_id: call.tool_call_id.clone(),
            tool_name: call.tool_name.clone(),
            timestamp: id::now_ms(),
        };
        journal.emit(start.into()).await?;
        let tool = self.context.agent.tool(&call.tool_name);
        let context = ToolContext {
            tool_call_id: call.tool_call_id.clone(),
            idempotency_key: format!("{}:{}", self.context.scope, call.tool_call_id).into(),
            agent_id: self.context.agent.shared_id(),
            signal: self.signal.child_token(),
        };
        let strategy = &self.context.agent.options().tool_strategy;
        let arguments = self.arguments(at, call);
        let execution = upp::execute(call, tool, arguments, strategy, context).await?;
        journal.returned(at, &execution).await?;
        let end = StreamEvent::ToolExecutionEnd {
            index,
            tool_call_id: execution.tool_call_id.clone(),
            tool_name: execution.tool_name.clone(),
            result: execution.result.clone(),
            is_error: execution.is_error,
            timestamp: id::now_ms(),
        };
        journal.emit(end.into()).await?;
        Ok(ToolResult::from(&execution))
    }

    /// The arguments of a call that may run, or what the model is told instead.
    fn arguments(&self, at: usize, call: &ToolCall) -> Result<Value, ToolFailure> {
        if let Some(refusal) = &self.refusal {
            return Err(ToolFailure::new(refusal.as_str()));
        }
        if self.repeated.contains(&at) {
            return Err(ToolFailure::new(format!(
                "The tool was not run: the call id '{}' is used twice.",
                call.tool_call_id
            )));
        }
        self.context.agent.toolbox().check(call)
    }
}

/// Those that `at` was the last to hold back.
fn freed(n_open: &mut [usize], needed_by: &[Vec<usize>], at: usize) -> Vec<usize> {
    let waiting = needed_by.get(at).into_iter().flatten().copied();
    waiting
        .filter(|next| schedule::release(n_open, *next))
        .collect()
}
