//! Holding a stream of events against the state machines (EK §8.2), across events.

use crate::event::{Event, Record};
use crate::ids::Seq;
use crate::status::{IllegalTransition, Machine};
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
}

/// Checks a whole log from its first event: numbers without gaps, entities created once and before
/// their transitions, and every transition legal and continuous.
pub fn verify<'a>(records: impl IntoIterator<Item = &'a Record>) -> Result<(), Misfit> {
    let mut standing = BTreeMap::new();
    let mut last = Seq::ZERO;
    for record in records {
        let seq = record.seq;
        if seq != last.next() {
            return Err(Misfit::Sequence {
                after: last,
                found: seq,
            });
        }
        last = seq;
        check(&mut standing, seq, &record.event)?;
    }
    Ok(())
}

fn check(
    standing: &mut BTreeMap<String, &'static str>,
    seq: Seq,
    event: &Event,
) -> Result<(), Misfit> {
    match event {
        Event::ThreadCreated { thread } => made(standing, seq, thread.id.as_str(), thread.status),
        Event::ContextCreated { context } => {
            made(standing, seq, context.id.as_str(), context.status)
        }
        Event::ExecutionCreated { execution } => {
            made(standing, seq, execution.id.as_str(), execution.status)
        }
        Event::ItemCreated { item } => made(standing, seq, item.id.as_str(), item.status),
        Event::StepCreated { step } => made(standing, seq, step.id.as_str(), step.status),
        Event::ThreadStatusChanged {
            thread_id,
            from,
            to,
        } => moved(standing, seq, thread_id.as_str(), *from, *to),
        Event::ContextStatusChanged {
            context_id,
            from,
            to,
        } => moved(standing, seq, context_id.as_str(), *from, *to),
        Event::ExecutionStatusChanged {
            execution_id,
            from,
            to,
            ..
        } => moved(standing, seq, execution_id.as_str(), *from, *to),
        Event::ItemStatusChanged { item_id, from, to } => {
            moved(standing, seq, item_id.as_str(), *from, *to)
        }
        Event::StepStatusChanged {
            step_id, from, to, ..
        } => moved(standing, seq, step_id.as_str(), *from, *to),
        Event::ThreadResolved { thread_id } => known(standing, seq, thread_id.as_str()),
        Event::ContextResolved { context_id } => known(standing, seq, context_id.as_str()),
        Event::PartCreated { step_id, .. } | Event::PartUpdated { step_id, .. } => {
            known(standing, seq, step_id.as_str())
        }
        Event::ThreadFinished { execution_id, .. } => known(standing, seq, execution_id.as_str()),
        Event::ChunkEmitted { .. } => Ok(()),
    }
}

fn made<S: Machine>(
    standing: &mut BTreeMap<String, &'static str>,
    seq: Seq,
    id: &str,
    status: S,
) -> Result<(), Misfit> {
    if standing.insert(id.to_owned(), status.name()).is_some() {
        return Err(Misfit::Twice {
            seq,
            id: id.to_owned(),
        });
    }
    Ok(())
}

fn known(standing: &BTreeMap<String, &'static str>, seq: Seq, id: &str) -> Result<(), Misfit> {
    if standing.contains_key(id) {
        Ok(())
    } else {
        Err(Misfit::Unknown {
            seq,
            id: id.to_owned(),
        })
    }
}

fn moved<S: Machine>(
    standing: &mut BTreeMap<String, &'static str>,
    seq: Seq,
    id: &str,
    from: S,
    to: S,
) -> Result<(), Misfit> {
    from.transition(to)
        .map_err(|cause| Misfit::Transition { seq, cause })?;
    match standing.get_mut(id) {
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
