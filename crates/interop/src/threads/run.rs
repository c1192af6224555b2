//! One run: an execution, and those that go on with it.

mod ending;
mod facts;
mod object;
mod partial;
mod step;

pub(super) use partial::Grown;
pub(super) use step::{End, MessageEnd};

use super::metadata::{Metadata, NAMESPACE};
use super::object::{RunStatus, Usage};
use super::tools::Tool;
use crate::Loss;
use crate::cut::Cut;
use crate::ids::{RUN, THREAD};
use crate::options::RunOptions;
use ending::Standing;
use jiff::Timestamp;
use partial::Partial;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use step::Step;
use timeline::{Execution, ExecutionId, Item, ItemId, ItemType, Payload, StepId};

/// A run that its client has not gone on with for so many seconds after it was made is expired.
pub const EXPIRES_AFTER: u64 = 600;

/// The member of an item reference that stops a run which waits.
pub(super) const CANCELS: &str = "cancels";

/// What a run must say again of its request; kept in [`RunOptions::echo`] under `threads`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[expect(missing_docs, reason = "the members of the run's object")]
pub struct RunEcho {
    pub assistant_id: Option<String>,
    pub model: Option<String>,
    pub instructions: Option<String>,
    pub tools: Vec<Tool>,
    pub metadata: Metadata,
    pub temperature: Option<f64>,
    pub top_p: Option<f64>,
    pub max_prompt_tokens: Option<u64>,
    pub max_completion_tokens: Option<u64>,
    pub truncation_strategy: Option<Value>,
    pub tool_choice: Option<Value>,
    pub parallel_tool_calls: Option<bool>,
    pub response_format: Option<Value>,
    /// Seconds; a run without has no end to its time.
    pub expires_after: Option<u64>,
}

/// What of an execution's `run` is of interest here.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Began {
    agent: Option<String>,
    params: Option<Payload>,
}

impl Began {
    fn of(execution: &Execution) -> Self {
        let run = execution.run.as_ref();
        run.and_then(|run| run.read().ok()).unwrap_or_default()
    }
}

/// A call that waits for the output of a client's tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingCall {
    /// The call's id.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// The arguments' text.
    pub arguments: String,
}

/// What has come to its end since somebody asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// The message of this step.
    Message(usize),
    /// The calls of this step.
    Calls(usize),
}

/// Where a call is: the place of its step, and its own among the step's.
type Place = (usize, usize);

/// A run as it stands. Its size is the run's.
#[derive(Clone, Debug)]
pub struct Run {
    id: String,
    thread_id: String,
    agent: Option<String>,
    options: RunOptions,
    echo: RunEcho,
    created_at: Timestamp,
    executions: Vec<ExecutionId>,
    standing: Standing,
    steps: Vec<Step>,
    /// The calls without results.
    open: BTreeMap<String, Place>,
    /// The calls that answers were brought for.
    answering: BTreeMap<String, Place>,
    /// The answers that wait to be acted on.
    queued: BTreeSet<ItemId>,
    /// What the last step leaves to the client, and to others.
    left: Vec<PendingCall>,
    left_to_others: Vec<String>,
    /// Whether something else was said while it ran.
    is_overtaken: bool,
    /// When its last execution that is over was over.
    rested_at: Timestamp,
    /// Whether the running execution was begun by answers, and hands over to another agent.
    by_answers: bool,
    hands_over: bool,
    // Of the running step:
    iteration: u32,
    slots: BTreeMap<u32, Place>,
    partial: Partial,
    /// Why the last answer of a model was cut off, or why no other one follows it.
    cut: Option<Cut>,
    usage: Option<Usage>,
    model: Option<String>,
    losses: Vec<Loss>,
    changes: Vec<Change>,
}

impl Run {
    /// The run that an execution begins.
    pub(super) fn begin(thread_id: &str, execution: &Execution) -> Self {
        let began = Began::of(execution);
        let options = began.params.and_then(|params| params.read().ok());
        let options: RunOptions = options.unwrap_or_default();
        let echo = options.echo.get(NAMESPACE);
        let echo = echo.and_then(|echo| RunEcho::deserialize(echo).ok());
        Self {
            id: RUN.write(execution.id.as_str()),
            thread_id: THREAD.write(thread_id),
            agent: began.agent,
            echo: echo.unwrap_or_default(),
            options,
            created_at: execution.created_at,
            executions: vec![execution.id.clone()],
            standing: Standing::Running,
            steps: Vec::new(),
            open: BTreeMap::new(),
            answering: BTreeMap::new(),
            queued: BTreeSet::new(),
            left: Vec::new(),
            left_to_others: Vec::new(),
            is_overtaken: false,
            rested_at: execution.created_at,
            by_answers: false,
            hands_over: false,
            iteration: 0,
            slots: BTreeMap::new(),
            partial: Partial::default(),
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

    /// Its executions, in order; the last one is the one to be stopped.
    pub fn executions(&self) -> &[ExecutionId] {
        &self.executions
    }

    /// Puts other metadata in the place of what its request noted.
    pub fn note(&mut self, metadata: Metadata) {
        self.echo.metadata = metadata;
    }

    /// What of its steps has no place in this API.
    pub fn losses(&self) -> &[Loss] {
        &self.losses
    }

    pub(super) fn is_running(&self, execution: &ExecutionId) -> bool {
        self.standing == Standing::Running && self.executions.last() == Some(execution)
    }

    /// Whether a step of ours is this run's running one.
    pub(super) fn is_step(&self, step: &StepId) -> bool {
        let last = self.steps.last();
        self.standing == Standing::Running && last.is_some_and(|last| last.id == *step)
    }

    pub(super) fn take_changes(&mut self) -> Vec<Change> {
        std::mem::take(&mut self.changes)
    }

    /// Another execution goes on with it.
    pub(super) fn go_on(&mut self, execution: &Execution, trigger: Option<&Item>) {
        self.by_answers =
            trigger.is_some_and(|trigger| trigger.item_type == ItemType::ActionResult);
        self.queued.remove(&execution.trigger_item_id);
        self.executions.push(execution.id.clone());
        self.standing = Standing::Running;
        self.hands_over = false;
    }

    /// The calls that wait for the outputs of client tools.
    pub fn pending(&self) -> Vec<&PendingCall> {
        if self.standing != Standing::Waiting {
            return Vec::new();
        }
        let open = self.left.iter();
        open.filter(|call| self.open.contains_key(&call.id))
            .collect()
    }

    /// How it stands at an instant: a run that waits is expired when its time is up.
    pub fn status(&self, now: Timestamp) -> RunStatus {
        match &self.standing {
            Standing::Waiting if self.is_expired(now) => RunStatus::Expired,
            Standing::Waiting if !self.pending().is_empty() => RunStatus::RequiresAction,
            Standing::Waiting if !self.queued.is_empty() => RunStatus::Queued,
            Standing::Running | Standing::Waiting => RunStatus::InProgress,
            Standing::Over(over, _) => over.status(),
        }
    }

    /// Whether its time was up while it waited for its client. Who ends what waits is not this view's
    /// matter.
    pub fn is_expired(&self, now: Timestamp) -> bool {
        let waits = self.standing == Standing::Waiting && self.queued.is_empty();
        waits && self.lapses_at().is_some_and(|at| now >= at)
    }

    /// When its time is up, in Unix seconds.
    fn expires_at(&self) -> Option<i64> {
        let seconds = i64::try_from(self.echo.expires_after?).ok()?;
        Some(self.created_at.as_second().saturating_add(seconds))
    }

    /// When it is expired if it still waits: not before it began to.
    fn lapses_at(&self) -> Option<Timestamp> {
        let at = Timestamp::from_second(self.expires_at()?).ok()?;
        Some(at.max(self.rested_at))
    }
}
