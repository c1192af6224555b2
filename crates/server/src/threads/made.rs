//! Requests that are repeated with their tokens: looks up what the first one created.

use crate::idempotency::fingerprint;
use crate::state::Api;
use runtime::{Accepted, RequestToken, Runtime, RuntimeError};
use timeline::ThreadId;

/// The stored result of the request with a token on a thread, if any.
pub(crate) async fn answered(
    runtime: &Runtime,
    thread: &ThreadId,
    token: Option<&RequestToken>,
) -> Result<Option<Accepted>, RuntimeError> {
    match token {
        Some(token) => runtime.answered(thread, token).await,
        None => Ok(None),
    }
}

/// An id for a new object. A token always yields the same id, so a repeated request finds its object.
/// Without a token the id is random.
pub(crate) fn id_for(api: &Api, parts: &[&str], token: Option<&str>) -> String {
    let Some(token) = token else {
        return api.mint();
    };
    let parts: Vec<&str> = parts.iter().copied().chain([token]).collect();
    let digits = fingerprint(&parts);
    // A UUID of version 8: what its bits mean is whoever makes it to say.
    let part = |from: usize, to: usize| digits.get(from..to).unwrap_or_default();
    let (first, second, third) = (part(0, 8), part(8, 12), part(13, 16));
    let (fourth, fifth) = (part(17, 20), part(20, 32));
    format!("{first}-{second}-8{third}-8{fourth}-{fifth}")
}
