//! The response to a request that starts a run.

use crate::error::ApiError;
use crate::routes::threads_api::stream::RunView;
use crate::state::OpenStream;
use crate::threads::ThreadRef;
use axum::Json;
use axum::response::{IntoResponse, Response};
use interop::threads::{RunObject, RunStream, ThreadObject};
use runtime::{Accepted, RuntimeError, StoreError};

/// Number of records per page in the search for a started run.
const PAGE: usize = 256;

/// The response for a started run; `object` is the thread that was created for it.
pub(super) async fn run_events(
    found: &ThreadRef,
    object: Option<ThreadObject>,
    (accepted, open): (Accepted, Option<OpenStream>),
) -> Result<Response, ApiError> {
    let mut stream = RunStream::answering(found.id().as_str(), accepted.item_id.clone());
    if let Some(open) = open {
        if let Some(object) = object {
            stream = stream.with_thread(object);
        }
        let view = RunView(stream);
        return view.response(found, accepted.after, open).await;
    }
    let run = begun(found, &accepted, stream).await?;
    Ok(Json(run).into_response())
}

/// The started run, in its first state.
async fn begun(
    found: &ThreadRef,
    accepted: &Accepted,
    mut stream: RunStream,
) -> Result<RunObject, ApiError> {
    let (mut after, mut unread) = (accepted.after, String::new());
    loop {
        let page = found.read(after, PAGE).await?;
        let Some(last) = page.last() else {
            return Err(RuntimeError::Store(StoreError::NotFound).into());
        };
        after = last.record.seq;
        for logged in &page {
            unread.clear();
            let _ = stream.write(&logged.record, &mut unread);
            if let Some(run) = stream.run() {
                return Ok(run.as_queued());
            }
        }
    }
}
