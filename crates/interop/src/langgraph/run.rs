//! Runs: executions, each with those it has handed over to.

use super::message::agent_of;
use super::request::{MODES, Speaks, StreamMode};
use super::thread::instant;
use crate::options::RunOptions;
use crate::run::continues;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use timeline::{
    Entry, Execution, ExecutionId, ExecutionStatus, Interruption, Item, ItemId, ItemType, Payload,
    Reaction, Transcript,
};

/// The member of a run's stored options that holds the request options to return to clients.
pub(super) const ECHO: &str = "langgraph";

/// The member of the echo that lists the messages preceding those the run responds to.
pub(super) const BEFORE: &str = "before";

/// The state of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunStatus {
    /// The run is queued.
    Pending,
    /// An agent is running.
    Running,
    /// The run is complete.
    Success,
    /// It went wrong.
    Error,
    /// It took too long.
    Timeout,
    /// The run was stopped, or it has pending calls.
    Interrupted,
}

impl RunStatus {
    /// All of them, by their names.
    pub const NAMES: [(&str, Self); 6] = [
        ("pending", Self::Pending),
        ("running", Self::Running),
        ("success", Self::Success),
        ("error", Self::Error),
        ("timeout", Self::Timeout),
        ("interrupted", Self::Interrupted),
    ];

    /// The protocol's word. The Agent Protocol has none for a run that runs.
    pub fn name(self, speaks: Speaks) -> &'static str {
        match (self, speaks) {
            (Self::Running, Speaks::LangGraph) => "running",
            (Self::Pending, _) | (Self::Running, Speaks::AgentProtocol) => "pending",
            (Self::Success, _) => "success",
            (Self::Error, _) => "error",
            (Self::Timeout, _) => "timeout",
            (Self::Interrupted, _) => "interrupted",
        }
    }

    /// Whether it is over.
    pub fn is_over(self) -> bool {
        match self {
            Self::Pending | Self::Running => false,
            Self::Success | Self::Error | Self::Timeout | Self::Interrupted => true,
        }
    }
}

/// The parameters of an execution, as far as runs need them.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct RunParams {
    execution_id: Option<String>,
    params: Option<Payload>,
}

impl RunParams {
    fn of(run: Option<&Payload>) -> Self {
        run.and_then(|run| run.read().ok()).unwrap_or_default()
    }

    /// The request options to return to clients.
    fn echo(&self) -> Map<String, Value> {
        let options: Option<RunOptions> = self.params.as_ref().and_then(|it| it.read().ok());
        match options.and_then(|mut options| options.echo.remove(ECHO)) {
            Some(Value::Object(echo)) => echo,
            Some(_) | None => Map::new(),
        }
    }
}

/// A queued trigger.
pub type QueuedRun<'a> = (&'a Item, &'a Payload);

/// Whether a queued trigger is that of the run with this id.
pub fn is_pending(run: &Payload, id: &str) -> bool {
    RunParams::of(Some(run)).execution_id.as_deref() == Some(id)
}

/// A run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunRecord {
    /// The id of the run, which is that of its first execution.
    pub id: ExecutionId,
    /// The last execution; `None` while the run is queued.
    pub last: Option<ExecutionId>,
    /// The item that the run responds to.
    pub trigger: ItemId,
    /// Whether the trigger contains answers to pending calls.
    pub is_resumed: bool,
    /// The state of the run.
    pub status: RunStatus,
    /// Why it went wrong: a word, and what a person should know.
    pub failure: Option<(String, String)>,
    agent: String,
    created_at: Timestamp,
    updated_at: Timestamp,
    echo: Map<String, Value>,
}

impl RunRecord {
    /// The runs of a transcript, in the order in which they started. Executions that withdraw a
    /// question are not runs.
    pub fn all(transcript: &Transcript) -> Vec<Self> {
        let mut items: BTreeMap<&ItemId, &Item> = BTreeMap::new();
        let mut runs: Vec<Self> = Vec::new();
        for entry in &transcript.entries {
            match entry {
                Entry::Item(item) => {
                    items.insert(&item.id, item);
                }
                Entry::Reaction(reaction) => {
                    let trigger = items.get(&reaction.execution.trigger_item_id).copied();
                    if trigger.is_some_and(is_stop) {
                        continue;
                    }
                    match runs.last_mut() {
                        Some(run) if is_handed_over(&reaction.execution, trigger) => {
                            run.take(reaction);
                        }
                        Some(_) | None => runs.push(Self::begin(reaction, trigger)),
                    }
                }
            }
        }
        runs
    }

    /// The queued run of a trigger; `None` if its parameters contain no execution id.
    pub fn waiting((item, run): QueuedRun<'_>) -> Option<Self> {
        let params = RunParams::of(Some(run));
        Some(Self {
            id: params.execution_id.as_deref()?.into(),
            last: None,
            trigger: item.id.clone(),
            is_resumed: item.item_type == ItemType::ActionResult,
            status: RunStatus::Pending,
            failure: None,
            agent: agent_of(Some(run)).unwrap_or_default(),
            created_at: item.created_at,
            updated_at: item.created_at,
            echo: params.echo(),
        })
    }

    fn begin(reaction: &Reaction, trigger: Option<&Item>) -> Self {
        let execution = &reaction.execution;
        let params = RunParams::of(execution.run.as_ref());
        let mut run = Self {
            id: execution.id.clone(),
            last: None,
            trigger: execution.trigger_item_id.clone(),
            is_resumed: trigger.is_some_and(|it| it.item_type == ItemType::ActionResult),
            status: RunStatus::Running,
            failure: None,
            agent: agent_of(execution.run.as_ref()).unwrap_or_default(),
            created_at: execution.created_at,
            updated_at: execution.created_at,
            echo: params.echo(),
        };
        run.take(reaction);
        run
    }

    fn take(&mut self, reaction: &Reaction) {
        let execution = &reaction.execution;
        self.last = Some(execution.id.clone());
        self.updated_at = reaction.ended_at.unwrap_or(execution.created_at);
        self.status = match execution.status {
            ExecutionStatus::Executing => RunStatus::Running,
            ExecutionStatus::Completed if leaves_open(reaction) => RunStatus::Interrupted,
            ExecutionStatus::Completed => RunStatus::Success,
            ExecutionStatus::Failed => broken_off(reaction_reason(reaction)),
        };
        if execution.status == ExecutionStatus::Failed {
            let why = execution.interruption.as_ref();
            let step = reaction.steps.last();
            let error = step.and_then(|step| step.step.outcome.error_text.clone());
            let detail = why.and_then(|why| why.detail.clone()).or(error);
            let reason = reaction_reason(reaction);
            let detail = detail.unwrap_or_else(|| reason.to_owned());
            self.failure = Some((error_name(reason).to_owned(), detail));
        }
    }

    /// The ids of the messages that precede the trigger and that the run responds to as well.
    pub fn before(&self) -> impl Iterator<Item = ItemId> {
        let before = self.echo.get(BEFORE).and_then(Value::as_array);
        let before = before.into_iter().flatten();
        before.filter_map(|id| id.as_str().map(ItemId::from))
    }

    /// The object of the run.
    pub fn to_json(&self, speaks: Speaks, thread: &str) -> Value {
        let metadata = self.echo.get("metadata").cloned();
        let strategy = self.echo.get("multitask_strategy").cloned();
        let mut kwargs = Map::new();
        for key in ["config", "context"] {
            let kept = self.echo.get(key).cloned();
            kwargs.extend(kept.map(|kept| (key.to_owned(), kept)));
        }
        let mut run = json!({
            "run_id": self.id,
            "thread_id": thread,
            "created_at": instant(self.created_at),
            "updated_at": instant(self.updated_at),
            "status": self.status.name(speaks),
            "metadata": metadata.unwrap_or_else(|| json!({})),
            "kwargs": kwargs,
            "multitask_strategy": strategy.unwrap_or_else(|| "enqueue".into()),
        });
        run[speaks.agent_key()] = self.agent.as_str().into();
        run
    }

    /// The stream modes of the run's request; `values` if it named none.
    pub fn modes(&self) -> Vec<StreamMode> {
        let names = self.echo.get(MODES).and_then(Value::as_array);
        let names = names.into_iter().flatten().filter_map(Value::as_str);
        let modes: Vec<StreamMode> = names
            .filter_map(|it| StreamMode::read(it, "").ok())
            .collect();
        if modes.is_empty() {
            vec![StreamMode::Values]
        } else {
            modes
        }
    }
}

/// Whether the execution follows a handoff and so continues the previous run. In this protocol,
/// answers to calls start another run.
fn is_handed_over(execution: &Execution, trigger: Option<&Item>) -> bool {
    trigger.is_some_and(|it| it.item_type == ItemType::ItemReference)
        && continues(execution, trigger)
}

/// Whether an item withdraws pending calls.
pub(super) fn is_stop(item: &Item) -> bool {
    let content = item.content.as_ref();
    item.item_type == ItemType::ItemReference
        && content.is_some_and(|content| content.str_field("cancels").is_some())
}

fn reaction_reason(reaction: &Reaction) -> &str {
    let why = reaction.execution.interruption.as_ref();
    why.map_or("error", |why| why.reason.as_str())
}

/// The state of a run whose execution was interrupted for this reason.
pub(super) fn broken_off(reason: &str) -> RunStatus {
    match reason {
        Interruption::USER_CANCELLED => RunStatus::Interrupted,
        "timeout" => RunStatus::Timeout,
        _ => RunStatus::Error,
    }
}

/// The name of an error, as clients of these protocols show it.
pub(super) fn error_name(reason: &str) -> &str {
    match reason {
        Interruption::USER_CANCELLED => "UserInterrupt",
        "timeout" => "TimeoutError",
        "max_steps" => "GraphRecursionError",
        other => other,
    }
}

fn leaves_open(reaction: &Reaction) -> bool {
    !reaction.open_calls().is_empty()
}
