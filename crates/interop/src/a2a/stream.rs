//! From the log to the stream of a task.

mod artifact;
mod asking;

use super::message::{of_agent, said};
use super::reply::{Asked, asked_parts};
use super::requests::{goes_on_with, may_ask};
use super::state::{TaskState, status};
use super::task::{begins, broken_off, status_id, told_why};
use crate::ai_sdk::{ChunkJson, StreamView};
use crate::parts::EventPart;
use crate::run::RunSelector;
use asking::Asking;
use jiff::Timestamp;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use timeline::{
    Event, Execution, ExecutionId, ExecutionStatus, Interruption, ItemId, OpenCall, OpenKind,
    Record, StepId, StepStatus, ThreadStatus,
};

/// The major version of `ai` whose chunks are read: the one that takes back a dead attempt.
const MAJOR: u8 = 7;

/// Where a task is in its log.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Phase {
    /// Its message waits, or was not seen yet.
    Waits,
    /// An execution runs.
    Runs(ExecutionId),
    /// An execution has handed over, and the next one goes on.
    HandedOver,
    /// Calls wait for answers.
    Asks,
    /// An execution has left calls whose sub-agents wait, and what those ask is not in this log.
    Left(ExecutionId, Timestamp),
    /// An execution has come to its end, and may have asked something by AITP.
    Ended(ExecutionId, Timestamp),
    /// What was asked by AITP waits for answers. Others may talk meanwhile.
    Rests,
    /// Nothing more comes.
    Over,
}

/// What one reader of a task's stream has seen.
///
/// What an agent says is shown as it is said, as the artifact. Where it then goes on, that is said again as a
/// message, and what comes takes its place in the artifact: in the end the client has what it would be given
/// if it asked for the task. Each record costs what it says.
#[derive(Clone, Debug)]
pub struct TaskView {
    id: String,
    context_id: String,
    trigger: ItemId,
    /// At most so many messages of its history are wanted; all of them when absent.
    history_length: Option<usize>,
    phase: Phase,
    /// Items that go on with the task once they are answered: answers, and pointers to what was said.
    goes_on: BTreeSet<ItemId>,
    asking: Asking,
    chunks: StreamView,
    step: Option<StepId>,
    hands_over: bool,
    /// What the step has said.
    said: Vec<Value>,
    /// Parts of the artifact that are not sent yet, for they may be the last.
    held: Option<Vec<Value>>,
    /// Whether the client has a part of what the step says.
    has_begun: bool,
    /// What was said before this step, by the last one that said something.
    former: Vec<Value>,
    /// Whether the client has what a dead attempt said, and nothing in its place.
    is_stale: bool,
    open: Vec<OpenCall>,
    error: Option<String>,
    ended: Option<(ExecutionStatus, Option<Interruption>)>,
    out: Vec<Value>,
}

impl TaskView {
    /// A view of the task that this item sets off, from before that is in the log.
    pub fn new(id: &str, context_id: &str, trigger: ItemId) -> Self {
        Self {
            id: id.to_owned(),
            context_id: context_id.to_owned(),
            chunks: StreamView::new(MAJOR, RunSelector::running(None)),
            trigger,
            history_length: None,
            phase: Phase::Waits,
            goes_on: BTreeSet::new(),
            asking: Asking::default(),
            step: None,
            hands_over: false,
            said: Vec::new(),
            held: None,
            has_begun: false,
            former: Vec::new(),
            is_stale: false,
            open: Vec::new(),
            error: None,
            ended: None,
            out: Vec::new(),
        }
    }

    /// A view that shows at most so many messages of its history; all of them when absent.
    #[must_use]
    pub fn with_history(self, history_length: Option<usize>) -> Self {
        Self {
            history_length,
            ..self
        }
    }

    /// A view of a task whose calls wait, from where they do.
    #[must_use]
    pub fn asking(mut self) -> Self {
        self.asking.may_ask = true;
        Self {
            phase: Phase::Asks,
            ..self
        }
    }

    /// A view of a task that runs, from before its running execution began.
    #[must_use]
    pub fn running(mut self) -> Self {
        self.asking.may_ask = true;
        Self {
            phase: Phase::HandedOver,
            ..self
        }
    }

    /// Whether nothing more comes: the task is over, or waits for answers.
    pub fn is_over(&self) -> bool {
        self.phase == Phase::Over
    }

    /// What one record is to the reader: `StreamResponse` objects.
    pub fn responses(&mut self, record: &Record) -> Vec<Value> {
        self.see(record);
        std::mem::take(&mut self.out)
    }

    fn see(&mut self, record: &Record) {
        match &record.event {
            Event::ItemCreated { item } if item.id == self.trigger => {
                let mut task = json!({
                    "id": self.id, "contextId": self.context_id,
                    "status": status(TaskState::Submitted, record.at, None),
                });
                if let Some(message) = said(item, &self.id, &self.context_id)
                    && self.history_length != Some(0)
                {
                    task["history"] = json!([message]);
                }
                self.out.push(json!({ "task": task }));
            }
            Event::ItemCreated { item } => match goes_on_with(item) {
                Some(task) if task == self.trigger => {
                    self.asking.n_went_on += 1;
                    self.goes_on.insert(item.id.clone());
                }
                Some(_) => self.asking.is_stirred = true,
                None if begins(item) || self.phase == Phase::Rests => self.asking.is_stirred = true,
                None => {
                    self.goes_on.insert(item.id.clone());
                }
            },
            Event::ThreadStatusChanged {
                to: ThreadStatus::Closed,
                ..
            } if self.phase == Phase::Rests => self.end(TaskState::Completed, record.at, None),
            Event::ThreadStatusChanged {
                to: ThreadStatus::Closed,
                ..
            } if matches!(self.phase, Phase::Waits | Phase::Asks) => {
                self.end(TaskState::Canceled, record.at, None);
            }
            Event::ExecutionCreated { execution } => self.begun(execution, record.at),
            Event::StepStatusChanged {
                step_id,
                to,
                outcome,
                ..
            } if self.step.as_ref() == Some(step_id) => {
                self.error.clone_from(&outcome.error_text);
                let open = outcome.open_calls.as_ref();
                let open = open.filter(|_| *to == StepStatus::Completed);
                self.open = OpenCall::list(open);
            }
            // A request may be taken back in a step.
            Event::StepStatusChanged { .. } => self.asking.is_stirred = true,
            Event::StepCreated { step } if self.runs(&step.execution_id) => {
                self.on_its_way(record.at);
                self.step = Some(step.id.clone());
            }
            Event::PartCreated { step_id, part, .. } if self.step.as_ref() == Some(step_id) => {
                self.asking.may_ask |= may_ask(part);
                let event = EventPart::read(part);
                self.hands_over |= event.is_some_and(|it| it.part_type == EventPart::AGENT_HANDOFF);
            }
            Event::ExecutionStatusChanged {
                execution_id,
                to,
                interruption,
                ..
            } if self.runs(execution_id) => {
                self.ended = Some((*to, interruption.clone()));
            }
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
        if !matches!(self.phase, Phase::Runs(_)) {
            return;
        }
        for chunk in self.chunks.chunks(record) {
            if let ChunkJson::Chunk(chunk) = chunk {
                self.heard(&chunk);
            }
        }
        if let Event::ThreadFinished { execution_id, .. } = &record.event
            && self.runs(execution_id)
        {
            self.finished(execution_id, record.at);
        }
    }

    fn runs(&self, execution: &ExecutionId) -> bool {
        matches!(&self.phase, Phase::Runs(own) if own == execution)
    }

    fn begun(&mut self, execution: &Execution, at: Timestamp) {
        let is_own = match &self.phase {
            Phase::Waits => execution.trigger_item_id == self.trigger,
            Phase::HandedOver => true,
            Phase::Asks if self.goes_on.contains(&execution.trigger_item_id) => true,
            // A newer message has left the calls behind.
            Phase::Asks => {
                self.end(TaskState::Canceled, at, None);
                false
            }
            Phase::Rests => self.goes_on.contains(&execution.trigger_item_id),
            Phase::Runs(_) | Phase::Left(..) | Phase::Ended(..) | Phase::Over => false,
        };
        if !is_own {
            return;
        }
        self.phase = Phase::Runs(execution.id.clone());
        self.goes_on.clear();
        self.chunks = StreamView::new(MAJOR, RunSelector::running(None));
        (self.step, self.error, self.ended) = (None, None, None);
        self.open.clear();
        self.update(TaskState::Working, at, None);
    }

    fn finished(&mut self, execution: &ExecutionId, at: Timestamp) {
        if std::mem::take(&mut self.hands_over) {
            self.on_its_way(at);
            self.phase = Phase::HandedOver;
            return;
        }
        self.settle(true);
        let (state, parts) = match self.ended.take() {
            Some((ExecutionStatus::Completed, _))
                if self.open.is_empty() && self.asking.may_ask =>
            {
                self.phase = Phase::Ended(execution.clone(), at);
                return;
            }
            Some((ExecutionStatus::Completed, _)) if self.open.is_empty() => {
                (TaskState::Completed, None)
            }
            Some((ExecutionStatus::Completed, _)) if self.open.iter().any(waits_beneath) => {
                self.phase = Phase::Left(execution.clone(), at);
                return;
            }
            Some((ExecutionStatus::Completed, _)) => {
                let asked = self.open.iter();
                let asked: Vec<Asked> = asked
                    .filter_map(|call| Asked::of(&self.context_id, call))
                    .collect();
                (TaskState::InputRequired, Some(asked_parts(&asked)))
            }
            Some((ExecutionStatus::Failed | ExecutionStatus::Executing, why)) => {
                let state = broken_off(why.as_ref());
                let words = told_why(why.as_ref(), self.error.take());
                let failed = state == TaskState::Failed;
                (state, failed.then(|| vec![json!({ "text": words })]))
            }
            None => (TaskState::Failed, None),
        };
        self.ended_with((state, parts), execution, at);
    }

    fn ended_with(
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

/// Whether it is a sub-agent of the call that waits.
fn waits_beneath(call: &OpenCall) -> bool {
    call.kind == OpenKind::Child
}
