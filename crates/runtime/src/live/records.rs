//! Records of one append: applied to a state, and with their positions.

use std::sync::Arc;
use store::{Logged, NewRecord};
use timeline::{Event, ExecutionId, Seq, State, StepId};

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

/// The execution that an event starts.
pub(super) fn started(event: &Event) -> Option<&ExecutionId> {
    if let Event::ExecutionCreated { execution } = event {
        return Some(&execution.id);
    }
    None
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
