//! Records of one append: applied to a state, and with their positions.

use crate::planted::{self, Bug};
use std::sync::Arc;
use store::{Logged, NewRecord, NodeId, Ownership};
use timeline::{Event, Seq, State, StepId, chunk_type};

pub(super) fn apply<'a>(state: &mut State, records: impl IntoIterator<Item = &'a NewRecord>) {
    for record in records {
        state.apply(record.event());
    }
}

/// The step that an event creates.
pub(super) fn created(event: &Event) -> Option<&StepId> {
    if let Event::StepCreated { step } = event {
        return Some(&step.id);
    }
    None
}

/// The step whose chunks an event voids.
pub(super) fn resets(event: &Event) -> Option<&StepId> {
    marked(event, chunk_type::STEP_RESET)
}

/// The step with this marker.
fn marked<'a>(event: &'a Event, marker: &str) -> Option<&'a StepId> {
    let Event::ChunkEmitted {
        chunk_type,
        step_id,
        ..
    } = event
    else {
        return None;
    };
    step_id.as_ref().filter(|_| chunk_type == marker)
}

/// The effect of records on the run of their thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RunChange {
    /// Nothing.
    None,
    /// They start or resume an execution, and no later one ends it.
    Starts,
    /// They end the execution, or release it in order.
    Ends,
}

impl RunChange {
    pub(super) fn of(records: &[NewRecord]) -> Self {
        let changes = records.iter().rev().map(|record| Self::by(record.event()));
        let mut changes = changes.filter(|change| *change != Self::None);
        changes.next().unwrap_or(Self::None)
    }

    fn by(event: &Event) -> Self {
        let is_marked = |marker| marked(event, marker).is_some();
        if matches!(event, Event::ExecutionCreated { .. })
            || is_marked(chunk_type::EXECUTION_RESUMED)
        {
            Self::Starts
        } else if matches!(event, Event::ExecutionStatusChanged { .. })
            || is_marked(chunk_type::EXECUTION_PARKED)
        {
            Self::Ends
        } else {
            Self::None
        }
    }

    /// The change of ownership, for a node that `owns` the run and leaves this state.
    pub(super) fn ownership(self, owns: bool, after: &State, node: NodeId) -> Ownership {
        match self {
            Self::Starts if owns => Ownership::Keep,
            Self::Starts => Ownership::Take(node),
            Self::None => Ownership::Keep,
            Self::Ends if planted::has(Bug::RestsWithWork) => Ownership::Rest,
            Self::Ends if after.active().is_some() || after.waiting().len() > 0 => Ownership::Offer,
            Self::Ends => Ownership::Rest,
        }
    }
}

pub(super) fn logged(first: Seq, records: Vec<NewRecord>) -> Vec<Arc<Logged>> {
    let mut seq = first;
    records
        .into_iter()
        .map(|new| {
            seq = seq.next();
            Arc::new(new.logged(seq))
        })
        .collect()
}
