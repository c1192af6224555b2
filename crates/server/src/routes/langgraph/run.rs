//! A run of a thread, found by its id.

use super::index;
use crate::error::ApiError;
use crate::threads::ThreadRef;
use interop::langgraph::{RequestError, RunRecord, is_pending, uuid_of};
use runtime::{Filter, Landmark, PageRequest, Position, RuntimeError};
use timeline::{ExecutionId, Seq};

/// Number of messages read at once to list runs.
const PAGE: usize = 50;

/// A run, and the position to follow it from.
pub(super) struct Run {
    pub(super) record: RunRecord,
    /// The last event before its own.
    pub(super) after: Seq,
}

impl Run {
    /// The run with this id. A copied thread has no runs of its original. Costs time proportional to the
    /// run.
    pub(super) async fn find(found: &ThreadRef, id: &str) -> Result<Self, ApiError> {
        let Some(wanted) = uuid_of(id) else {
            return Err(RequestError::at("/run_id", "expected a UUID").into());
        };
        let missing = || RequestError::no_run(id);
        // It may begin between the two looks.
        let (state, tail) = found.state().await?;
        let waiting = state.waiting().find(|it| is_pending(&it.run, &wanted));
        if let Some(waiting) = waiting
            && let Some(record) = RunRecord::waiting((&waiting.item, &waiting.run))
        {
            return Ok(Self {
                record,
                after: tail,
            });
        }
        let execution = ExecutionId::from(wanted.as_str());
        let place = own_place(found, &execution).await?.ok_or_else(missing)?;
        let page = PageRequest::Execution(execution.clone());
        let piece = match found.page(page, Filter::Facts).await {
            Err(RuntimeError::UnknownExecution(_)) => return Err(missing().into()),
            piece => piece?,
        };
        let mut runs = RunRecord::all(&piece.transcript).into_iter();
        let record = runs.find(|run| run.id == execution).ok_or_else(missing)?;
        if is_deleted(found, &record).await? {
            return Err(missing().into());
        }
        Ok(Self {
            record,
            after: Seq(place.0.saturating_sub(1)),
        })
    }
}

/// Whether a client has deleted the run.
async fn is_deleted(found: &ThreadRef, run: &RunRecord) -> Result<bool, ApiError> {
    let noted = index::noted(found.runtime(), found.tenant(), run.id.as_str());
    Ok(noted.await?.is_some_and(|noted| noted.is_deleted))
}

/// The position of an execution's first event in the thread's own log.
async fn own_place(found: &ThreadRef, execution: &ExecutionId) -> Result<Option<Seq>, ApiError> {
    let store = found.runtime().store();
    let landmark = Landmark::Execution(execution);
    Ok(store.position_of(found.id(), landmark).await?)
}

/// Passes the runs of a thread to `take`, newest first, until it returns false. A started run comes with
/// its position. Costs time proportional to the runs passed.
pub(super) async fn newest_first(
    found: &ThreadRef,
    mut take: impl FnMut(RunRecord, Option<Seq>) -> bool,
) -> Result<(), ApiError> {
    let (state, _) = found.state().await?;
    let waiting: Vec<RunRecord> = state
        .waiting()
        .filter_map(|it| RunRecord::waiting((&it.item, &it.run)))
        .collect();
    for record in waiting.into_iter().rev() {
        if !take(record, None) {
            return Ok(());
        }
    }
    let mut before = Position::END;
    loop {
        let page = PageRequest::Before { before, n: PAGE };
        let piece = found.page(page, Filter::Facts).await?;
        for record in RunRecord::all(&piece.transcript).into_iter().rev() {
            let Some(place) = own_place(found, &record.id).await? else {
                return Ok(());
            };
            if is_deleted(found, &record).await? {
                continue;
            }
            if !take(record, Some(place)) {
                return Ok(());
            }
        }
        if !piece.more || piece.first >= before {
            return Ok(());
        }
        before = piece.first;
    }
}
