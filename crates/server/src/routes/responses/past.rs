//! Responses that were made: whether there is one, and where it stands in its thread.

use crate::auth::Caller;
use crate::error::ApiError;
use crate::protocol::{key_of, thread_of};
use crate::state::Api;
use interop::ids::{THREAD, read_response_id};
use interop::responses::{ResponseOf, ResponseStream};
use runtime::objects::NewObject;
use runtime::{Landmark, Runtime, RuntimeError, StoreError, TenantId, ThreadRow};
use timeline::{Event, ExecutionId, Seq};

/// How many records are read at once.
const PAGE: usize = 512;
/// What says that a response was deleted whose thread goes on.
const DELETED: &str = "responses.deleted";

/// A response that is kept.
pub(super) struct Found {
    pub(super) row: ThreadRow,
    pub(super) key: String,
    /// Its first execution.
    pub(super) execution: ExecutionId,
}

/// A response as its thread's log has it.
pub(super) struct Standing {
    /// What its records have come to.
    pub(super) stream: ResponseStream,
    /// Its last event, if it is over.
    pub(super) end: Option<Seq>,
}

/// The response of this id; none where there is none that the caller may see.
pub(super) async fn find(api: &Api, caller: &Caller, id: &str) -> Result<Option<Found>, ApiError> {
    let Some((thread, execution)) = read_response_id(id) else {
        return Ok(None);
    };
    let Some(row) = thread_of(api, caller, THREAD, &thread).await? else {
        return Ok(None);
    };
    let objects = api.runtime().objects();
    if objects.get(&caller.tenant, DELETED, id).await?.is_some() {
        return Ok(None);
    }
    Ok(Some(Found {
        key: key_of(&row).to_owned(),
        execution: execution.as_str().into(),
        row,
    }))
}

/// Has a response be there no longer, while its thread goes on.
pub(super) async fn forget(api: &Api, tenant: &TenantId, id: &str) -> Result<(), ApiError> {
    let object = NewObject {
        kind: DELETED.to_owned(),
        id: id.to_owned(),
        created_at: jiff::Timestamp::now(),
        json: "{}".to_owned(),
        content: None,
    };
    Ok(api.runtime().objects().put(tenant, object).await?)
}

impl Found {
    /// Where it stands; none where its thread has no such execution. Costs what it has written.
    pub(super) async fn standing(
        &self,
        runtime: &Runtime,
    ) -> Result<Option<Standing>, RuntimeError> {
        let tenant = &self.row.tenant;
        let Some(after) = self.after(runtime).await? else {
            return Ok(None);
        };
        let mut standing = Standing {
            stream: ResponseStream::quiet(ResponseOf::Execution(self.execution.clone())),
            end: None,
        };
        let mut seen = after;
        loop {
            let page = runtime.read(tenant, &self.key, seen, PAGE).await?;
            let Some(last) = page.last() else {
                return Ok(Some(standing));
            };
            seen = last.record.seq;
            for logged in &page {
                standing.stream.apply(&logged.record, &mut String::new());
                if standing.stream.is_over()
                    && let Event::ThreadFinished { execution_id, .. } = &logged.record.event
                    && standing.stream.execution() == Some(execution_id)
                {
                    standing.end = Some(logged.record.seq);
                    return Ok(Some(standing));
                }
            }
        }
    }

    /// Whether its thread has gone on after this event.
    pub(super) async fn is_followed(
        &self,
        runtime: &Runtime,
        end: Seq,
    ) -> Result<bool, StoreError> {
        let next = runtime.store().run_after(&self.row.thread.id, end).await?;
        Ok(next.is_some())
    }

    /// The event before its first; none where its thread has no such execution.
    pub(super) async fn after(&self, runtime: &Runtime) -> Result<Option<Seq>, StoreError> {
        let landmark = Landmark::Execution(&self.execution);
        let place = runtime.store().place_of(&self.row.thread.id, landmark);
        let before = |first: Seq| Seq(first.0.saturating_sub(1));
        Ok(place.await?.map(before))
    }
}
