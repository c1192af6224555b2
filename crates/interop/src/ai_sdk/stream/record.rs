//! From one record of a log to the chunks that it is.

use super::{Beside, ChunkJson, StreamView, Then};
use timeline::{Event, Record, StepStatus};

/// The chunks that one record of the log is to a reader.
///
/// A dead attempt is taken back with `reset-step`, which clients have from `ai` 7 on; for older
/// ones its open blocks are ended and what it said stays.
pub fn chunks(record: &Record, view: &mut StreamView) -> Vec<ChunkJson> {
    let mut done = false;
    match &record.event {
        Event::ExecutionCreated { execution } => {
            let wanted = view
                .trigger
                .as_ref()
                .is_none_or(|id| *id == execution.trigger_item_id);
            if view.execution.is_none()
                && let Some(answers) = view.goes_on_with(&execution.trigger_item_id)
            {
                // It is the next one that begins.
                view.then = Then::Ends;
                view.answers = answers;
                view.told.goes_on(execution);
                view.execution = Some(execution.id.clone());
            } else if view.execution.is_none() && wanted && view.then == Then::Ends {
                view.execution = Some(execution.id.clone());
                let own = execution.reaction_item_id.to_string();
                let id = view.message_id.clone().unwrap_or(own);
                view.answers = view.message_id.is_some();
                // The first one it meets may be one of those that go on; it does not begin again.
                view.begun(&execution.trigger_item_id);
                view.told.goes_on(execution);
                view.started(&id, execution.created_at);
                view.message_id = Some(id);
            }
        }
        Event::StepCreated { step } if view.is_execution(&step.execution_id) => {
            view.step_started(&step.id, step.iteration);
        }
        Event::StepStatusChanged { step_id, to, .. }
            if view.is_step(step_id) && *to == StepStatus::Completed =>
        {
            view.step_completed();
        }
        Event::PartCreated {
            step_id, idx, part, ..
        } if view.is_step(step_id) => {
            view.part_created(*idx, part);
        }
        Event::PartUpdated { step_id, part, .. } if view.is_step(step_id) => {
            view.part_updated(part);
        }
        Event::ChunkEmitted {
            chunk_type,
            execution_id: Some(id),
            data,
            ..
        } if view.is_execution(id) => {
            view.emitted(chunk_type, data.as_ref());
        }
        Event::ExecutionStatusChanged {
            execution_id,
            to,
            interruption,
            ..
        } if view.is_execution(execution_id) => {
            view.ended(*to, interruption.as_ref(), record.at);
        }
        Event::ThreadFinished { execution_id, .. } if view.is_execution(execution_id) => {
            done = !view.goes_on_after();
            if !done {
                view.pass();
            }
        }
        Event::ChunkEmitted {
            chunk_type,
            execution_id: None,
            data,
            ..
        } if view.beside == Beside::Thread && view.execution.is_some() => {
            view.marked(chunk_type, data.as_ref());
        }
        Event::ItemCreated { item }
            if view.beside == Beside::Thread && view.execution.is_some() =>
        {
            view.happened(item);
        }
        Event::StepCreated { .. }
        | Event::StepStatusChanged { .. }
        | Event::PartCreated { .. }
        | Event::PartUpdated { .. }
        | Event::ChunkEmitted { .. }
        | Event::ExecutionStatusChanged { .. }
        | Event::ThreadFinished { .. }
        | Event::ContextCreated { .. }
        | Event::ContextResolved { .. }
        | Event::ContextStatusChanged { .. }
        | Event::ThreadCreated { .. }
        | Event::ThreadResolved { .. }
        | Event::ThreadStatusChanged { .. }
        | Event::ItemCreated { .. }
        | Event::ItemStatusChanged { .. } => {}
    }
    let chunks = view.take().into_iter().map(ChunkJson::Chunk);
    chunks.chain(done.then_some(ChunkJson::Done)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;
    use timeline::{Execution, ExecutionResult, ExecutionStatus, Seq};

    /// What a view is told of an execution from its beginning to its end.
    fn ran(view: &mut StreamView, execution: &str, trigger: &str) -> Vec<ChunkJson> {
        let created = Event::ExecutionCreated {
            execution: Execution {
                id: execution.into(),
                thread_id: "t".into(),
                context_id: "c".into(),
                trigger_item_id: trigger.into(),
                reaction_item_id: "r".into(),
                workflow_run_id: None,
                status: ExecutionStatus::Executing,
                created_at: Timestamp::UNIX_EPOCH,
                updated_at: None,
                interruption: None,
                run: None,
            },
        };
        let finished = Event::ThreadFinished {
            thread_id: "t".into(),
            context_id: "c".into(),
            execution_id: execution.into(),
            result: ExecutionResult::Completed,
        };
        let records = [created, finished].into_iter().map(|event| Record {
            seq: Seq(1),
            at: Timestamp::UNIX_EPOCH,
            event,
        });
        records.flat_map(|record| chunks(&record, view)).collect()
    }

    #[test]
    fn the_first_execution_is_not_waited_for_again_where_it_is_one_of_those_that_go_on() {
        let view = || StreamView::new(6).then_answering(["one".into(), "two".into()]);
        let mut first = view();
        assert!(!ran(&mut first, "a", "one").contains(&ChunkJson::Done));
        assert!(ran(&mut first, "b", "two").contains(&ChunkJson::Done));
        let mut another = view();
        for (execution, trigger) in [("a", "another"), ("b", "one")] {
            assert!(!ran(&mut another, execution, trigger).contains(&ChunkJson::Done));
        }
        assert!(ran(&mut another, "c", "two").contains(&ChunkJson::Done));
    }
}
