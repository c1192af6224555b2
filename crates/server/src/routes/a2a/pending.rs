//! The pending calls and open AITP requests of tasks.

use crate::aitp::open_questions;
use crate::error::ApiError;
use crate::routes::answers::left_by;
use crate::state::Api;
use crate::threads::ThreadRef;
use interop::a2a::{PendingCallView, PendingRequestView, TaskRun, TaskWait};
use interop::aitp::RequestQuestion;
use runtime::{Landmark, Pending};
use timeline::Seq;

/// The pending calls and open AITP requests of a task.
pub(super) async fn waiting(
    api: &Api,
    thread: &ThreadRef,
    run: &TaskRun<'_>,
) -> Result<TaskWait, ApiError> {
    let questions = questions(api, thread, run).await?;
    Ok(TaskWait {
        calls: calls(thread, run).await?,
        requests: questions.iter().map(PendingRequestView::of).collect(),
    })
}

/// The pending calls of a task. None if they are no longer pending; empty if only its sub-agents work.
async fn calls(
    thread: &ThreadRef,
    run: &TaskRun<'_>,
) -> Result<Option<Vec<PendingCallView>>, ApiError> {
    let Some(execution) = run.leaves_open() else {
        return Ok(None);
    };
    let pending = left_by(thread, execution).await?;
    let asked = |pending: Vec<Pending>| {
        let pending = pending.iter();
        let asked = pending.filter_map(|it| PendingCallView::of(&it.address.key, &it.call));
        asked.collect()
    };
    Ok(pending.map(asked))
}

/// The open AITP requests of a task. Empty while an execution of the task runs.
async fn questions(
    api: &Api,
    thread: &ThreadRef,
    run: &TaskRun<'_>,
) -> Result<Vec<RequestQuestion>, ApiError> {
    if !run.is_completed() || !run.may_ask() {
        return Ok(Vec::new());
    }
    let now = thread.find().await?;
    // What a fork has of its parent lies before its own log.
    let first = match run.begins_with() {
        Some(execution) => {
            let landmark = Landmark::Execution(execution);
            let store = now.runtime().store();
            store.position_of(now.id(), landmark).await?
        }
        None => None,
    };
    let first = first.map_or(Seq(0), |place| Seq(place.0));
    let open = open_questions(api, now.row(), first, |request| {
        let step = request.step_id.as_ref();
        step.is_some_and(|step| run.has_step(step))
    });
    Ok(open.await?)
}
