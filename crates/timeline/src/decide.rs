//! From a command to events, or to a refusal.

mod answers;
mod change;
mod events;
mod order;
mod rejected;

pub use rejected::Rejected;

use crate::change::ThreadUpdate;
use crate::chunk::NewChunk;
use crate::command::{Command, Ending, NewThread, Trigger};
use crate::content::check_part;
use crate::entity::{Context, Execution, StepOutcome, Thread};
use crate::event::{Event, ExecutionResult, chunk_type};
use crate::ids::{ContextId, ExecutionId, ItemId, StepId};
use crate::payload::Payload;
use crate::state::{Active, ActiveStep, State};
use crate::status::{
    ContextStatus, ExecutionStatus, ItemStatus, Machine, StepStatus, ThreadStatus,
};
use events::{
    context_moved, emitted, item_moved, marker, new_step, part_written, reaction, reason_text,
    step_moved, stored, streaming, thread_moved,
};
use jiff::Timestamp;

impl State {
    /// Decides on a command from its arguments alone. The cost is proportional to the command.
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
                self.check_answers(&item)?;
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
                let own =
                    |chunk: &&NewChunk| chunk_type::MARKERS.contains(&chunk.chunk_type.as_str());
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
                order::check_call(active, step, &tool_call_id)?;
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
            Command::AddPart { part } => self.add_part(part),
            Command::Note { note } => {
                let (active, step) = self.step()?;
                let kind = chunk_type::STEP_NOTED;
                Ok(vec![marker(active, step, kind, Some(note))])
            }
            Command::ResetStep => {
                let (active, step) = self.step()?;
                Ok(vec![marker(active, step, chunk_type::STEP_RESET, None)])
            }
            Command::Resume => {
                let (active, step) = self.step()?;
                let kind = chunk_type::EXECUTION_RESUMED;
                Ok(vec![marker(active, step, kind, None)])
            }
            Command::Park => {
                let (active, step) = self.step()?;
                let kind = chunk_type::EXECUTION_PARKED;
                Ok(vec![marker(active, step, kind, None)])
            }
            Command::CompleteStep { outcome, next } => {
                order::check_step(self.step()?.1, &outcome, next.is_some())?;
                self.complete_step(outcome, next, at)
            }
            Command::ImportStep { outcome, next } => self.complete_step(outcome, next, at),
            Command::End { ending } => self.end(ending),
            Command::Update { title, metadata } => self.update(&ThreadUpdate { title, metadata }),
            Command::Remove { what } => self.remove(what),
            Command::Compact { compaction } => self.compact(&compaction),
            Command::Close => self.close(),
            Command::Reopen => {
                let (thread, _) = self.existing()?;
                self.idle()?;
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

    /// Rejects a command that requires that no execution runs.
    fn idle(&self) -> Result<(), Rejected> {
        self.active.as_ref().map_or(Ok(()), |active| {
            Err(Rejected::Busy(active.execution.id.clone()))
        })
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
        self.idle()?;
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
                self.check_answers(&item)?;
                let item = stored(item, None, at)?;
                let id = item.id.clone();
                events.push(Event::ItemCreated { item });
                (id, run)
            }
            Trigger::Waiting => {
                let waiting = self.waiting.front().ok_or(Rejected::NothingWaits)?;
                let run = run.unwrap_or_else(|| waiting.run.clone());
                (waiting.item.id.clone(), Some(run))
            }
        };
        events.extend(streaming(thread)?);
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
            item: reaction(&reaction_item_id, &execution_id, at),
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

    fn add_part(&self, part: Payload) -> Result<Vec<Event>, Rejected> {
        let (_, step) = self.step()?;
        let idx = u32::try_from(step.parts.len()).unwrap_or(u32::MAX);
        self.put_part(idx, part)
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
                error_text: interruption.as_ref().map(reason_text),
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
        self.idle()?;
        if thread.status.is_final() {
            // It is that it is closed, and not that it can't stream on its way there.
            thread.status.transition(ThreadStatus::Closed)?;
        }
        let mut events = streaming(thread)?;
        events.push(context_moved(context, ContextStatus::Closed)?);
        events.push(thread_moved(
            thread,
            ThreadStatus::Streaming,
            ThreadStatus::Closed,
        )?);
        Ok(events)
    }
}

#[cfg(test)]
mod tests;
