//! Records of one append: applied to a state, and with their positions.

use jiff::Timestamp;
use std::sync::Arc;
use store::{Logged, NewRecord};
use timeline::{Command, Event, ExecutionId, Seq, State, StepId, chunk_type};

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

/// The step whose chunks an event voids.
pub(super) fn resets(event: &Event) -> Option<&StepId> {
    let Event::ChunkEmitted {
        chunk_type,
        step_id,
        ..
    } = event
    else {
        return None;
    };
    step_id
        .as_ref()
        .filter(|_| chunk_type == chunk_type::STEP_RESET)
}

/// Commands that void the running step before anything else changes; a process that takes up the
/// execution records that first.
pub(super) fn with_reset(
    commands: impl IntoIterator<Item = (Option<Timestamp>, Command)>,
) -> Vec<(Option<Timestamp>, Command)> {
    let mut commands: Vec<_> = commands.into_iter().collect();
    let has_reset = commands.iter().any(|(_, it)| *it == Command::ResetStep);
    if let Some((_, first)) = commands.first().filter(|_| !has_reset) {
        let place = usize::from(*first == Command::Resume);
        commands.insert(place, (None, Command::ResetStep));
    }
    commands
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
