//! Checks a stream of events against the state machines (EK §8.2), across events.

use crate::entity::Step;
use crate::event::{Event, ExecutionResult, Record, chunk_type};
use crate::ids::{ExecutionId, PartKey, Seq, StepId};
use crate::status::{ExecutionStatus, IllegalTransition, Machine};
use std::collections::BTreeMap;

/// An error in a stream of events, with its position.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Misfit {
    /// A number is missing or repeated.
    #[error("event {found} follows event {after}")]
    Sequence {
        /// The one before.
        after: Seq,
        /// The number found.
        found: Seq,
    },
    /// A transition that no table allows.
    #[error("event {seq}: {cause}")]
    Transition {
        /// The event's position.
        seq: Seq,
        /// The transition.
        cause: IllegalTransition,
    },
    /// A transition whose start is not the current status.
    #[error("event {seq}: the status of {id} is {current}, expected {from}")]
    Discontinuous {
        /// The event's position.
        seq: Seq,
        /// The id of the entity.
        id: String,
        /// The current status.
        current: &'static str,
        /// The start status in the event.
        from: &'static str,
    },
    /// Something that was not made before.
    #[error("event {seq}: {id} was never created")]
    Unknown {
        /// The event's position.
        seq: Seq,
        /// The id of the entity.
        id: String,
    },
    /// Something was made twice.
    #[error("event {seq}: {id} was created before")]
    Twice {
        /// The event's position.
        seq: Seq,
        /// The id of the entity.
        id: String,
    },
    /// An execution or step starts while another is running, or an execution ends while its step is
    /// running.
    #[error("event {seq}: {running} is still running")]
    Running {
        /// The event's position.
        seq: Seq,
        /// The id of the running execution or step.
        running: String,
    },
    /// An event of an execution or a step that does not run.
    #[error("event {seq}: {id} is not running")]
    NotRunning {
        /// The event's position.
        seq: Seq,
        /// The id of the execution or step.
        id: String,
    },
    /// A step whose iteration is not the next one of its execution.
    #[error("event {seq}: the step has iteration {found}, expected {expected}")]
    Iteration {
        /// The event's position.
        seq: Seq,
        /// The iteration in the event.
        found: u32,
        /// The number of the execution's steps so far.
        expected: u32,
    },
    /// A part that is not the next one of its step, or a change of a part that the step does not have.
    #[error("event {seq}: the part {key} does not fit a step of {n_parts} parts")]
    Part {
        /// The event's position.
        seq: Seq,
        /// The key of the part.
        key: String,
        /// The number of the step's parts.
        n_parts: u32,
    },
    /// A marker that belongs to a step but names none, or the opposite.
    #[error("event {seq}: the marker {chunk_type} is misplaced")]
    Marker {
        /// The event's position.
        seq: Seq,
        /// The type of the marker.
        chunk_type: String,
    },
    /// A second response to one attempt of a step.
    #[error("event {seq}: {step_id} has a response")]
    Responded {
        /// The event's position.
        seq: Seq,
        /// The step.
        step_id: StepId,
    },
    /// A run that ends with another result than its execution.
    #[error("event {seq}: the result of {execution_id} is not its status")]
    Result {
        /// The event's position.
        seq: Seq,
        /// The execution.
        execution_id: ExecutionId,
    },
    /// An event with a provisional id is not a chunk.
    #[error("the provisional event {after}.{count} is not a chunk")]
    NotAChunk {
        /// The last event with a number.
        after: Seq,
        /// How many provisional events followed it.
        count: u64,
    },
}

/// Checks a whole log from its first event.
///
/// # Errors
///
/// The first misfit.
pub fn verify<'a>(records: impl IntoIterator<Item = &'a Record>) -> Result<(), Misfit> {
    let mut verifier = Verifier::default();
    records
        .into_iter()
        .try_for_each(|record| verifier.check(record))
}

/// The running step.
#[derive(Clone, Debug)]
struct RunningStep {
    id: StepId,
    n_parts: u32,
    has_responded: bool,
}

/// Checks a stream event by event, from the first event of its log.
///
/// Numbers have no gaps. Entities are created once, before their transitions, and every transition is
/// legal and continuous. One execution runs at a time, and one step of it. Parts, chunks and markers
/// belong to the running step, parts in order. A reset voids the parts of its step.
#[derive(Clone, Debug, Default)]
pub struct Verifier {
    last: Seq,
    /// The number of events with provisional ids since the last one with a number.
    n_provisional: u64,
    statuses: BTreeMap<String, &'static str>,
    execution: Option<ExecutionId>,
    n_steps: u32,
    step: Option<RunningStep>,
}

impl Verifier {
    /// The number of the last event.
    pub fn last(&self) -> Seq {
        self.last
    }

    /// Checks the next event of the log.
    ///
    /// Numbers may be missing where events with provisional ids were seen: these are then their numbers.
    ///
    /// # Errors
    ///
    /// The rule that the event breaks.
    pub fn check(&mut self, record: &Record) -> Result<(), Misfit> {
        let (after, found) = (self.last, record.seq);
        let n_missing = found.0.checked_sub(after.next().0);
        if n_missing.is_none_or(|missing| missing > self.n_provisional) {
            return Err(Misfit::Sequence { after, found });
        }
        self.last = found;
        self.n_provisional = 0;
        self.event(&record.event)
    }

    /// Checks an event that was sent before it was committed. Its id counts up after the last number:
    /// `after` and `count`.
    ///
    /// # Errors
    ///
    /// The rule that the event breaks.
    pub fn check_provisional(
        &mut self,
        after: Seq,
        count: u64,
        event: &Event,
    ) -> Result<(), Misfit> {
        if after != self.last || count != self.n_provisional + 1 {
            return Err(Misfit::Sequence {
                after: self.last,
                found: after,
            });
        }
        if !matches!(event, Event::ChunkEmitted { .. }) {
            return Err(Misfit::NotAChunk { after, count });
        }
        self.n_provisional = count;
        self.event(event)
    }

    fn event(&mut self, event: &Event) -> Result<(), Misfit> {
        match event {
            Event::ThreadCreated { thread } => {
                // A fork begins within its parent's log, whatever runs there.
                self.execution = None;
                self.step = None;
                self.made(thread.id.as_str(), thread.status)
            }
            Event::ContextCreated { context } => self.made(context.id.as_str(), context.status),
            Event::ItemCreated { item } => self.made(item.id.as_str(), item.status),
            Event::ExecutionCreated { execution } => {
                self.idle()?;
                self.known(execution.trigger_item_id.as_str())?;
                self.known(execution.context_id.as_str())?;
                self.made(execution.id.as_str(), execution.status)?;
                self.execution = Some(execution.id.clone());
                self.n_steps = 0;
                Ok(())
            }
            Event::StepCreated { step } => self.step_created(step),
            Event::ThreadStatusChanged {
                thread_id,
                from,
                to,
            } => self.moved(thread_id.as_str(), *from, *to),
            Event::ContextStatusChanged {
                context_id,
                from,
                to,
            } => self.moved(context_id.as_str(), *from, *to),
            Event::ItemStatusChanged { item_id, from, to } => {
                self.moved(item_id.as_str(), *from, *to)
            }
            Event::ExecutionStatusChanged {
                execution_id,
                from,
                to,
                ..
            } => {
                self.moved(execution_id.as_str(), *from, *to)?;
                self.running(execution_id)?;
                self.stepless()?;
                self.execution = None;
                Ok(())
            }
            Event::StepStatusChanged {
                step_id, from, to, ..
            } => {
                self.moved(step_id.as_str(), *from, *to)?;
                self.step(step_id)?;
                self.step = None;
                Ok(())
            }
            Event::ThreadResolved { thread_id } => self.known(thread_id.as_str()),
            Event::ContextResolved { context_id } => self.known(context_id.as_str()),
            Event::PartCreated {
                part_key,
                step_id,
                idx,
                ..
            } => self.part(part_key, step_id, *idx, true),
            Event::PartUpdated {
                part_key,
                step_id,
                idx,
                ..
            } => self.part(part_key, step_id, *idx, false),
            Event::ChunkEmitted {
                chunk_type,
                context_id,
                execution_id,
                step_id,
                ..
            } => {
                self.known(context_id.as_str())?;
                if let Some(execution_id) = execution_id {
                    self.running(execution_id)?;
                }
                self.chunk(chunk_type, step_id.as_ref())
            }
            Event::ThreadFinished {
                execution_id,
                result,
                ..
            } => self.finished(execution_id, *result),
        }
    }

    fn step_created(&mut self, step: &Step) -> Result<(), Misfit> {
        self.running(&step.execution_id)?;
        self.stepless()?;
        if step.iteration != self.n_steps {
            return Err(Misfit::Iteration {
                seq: self.last,
                found: step.iteration,
                expected: self.n_steps,
            });
        }
        self.made(step.id.as_str(), step.status)?;
        self.n_steps = self.n_steps.saturating_add(1);
        self.step = Some(RunningStep {
            id: step.id.clone(),
            n_parts: 0,
            has_responded: false,
        });
        Ok(())
    }

    fn part(&mut self, key: &str, step_id: &StepId, idx: u32, is_new: bool) -> Result<(), Misfit> {
        let seq = self.last;
        let step = self.step(step_id)?;
        let expected = PartKey {
            step_id: step_id.clone(),
            idx,
        };
        let fits = if is_new {
            idx == step.n_parts
        } else {
            idx < step.n_parts
        };
        if !fits || key != expected.to_string() {
            return Err(Misfit::Part {
                seq,
                key: key.to_owned(),
                n_parts: step.n_parts,
            });
        }
        step.n_parts = step.n_parts.max(idx.saturating_add(1));
        Ok(())
    }

    fn chunk(&mut self, kind: &str, step_id: Option<&StepId>) -> Result<(), Misfit> {
        let seq = self.last;
        let is_of_thread = chunk_type::OF_THREAD.contains(&kind);
        let is_marker = chunk_type::MARKERS.contains(&kind);
        let Some(step_id) = step_id.filter(|_| !is_of_thread) else {
            let is_misplaced = is_marker && (!is_of_thread || step_id.is_some());
            return if is_misplaced {
                Err(Misfit::Marker {
                    seq,
                    chunk_type: kind.to_owned(),
                })
            } else {
                Ok(())
            };
        };
        let step = self.step(step_id)?;
        match kind {
            chunk_type::STEP_RESPONSE if step.has_responded => {
                let step_id = step_id.clone();
                return Err(Misfit::Responded { seq, step_id });
            }
            chunk_type::STEP_RESPONSE => step.has_responded = true,
            chunk_type::STEP_RESET => {
                step.n_parts = 0;
                step.has_responded = false;
            }
            _ => {}
        }
        Ok(())
    }

    fn finished(&self, execution_id: &ExecutionId, result: ExecutionResult) -> Result<(), Misfit> {
        self.idle()?;
        self.known(execution_id.as_str())?;
        let status = match result {
            ExecutionResult::Completed => ExecutionStatus::Completed,
            ExecutionResult::Failed => ExecutionStatus::Failed,
        };
        if self.statuses.get(execution_id.as_str()) == Some(&status.name()) {
            return Ok(());
        }
        Err(Misfit::Result {
            seq: self.last,
            execution_id: execution_id.clone(),
        })
    }

    /// Fails if an execution is running.
    fn idle(&self) -> Result<(), Misfit> {
        let running = self.execution.as_ref();
        running.map_or(Ok(()), |running| {
            Err(Misfit::Running {
                seq: self.last,
                running: running.to_string(),
            })
        })
    }

    /// Fails if a step is running.
    fn stepless(&self) -> Result<(), Misfit> {
        self.step.as_ref().map_or(Ok(()), |step| {
            Err(Misfit::Running {
                seq: self.last,
                running: step.id.to_string(),
            })
        })
    }

    /// Refuses an event of an execution that does not run.
    fn running(&self, id: &ExecutionId) -> Result<(), Misfit> {
        if self.execution.as_ref() == Some(id) {
            return Ok(());
        }
        self.known(id.as_str())?;
        Err(Misfit::NotRunning {
            seq: self.last,
            id: id.to_string(),
        })
    }

    /// The running step, if it is this one.
    fn step(&mut self, id: &StepId) -> Result<&mut RunningStep, Misfit> {
        self.known(id.as_str())?;
        let seq = self.last;
        let step = self.step.as_mut().filter(|step| step.id == *id);
        step.ok_or_else(|| Misfit::NotRunning {
            seq,
            id: id.to_string(),
        })
    }

    fn made<S: Machine>(&mut self, id: &str, status: S) -> Result<(), Misfit> {
        if self.statuses.insert(id.to_owned(), status.name()).is_some() {
            return Err(Misfit::Twice {
                seq: self.last,
                id: id.to_owned(),
            });
        }
        Ok(())
    }

    fn known(&self, id: &str) -> Result<(), Misfit> {
        if self.statuses.contains_key(id) {
            return Ok(());
        }
        Err(Misfit::Unknown {
            seq: self.last,
            id: id.to_owned(),
        })
    }

    fn moved<S: Machine>(&mut self, id: &str, from: S, to: S) -> Result<(), Misfit> {
        let seq = self.last;
        from.transition(to)
            .map_err(|cause| Misfit::Transition { seq, cause })?;
        match self.statuses.get_mut(id) {
            None => Err(Misfit::Unknown {
                seq,
                id: id.to_owned(),
            }),
            Some(current) if *current != from.name() => Err(Misfit::Discontinuous {
                seq,
                id: id.to_owned(),
                current,
                from: from.name(),
            }),
            Some(current) => {
                *current = to.name();
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests;
