//! The state of a thread, folded from its log as far as the next decision needs it.

use crate::change::ThreadUpdate;
use crate::entity::{Context, Execution, Item, ItemType, OpenCall, Step, Thread};
use crate::event::{Event, chunk_type};
use crate::ids::StepId;
use crate::payload::Payload;
use crate::status::ExecutionStatus;
use std::collections::VecDeque;

/// A trigger that waits for the thread to be free.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueuedTrigger {
    /// The item.
    pub item: Item,
    /// The parameters of its execution.
    pub run: Payload,
}

/// The running step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActiveStep {
    /// The step.
    pub step: Step,
    /// Its parts so far.
    pub parts: Vec<Payload>,
    /// The model's metadata about its answer, if it has answered.
    pub response: Option<Payload>,
    /// The calls of effect tools that have started, by call id.
    pub started: Vec<String>,
    /// The last note of the process that runs the step. It remains if that process dies.
    pub note: Option<Payload>,
}

/// The running execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Active {
    /// The execution.
    pub execution: Execution,
    /// The item it answers.
    pub trigger: Option<Item>,
    /// The item it writes.
    pub reaction: Option<Item>,
    /// The step that runs, if one does.
    pub step: Option<ActiveStep>,
    /// Steps so far.
    pub n_steps: u32,
    /// How many processes have started it since its last completed step and have not shut down in
    /// order since. It includes the process that runs it now.
    pub n_starts: u32,
    /// The open calls. If the execution answers one of the calls that were pending when it began,
    /// those that it leaves pending; else those of its last step.
    pub open_calls: Vec<OpenCall>,
    // Whether something was said beside it, which supersedes the calls it leaves.
    pub(crate) is_overtaken: bool,
}

impl Active {
    /// Whether a message was posted during the execution, so that its pending calls can't be
    /// answered any more.
    pub fn is_overtaken(&self) -> bool {
        self.is_overtaken
    }
}

/// The pending calls of a thread without a running execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Open {
    /// The execution that made them.
    pub execution: Execution,
    /// The calls, in order; never empty.
    pub calls: Vec<OpenCall>,
}

impl Open {
    /// The open calls of an execution, from the outcome of its last step. `None` if there are none.
    pub fn of(execution: Execution, open_calls: Option<&Payload>) -> Option<Self> {
        Self::with(execution, OpenCall::list(open_calls))
    }

    fn with(execution: Execution, calls: Vec<OpenCall>) -> Option<Self> {
        (!calls.is_empty()).then_some(Self { execution, calls })
    }
}

/// The fold of a thread's log that decisions need.
///
/// Its size is that of the running step and the waiting triggers; it does not grow with the thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    pub(crate) thread: Option<Thread>,
    pub(crate) context: Option<Context>,
    pub(crate) active: Option<Active>,
    pub(crate) waiting: VecDeque<QueuedTrigger>,
    // The last item kept: the trigger, if an execution begins next.
    pub(crate) last_item: Option<Item>,
    pub(crate) open: Option<Open>,
}

impl State {
    /// The state of a thread from its tables: its rows, the waiting items, and, if an execution
    /// runs, its trigger. The caller then applies the log from that execution's first event on.
    /// `waiting` has the items that waited before that event; later ones come from the log. If
    /// calls are open at that point, the caller sets them with [`with_open`](Self::with_open)
    /// before it applies any event.
    #[must_use]
    pub fn restored(
        thread: Thread,
        context: Context,
        waiting: Vec<Item>,
        trigger: Option<Item>,
    ) -> Self {
        let waiting = waiting
            .into_iter()
            .filter_map(|item| item.run.clone().map(|run| QueuedTrigger { item, run }))
            .collect();
        Self {
            thread: Some(thread),
            context: Some(context),
            active: None,
            waiting,
            last_item: trigger,
            open: None,
        }
    }

    /// Sets the open calls of the state. These are the open calls of the last finished execution,
    /// unless a message was stored since it began. In a fork without executions and messages of its
    /// own, they are those that were open at the fork's position.
    #[must_use]
    pub fn with_open(self, open: Option<Open>) -> Self {
        Self { open, ..self }
    }

    /// The thread, once it is made.
    pub fn thread(&self) -> Option<&Thread> {
        self.thread.as_ref()
    }

    /// The context of the thread, once it exists.
    pub fn context(&self) -> Option<&Context> {
        self.context.as_ref()
    }

    /// The running execution.
    pub fn active(&self) -> Option<&Active> {
        self.active.as_ref()
    }

    /// The waiting triggers, the longest-waiting first.
    pub fn waiting(&self) -> impl ExactSizeIterator<Item = &QueuedTrigger> {
        self.waiting.iter()
    }

    /// The pending calls; `None` while an execution runs.
    pub fn open(&self) -> Option<&Open> {
        self.open.as_ref()
    }

    /// Folds one event in. Events are checked when they are decided and when they are decoded,
    /// so this can't fail; an event that fits nothing changes nothing.
    pub fn apply(&mut self, event: &Event) {
        match event {
            Event::ThreadCreated { thread } => self.thread = Some(thread.clone()),
            Event::ContextCreated { context } => self.context = Some(context.clone()),
            Event::ThreadStatusChanged { to, .. } => {
                if let Some(thread) = &mut self.thread {
                    thread.status = *to;
                }
            }
            Event::ContextStatusChanged { to, .. } => {
                if let Some(context) = &mut self.context {
                    context.status = *to;
                }
            }
            Event::ItemCreated { item } => self.apply_item(item),
            Event::ItemStatusChanged { item_id, to, .. } => {
                if let Some(reaction) = self
                    .active
                    .as_mut()
                    .and_then(|active| active.reaction.as_mut())
                    && reaction.id == *item_id
                {
                    reaction.status = *to;
                }
            }
            Event::ExecutionCreated { execution } => self.apply_execution(execution),
            Event::ExecutionStatusChanged { to, .. } => self.apply_end(*to),
            Event::StepCreated { step } => {
                if let Some(active) = &mut self.active {
                    active.n_steps = step.iteration.saturating_add(1);
                    if step.iteration > 0 {
                        // The model is asked again only when nothing waits.
                        active.open_calls.clear();
                    }
                    active.step = Some(ActiveStep {
                        step: step.clone(),
                        parts: Vec::new(),
                        response: None,
                        started: Vec::new(),
                        note: None,
                    });
                }
            }
            Event::StepStatusChanged { outcome, .. } => {
                if let Some(active) = &mut self.active {
                    active.step = None;
                    active.n_starts = 1;
                    active.open_calls = OpenCall::list(outcome.open_calls.as_ref());
                }
            }
            Event::PartCreated {
                step_id, idx, part, ..
            }
            | Event::PartUpdated {
                step_id, idx, part, ..
            } => {
                self.apply_part(step_id, *idx, part);
            }
            Event::ChunkEmitted {
                chunk_type,
                step_id: Some(step_id),
                data,
                ..
            } => {
                self.apply_marker(chunk_type, step_id, data.as_ref());
            }
            Event::ChunkEmitted {
                chunk_type,
                step_id: None,
                data,
                ..
            } => {
                if let Some(thread) = &mut self.thread
                    && let Some(update) = update_of(chunk_type, data.as_ref())
                {
                    update.apply(thread);
                }
            }
            Event::ThreadResolved { .. }
            | Event::ContextResolved { .. }
            | Event::ThreadFinished { .. } => {}
        }
    }

    fn apply_execution(&mut self, execution: &Execution) {
        let id = &execution.trigger_item_id;
        let waited = self
            .waiting
            .iter()
            .position(|waiting| waiting.item.id == *id);
        let trigger = waited
            .and_then(|place| self.waiting.remove(place))
            .map(|waiting| waiting.item)
            .or_else(|| self.last_item.take().filter(|item| item.id == *id));
        let answers = trigger
            .as_ref()
            .is_some_and(|item| item.item_type == ItemType::ActionResult);
        // Anything else said in place of an answer supersedes the calls.
        let open = self.open.take().filter(|_| answers);
        self.active = Some(Active {
            execution: execution.clone(),
            trigger,
            reaction: None,
            step: None,
            n_steps: 0,
            n_starts: 1,
            open_calls: open.map(|open| open.calls).unwrap_or_default(),
            is_overtaken: false,
        });
    }

    fn apply_end(&mut self, to: ExecutionStatus) {
        if to == ExecutionStatus::Executing {
            return;
        }
        let ended = self.active.take().filter(|active| {
            to == ExecutionStatus::Completed && active.step.is_none() && !active.is_overtaken
        });
        self.open = ended.and_then(|active| {
            let execution = Execution {
                status: to,
                ..active.execution
            };
            Open::with(execution, active.open_calls)
        });
    }

    fn apply_item(&mut self, item: &Item) {
        if let Some(active) = &mut self.active
            && active.execution.reaction_item_id == item.id
        {
            active.reaction = Some(item.clone());
        } else if let Some(run) = &item.run {
            self.waiting.push_back(QueuedTrigger {
                item: item.clone(),
                run: run.clone(),
            });
        } else {
            if item.item_type == ItemType::Message {
                self.open = None;
                if let Some(active) = &mut self.active {
                    active.is_overtaken = true;
                }
            }
            self.last_item = Some(item.clone());
        }
    }

    fn apply_part(&mut self, step_id: &StepId, idx: u32, part: &Payload) {
        let Some(step) = self.running_step(step_id) else {
            return;
        };
        let idx = idx as usize;
        if let Some(slot) = step.parts.get_mut(idx) {
            *slot = part.clone();
        } else if idx == step.parts.len() {
            step.parts.push(part.clone());
        }
    }

    fn apply_marker(&mut self, kind: &str, step_id: &StepId, data: Option<&Payload>) {
        let active = self.active.as_mut();
        let Some((step, n_starts)) = active.and_then(|active| {
            let step = active.step.as_mut();
            let step = step.filter(|step| step.step.id == *step_id)?;
            Some((step, &mut active.n_starts))
        }) else {
            return;
        };
        match kind {
            chunk_type::EXECUTION_RESUMED => *n_starts = n_starts.saturating_add(1),
            chunk_type::EXECUTION_PARKED => *n_starts = n_starts.saturating_sub(1),
            chunk_type::STEP_RESPONSE => step.response = data.cloned(),
            chunk_type::STEP_RESET => {
                step.parts.clear();
                step.response = None;
                step.started.clear();
            }
            chunk_type::STEP_NOTED => step.note = data.cloned(),
            chunk_type::TOOL_STARTED => {
                step.started
                    .extend(data.and_then(|data| data.str_field("toolCallId")));
            }
            _ => {}
        }
    }

    fn running_step(&mut self, step_id: &StepId) -> Option<&mut ActiveStep> {
        self.active
            .as_mut()?
            .step
            .as_mut()
            .filter(|step| step.step.id == *step_id)
    }
}

/// The change of the thread that a chunk is, if it is one.
pub(crate) fn update_of(kind: &str, data: Option<&Payload>) -> Option<ThreadUpdate> {
    let data = data.filter(|_| kind == chunk_type::THREAD_UPDATED);
    data.and_then(|data| data.read().ok())
}
