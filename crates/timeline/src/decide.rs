//! From a command to events, or to a refusal.

use crate::command::{Chunk, Command, Ending, NewItem, NewThread, Trigger};
use crate::content::{ContentError, check_content, check_part};
use crate::entity::{
    Context, Execution, Interruption, Item, ItemType, Role, Step, StepOutcome, Thread,
};
use crate::event::{Event, ExecutionResult, chunk_type};
use crate::ids::{ContextId, ExecutionId, ItemId, PartKey, StepId};
use crate::payload::Payload;
use crate::state::{Active, ActiveStep, State};
use crate::status::{
    ContextStatus, ExecutionStatus, IllegalTransition, ItemStatus, Machine, StepStatus,
    ThreadStatus,
};
use jiff::Timestamp;

/// Why a command is refused. Nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rejected {
    /// A status can't move that way.
    #[error(transparent)]
    Transition(#[from] IllegalTransition),
    /// Something in a part or in an item's content.
    #[error(transparent)]
    Content(#[from] ContentError),
    /// The thread is not made yet.
    #[error("the thread does not exist")]
    NoThread,
    /// The thread is made already.
    #[error("the thread exists already")]
    ThreadExists,
    /// An execution runs.
    #[error("execution {0} is running on this thread")]
    Busy(ExecutionId),
    /// No execution runs.
    #[error("no execution is running on this thread")]
    NotRunning,
    /// The execution has no running step.
    #[error("execution {0} has no running step")]
    NoStep(ExecutionId),
    /// The execution still has a running step.
    #[error("step {0} is still running")]
    StepRunning(StepId),
    /// The model has answered in this step already.
    #[error("the model has answered in step {0} already")]
    AlreadyResponded(StepId),
    /// A part's position would leave a gap.
    #[error("part {idx} of step {step_id} would leave a gap: there are {n_parts}")]
    PartGap {
        /// The step.
        step_id: StepId,
        /// The position.
        idx: u32,
        /// How many parts there are.
        n_parts: usize,
    },
    /// No trigger waits.
    #[error("no trigger is waiting on this thread")]
    NothingWaits,
    /// A chunk that only the runtime writes (EK §11).
    #[error("chunks of type {0:?} are the runtime's own")]
    Reserved(String),
    /// A message without a role, or a role on what is no message.
    #[error("an item of type message has a role, and only such an item")]
    Role,
}

impl State {
    /// Decides; reads nothing but its arguments. Costs what the command carries.
    pub fn decide(&self, command: Command, at: Timestamp) -> Result<Vec<Event>, Rejected> {
        match command {
            Command::Create { thread, context_id } => self.create(thread, context_id, at),
            Command::Record { item } => {
                self.existing()?;
                Ok(vec![Event::ItemCreated {
                    item: stored(item, None, at)?,
                }])
            }
            Command::Enqueue { item, run } => {
                let (thread, _) = self.existing()?;
                if thread.status == ThreadStatus::Closed {
                    thread.status.transition(ThreadStatus::Streaming)?;
                }
                Ok(vec![Event::ItemCreated {
                    item: stored(item, Some(run), at)?,
                }])
            }
            Command::Start {
                trigger,
                run,
                execution_id,
                reaction_item_id,
                step_id,
                workflow_run_id,
            } => self.start(
                trigger,
                run,
                execution_id,
                reaction_item_id,
                step_id,
                workflow_run_id,
                at,
            ),
            Command::Emit { chunks } => {
                let (active, step) = self.step()?;
                let own = |chunk: &&Chunk| chunk_type::MARKERS.contains(&chunk.chunk_type.as_str());
                if let Some(chunk) = chunks.iter().find(own) {
                    return Err(Rejected::Reserved(chunk.chunk_type.clone()));
                }
                Ok(chunks
                    .into_iter()
                    .map(|chunk| emitted(active, Some(step), chunk))
                    .collect())
            }
            Command::StartTool { tool_call_id } => {
                let (active, step) = self.step()?;
                let data = serde_json::json!({ "toolCallId": tool_call_id }).into();
                Ok(vec![marker(
                    active,
                    step,
                    chunk_type::TOOL_STARTED,
                    Some(data),
                )])
            }
            Command::Respond { parts, response } => self.respond(parts, response),
            Command::PutPart { idx, part } => self.put_part(idx, part),
            Command::ResetStep => {
                let (active, step) = self.step()?;
                Ok(vec![marker(active, step, chunk_type::STEP_RESET, None)])
            }
            Command::CompleteStep { outcome, next } => self.complete_step(outcome, next, at),
            Command::End { ending } => self.end(ending),
            Command::Close => self.close(),
            Command::Reopen => {
                let (thread, _) = self.existing()?;
                if let Some(active) = &self.active {
                    return Err(Rejected::Busy(active.execution.id.clone()));
                }
                Ok(vec![thread_moved(
                    thread,
                    thread.status,
                    ThreadStatus::Open,
                )?])
            }
        }
    }

    fn existing(&self) -> Result<(&Thread, &Context), Rejected> {
        self.thread
            .as_ref()
            .zip(self.context.as_ref())
            .ok_or(Rejected::NoThread)
    }

    fn running(&self) -> Result<&Active, Rejected> {
        self.active.as_ref().ok_or(Rejected::NotRunning)
    }

    fn step(&self) -> Result<(&Active, &ActiveStep), Rejected> {
        let active = self.running()?;
        let step = active
            .step
            .as_ref()
            .ok_or_else(|| Rejected::NoStep(active.execution.id.clone()))?;
        Ok((active, step))
    }

    fn create(
        &self,
        new: NewThread,
        context_id: ContextId,
        at: Timestamp,
    ) -> Result<Vec<Event>, Rejected> {
        if self.thread.is_some() {
            return Err(Rejected::ThreadExists);
        }
        let context = Context {
            id: context_id,
            key: new.key.clone(),
            thread_id: new.id.clone(),
            status: ContextStatus::Open,
            content: None,
            created_at: at,
            updated_at: None,
        };
        let thread = Thread {
            id: new.id,
            key: new.key,
            status: ThreadStatus::Open,
            created_at: at,
            updated_at: None,
            title: new.title,
            metadata: new.metadata,
            fork: new.fork,
        };
        Ok(vec![
            Event::ThreadCreated { thread },
            Event::ContextCreated { context },
        ])
    }

    #[expect(clippy::too_many_arguments, reason = "the fields of one command")]
    fn start(
        &self,
        trigger: Trigger,
        run: Option<Payload>,
        execution_id: ExecutionId,
        reaction_item_id: ItemId,
        step_id: StepId,
        workflow_run_id: Option<String>,
        at: Timestamp,
    ) -> Result<Vec<Event>, Rejected> {
        let (thread, context) = self.existing()?;
        if let Some(active) = &self.active {
            return Err(Rejected::Busy(active.execution.id.clone()));
        }
        let mut events = vec![
            Event::ContextResolved {
                context_id: context.id.clone(),
            },
            Event::ThreadResolved {
                thread_id: thread.id.clone(),
            },
        ];
        let (trigger_item_id, run) = match trigger {
            Trigger::New(item) => {
                let item = stored(item, None, at)?;
                let id = item.id.clone();
                events.push(Event::ItemCreated { item });
                (id, run)
            }
            Trigger::Waiting => {
                let waiting = self.waiting.front().ok_or(Rejected::NothingWaits)?;
                (waiting.item.id.clone(), Some(waiting.run.clone()))
            }
        };
        let mut from = thread.status;
        if from == ThreadStatus::Failed {
            events.push(thread_moved(thread, from, ThreadStatus::Open)?);
            from = ThreadStatus::Open;
        }
        events.push(thread_moved(thread, from, ThreadStatus::Streaming)?);
        events.push(context_moved(context, ContextStatus::Streaming)?);
        let execution = Execution {
            id: execution_id.clone(),
            thread_id: thread.id.clone(),
            context_id: context.id.clone(),
            trigger_item_id,
            reaction_item_id: reaction_item_id.clone(),
            workflow_run_id,
            status: ExecutionStatus::Executing,
            created_at: at,
            updated_at: None,
            interruption: None,
            run,
        };
        events.push(Event::ExecutionCreated { execution });
        events.push(Event::ItemCreated {
            item: Item {
                id: reaction_item_id.clone(),
                item_type: ItemType::Message,
                role: Some(Role::Assistant),
                created_at: at,
                status: ItemStatus::Stored,
                channel: None,
                content: None,
                execution_id: Some(execution_id.clone()),
                run: None,
                metadata: None,
            },
        });
        events.push(item_moved(
            &reaction_item_id,
            ItemStatus::Stored,
            ItemStatus::Pending,
        )?);
        events.push(Event::StepCreated {
            step: new_step(step_id, execution_id, reaction_item_id, 0, at),
        });
        Ok(events)
    }

    fn respond(&self, parts: Vec<Payload>, response: Payload) -> Result<Vec<Event>, Rejected> {
        let (active, step) = self.step()?;
        if step.response.is_some() {
            return Err(Rejected::AlreadyResponded(step.step.id.clone()));
        }
        let mut events = Vec::with_capacity(parts.len() + 1);
        for (idx, part) in (0u32..).zip(parts) {
            check_part(&part)?;
            events.push(part_written(step, idx, part));
        }
        events.push(marker(
            active,
            step,
            chunk_type::STEP_RESPONSE,
            Some(response),
        ));
        Ok(events)
    }

    fn put_part(&self, idx: u32, part: Payload) -> Result<Vec<Event>, Rejected> {
        let (_, step) = self.step()?;
        let n_parts = step.parts.len();
        if idx as usize > n_parts {
            return Err(Rejected::PartGap {
                step_id: step.step.id.clone(),
                idx,
                n_parts,
            });
        }
        check_part(&part)?;
        Ok(vec![part_written(step, idx, part)])
    }

    fn complete_step(
        &self,
        mut outcome: StepOutcome,
        next: Option<StepId>,
        at: Timestamp,
    ) -> Result<Vec<Event>, Rejected> {
        let (active, step) = self.step()?;
        outcome.continue_loop = Some(next.is_some());
        let mut events = vec![step_moved(step, StepStatus::Completed, outcome)?];
        if let Some(id) = next {
            let execution = &active.execution;
            let step = new_step(
                id,
                execution.id.clone(),
                execution.reaction_item_id.clone(),
                active.n_steps,
                at,
            );
            events.push(Event::StepCreated { step });
        }
        Ok(events)
    }

    fn end(&self, ending: Ending) -> Result<Vec<Event>, Rejected> {
        let (thread, context) = self.existing()?;
        let active = self.running()?;
        let mut events = Vec::new();
        let (to, result, interruption, rest) = match ending {
            Ending::Completed => {
                if let Some(step) = &active.step {
                    return Err(Rejected::StepRunning(step.step.id.clone()));
                }
                (
                    ExecutionStatus::Completed,
                    ExecutionResult::Completed,
                    None,
                    ThreadStatus::Open,
                )
            }
            Ending::Failed(interruption) => (
                ExecutionStatus::Failed,
                ExecutionResult::Failed,
                Some(interruption),
                ThreadStatus::Failed,
            ),
            Ending::Stopped(interruption) => (
                ExecutionStatus::Failed,
                ExecutionResult::Failed,
                Some(interruption),
                ThreadStatus::Open,
            ),
        };
        if let Some(step) = &active.step {
            let outcome = StepOutcome {
                continue_loop: Some(false),
                error_text: interruption.as_ref().map(told),
                ..StepOutcome::default()
            };
            events.push(step_moved(step, StepStatus::Failed, outcome)?);
        }
        let from = active
            .reaction
            .as_ref()
            .map_or(ItemStatus::Pending, |reaction| reaction.status);
        events.push(item_moved(
            &active.execution.reaction_item_id,
            from,
            ItemStatus::Completed,
        )?);
        let execution_id = active.execution.id.clone();
        let from = active.execution.status;
        from.transition(to)?;
        events.push(Event::ExecutionStatusChanged {
            execution_id: execution_id.clone(),
            from,
            to,
            interruption,
        });
        events.push(context_moved(context, ContextStatus::Open)?);
        events.push(thread_moved(thread, thread.status, rest)?);
        events.push(Event::ThreadFinished {
            thread_id: thread.id.clone(),
            context_id: context.id.clone(),
            execution_id,
            result,
        });
        Ok(events)
    }

    fn close(&self) -> Result<Vec<Event>, Rejected> {
        let (thread, context) = self.existing()?;
        if let Some(active) = &self.active {
            return Err(Rejected::Busy(active.execution.id.clone()));
        }
        let mut events = Vec::new();
        let mut from = thread.status;
        if from == ThreadStatus::Failed {
            events.push(thread_moved(thread, from, ThreadStatus::Open)?);
            from = ThreadStatus::Open;
        }
        events.push(thread_moved(thread, from, ThreadStatus::Streaming)?);
        events.push(context_moved(context, ContextStatus::Closed)?);
        events.push(thread_moved(
            thread,
            ThreadStatus::Streaming,
            ThreadStatus::Closed,
        )?);
        Ok(events)
    }
}

fn told(interruption: &Interruption) -> String {
    interruption
        .detail
        .clone()
        .unwrap_or_else(|| interruption.reason.clone())
}

fn stored(new: NewItem, run: Option<Payload>, at: Timestamp) -> Result<Item, Rejected> {
    if new.role.is_some() != (new.item_type == ItemType::Message) {
        return Err(Rejected::Role);
    }
    if let (ItemType::Message, Some(content)) = (new.item_type, &new.content) {
        check_content(content)?;
    }
    Ok(Item {
        id: new.id,
        item_type: new.item_type,
        role: new.role,
        created_at: at,
        status: ItemStatus::Stored,
        channel: new.channel,
        content: new.content,
        execution_id: None,
        run,
        metadata: new.metadata,
    })
}

fn new_step(
    id: StepId,
    execution_id: ExecutionId,
    event_id: ItemId,
    iteration: u32,
    at: Timestamp,
) -> Step {
    Step {
        id,
        execution_id,
        iteration,
        status: StepStatus::Running,
        event_id,
        outcome: StepOutcome::default(),
        created_at: at,
        updated_at: None,
    }
}

fn part_written(step: &ActiveStep, idx: u32, part: Payload) -> Event {
    let step_id = step.step.id.clone();
    let part_key = PartKey {
        step_id: step_id.clone(),
        idx,
    }
    .to_string();
    if (idx as usize) < step.parts.len() {
        Event::PartUpdated {
            part_key,
            step_id,
            idx,
            part,
        }
    } else {
        Event::PartCreated {
            part_key,
            step_id,
            idx,
            part,
        }
    }
}

fn marker(active: &Active, step: &ActiveStep, chunk_type: &str, data: Option<Payload>) -> Event {
    emitted(
        active,
        Some(step),
        Chunk {
            chunk_type: chunk_type.to_owned(),
            data,
        },
    )
}

fn emitted(active: &Active, step: Option<&ActiveStep>, chunk: Chunk) -> Event {
    Event::ChunkEmitted {
        chunk_type: chunk.chunk_type,
        context_id: active.execution.context_id.clone(),
        execution_id: Some(active.execution.id.clone()),
        step_id: step.map(|step| step.step.id.clone()),
        data: chunk.data,
    }
}

fn thread_moved(
    thread: &Thread,
    from: ThreadStatus,
    to: ThreadStatus,
) -> Result<Event, IllegalTransition> {
    from.transition(to)?;
    Ok(Event::ThreadStatusChanged {
        thread_id: thread.id.clone(),
        from,
        to,
    })
}

fn context_moved(context: &Context, to: ContextStatus) -> Result<Event, IllegalTransition> {
    let from = context.status;
    from.transition(to)?;
    Ok(Event::ContextStatusChanged {
        context_id: context.id.clone(),
        from,
        to,
    })
}

fn item_moved(
    item_id: &ItemId,
    from: ItemStatus,
    to: ItemStatus,
) -> Result<Event, IllegalTransition> {
    from.transition(to)?;
    Ok(Event::ItemStatusChanged {
        item_id: item_id.clone(),
        from,
        to,
    })
}

fn step_moved(
    step: &ActiveStep,
    to: StepStatus,
    outcome: StepOutcome,
) -> Result<Event, IllegalTransition> {
    let from = step.step.status;
    from.transition(to)?;
    Ok(Event::StepStatusChanged {
        step_id: step.step.id.clone(),
        from,
        to,
        outcome,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn after(commands: impl IntoIterator<Item = Command>) -> State {
        let mut state = State::default();
        for command in commands {
            for event in state.decide(command, Timestamp::UNIX_EPOCH).unwrap() {
                state.apply(&event);
            }
        }
        state
    }

    fn create() -> Command {
        Command::Create {
            thread: NewThread::new("t", Some("k")),
            context_id: "c".into(),
        }
    }

    fn start() -> Command {
        let content = json!([{"type": "input_text", "text": "hi"}]).into();
        Command::Start {
            trigger: Trigger::New(NewItem::user("u", content)),
            run: None,
            execution_id: "e".into(),
            reaction_item_id: "a".into(),
            step_id: "s".into(),
            workflow_run_id: None,
        }
    }

    fn names(events: &[Event]) -> Vec<&'static str> {
        events
            .iter()
            .map(|event| event.event_type().name())
            .collect()
    }

    #[test]
    fn starting_persists_trigger_execution_reaction_and_step_in_the_order_of_section_7() {
        let events = after([create()])
            .decide(start(), Timestamp::UNIX_EPOCH)
            .unwrap();
        assert_eq!(
            names(&events),
            [
                "context.resolved",
                "thread.resolved",
                "item.created",
                "thread.status.changed",
                "context.status.changed",
                "execution.created",
                "item.created",
                "item.status.changed",
                "step.created",
            ]
        );
    }

    #[test]
    fn a_second_execution_is_refused_while_one_runs() {
        let error = after([create(), start()])
            .decide(start(), Timestamp::UNIX_EPOCH)
            .unwrap_err();
        assert_eq!(error, Rejected::Busy("e".into()));
    }

    #[test]
    fn a_closed_thread_can_not_stream_again() {
        let error = after([create(), Command::Close])
            .decide(start(), Timestamp::UNIX_EPOCH)
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            "a thread can't go from closed to streaming"
        );
    }

    #[test]
    fn closing_an_idle_thread_passes_through_streaming() {
        let events = after([create()])
            .decide(Command::Close, Timestamp::UNIX_EPOCH)
            .unwrap();
        assert_eq!(
            names(&events),
            [
                "thread.status.changed",
                "context.status.changed",
                "thread.status.changed"
            ]
        );
    }

    #[test]
    fn a_cancelled_execution_fails_and_leaves_the_thread_open() {
        let stop = Ending::Stopped(Interruption {
            reason: "user_cancelled".into(),
            detail: None,
        });
        let state = after([create(), start(), Command::End { ending: stop }]);
        assert_eq!(state.thread().unwrap().status, ThreadStatus::Open);
        assert!(state.active().is_none());
    }

    #[test]
    fn an_execution_does_not_complete_while_a_step_runs() {
        let error = after([create(), start()]).decide(
            Command::End {
                ending: Ending::Completed,
            },
            Timestamp::UNIX_EPOCH,
        );
        assert_eq!(error, Err(Rejected::StepRunning("s".into())));
    }

    #[test]
    fn a_reset_step_is_as_if_its_model_had_not_answered() {
        let respond = || Command::Respond {
            parts: vec![json!({"type": "output_text", "text": "hello"}).into()],
            response: json!({"model": "m"}).into(),
        };
        let state = after([create(), start(), respond(), Command::ResetStep]);
        assert!(
            state
                .active()
                .unwrap()
                .step
                .as_ref()
                .unwrap()
                .parts
                .is_empty()
        );
        assert!(state.decide(respond(), Timestamp::UNIX_EPOCH).is_ok());
    }

    #[test]
    fn a_queued_trigger_waits_until_an_execution_takes_it() {
        let content = json!([{"type": "input_text", "text": "next"}]).into();
        let enqueue = Command::Enqueue {
            item: NewItem::user("u2", content),
            run: json!({"agent": "demo"}).into(),
        };
        let state = after([create(), start(), enqueue]);
        assert_eq!(state.waiting().count(), 1);
        let done = Ending::Stopped(Interruption {
            reason: "timeout".into(),
            detail: None,
        });
        let take = Command::Start {
            trigger: Trigger::Waiting,
            run: None,
            execution_id: "e2".into(),
            reaction_item_id: "a2".into(),
            step_id: "s2".into(),
            workflow_run_id: None,
        };
        let mut state = state;
        for command in [Command::End { ending: done }, take] {
            for event in state.decide(command, Timestamp::UNIX_EPOCH).unwrap() {
                state.apply(&event);
            }
        }
        assert_eq!(state.waiting().count(), 0);
        assert_eq!(
            state.active().unwrap().execution.trigger_item_id,
            "u2".into()
        );
    }
}
