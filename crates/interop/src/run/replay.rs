//! From a transcript to the events of one run.

use super::event::RunEvent;
use super::fold::{RunFold, StepFold};
use crate::parts::StepResponse;
use jiff::Timestamp;
use timeline::{Chunk, Execution, ExecutionStatus, Marker, Reaction, StepRecord, StepStatus};

/// The events of the run that consists of these executions, in order, each with its time.
///
/// If the transcript has the model's answer, the text comes from the stored parts alone. A view
/// ends in the same state with these events as with those of the log. `with_blocks` makes each text
/// a block, as a fold with blocks does.
pub fn replay<'t>(
    executions: impl IntoIterator<Item = &'t Reaction>,
    with_blocks: bool,
) -> impl Iterator<Item = (Timestamp, RunEvent<'t>)> {
    let mut fold = if with_blocks {
        StepFold::default().with_blocks()
    } else {
        StepFold::default()
    };
    let mut executions = executions.into_iter().peekable();
    let mut is_first = true;
    std::iter::from_fn(move || {
        let reaction = executions.next()?;
        let is_first = std::mem::take(&mut is_first);
        let is_last = executions.peek().is_none();
        Some(replay_execution(reaction, (is_first, is_last), &mut fold))
    })
    .flatten()
}

/// The events of a run up to now, and the fold for the records that follow the transcript. The fold
/// has blocks.
///
/// The last execution may have ended: then the fold continues with the next execution after
/// [`RunFold::await_next`].
pub fn resume<'t>(executions: &[&'t Reaction]) -> (RunFold, Vec<(Timestamp, RunEvent<'t>)>) {
    let mut steps = StepFold::default().with_blocks();
    let mut out = Vec::new();
    for (index, &reaction) in executions.iter().enumerate() {
        let place = (index == 0, index + 1 == executions.len());
        out.extend(replay_execution(reaction, place, &mut steps));
    }
    let last = executions.last();
    let step = last.and_then(|last| last.steps.last());
    let fold = RunFold::resumed(
        last.map(|last| last.execution.id.clone()),
        step.map(|step| step.step.id.clone()),
        steps,
    );
    (fold, out)
}

fn replay_execution<'t>(
    reaction: &'t Reaction,
    (is_first, is_last): (bool, bool),
    fold: &mut StepFold,
) -> Vec<(Timestamp, RunEvent<'t>)> {
    let mut out = Vec::new();
    let answers = acts_on_answers(reaction);
    fold.execution(answers);
    let (execution, at) = (&reaction.execution, reaction.execution.created_at);
    out.push((at, begin(execution, is_first, answers)));
    for step in &reaction.steps {
        replay_step(step, fold, &mut out);
    }
    end(reaction, is_last, &mut out);
    out
}

fn begin(execution: &Execution, is_first: bool, answers: bool) -> RunEvent<'_> {
    if is_first {
        RunEvent::Started { execution }
    } else {
        RunEvent::Continued { execution, answers }
    }
}

/// Whether an execution acts on answers to calls; its first step then called no model.
fn acts_on_answers(reaction: &Reaction) -> bool {
    let first = reaction
        .steps
        .first()
        .and_then(|step| step.response.as_ref());
    let response: Option<StepResponse> = first.and_then(|(response, _)| response.read().ok());
    response.is_some_and(|response| response.answers)
}

fn replay_step<'t>(
    record: &'t StepRecord,
    fold: &mut StepFold,
    out: &mut Vec<(Timestamp, RunEvent<'t>)>,
) {
    let step = &record.step;
    let mut put = |at: Timestamp, events: Vec<RunEvent<'t>>| {
        out.extend(events.into_iter().map(|event| (at, event)));
    };
    let mut events = Vec::new();
    fold.start(step, &mut events);
    if record.response.is_none() {
        for (chunk_type, data) in &record.chunks {
            fold.chunk(Chunk::decode(chunk_type, data.as_ref()), &mut events);
        }
    }
    put(step.created_at, std::mem::take(&mut events));
    for (idx, part) in (0..).zip(&record.parts) {
        fold.part(idx, &part.part, true, &mut events);
        put(part.updated_at, std::mem::take(&mut events));
    }
    if let Some((response, at)) = &record.response {
        fold.marker(Marker::StepResponse(Some(response)), &mut events);
        put(*at, std::mem::take(&mut events));
    }
    if step.status != StepStatus::Running {
        fold.end(&step.id, step.status, &step.outcome, &mut events);
        put(record.ended_at.unwrap_or(step.created_at), events);
    }
}

fn end<'t>(reaction: &'t Reaction, is_last: bool, out: &mut Vec<(Timestamp, RunEvent<'t>)>) {
    let execution = &reaction.execution;
    let Some(at) = reaction.ended_at else { return };
    if execution.status == ExecutionStatus::Executing {
        return;
    }
    let ended = RunEvent::ExecutionEnded {
        execution_id: &execution.id,
        status: execution.status,
        interruption: execution.interruption.as_ref(),
        is_last,
    };
    out.push((at, ended));
    let over = if is_last {
        RunEvent::Ended
    } else {
        RunEvent::ContinuationPending
    };
    out.push((at, over));
}
