//! One run: an execution, and those that continue it.

mod ending;
mod facts;
mod object;
mod step;
mod streamed;

pub(super) use step::{End, MessageEnd};
pub(super) use streamed::Delta;

use super::metadata::{Metadata, NAMESPACE};
use super::object::{RunStatus, Usage};
use super::tools::AssistantTool;
use crate::Loss;
use crate::ids::{RUN, THREAD};
use crate::options::RunOptions;
use crate::truncate::Cut;
use ending::State;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use step::Step;
use streamed::Streamed;
use timeline::{Execution, ExecutionId, Item, ItemId, ItemType, Payload};

/// Seconds after its creation at which a run expires that waits for its client.
pub const EXPIRES_AFTER: u64 = 600;

/// The member of an item reference that stops a waiting run.
pub(super) const CANCELS: &str = "cancels";

/// The members of a run's object that come from its request; stored in [`RunOptions::echo`] under
/// `threads`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[expect(missing_docs, reason = "the members of the run's object")]
pub struct RunEcho {
    pub assistant_id: Option<String>,
    pub model: Option<String>,
    pub instructions: Option<String>,
    pub tools: Vec<AssistantTool>,
    pub metadata: Metadata,
    pub temperature: Option<f64>,
    pub top_p: Option<f64>,
    pub max_prompt_tokens: Option<u64>,
    pub max_completion_tokens: Option<u64>,
    pub truncation_strategy: Option<Value>,
    pub tool_choice: Option<Value>,
    pub parallel_tool_calls: Option<bool>,
    pub response_format: Option<Value>,
    /// Seconds; a run without it never expires.
    pub expires_after: Option<u64>,
}

/// The members of an execution's `run` that this view reads.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RunParams {
    agent: Option<String>,
    params: Option<Payload>,
}

impl RunParams {
    fn of(execution: &Execution) -> Self {
        let run = execution.run.as_ref();
        run.and_then(|run| run.read().ok()).unwrap_or_default()
    }
}

/// A call that waits for the output of a client's tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequiredCall {
    /// The call's id.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// The arguments' text.
    pub arguments: String,
}

/// An end that is not shown yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// The message of this step.
    Message(usize),
    /// The calls of this step.
    Calls(usize),
}

/// The position of a call: the index of its step, and its index in the step.
type CallPosition = (usize, usize);

/// A run in its current state. Its memory use is that of the run.
#[derive(Clone, Debug)]
pub struct Run {
    id: String,
    thread_id: String,
    agent: Option<String>,
    options: RunOptions,
    echo: RunEcho,
    created_at: Timestamp,
    executions: Vec<ExecutionId>,
    state: State,
    steps: Vec<Step>,
    /// The calls without results.
    open: BTreeMap<String, CallPosition>,
    /// The calls that have answers.
    answering: BTreeMap<String, CallPosition>,
    /// Items with answers that no execution has handled yet.
    queued: BTreeSet<ItemId>,
    /// The calls that the last step left to the client, and the ids of those that others answer.
    pending: Vec<RequiredCall>,
    pending_elsewhere: Vec<String>,
    /// Whether a message or another run was added while it ran.
    is_overtaken: bool,
    /// The end of the last execution that ended.
    rested_at: Timestamp,
    /// Whether the running execution acts on answers, and hands over to another agent.
    by_answers: bool,
    hands_over: bool,
    // Of the running step:
    iteration: u32,
    slots: BTreeMap<u32, CallPosition>,
    streamed: Streamed,
    /// Why the last answer of a model was cut off, or why no other one follows it.
    cut: Option<Cut>,
    usage: Option<Usage>,
    model: Option<String>,
    losses: Vec<Loss>,
    changes: Vec<Change>,
}

impl Run {
    /// The run that an execution starts.
    pub(super) fn begin(thread_id: &str, execution: &Execution) -> Self {
        let params = RunParams::of(execution);
        let options = params.params.and_then(|params| params.read().ok());
        let options: RunOptions = options.unwrap_or_default();
        let echo = options.echo.get(NAMESPACE);
        let echo = echo.and_then(|echo| RunEcho::deserialize(echo).ok());
        Self {
            id: RUN.write(execution.id.as_str()),
            thread_id: THREAD.write(thread_id),
            agent: params.agent,
            echo: echo.unwrap_or_default(),
            options,
            created_at: execution.created_at,
            executions: vec![execution.id.clone()],
            state: State::Running,
            steps: Vec::new(),
            open: BTreeMap::new(),
            answering: BTreeMap::new(),
            queued: BTreeSet::new(),
            pending: Vec::new(),
            pending_elsewhere: Vec::new(),
            is_overtaken: false,
            rested_at: execution.created_at,
            by_answers: false,
            hands_over: false,
            iteration: 0,
            slots: BTreeMap::new(),
            streamed: Streamed::default(),
            cut: None,
            usage: None,
            model: None,
            losses: Vec::new(),
            changes: Vec::new(),
        }
    }

    /// The run's id: `run_…`, of its first execution.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Its executions, in order. To stop the run, stop the last one.
    pub fn executions(&self) -> &[ExecutionId] {
        &self.executions
    }

    /// Replaces its metadata.
    pub fn set_metadata(&mut self, metadata: Metadata) {
        self.echo.metadata = metadata;
    }

    /// The parts of its steps that this API can't show.
    pub fn losses(&self) -> &[Loss] {
        &self.losses
    }

    pub(super) fn take_changes(&mut self) -> Vec<Change> {
        std::mem::take(&mut self.changes)
    }

    /// Another execution continues it.
    pub(super) fn continue_with(&mut self, execution: &Execution, trigger: Option<&Item>) {
        self.by_answers =
            trigger.is_some_and(|trigger| trigger.item_type == ItemType::ActionResult);
        self.queued.remove(&execution.trigger_item_id);
        self.executions.push(execution.id.clone());
        self.state = State::Running;
        self.hands_over = false;
    }

    /// The calls that wait for the outputs of client tools.
    pub fn pending(&self) -> Vec<&RequiredCall> {
        if self.state != State::Waiting {
            return Vec::new();
        }
        let open = self.pending.iter();
        open.filter(|call| self.open.contains_key(&call.id))
            .collect()
    }

    /// The status at `now`. A waiting run is expired after its time.
    pub fn status(&self, now: Timestamp) -> RunStatus {
        match &self.state {
            State::Waiting if self.is_expired(now) => RunStatus::Expired,
            State::Waiting if !self.pending().is_empty() => RunStatus::RequiresAction,
            State::Waiting if !self.queued.is_empty() => RunStatus::Queued,
            State::Running | State::Waiting => RunStatus::InProgress,
            State::Over(over, _) => over.status(),
        }
    }

    /// Whether it expired at `now` while it waited for its client.
    pub fn is_expired(&self, now: Timestamp) -> bool {
        let waits = self.state == State::Waiting && self.queued.is_empty();
        waits && self.lapses_at().is_some_and(|at| now >= at)
    }

    /// Its expiry, in Unix seconds.
    fn expires_at(&self) -> Option<i64> {
        let seconds = i64::try_from(self.echo.expires_after?).ok()?;
        Some(self.created_at.as_second().saturating_add(seconds))
    }

    /// The instant at which it expires if it still waits. That is not before it started to wait.
    fn lapses_at(&self) -> Option<Timestamp> {
        let at = Timestamp::from_second(self.expires_at()?).ok()?;
        Some(at.max(self.rested_at))
    }
}
