//! A run as server-sent events, record by record.

mod emit;
mod frame;

use super::error::RequestError;
use super::object::{RunStatus, ThreadObject};
use super::run::{Delta, Run};
use super::view::cancelled;
use crate::json_text::quoted;
use crate::run::{RunEvent, RunFold, RunSelector, continues};
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use timeline::{Event, Execution, Item, ItemId, ItemType, Record, StepStatus, ThreadStatus};

/// The state of the running step for clients.
#[derive(Clone, Debug, Default)]
struct Step {
    /// Its position among the run's.
    place: usize,
    /// Whether a message is announced that has not ended.
    message: bool,
    /// Whether calls are announced that have not ended.
    calls: bool,
    /// How many texts of the message were shown.
    n_texts: usize,
    /// The ids, as JSON strings.
    message_id: String,
    calls_id: String,
}

/// One reader's stream of one run.
///
/// It reads the records of the thread's log in order, from before the run's trigger. It ends with the
/// run, or when the run waits for its client. The deltas of a failed attempt are void. Its message and
/// its calls end as failed, and the next attempt has ids of its own.
///
/// While a message is open, calls are held back and then sent whole. The clients' helpers would take
/// the end of any run step for the end of the current call.
#[derive(Clone, Debug)]
pub struct RunStream {
    thread_id: String,
    trigger: ItemId,
    thread: Option<ThreadObject>,
    run: Option<Run>,
    /// The events of the run's execution at work, or of the last one.
    fold: Option<RunFold>,
    status: RunStatus,
    step: Step,
    triggers: BTreeMap<ItemId, Item>,
    /// The last item that only points at another.
    reference: Option<ItemId>,
    is_over: bool,
}

impl RunStream {
    /// The stream of the run that responds to this item, on the thread with this id.
    pub fn answering(thread_id: &str, trigger: ItemId) -> Self {
        Self {
            thread_id: thread_id.to_owned(),
            trigger,
            thread: None,
            run: None,
            fold: None,
            status: RunStatus::Queued,
            step: Step::default(),
            triggers: BTreeMap::new(),
            reference: None,
            is_over: false,
        }
    }

    /// Starts the stream with the event of a thread that was created with the run: `POST
    /// /threads/runs`.
    #[must_use]
    pub fn with_thread(mut self, thread: ThreadObject) -> Self {
        self.thread = Some(thread);
        self
    }

    /// The stream of a run that is about to receive outputs: `POST …/submit_tool_outputs`. `answers`
    /// is the item with the outputs.
    pub fn continuing(thread_id: &str, run: Run, answers: ItemId) -> Self {
        Self {
            run: Some(run),
            status: RunStatus::RequiresAction,
            // Clients know the steps so far.
            step: Step {
                place: usize::MAX,
                ..Step::default()
            },
            ..Self::answering(thread_id, answers)
        }
    }

    /// The run; `None` until it starts.
    pub fn run(&self) -> Option<&Run> {
        self.run.as_ref()
    }

    /// Writes the events of one record; breaks after the last one.
    pub fn write(&mut self, record: &Record, out: &mut String) -> ControlFlow<()> {
        if self.is_over {
            return ControlFlow::Break(());
        }
        let (event, at) = (&record.event, record.at);
        if let Event::ItemCreated { item } = event {
            self.item(item, at, out);
        } else if let Event::ExecutionCreated { execution } = event {
            self.execution_created(execution, at, out);
        } else if let Event::ThreadStatusChanged { to, .. } = event
            && *to == ThreadStatus::Closed
            && self.run.is_none()
        {
            self.fail("the thread was closed before the run began", out);
        }
        let events = self.fold.as_mut().map(|fold| fold.events(record));
        for event in events.unwrap_or_default() {
            self.event(&event, at, out);
        }
        if self.is_over {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }

    /// Writes the error of a failed stream, and the stream's end.
    pub fn fail(&mut self, message: &str, out: &mut String) {
        self.is_over = true;
        frame::failure(message, out);
        frame::done(out);
    }

    /// Writes the error of a request that was refused after its stream started, and the stream's end.
    pub fn refuse(&mut self, error: &RequestError, out: &mut String) {
        self.fail(&error.to_string(), out);
    }

    fn item(&mut self, item: &Item, at: Timestamp, out: &mut String) {
        let Some(run) = &mut self.run else {
            return;
        };
        match item.item_type {
            ItemType::ActionResult => {
                run.answered(item);
                self.triggers.insert(item.id.clone(), item.clone());
            }
            ItemType::Message if item.execution_id.is_none() => run.overtaken(at),
            ItemType::ItemReference if cancelled(item).is_some() => run.cancelled(at),
            ItemType::ItemReference => {
                self.reference = Some(item.id.clone());
                return;
            }
            ItemType::Message | ItemType::ActionExecute => return,
        }
        self.report(at, out);
    }

    /// Adds an execution if it starts or continues the run.
    fn execution_created(&mut self, execution: &Execution, at: Timestamp, out: &mut String) {
        self.fold = None;
        let trigger = self.triggers.remove(&execution.trigger_item_id);
        let is_own = match &mut self.run {
            None if execution.trigger_item_id == self.trigger => {
                let run = Run::begin(&self.thread_id, execution);
                if let Some(thread) = self.thread.take() {
                    frame::event("thread.created", &thread, out);
                }
                frame::event("thread.run.created", &run.as_queued(), out);
                frame::event("thread.run.queued", &run.as_queued(), out);
                self.run = Some(run);
                true
            }
            None => return,
            Some(run) if continues(execution, trigger.as_ref()) => {
                run.continue_with(execution, trigger.as_ref());
                true
            }
            Some(run) => {
                if self.reference.as_ref() == Some(&execution.trigger_item_id) {
                    run.overtaken(at);
                } else {
                    // It answers a message that was queued; any other message has overtaken the run
                    // itself.
                    run.overtaken_at_once();
                }
                false
            }
        };
        let own = is_own.then(|| execution.id.clone());
        self.fold = own.map(|id| RunFold::new(RunSelector::running(Some(id))));
        self.report(at, out);
    }

    fn event(&mut self, event: &RunEvent<'_>, at: Timestamp, out: &mut String) {
        if let RunEvent::StepReset { .. } = event {
            self.void_attempt(at, out);
        }
        let Some(run) = &mut self.run else {
            return;
        };
        let delta = run.event(event, at);
        match event {
            RunEvent::StepStarted { .. } | RunEvent::StepReset { .. } => self.step = Step::of(run),
            RunEvent::Chunk(_) => self.delta(delta, out),
            RunEvent::Responded { .. }
            | RunEvent::StepEnded {
                status: StepStatus::Completed,
                ..
            } => {
                self.show_changes(at, out);
                self.void(at, out);
            }
            RunEvent::Part { .. } | RunEvent::StepEnded { .. } => self.show_changes(at, out),
            RunEvent::ExecutionEnded { .. } => self.report(at, out),
            RunEvent::Started { .. }
            | RunEvent::Continued { .. }
            | RunEvent::ContinuationPending
            | RunEvent::Ended
            | RunEvent::Abandoned
            | RunEvent::ItemAdded(_)
            | RunEvent::ThreadChanged(_) => {}
        }
    }

    /// Writes the status of the run if it changed. A final status ends the stream.
    fn report(&mut self, at: Timestamp, out: &mut String) {
        let Some(run) = &self.run else {
            return;
        };
        let status = run.status(at);
        if status == RunStatus::Cancelled && self.status == RunStatus::InProgress {
            self.status_event(RunStatus::Cancelling, out);
        }
        self.show_changes(at, out);
        if !status.is_active() {
            self.void(at, out);
        }
        if status == self.status {
            return;
        }
        if (self.status, status) == (RunStatus::RequiresAction, RunStatus::InProgress) {
            self.status_event(RunStatus::Queued, out);
        }
        self.status_event(status, out);
        if status == RunStatus::RequiresAction || !status.is_active() {
            self.is_over = true;
            frame::done(out);
        }
    }

    /// Whether a message is open and calls that start later must wait.
    fn holds_calls(&self) -> bool {
        self.step.message && !self.step.calls
    }

    fn status_event(&mut self, status: RunStatus, out: &mut String) {
        self.status = status;
        if let Some(run) = &self.run {
            let name = format!("thread.run.{status}");
            frame::event(&name, &run.object_as(status), out);
        }
    }

    fn delta(&mut self, delta: Delta<'_>, out: &mut String) {
        match delta {
            Delta::Nothing => {}
            Delta::Text {
                index,
                is_first,
                delta,
            } => {
                self.announce_message(out);
                self.step.n_texts = self.step.n_texts.max(index + 1);
                frame::text_delta(&self.step.message_id, index, is_first, delta, out);
            }
            // They come whole when the message has ended.
            Delta::Call { .. } if self.holds_calls() => {}
            Delta::Call {
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
    /// The step whose attempt has just started.
    fn of(run: &Run) -> Self {
        let (message_id, calls_id) = run.last_ids().unwrap_or_default();
        Self {
            place: run.n_steps().saturating_sub(1),
            message_id: quoted(&message_id),
            calls_id: quoted(&calls_id),
            ..Self::default()
        }
    }
}
