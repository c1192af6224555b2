//! The run of a thread that goes on when a sub-agent beneath it was answered.

use crate::error::ApiError;
use crate::run_events::RunEvents;
use crate::state::Api;
use runtime::{Accepted, TenantId};
use timeline::Seq;

/// The run in which a thread hears of an answer that its sub-agent `target` has taken, and the event
/// before it. Where nothing tells which one that is, it is the one that ran then, or the next one.
pub(in crate::routes) async fn went_on(
    api: &Api,
    tenant: &TenantId,
    key: &str,
    target: &str,
    accepted: &Accepted,
) -> Result<(RunEvents, Seq), ApiError> {
    let goes_on = api.runtime().goes_on(tenant, key, target, accepted).await?;
    let run = match goes_on.item {
        Some(item) => RunEvents::of(item),
        None => RunEvents::running(goes_on.execution),
    };
    Ok((run, goes_on.before))
}
