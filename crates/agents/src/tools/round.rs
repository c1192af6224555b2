//! The status of the last response's calls: with a result, ready to run, or waiting.

use super::schedule;
use crate::agent::Agent;
use crate::answers::{AnswerError, Answers, ExternalResult, PendingCall, PendingKind, Verdict};
use crate::depth;
use crate::state::{AgentState, matched};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use upp::{MessageId, ToolCall, ToolCallId, ToolResult};

/// The calls of the response a state ends with, some of which are open.
pub(crate) struct Round<'a> {
    agent: &'a Agent,
    /// The id of the response.
    pub(crate) response: &'a MessageId,
    /// All calls of the response.
    pub(crate) calls: &'a [ToolCall],
    /// For each call, the positions of the calls that must have ended.
    pub(crate) needs: Vec<BTreeSet<usize>>,
    /// The results the state has, by position.
    pub(crate) recorded: BTreeMap<usize, ToolResult>,
    /// Why no call can run.
    pub(crate) refusal: Option<String>,
    /// The positions whose call id occurs earlier. These calls do not run, because their results
    /// and idempotency keys would be ambiguous.
    pub(crate) repeated: BTreeSet<usize>,
    /// The positions of calls beyond the limit on the run's own tools.
    beyond: BTreeSet<usize>,
    /// The calls whose sub-agents wait on a host.
    pub(crate) suspended: &'a BTreeSet<ToolCallId>,
    /// The kinds of answers that open calls wait for, by position.
    asks: BTreeMap<usize, PendingKind>,
}

impl<'a> Round<'a> {
    /// The open round of a state; none if every call has its result.
    pub(crate) fn open(agent: &'a Agent, state: &'a AgentState) -> Option<Self> {
        // Asked after each cycle, and mostly there is none.
        if !state.has_open_calls() {
            return None;
        }
        let response = &state.last_response()?.id;
        let (calls, results) = state.last_round();
        // Mostly no call has one.
        let recorded = if results.is_empty() {
            BTreeMap::new()
        } else {
            matched(calls, results)
        };
        if recorded.len() == calls.len() {
            return None;
        }
        let (refusal, needs) = match schedule::order(calls, |name| agent.tool(name)) {
            Ok(needs) => (None, needs),
            Err(disorder) => (
                Some(disorder.to_string()),
                vec![BTreeSet::new(); calls.len()],
            ),
        };
        let recorded = recorded.into_iter().map(|(at, it)| (at, it.clone()));
        let mut round = Self {
            agent,
            response,
            calls,
            needs,
            recorded: recorded.collect(),
            refusal,
            repeated: repeated(calls),
            beyond: BTreeSet::new(),
            suspended: state.suspended(),
            asks: BTreeMap::new(),
        };
        round.asks = round.asking();
        Some(round)
    }

    /// Limits the number of calls of the agent's own tools.
    pub(crate) fn limited(mut self, n_allowed: Option<usize>) -> Self {
        if let Some(n_allowed) = n_allowed {
            let own = (0..)
                .zip(self.calls)
                .filter(|(_, call)| self.agent.runs(&call.tool_name));
            self.beyond = own.skip(n_allowed).map(|(at, _)| at).collect();
            self.asks.retain(|at, _| !self.beyond.contains(at));
        }
        self
    }

    /// Whether the call at a position exceeds the limit.
    pub(crate) fn is_beyond(&self, at: usize) -> bool {
        self.beyond.contains(&at)
    }

    /// The kinds of answers that open calls wait for, without calls that would fail anyway.
    fn asking(&self) -> BTreeMap<usize, PendingKind> {
        if self.refusal.is_some() || self.agent.tool_rounds() == Some(0) {
            return BTreeMap::new();
        }
        let open = (0..)
            .zip(self.calls)
            .filter(|(at, _)| !self.recorded.contains_key(at) && !self.repeated.contains(at));
        open.filter_map(|(at, call)| {
            if self.suspended.contains(&call.tool_call_id) {
                return Some((at, PendingKind::Subagent));
            }
            let kind = match self.agent.tool(&call.tool_name) {
                Some(tool) if tool.external => PendingKind::External,
                Some(tool) if tool.requires_approval => PendingKind::Approval,
                None if self.agent.options().foreign_calls => PendingKind::External,
                Some(_) | None => return None,
            };
            self.agent.toolbox().check(call).ok()?;
            Some((at, kind))
        })
        .collect()
    }

    /// The kind of answer that the call at a position waits for.
    pub(crate) fn asks(&self, at: usize) -> Option<PendingKind> {
        self.asks.get(&at).copied()
    }

    /// The calls that can be answered now, without calls that depend on one of them.
    pub(crate) fn pending(&self) -> Vec<PendingCall> {
        let ended = self.ending(&BTreeSet::new());
        let ready = |at: &usize| {
            let needs = self.needs.get(*at);
            needs.is_some_and(|needs| needs.is_subset(&ended))
        };
        self.asks
            .iter()
            .filter(|(at, _)| ready(at))
            .filter_map(|(at, kind)| {
                let call = self.calls.get(*at)?.clone();
                Some(PendingCall { call, kind: *kind })
            })
            .collect()
    }

    /// Whether no open call can end before an answer arrives.
    pub(crate) fn is_stuck(&self) -> bool {
        let ending = self.ending(&BTreeSet::new());
        ending.iter().all(|at| self.recorded.contains_key(at))
    }

    /// The positions that have ended or will, once the calls at these positions are answered.
    fn ending(&self, answered: &BTreeSet<usize>) -> BTreeSet<usize> {
        let (mut n_open, needed_by) = schedule::inverted(&self.needs);
        let mut ready: Vec<usize> = (0..self.calls.len())
            .filter(|at| n_open.get(*at) == Some(&0))
            .collect();
        let mut ended = BTreeSet::new();
        while let Some(at) = ready.pop() {
            if self.asks.contains_key(&at) && !answered.contains(&at) {
                continue;
            }
            ended.insert(at);
            ready.extend(schedule::freed(&mut n_open, &needed_by, at));
        }
        ended
    }

    /// All reasons why answers don't fit their calls, or can't be used now. For dependencies an
    /// answer of the wrong kind counts as an answer, so that each answer's errors are only its own.
    pub(crate) fn faults(&self, answers: &Answers) -> Vec<AnswerError> {
        let mut found = Faults::default();
        for (id, verdict) in &answers.approvals {
            let at = found.place(self.asked(id, PendingKind::Approval), || self.first(id));
            if let Verdict::Approve {
                arguments: Some(arguments),
            } = verdict
                && let Some(at) = at
            {
                found.note(
                    check_depth(id, arguments).and_then(|()| self.check_arguments(at, arguments)),
                );
            }
        }
        for (id, result) in &answers.results {
            let at = found.place(self.brought(id), || self.first(id));
            let checked = check_depth(id, &result.result);
            found.note(checked.and_then(|()| self.check_result(at, result)));
        }
        for id in answers.resumptions.keys() {
            found.place(self.asked(id, PendingKind::Subagent), || self.first(id));
        }
        let ending = self.ending(&found.answered);
        let early = found.answered.iter().filter(|at| !ending.contains(at));
        let early = early.filter_map(|at| {
            let call = self.calls.get(*at)?.tool_call_id.clone();
            Some(AnswerError::Early { call })
        });
        found.errors.extend(early);
        found.errors
    }

    /// The position of the first call of this id.
    fn first(&self, id: &ToolCallId) -> Option<usize> {
        self.calls.iter().position(|it| it.tool_call_id == *id)
    }

    /// The position of the call that this answer is for.
    fn asked(&self, id: &ToolCallId, given: PendingKind) -> Result<usize, AnswerError> {
        let call = || id.clone();
        // Where the id repeats, only its first call can ask.
        let Some(at) = self.first(id) else {
            return Err(AnswerError::UnknownCall { call: call() });
        };
        if self.recorded.contains_key(&at) {
            return Err(AnswerError::AlreadyAnswered { call: call() });
        }
        match self.asks(at) {
            Some(kind) if kind == given => Ok(at),
            expected => Err(AnswerError::WrongKind {
                call: call(),
                given,
                expected,
            }),
        }
    }

    /// The position of the call that this result is for. The client ran the call, so the tool need
    /// not exist here.
    fn brought(&self, id: &ToolCallId) -> Result<usize, AnswerError> {
        let asked = self.asked(id, PendingKind::External);
        let Err(AnswerError::WrongKind { expected: None, .. }) = asked else {
            return asked;
        };
        let at = self.first(id);
        let elsewhere = |at: &usize| {
            let call = self.calls.get(*at);
            call.is_some_and(|call| !self.agent.runs(&call.tool_name))
        };
        at.filter(elsewhere).map_or(asked, Ok)
    }

    /// Compares a result with the schema that its tool declares.
    fn check_result(&self, at: Option<usize>, result: &ExternalResult) -> Result<(), AnswerError> {
        let call = at.and_then(|at| self.calls.get(at));
        let Some(call) = call.filter(|_| !result.is_error) else {
            return Ok(());
        };
        let toolbox = self.agent.toolbox();
        match toolbox.result_breaches(&call.tool_name, &result.result) {
            Some(breaches) => Err(AnswerError::Result {
                call: call.tool_call_id.clone(),
                breaches,
            }),
            None => Ok(()),
        }
    }

    fn check_arguments(&self, at: usize, arguments: &Value) -> Result<(), AnswerError> {
        let Some(call) = self.calls.get(at) else {
            return Ok(());
        };
        let breaches = if arguments.is_object() {
            self.agent.toolbox().breaches(&call.tool_name, arguments)
        } else {
            Some("\n- they are not a JSON object".to_owned())
        };
        match breaches {
            Some(breaches) => Err(AnswerError::Arguments {
                call: call.tool_call_id.clone(),
                breaches,
            }),
            None => Ok(()),
        }
    }
}

/// The errors of answers, and the positions of the answered calls.
#[derive(Default)]
struct Faults {
    errors: Vec<AnswerError>,
    answered: BTreeSet<usize>,
}

impl Faults {
    /// Records an error of `found`. Returns the position of the answered call; for an answer of the
    /// wrong kind, it is `first`.
    fn place(
        &mut self,
        found: Result<usize, AnswerError>,
        first: impl FnOnce() -> Option<usize>,
    ) -> Option<usize> {
        let at = match found {
            Ok(at) => Some(at),
            Err(error) => {
                let is_open = matches!(error, AnswerError::WrongKind { .. });
                self.errors.push(error);
                first().filter(|_| is_open)
            }
        };
        self.answered.extend(at);
        at
    }

    fn note(&mut self, checked: Result<(), AnswerError>) {
        self.errors.extend(checked.err());
    }
}

fn check_depth(call: &ToolCallId, value: &Value) -> Result<(), AnswerError> {
    if depth::is_too_deep(value) {
        return Err(AnswerError::TooDeep { call: call.clone() });
    }
    Ok(())
}

fn repeated(calls: &[ToolCall]) -> BTreeSet<usize> {
    if calls.len() < 2 {
        return BTreeSet::new();
    }
    let mut seen: BTreeSet<&ToolCallId> = BTreeSet::new();
    (0..)
        .zip(calls)
        .filter(|(_, call)| !seen.insert(&call.tool_call_id))
        .map(|(at, _)| at)
        .collect()
}
