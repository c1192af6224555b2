//! Requests that are repeated under their tokens: what the first of them made is found again.

use crate::idempotency::fingerprint;
use crate::state::Api;
use runtime::{Accepted, RequestToken, Runtime, RuntimeError};
use timeline::ThreadId;

/// The answer to the request of a token on a thread, if the token is known there.
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

/// An id for a new object: one token always gives one id, and without a token the id is new. A request that is
/// repeated after its answer was lost finds what it has made.
pub(crate) fn id_for(api: &Api, parts: &[&str], token: Option<&str>) -> String {
    let Some(token) = token else {
        return api.runtime().mint();
    };
    let parts: Vec<&str> = parts.iter().copied().chain([token]).collect();
    let digits = fingerprint(&parts);
    // A UUID of version 8: what its bits mean is whoever makes it to say.
    let part = |from: usize, to: usize| digits.get(from..to).unwrap_or_default();
    let (first, second, third) = (part(0, 8), part(8, 12), part(13, 16));
    let (fourth, fifth) = (part(17, 20), part(20, 32));
    format!("{first}-{second}-8{third}-8{fourth}-{fifth}")
}
