//! The state that a step adds to the agent besides messages, and the state folded from the log.

mod rewound;
mod view;

use super::limits::Spent;
use crate::compaction::{ForModel, StoredCompaction};
use agents::{AgentState, PlanStatus, PlanStep, SubagentExecutionTrace};
use interop::model;
use interop::parts::ToolPart;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use timeline::{Entry, Payload, Reaction, Step, StepRecord, Transcript};
use upp::{Message, ToolCallId};

use rewound::Rewound;
pub(super) use view::View;

/// The state that one step added; stored with the step's end. Only changes are written, so that the
/// total is linear in the log.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct StateRecord {
    /// Number of steps so far.
    step: u64,
    /// The run's phase within a step.
    #[serde(skip_serializing_if = "Option::is_none")]
    phase: Option<Arc<str>>,
    /// A new plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    plan: Option<Vec<PlanStep>>,
    /// The changed statuses of the existing plan, by the steps' ids.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    plan_status: BTreeMap<String, PlanStatus>,
    /// The reasoning of this cycle.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    reasoning: Vec<String>,
    /// The application's metadata, if it changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<Map<String, Value>>,
    /// The changes that middleware made to the conversation before the run's first step.
    #[serde(skip_serializing_if = "View::is_empty")]
    pub(super) view: View,
    /// Number of messages that the view was made for, if there is a view.
    #[serde(rename = "viewOf", skip_serializing_if = "Option::is_none")]
    pub(super) view_n_messages: Option<usize>,
    /// The middleware's state of the run, until the run is over.
    #[serde(rename = "kept", skip_serializing_if = "Map::is_empty")]
    pub(super) middleware_state: Map<String, Value>,
    /// The open calls whose sub-agents wait on threads of their own.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    suspended: BTreeSet<ToolCallId>,
    /// Number of calls of the agent's own tools in the run so far, if there is a limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tool_calls: Option<u64>,
    /// Number of output tokens of the run so far, if there is a limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) output_tokens: Option<u64>,
}

impl StateRecord {
    /// The difference between the states before and after one cycle.
    pub(super) fn between(before: &AgentState, after: &AgentState) -> Self {
        let (plan, plan_status) = plan_change(before.plan(), after.plan());
        let n_known = before.reasoning().len();
        let is_same = before.metadata() == after.metadata();
        Self {
            step: after.step(),
            phase: after.phase().map(Into::into),
            plan,
            plan_status,
            reasoning: after.reasoning_since(n_known).map(str::to_owned).collect(),
            metadata: (!is_same).then(|| after.metadata().clone()),
            view: View::default(),
            view_n_messages: None,
            middleware_state: Map::new(),
            suspended: after.suspended().clone(),
            tool_calls: None,
            output_tokens: None,
        }
    }

    fn applied(self, state: &AgentState) -> AgentState {
        let mut state = state
            .with_step(self.step)
            .with_phase(self.phase)
            .with_suspended(self.suspended);
        if let Some(plan) = self.plan {
            state = state.with_plan(plan);
        }
        if !self.plan_status.is_empty() {
            let mut plan = state.plan().unwrap_or_default().to_vec();
            for step in &mut plan {
                if let Some(status) = self.plan_status.get(&step.id) {
                    step.status = *status;
                }
            }
            state = state.with_plan(plan);
        }
        for reasoning in self.reasoning {
            state = state.with_reasoning(reasoning);
        }
        for (key, value) in self.metadata.into_iter().flatten() {
            state = state.with_metadata(key, value);
        }
        state
    }
}

/// The plan if it is a new one; else the changed statuses.
fn plan_change(
    before: Option<&[PlanStep]>,
    after: Option<&[PlanStep]>,
) -> (Option<Vec<PlanStep>>, BTreeMap<String, PlanStatus>) {
    let Some(after) = after else {
        return (None, BTreeMap::new());
    };
    let known = before.unwrap_or_default();
    let is_same = |(a, b): (&PlanStep, &PlanStep)| {
        a.id == b.id
            && a.description == b.description
            && a.tool == b.tool
            && a.depends_on == b.depends_on
    };
    if before.is_none() || known.len() != after.len() || !known.iter().zip(after).all(is_same) {
        return (Some(after.to_vec()), BTreeMap::new());
    }
    let changed = known
        .iter()
        .zip(after)
        .filter(|(a, b)| a.status != b.status);
    let statuses = changed.map(|(_, step)| (step.id.clone(), step.status));
    (None, statuses.collect())
}

/// The traces of sub-agents that the step's calls have, in the order of the calls.
pub(super) fn traces<'a>(
    parts: impl IntoIterator<Item = &'a Payload>,
) -> Vec<SubagentExecutionTrace> {
    let tools = parts.into_iter().filter_map(ToolPart::read);
    let traces = tools.filter_map(|tool| tool.subagents?.read::<Vec<_>>().ok());
    traces.flatten().collect()
}

/// The state of an agent before a running step, folded from the log.
pub(super) struct Folded {
    pub(super) state: AgentState,
    /// The middleware's state of the running execution.
    pub(super) middleware_state: Map<String, Value>,
    /// The parts and responses of its steps so far.
    pub(super) steps: Vec<(Vec<Payload>, Payload)>,
    /// The usage of the last run up to its last step, if it has a limit.
    pub(super) spent: Option<Spent>,
    /// Whether the conversation has messages that the state gets only after the waiting calls are
    /// answered.
    pub(super) holds_back: bool,
}

/// Folds the state of an agent before the running step from the log alone. The state has the
/// thread's conversation as middleware changed it, and the records of this agent's own steps.
/// Rewound items are ignored. The time is linear in the transcript, plus the number of messages for
/// each run whose middleware changed them.
///
/// If a compaction replaces older runs, its summary is the first message, and the state begins with
/// what the compaction has of this agent.
pub(super) fn folded(read: &ForModel, agent: Option<&str>, running: &Step) -> Folded {
    let ForModel {
        compaction,
        transcript,
    } = read;
    let model::Marked {
        messages,
        marks,
        removed,
        unanswered: _,
        holds_back,
    } = model::marked_history(transcript, Some(&running.id));
    let mut messages = messages.into_iter();
    let mut n_taken = 0;
    let mut viewed: Vec<Message> = compaction.iter().map(StoredCompaction::message).collect();
    let n_summaries = viewed.len();
    let before = compaction.as_ref().map(|it| &it.compaction.agent_states);
    let before = before.and_then(|states| states.get(agent.unwrap_or_default()));
    let mut folded = Folded {
        state: restored(before),
        middleware_state: Map::new(),
        steps: Vec::new(),
        spent: None,
        holds_back,
    };
    let reactions = transcript.entries.iter().filter_map(|entry| match entry {
        Entry::Reaction(reaction) => Some(reaction),
        Entry::Item(_) => None,
    });
    let rewound = Rewound::of(transcript);
    let mut runs = Vec::new();
    for (number, (reaction, mark)) in reactions.zip(marks).enumerate() {
        viewed.extend(messages.by_ref().take(mark - n_taken));
        n_taken = mark;
        if rewound.has(number) {
            continue;
        }
        runs.push(reaction);
        if agent_of(reaction).as_deref() != agent {
            continue;
        }
        let is_running = reaction.execution.id == running.execution_id;
        for step in reaction.steps.iter().filter(|it| it.step.id != running.id) {
            let record = step.step.outcome.agent_state.as_ref();
            // A record of another program's making says nothing that could be used.
            let record = record.and_then(|record| record.read::<StateRecord>().ok());
            if let Some(record) = record.as_ref().filter(|it| !it.view.is_empty()) {
                // Middleware counted the messages that were there then.
                viewed = removed.left_out_before(number, viewed);
                let n_messages = record.view_n_messages;
                record.view.apply(&mut viewed, n_messages, n_summaries);
            }
            if is_running {
                let parts = step.parts.iter().map(|part| part.part.clone());
                let about = step.response.as_ref().map(|(about, _)| about.clone());
                folded
                    .steps
                    .extend(about.map(|about| (parts.collect(), about)));
                if let Some(record) = record.as_ref().filter(|it| !it.middleware_state.is_empty()) {
                    folded.middleware_state.clone_from(&record.middleware_state);
                }
            }
            folded.state = with_step(&folded.state, step, record);
        }
    }
    // Whichever agent has made them: a run goes on when it is handed over.
    let mut back = runs.into_iter().rev();
    folded.spent = back
        .find_map(|reaction| last_record(reaction, running))
        .and_then(|last| {
            last.tool_calls.map(|calls| Spent {
                calls,
                tokens: last.output_tokens.unwrap_or_default(),
            })
        });
    viewed.extend(messages);
    // Only now: middleware counted the messages that were removed after it.
    folded.state = folded.state.with_context(removed.left_out(viewed));
    folded
}

/// The states of all agents, without messages, after the runs of a transcript. Reasoning and traces of
/// sub-agents are left out, as they grow with the thread.
pub(crate) fn states_after(
    before: BTreeMap<String, Payload>,
    transcript: &Transcript,
) -> BTreeMap<String, Payload> {
    let rewound = Rewound::of(transcript);
    let mut states = BTreeMap::new();
    let reactions = transcript.entries.iter().filter_map(|entry| match entry {
        Entry::Reaction(reaction) => Some(reaction),
        Entry::Item(_) => None,
    });
    for (number, reaction) in reactions.enumerate() {
        if rewound.has(number) {
            continue;
        }
        let name = agent_of(reaction).unwrap_or_default();
        let state = states.remove(&name);
        let mut state = state.unwrap_or_else(|| restored(before.get(&name)));
        for step in &reaction.steps {
            state = after_step(&state, step);
        }
        states.insert(name, state);
    }
    let mut all = before;
    for (name, state) in states {
        let record = StateRecord {
            phase: None,
            reasoning: Vec::new(),
            suspended: BTreeSet::new(),
            ..StateRecord::between(&AgentState::initial(), &state)
        };
        all.extend(Payload::write(&record).ok().map(|record| (name, record)));
    }
    all
}

/// The state of an agent that a compaction has.
fn restored(record: Option<&Payload>) -> AgentState {
    let record = record.and_then(|record| record.read::<StateRecord>().ok());
    record.map_or_else(AgentState::initial, |record| {
        record.applied(&AgentState::initial())
    })
}

/// The agent of an execution; its other parameters are not parsed.
fn agent_of(reaction: &Reaction) -> Option<String> {
    #[derive(Deserialize)]
    struct Named {
        agent: Option<String>,
    }
    let run = reaction.execution.run.as_ref()?;
    run.read::<Named>().ok()?.agent
}

/// The record of the last step of an execution that is over.
fn last_record(reaction: &Reaction, running: &Step) -> Option<StateRecord> {
    let mut steps = reaction.steps.iter().rev();
    let last = steps.find(|it| it.step.id != running.id)?;
    last.step.outcome.agent_state.as_ref()?.read().ok()
}

/// The state after a finished step, except for its messages.
pub(crate) fn after_step(state: &AgentState, step: &StepRecord) -> AgentState {
    let record = step.step.outcome.agent_state.as_ref();
    let record = record.and_then(|record| record.read::<StateRecord>().ok());
    with_step(state, step, record)
}

fn with_step(state: &AgentState, step: &StepRecord, record: Option<StateRecord>) -> AgentState {
    let mut state = state.clone();
    for trace in traces(step.parts.iter().map(|part| &part.part)) {
        state = state.with_subagent_trace(trace);
    }
    match record {
        Some(record) => record.applied(&state),
        // A step that did not end, or one from before steps had records.
        None if step.response.is_some() => state.with_step(state.step().saturating_add(1)),
        None => state,
    }
}

/// The state with its first `n_known` traces, followed by these traces.
pub(super) fn with_traces(
    state: &AgentState,
    n_known: usize,
    traces: Vec<SubagentExecutionTrace>,
) -> AgentState {
    let mut built = AgentState::initial()
        .with_messages(state.messages().iter().cloned())
        .with_step(state.step())
        .with_phase(state.phase().map(Into::into))
        .with_suspended(state.suspended().clone());
    for (key, value) in state.metadata() {
        built = built.with_metadata(key.as_str(), value.clone());
    }
    for reasoning in state.reasoning() {
        built = built.with_reasoning(reasoning);
    }
    if let Some(plan) = state.plan() {
        built = built.with_plan(plan);
    }
    let known = state.subagent_traces().take(n_known).cloned();
    for trace in known.chain(traces) {
        built = built.with_subagent_trace(trace);
    }
    built
}
