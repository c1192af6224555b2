//! A run as server-sent events, record by record.

mod frame;
mod told;

use super::error::RequestError;
use super::object::{RunStatus, ThreadObject};
use super::run::{Grown, Run};
use super::view::cancelled;
use crate::run::continues;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use timeline::{Event, Execution, Item, ItemId, ItemType, Record, StepStatus, ThreadStatus};

/// What clients were told of the running step.
#[derive(Clone, Debug, Default)]
struct Step {
    /// Its place among the run's.
    place: usize,
    /// Whether they were told of a message that has not ended.
    message: bool,
    /// Whether they were told of calls that have not ended.
    calls: bool,
    /// How many texts of the message were shown.
    n_texts: usize,
    /// The ids, as JSON strings.
    message_id: String,
    calls_id: String,
}

/// One reader's stream of one run.
///
/// It is given the records of the thread's log, in order, from before the item that the run answers,
/// and it ends with the run or when the run waits for its client. What a dead attempt streamed is
/// void: its message and its calls end as failed, and the next attempt's have ids of their own.
///
/// One thing is told at a time: while a message is open, calls are held back and then come whole. The
/// clients' helpers take the end of any run step for that of the call they see.
#[derive(Clone, Debug)]
pub struct RunStream {
    thread_id: String,
    trigger: ItemId,
    thread: Option<ThreadObject>,
    run: Option<Run>,
    status: RunStatus,
    step: Step,
    triggers: BTreeMap<ItemId, Item>,
    /// The last item that only points at another.
    reference: Option<ItemId>,
    is_over: bool,
}

impl RunStream {
    /// The run that answers this item, on the thread with this id of ours.
    pub fn answering(thread_id: &str, trigger: ItemId) -> Self {
        Self {
            thread_id: thread_id.to_owned(),
            trigger,
            thread: None,
            run: None,
            status: RunStatus::Queued,
            step: Step::default(),
            triggers: BTreeMap::new(),
            reference: None,
            is_over: false,
        }
    }

    /// Streams the new thread first: `POST /threads/runs`.
    #[must_use]
    pub fn with_thread(mut self, thread: ThreadObject) -> Self {
        self.thread = Some(thread);
        self
    }

    /// A run that waits for outputs and is about to get them: `POST …/submit_tool_outputs`. `answers`
    /// is the item that brings them.
    pub fn going_on(thread_id: &str, run: Run, answers: ItemId) -> Self {
        Self {
            run: Some(run),
            status: RunStatus::RequiresAction,
            // The steps there are were told of before.
            step: Step {
                place: usize::MAX,
                ..Step::default()
            },
            ..Self::answering(thread_id, answers)
        }
    }

    /// The run, once it has begun.
    pub fn run(&self) -> Option<&Run> {
        self.run.as_ref()
    }

    /// Writes the events of one record; breaks after the last one.
    pub fn write(&mut self, record: &Record, out: &mut String) -> ControlFlow<()> {
        if self.is_over {
            return ControlFlow::Break(());
        }
        match &record.event {
            Event::ItemCreated { item } => self.item(item, record, out),
            Event::ExecutionCreated { execution } => self.begun(execution, record, out),
            event @ (Event::ChunkEmitted { .. }
            | Event::StepCreated { .. }
            | Event::PartCreated { .. }
            | Event::PartUpdated { .. }
            | Event::StepStatusChanged { .. }
            | Event::ExecutionStatusChanged { .. }
            | Event::ThreadStatusChanged { .. }) => self.of_run(event, record, out),
            Event::ContextCreated { .. }
            | Event::ContextResolved { .. }
            | Event::ContextStatusChanged { .. }
            | Event::ThreadCreated { .. }
            | Event::ThreadResolved { .. }
            | Event::ItemStatusChanged { .. }
            | Event::ThreadFinished { .. } => {}
        }
        if self.is_over {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }

    /// Writes that the stream can't go on, and its end.
    pub fn fail(&mut self, message: &str, out: &mut String) {
        self.is_over = true;
        frame::failure(message, out);
        frame::done(out);
    }

    /// Writes that a request was refused after its stream had begun, and its end.
    pub fn refuse(&mut self, error: &RequestError, out: &mut String) {
        self.fail(&error.to_string(), out);
    }

    fn item(&mut self, item: &Item, record: &Record, out: &mut String) {
        let Some(run) = &mut self.run else {
            return;
        };
        match item.item_type {
            ItemType::ActionResult => {
                run.answered(item);
                self.triggers.insert(item.id.clone(), item.clone());
            }
            ItemType::Message if item.execution_id.is_none() => {
                run.left_behind(record.at);
            }
            ItemType::ItemReference if cancelled(item).is_some() => run.cancelled(record.at),
            ItemType::ItemReference => {
                self.reference = Some(item.id.clone());
                return;
            }
            ItemType::Message | ItemType::ActionExecute => return,
        }
        self.report(record, out);
    }

    fn begun(&mut self, execution: &Execution, record: &Record, out: &mut String) {
        let trigger = self.triggers.remove(&execution.trigger_item_id);
        match &mut self.run {
            None if execution.trigger_item_id == self.trigger => {
                let run = Run::begin(&self.thread_id, execution);
                if let Some(thread) = self.thread.take() {
                    frame::event("thread.created", &thread, out);
                }
                frame::event("thread.run.created", &run.as_queued(), out);
                frame::event("thread.run.queued", &run.as_queued(), out);
                self.run = Some(run);
            }
            None => return,
            Some(run) if continues(execution, trigger.as_ref()) => {
                run.go_on(execution, trigger.as_ref());
            }
            Some(run) if self.reference.as_ref() == Some(&execution.trigger_item_id) => {
                run.left_behind(record.at);
            }
            // A message that had waited: any other one has told of itself.
            Some(run) => run.left_behind_at_once(),
        }
        self.report(record, out);
    }

    fn of_run(&mut self, event: &Event, record: &Record, out: &mut String) {
        let Some(run) = &mut self.run else {
            // A thread that is closed begins no runs.
            let is_closed = matches!(event, Event::ThreadStatusChanged { to, .. } if *to == ThreadStatus::Closed);
            if is_closed {
                self.fail("the thread was closed before the run began", out);
            }
            return;
        };
        match event {
            Event::ChunkEmitted {
                chunk_type,
                execution_id: Some(id),
                data,
                ..
            } if run.is_running(id) => match chunk_type.as_str() {
                timeline::chunk_type::STEP_RESPONSE => {
                    run.told(data.as_ref(), record.at);
                    self.settle(record.at, out);
                    self.void(record.at, out);
                }
                timeline::chunk_type::STEP_RESET => {
                    self.died(record.at, out);
                }
                kind => {
                    let grown = run.chunk(kind, data.as_ref());
                    self.grown(grown, out);
                }
            },
            Event::StepCreated { step } if run.is_running(&step.execution_id) => {
                run.step_began(step);
                self.step = Step::of(run);
            }
            Event::PartCreated {
                step_id, idx, part, ..
            }
            | Event::PartUpdated {
                step_id, idx, part, ..
            } if run.is_step(step_id) => {
                run.part(*idx, part, record.at);
                self.settle(record.at, out);
            }
            Event::StepStatusChanged {
                step_id,
                to,
                outcome,
                ..
            } if run.is_step(step_id) => {
                run.step_ended(*to, outcome, record.at);
                self.settle(record.at, out);
                if *to == StepStatus::Completed {
                    self.void(record.at, out);
                }
            }
            Event::ExecutionStatusChanged {
                execution_id,
                to,
                interruption,
                ..
            } if run.is_running(execution_id) => {
                run.ended(*to, interruption.as_ref(), record.at);
                self.report(record, out);
            }
            Event::ChunkEmitted { .. }
            | Event::StepCreated { .. }
            | Event::PartCreated { .. }
            | Event::PartUpdated { .. }
            | Event::StepStatusChanged { .. }
            | Event::ExecutionStatusChanged { .. }
            | Event::ItemCreated { .. }
            | Event::ExecutionCreated { .. }
            | Event::ContextCreated { .. }
            | Event::ContextResolved { .. }
            | Event::ContextStatusChanged { .. }
            | Event::ThreadCreated { .. }
            | Event::ThreadResolved { .. }
            | Event::ThreadStatusChanged { .. }
            | Event::ItemStatusChanged { .. }
            | Event::ThreadFinished { .. } => {}
        }
    }

    /// Says how the run stands, if that is new; and is over when nothing more comes.
    fn report(&mut self, record: &Record, out: &mut String) {
        let Some(run) = &self.run else {
            return;
        };
        let status = run.status(record.at);
        if status == RunStatus::Cancelled && self.status == RunStatus::InProgress {
            self.stands(RunStatus::Cancelling, out);
        }
        self.settle(record.at, out);
        if !status.is_active() {
            self.void(record.at, out);
        }
        if status == self.status {
            return;
        }
        if (self.status, status) == (RunStatus::RequiresAction, RunStatus::InProgress) {
            self.stands(RunStatus::Queued, out);
        }
        self.stands(status, out);
        if status == RunStatus::RequiresAction || !status.is_active() {
            self.is_over = true;
            frame::done(out);
        }
    }

    /// Whether a message is open, and calls that were not begun before it have to wait.
    fn holds_calls(&self) -> bool {
        self.step.message && !self.step.calls
    }

    fn stands(&mut self, status: RunStatus, out: &mut String) {
        self.status = status;
        if let Some(run) = &self.run {
            let name = format!("thread.run.{status}");
            frame::event(&name, &run.object_as(status), out);
        }
    }

    fn grown(&mut self, grown: Grown<'_>, out: &mut String) {
        match grown {
            Grown::Nothing => {}
            Grown::Text {
                index,
                is_first,
                delta,
            } => {
                self.announce_message(out);
                self.step.n_texts = self.step.n_texts.max(index + 1);
                frame::text_delta(&self.step.message_id, index, is_first, delta, out);
            }
            // They come whole when the message has ended.
            Grown::Call { .. } if self.holds_calls() => {}
            Grown::Call {
                index,
                is_first,
                delta,
            } => {
                self.announce_calls(out);
                let run = self.run.as_ref();
                match run.and_then(|run| run.streamed_call(index)) {
                    Some((id, name)) if is_first => {
                        frame::call_begins(&self.step.calls_id, index, id, name, delta, out);
                    }
                    _ => frame::call_delta(&self.step.calls_id, index, delta, out),
                }
            }
        }
    }
}

impl Step {
    /// What clients were told of the attempt that has just begun.
    fn of(run: &Run) -> Self {
        let (message_id, calls_id) = run.last_ids().unwrap_or_default();
        Self {
            place: run.n_steps().saturating_sub(1),
            message_id: frame::quoted(&message_id),
            calls_id: frame::quoted(&calls_id),
            ..Self::default()
        }
    }
}
