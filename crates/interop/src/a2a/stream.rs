//! From the log to the stream of a task.

mod artifact;
mod requests;

use super::message::{item_message, of_agent};
use super::part::shown_file;
use super::reply::{PendingCallView, question_parts};
use super::requests::{continued_task, may_ask};
use super::state::{TaskState, status};
use super::task::{begins, broken_off, reason, status_id};
use crate::run::{RunEvent, RunFold, RunPart, RunSelector};
use jiff::Timestamp;
use requests::OpenRequests;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use timeline::{
    BlockKind, Chunk, Event, Execution, ExecutionId, ExecutionStatus, Interruption, Item, ItemId,
    OpenCall, OpenKind, Record, StepId, StepOutcome, StepStatus, ThreadStatus,
};

/// The phase of a task in its log.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Phase {
    /// The run has not started, or an execution is running or handing off.
    Runs,
    /// Calls wait for answers.
    Asks,
    /// An execution left calls open whose sub-agents wait for answers. Their questions are not in this
    /// log.
    Left(ExecutionId, Timestamp),
    /// An execution ended, and may have made requests of AITP.
    Ended(ExecutionId, Timestamp),
    /// AITP requests wait for answers. Other runs may happen meanwhile.
    Rests,
    /// The task has ended.
    Over,
}

/// The stream of one task, for one reader.
///
/// An agent's answer is sent as the artifact while it is streamed. If the agent continues, the answer
/// is sent again as a message, and the next answer replaces it in the artifact. At the end the client
/// has the task that a request for it gives. Each record costs what it carries.
#[derive(Clone, Debug)]
pub struct TaskView {
    id: String,
    context_id: String,
    trigger: ItemId,
    /// Maximum number of messages of the task's history. All of them when absent.
    history_length: Option<usize>,
    phase: Phase,
    /// Items that continue the task once they are answered: answers, and pointers to messages.
    continuations: BTreeSet<ItemId>,
    requests: OpenRequests,
    /// The run at work.
    fold: RunFold,
    step: Option<StepId>,
    /// The parts of the step's answer.
    parts: Vec<Value>,
    /// Parts of the artifact that are not sent yet, for they may be the last.
    unsent: Option<Vec<Value>>,
    /// Whether the client has a part of the step's answer.
    has_begun: bool,
    /// The last answer before this step.
    former: Vec<Value>,
    /// Whether the client has the answer of a failed attempt that has not been replaced.
    is_stale: bool,
    open: Vec<OpenCall>,
    error: Option<String>,
    /// How the last execution that ended did.
    ended: Option<(ExecutionId, ExecutionStatus, Option<Interruption>)>,
    out: Vec<Value>,
}

impl TaskView {
    /// A view of the task that this item starts, from before the item is in the log.
    pub fn new(id: &str, context_id: &str, trigger: ItemId) -> Self {
        Self {
            id: id.to_owned(),
            context_id: context_id.to_owned(),
            fold: RunFold::new(RunSelector::answering(trigger.clone())).with_blocks(),
            trigger,
            history_length: None,
            phase: Phase::Runs,
            continuations: BTreeSet::new(),
            requests: OpenRequests::default(),
            step: None,
            parts: Vec::new(),
            unsent: None,
            has_begun: false,
            former: Vec::new(),
            is_stale: false,
            open: Vec::new(),
            error: None,
            ended: None,
            out: Vec::new(),
        }
    }

    /// A view that shows at most this many messages of the history; all of them when absent.
    #[must_use]
    pub fn with_history(mut self, history_length: Option<usize>) -> Self {
        self.history_length = history_length;
        self
    }

    /// A view of a task with pending calls, starting where it waits for answers.
    #[must_use]
    pub fn asking(mut self) -> Self {
        self.requests.may_exist = true;
        self.phase = Phase::Asks;
        self
    }

    /// A view of a running task, from before its running execution starts.
    #[must_use]
    pub fn running(mut self) -> Self {
        self.requests.may_exist = true;
        self.run();
        self
    }

    /// Whether the stream ends: the task has ended, or waits for answers.
    pub fn is_over(&self) -> bool {
        self.phase == Phase::Over
    }

    /// The `StreamResponse` objects of one record.
    pub fn responses(&mut self, record: &Record) -> Vec<Value> {
        let at = record.at;
        match &record.event {
            Event::ItemCreated { item } => self.item(item, at),
            Event::ThreadStatusChanged {
                to: ThreadStatus::Closed,
                ..
            } => self.closed(at),
            Event::ExecutionCreated { execution } => self.execution(execution, at),
            // A request may be withdrawn in a step of any run.
            Event::StepStatusChanged { .. } => self.requests.may_have_changed = true,
            Event::ContextCreated { .. }
            | Event::ContextResolved { .. }
            | Event::ContextStatusChanged { .. }
            | Event::ThreadCreated { .. }
            | Event::ThreadResolved { .. }
            | Event::ThreadStatusChanged { .. }
            | Event::ExecutionStatusChanged { .. }
            | Event::ItemStatusChanged { .. }
            | Event::StepCreated { .. }
            | Event::PartCreated { .. }
            | Event::PartUpdated { .. }
            | Event::ChunkEmitted { .. }
            | Event::ThreadFinished { .. } => {}
        }
        if self.phase == Phase::Runs {
            for event in self.fold.events(record) {
                self.event(event, at);
            }
        }
        std::mem::take(&mut self.out)
    }

    fn item(&mut self, item: &Item, at: Timestamp) {
        if item.id == self.trigger {
            let mut task = json!({
                "id": self.id, "contextId": self.context_id,
                "status": status(TaskState::Submitted, at, None),
            });
            if let Some(message) = item_message(item, &self.id, &self.context_id)
                && self.history_length != Some(0)
            {
                task["history"] = json!([message]);
            }
            self.out.push(json!({ "task": task }));
            return;
        }
        match continued_task(item) {
            Some(task) if task == self.trigger => {
                self.requests.n_answers += 1;
                self.continuations.insert(item.id.clone());
            }
            Some(_) => self.requests.may_have_changed = true,
            None if begins(item) || self.phase == Phase::Rests => {
                self.requests.may_have_changed = true;
            }
            None => {
                self.continuations.insert(item.id.clone());
            }
        }
    }

    fn closed(&mut self, at: Timestamp) {
        match self.phase {
            Phase::Rests => self.end(TaskState::Completed, at, None),
            Phase::Asks => self.end(TaskState::Canceled, at, None),
            Phase::Runs | Phase::Left(..) | Phase::Ended(..) | Phase::Over => {}
        }
    }

    /// An execution starts while the task waits.
    fn execution(&mut self, execution: &Execution, at: Timestamp) {
        let continues = self.continuations.contains(&execution.trigger_item_id);
        match self.phase {
            Phase::Asks | Phase::Rests if continues => self.run(),
            // A newer message leaves the calls behind.
            Phase::Asks => self.end(TaskState::Canceled, at, None),
            Phase::Runs | Phase::Rests | Phase::Left(..) | Phase::Ended(..) | Phase::Over => {}
        }
    }

    /// The next run that starts is the task's.
    fn run(&mut self) {
        self.phase = Phase::Runs;
        self.fold = RunFold::new(RunSelector::running(None)).with_blocks();
    }

    fn event(&mut self, event: RunEvent<'_>, at: Timestamp) {
        match event {
            RunEvent::Started { .. } | RunEvent::Continued { .. } => {
                self.continuations.clear();
                (self.step, self.error) = (None, None);
                self.open.clear();
                self.update(TaskState::Working, at, None);
            }
            RunEvent::StepStarted { step } => {
                self.complete_answer(at);
                self.step = Some(step.id.clone());
            }
            RunEvent::Chunk(Chunk::BlockDelta {
                kind: BlockKind::Text,
                text,
                ..
            }) if !text.is_empty() => self.add(json!({ "text": text })),
            RunEvent::StepReset { .. } => self.reset(),
            RunEvent::Part {
                part,
                payload,
                is_new: true,
                ..
            } => {
                self.requests.may_exist |= may_ask(payload);
                if let RunPart::File { url, media_type } = part {
                    self.add(shown_file(&url, Some(&media_type)));
                }
            }
            RunEvent::StepEnded {
                status, outcome, ..
            } => self.step_ended(status, outcome),
            RunEvent::ExecutionEnded {
                execution_id,
                status,
                interruption,
                ..
            } => {
                let why = interruption.cloned();
                self.ended = Some((execution_id.clone(), status, why));
            }
            RunEvent::ContinuationPending => self.complete_answer(at),
            RunEvent::Ended => self.finish(at),
            RunEvent::Abandoned => self.end(TaskState::Canceled, at, None),
            RunEvent::Chunk(_)
            | RunEvent::Responded { .. }
            | RunEvent::Part { .. }
            | RunEvent::ItemAdded(_)
            | RunEvent::ThreadChanged(_) => {}
        }
    }

    fn step_ended(&mut self, status: StepStatus, outcome: &StepOutcome) {
        self.error.clone_from(&outcome.error_text);
        let open = outcome.open_calls.as_ref();
        self.open = OpenCall::list(open.filter(|_| status == StepStatus::Completed));
    }

    /// The run is over.
    fn finish(&mut self, at: Timestamp) {
        let Some((execution, status, why)) = self.ended.take() else {
            return;
        };
        self.send_rest(true);
        let (state, parts) = if status != ExecutionStatus::Completed {
            let state = broken_off(why.as_ref());
            let text = reason(why.as_ref(), self.error.take());
            let failed = state == TaskState::Failed;
            (state, failed.then(|| vec![json!({ "text": text })]))
        } else if self.open.is_empty() && self.requests.may_exist {
            self.phase = Phase::Ended(execution, at);
            return;
        } else if self.open.is_empty() {
            (TaskState::Completed, None)
        } else if self.open.iter().any(|call| call.kind == OpenKind::Child) {
            self.phase = Phase::Left(execution, at);
            return;
        } else {
            let calls = self.open.iter();
            let asked: Vec<PendingCallView> = calls
                .filter_map(|call| PendingCallView::of(&self.context_id, call))
                .collect();
            (TaskState::InputRequired, Some(question_parts(&asked)))
        };
        self.end_with((state, parts), &execution, at);
    }

    fn end_with(
        &mut self,
        (state, parts): (TaskState, Option<Vec<Value>>),
        execution: &ExecutionId,
        at: Timestamp,
    ) {
        let id = status_id(execution);
        let message = parts.map(|parts| of_agent(&id, &self.id, &self.context_id, &parts));
        self.end(state, at, message);
    }

    fn end(&mut self, state: TaskState, at: Timestamp, message: Option<Value>) {
        self.phase = Phase::Over;
        self.update(state, at, message);
    }

    fn update(&mut self, state: TaskState, at: Timestamp, message: Option<Value>) {
        let update = json!({
            "taskId": self.id, "contextId": self.context_id, "status": status(state, at, message),
        });
        self.out.push(json!({ "statusUpdate": update }));
    }
}
