//! Tasks: the runs that the messages of a thread start.

use super::message::{answer_parts, item_message, of_agent};
use super::reply::{PendingCallView, question_parts};
use super::requests::{self, PendingRequestView, continuation_id, continued_task, may_ask};
use super::state::{TaskState, status};
use crate::run::continues;
use crate::threads::cancelled;
use jiff::Timestamp;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use timeline::{
    Entry, ExecutionId, ExecutionStatus, Interruption, Item, ItemId, ItemType, Reaction, StepId,
    ThreadStatus, Transcript,
};

/// The id of the artifact that holds the agents' last answer.
pub(super) const ARTIFACT: &str = "answer";

/// How a task is shown.
#[derive(Clone, Copy, Debug)]
pub struct TaskOptions<'a> {
    /// Its id.
    pub id: &'a str,
    /// The id of its context.
    pub context_id: &'a str,
    /// Maximum number of history messages, counted from the last. All of them when absent.
    pub history_length: Option<usize>,
    /// Whether it has its artifacts.
    pub artifacts: bool,
}

/// The calls and requests that a task waits for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TaskWait {
    /// The pending calls. `None` if they can't be answered any more. Empty if only sub-agents are
    /// running.
    pub calls: Option<Vec<PendingCallView>>,
    /// Its open AITP requests.
    pub requests: Vec<PendingRequestView>,
}

/// The execution that one message started, and the executions that continue it.
#[derive(Clone, Debug)]
pub struct TaskRun<'a> {
    trigger: &'a Item,
    /// The message that the trigger points to, if the trigger is an item reference.
    pointed: Option<&'a Item>,
    /// The executions' reactions with their triggers: first the task's own trigger, then the later
    /// ones.
    reactions: Vec<(&'a Item, &'a Reaction)>,
    /// A queued message that continues the task.
    queued: Option<&'a Item>,
    is_closed: bool,
}

impl<'a> TaskRun<'a> {
    /// The tasks of a transcript, in the order in which they start. The transcript is a whole thread,
    /// or a page that begins with a task. A stored message without a run is not a task.
    pub fn all(transcript: &'a Transcript) -> Vec<Self> {
        let mut runs = Self::begun(transcript);
        runs.retain(|run| continued_task(run.trigger).is_none());
        runs
    }

    /// The runs that all messages started, including messages that continue a task.
    fn begun(transcript: &'a Transcript) -> Vec<Self> {
        let thread = transcript.thread.as_ref();
        let is_closed = thread.is_some_and(|it| it.status == ThreadStatus::Closed);
        let mut items: BTreeMap<&ItemId, &Item> = BTreeMap::new();
        let mut runs: Vec<Self> = Vec::new();
        // The task that runs; those that wait stand behind it.
        let mut current: Option<usize> = None;
        for entry in &transcript.entries {
            match entry {
                Entry::Item(item) if item.run.is_some() && begins(item) => {
                    runs.push(Self::of(item, is_closed));
                }
                Entry::Item(item) => {
                    items.insert(&item.id, item);
                }
                Entry::Reaction(reaction) => {
                    let trigger = items.get(&reaction.execution.trigger_item_id).copied();
                    let Some(trigger) = trigger else { continue };
                    if begins(trigger) && !continues(&reaction.execution, Some(trigger)) {
                        current = Some(runs.len());
                        runs.push(Self::of(trigger, is_closed));
                    }
                    if let Some(run) = current.and_then(|place| runs.get_mut(place)) {
                        run.reactions.push((trigger, reaction));
                    }
                }
            }
        }
        runs
    }

    fn of(trigger: &'a Item, is_closed: bool) -> Self {
        Self {
            trigger,
            pointed: None,
            reactions: Vec::new(),
            queued: None,
            is_closed,
        }
    }

    /// Whether the trigger is an item reference: a client posted the message first and started the run
    /// separately.
    pub fn is_pointer(&self) -> bool {
        self.trigger.item_type == ItemType::ItemReference
    }

    /// The message that such a trigger names.
    pub fn points_to(&self) -> Option<ItemId> {
        let content = self.trigger.content.as_ref();
        let content = content.filter(|_| self.is_pointer());
        Some(content?.str_field("itemId")?.as_str().into())
    }

    /// Sets the message that the task's trigger points to.
    #[must_use]
    pub fn answering(self, pointed: Option<&'a Item>) -> Self {
        Self { pointed, ..self }
    }

    /// The task that a message has set off.
    pub fn find(transcript: &'a Transcript, item: &ItemId) -> Option<Self> {
        let mut runs = Self::all(transcript).into_iter();
        runs.find(|run| run.trigger.id == *item)
    }

    /// Adds the transcripts that continue the task. The first one begins with the first answer to its
    /// AITP request.
    #[must_use]
    pub fn with_continuations(mut self, pieces: &'a [Transcript]) -> Self {
        for (piece, n) in pieces.iter().zip(1..) {
            let id = continuation_id(&self.trigger.id, n);
            let mut runs = Self::begun(piece).into_iter();
            let Some(next) = runs.find(|run| run.trigger.id == id) else {
                continue;
            };
            self.queued = next.reactions.is_empty().then_some(next.trigger);
            self.reactions.extend(next.reactions);
            self.is_closed = next.is_closed;
        }
        self
    }

    /// Whether an agent's text in the task may be a capability message.
    /// The thread's AITP state decides whether it is one and whether the request is
    /// open.
    pub fn may_ask(&self) -> bool {
        let reactions = self.reactions.iter();
        let mut steps = reactions.flat_map(|(_, reaction)| &reaction.steps);
        steps.any(|step| step.parts.iter().any(|part| may_ask(&part.part)))
    }

    /// The first of its executions.
    pub fn begins_with(&self) -> Option<&ExecutionId> {
        let first = self.reactions.first();
        first.map(|(_, reaction)| &reaction.execution.id)
    }

    /// Whether the step belongs to the task.
    pub fn has_step(&self, step: &StepId) -> bool {
        let reactions = self.reactions.iter();
        let mut steps = reactions.flat_map(|(_, reaction)| &reaction.steps);
        steps.any(|it| it.step.id == *step)
    }

    /// Whether the last execution is completed, apart from open AITP requests.
    pub fn is_completed(&self) -> bool {
        let last = self.last();
        let is_completed = |last: &Reaction| {
            last.execution.status == ExecutionStatus::Completed && last.open_calls().is_empty()
        };
        self.queued.is_none() && !self.is_closed && last.is_some_and(is_completed)
    }

    /// The message that set it off.
    pub fn item(&self) -> &'a ItemId {
        &self.trigger.id
    }

    /// The last execution; `None` while the message is queued.
    pub fn execution(&self) -> Option<&'a ExecutionId> {
        self.last().map(|reaction| &reaction.execution.id)
    }

    /// Whether an execution runs.
    pub fn is_executing(&self) -> bool {
        let status = self.last().map(|reaction| reaction.execution.status);
        status == Some(ExecutionStatus::Executing)
    }

    /// Whether the last answer is only in the log's chunks, because its execution runs or was cut off.
    pub fn wants_chunks(&self) -> bool {
        let status = self.last().map(|reaction| reaction.execution.status);
        status.is_some_and(|status| status != ExecutionStatus::Completed)
    }

    /// The execution that left calls open. The thread's state shows whether they still are.
    pub fn leaves_open(&self) -> Option<&'a ExecutionId> {
        let last = self.last()?;
        let is_open =
            last.execution.status == ExecutionStatus::Completed && !last.open_calls().is_empty();
        (is_open && !self.is_closed).then_some(&last.execution.id)
    }

    /// The task's state, derived from the last execution and from `waiting`.
    pub fn state(&self, waiting: &TaskWait) -> TaskState {
        let Some(last) = self.last().filter(|_| self.queued.is_none()) else {
            return if self.is_closed {
                TaskState::Canceled
            } else {
                TaskState::Submitted
            };
        };
        match last.execution.status {
            ExecutionStatus::Executing => TaskState::Working,
            ExecutionStatus::Failed => broken_off(last.execution.interruption.as_ref()),
            ExecutionStatus::Completed if last.open_calls().is_empty() => {
                if waiting.requests.is_empty() || self.is_closed {
                    TaskState::Completed
                } else {
                    TaskState::InputRequired
                }
            }
            ExecutionStatus::Completed => {
                match waiting.calls.as_deref().filter(|_| !self.is_closed) {
                    Some([]) => TaskState::Working,
                    Some(_) => TaskState::InputRequired,
                    None => TaskState::Canceled,
                }
            }
        }
    }

    /// When the task entered its current state.
    pub fn since(&self) -> Timestamp {
        if let Some(queued) = self.queued {
            return queued.created_at;
        }
        let Some(last) = self.last() else {
            return self.trigger.created_at;
        };
        last.ended_at.unwrap_or(last.execution.created_at)
    }

    /// The `Task`.
    pub fn to_json(&self, shown: TaskOptions<'_>, waiting: &TaskWait) -> Value {
        let TaskOptions { id, context_id, .. } = shown;
        let state = self.state(waiting);
        let message = match state {
            TaskState::InputRequired if self.leaves_open().is_none() => {
                Some(requests::question_parts(&waiting.requests))
            }
            TaskState::InputRequired => {
                Some(question_parts(waiting.calls.as_deref().unwrap_or_default()))
            }
            TaskState::Failed => self.last().map(|last| vec![json!({ "text": why(last) })]),
            TaskState::Submitted
            | TaskState::Working
            | TaskState::Completed
            | TaskState::Canceled
            | TaskState::Rejected
            | TaskState::AuthRequired => None,
        };
        let execution = self.execution();
        let message = message
            .zip(execution)
            .map(|(parts, execution)| of_agent(&status_id(execution), id, context_id, &parts));
        let mut task = json!({
            "id": id, "contextId": context_id, "status": status(state, self.since(), message),
        });
        let (mut history, artifact) = self.messages(id, context_id);
        let wanted = shown.history_length.unwrap_or(usize::MAX);
        history.drain(..history.len().saturating_sub(wanted));
        if !history.is_empty() {
            task["history"] = history.into();
        }
        if shown.artifacts {
            let parts = artifact.into_iter();
            let artifacts: Vec<Value> = parts.map(|parts| artifact_of(&parts)).collect();
            task["artifacts"] = artifacts.into();
        }
        if let Some(agent) = self.agent() {
            task["metadata"] = json!({ "agent": agent });
        }
        task
    }

    fn last(&self) -> Option<&'a Reaction> {
        self.reactions.last().map(|(_, reaction)| *reaction)
    }

    /// The agent of the last execution, or of the queued message.
    fn agent(&self) -> Option<String> {
        let run = match self.last() {
            Some(last) => last.execution.run.as_ref(),
            None => self.trigger.run.as_ref(),
        };
        run.and_then(|run| run.str_field("agent"))
    }

    /// The messages, and the parts of the last answer.
    fn messages(&self, id: &str, context_id: &str) -> (Vec<Value>, Option<Vec<Value>>) {
        let first = self.pointed.unwrap_or(self.trigger);
        let mut history: Vec<Value> = item_message(first, id, context_id).into_iter().collect();
        let mut last = None;
        for (trigger, reaction) in &self.reactions {
            if trigger.id != self.trigger.id {
                history.extend(item_message(trigger, id, context_id));
            }
            for step in &reaction.steps {
                let parts = answer_parts(step);
                if parts.is_empty() {
                    continue;
                }
                last = Some((history.len(), parts.clone()));
                history.push(of_agent(step.step.id.as_str(), id, context_id, &parts));
            }
        }
        history.extend(
            self.queued
                .and_then(|item| item_message(item, id, context_id)),
        );
        // What an agent says on its way is a message; what it says last is the artifact.
        let artifact = last.map(|(place, parts)| {
            history.remove(place);
            parts
        });
        (history, artifact)
    }
}

/// Whether an item starts a task of its own.
pub(super) fn begins(item: &Item) -> bool {
    match item.item_type {
        ItemType::Message | ItemType::ActionExecute => true,
        // Clients of other protocols begin runs by a pointer to what was said before.
        ItemType::ItemReference => cancelled(item).is_none(),
        ItemType::ActionResult => false,
    }
}

/// The state of a task whose execution was interrupted: canceled if a user did that, else failed.
pub(super) fn broken_off(why: Option<&Interruption>) -> TaskState {
    match why {
        Some(why) if why.reason == Interruption::USER_CANCELLED => TaskState::Canceled,
        Some(_) | None => TaskState::Failed,
    }
}

/// The reason for which an execution was interrupted, as text.
fn why(reaction: &Reaction) -> String {
    let step = reaction.steps.last();
    let error = step.and_then(|step| step.step.outcome.error_text.clone());
    reason(reaction.execution.interruption.as_ref(), error)
}

/// The reason for which an execution was interrupted, for people.
pub(super) fn reason(why: Option<&Interruption>, error: Option<String>) -> String {
    let detail = why.and_then(|why| why.detail.clone()).or(error);
    detail.unwrap_or_else(|| why.map_or("error", |why| &why.reason).to_owned())
}

/// The id of the message in a status.
pub(super) fn status_id(execution: &ExecutionId) -> String {
    format!("{execution}-status")
}

/// The artifact with these parts.
pub(super) fn artifact_of(parts: &[Value]) -> Value {
    json!({"artifactId": ARTIFACT, "name": "Answer", "parts": parts})
}
