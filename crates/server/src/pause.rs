//! Paused tenants: their requests are refused, except those that bring runs to their end.

use crate::auth::Caller;
use crate::error::ApiError;
use crate::protocol::Policy;
use crate::state::Api;
use http::Extensions;
use std::sync::Arc;

/// Refuses a paused tenant.
pub(crate) fn check_pause(api: &Api, caller: &Caller) -> Result<(), ApiError> {
    if api.app().is_paused(&caller.tenant) {
        let tenant = caller.tenant.to_string();
        return Err(ApiError::TenantPaused { tenant });
    }
    Ok(())
}

/// Refuses a request whose tenant was paused while its body arrived.
pub(crate) fn check_pause_again(api: &Api, extensions: &Extensions) -> Result<(), ApiError> {
    let policy = extensions.get::<Arc<Policy>>();
    let ends_runs = policy.is_some_and(|policy| policy.ends_runs);
    let caller = extensions.get::<Caller>().filter(|_| !ends_runs);
    caller.map_or(Ok(()), |caller| check_pause(api, caller))
}
