//! Requests that are repeated under their tokens.

use runtime::{Accepted, Runtime, RuntimeError};
use timeline::ThreadId;

/// What was answered to the request of this token on a thread, if one was taken there.
pub(super) async fn accepted(
    runtime: &Runtime,
    thread: &ThreadId,
    token: Option<&str>,
) -> Result<Option<Accepted>, RuntimeError> {
    let Some(token) = token else {
        return Ok(None);
    };
    let Some(answer) = runtime.store().answer(thread, token).await? else {
        return Ok(None);
    };
    let accepted: Accepted = serde_json::from_str(&answer)?;
    Ok(Some(Accepted {
        repeated: true,
        ..accepted
    }))
}
