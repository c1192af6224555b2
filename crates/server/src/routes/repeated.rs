//! Requests that are repeated under their tokens.

use runtime::{Accepted, RequestToken, Runtime, RuntimeError};
use timeline::ThreadId;

/// What was answered to the request of this token on a thread, if it has one and was taken there.
pub(super) async fn accepted(
    runtime: &Runtime,
    thread: &ThreadId,
    token: Option<&RequestToken>,
) -> Result<Option<Accepted>, RuntimeError> {
    match token {
        Some(token) => runtime.answered(thread, token).await,
        None => Ok(None),
    }
}
