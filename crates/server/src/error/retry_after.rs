//! When a refused request may be sent again.

use super::ApiError;
use runtime::{LimitKind, LimitReached, RuntimeError};
use std::time::Duration;

/// The wait of a tenant whose data moves.
const PAUSED: Duration = Duration::from_secs(10);

/// The wait before a client should repeat a refused request.
pub(super) fn retry_after(error: &ApiError) -> Duration {
    if let ApiError::RateLimited { wait }
    | ApiError::Runtime(RuntimeError::LimitReached(LimitReached {
        kind: LimitKind::Rate { wait },
        ..
    })) = error
    {
        return *wait + Duration::from_secs(1);
    }
    if let ApiError::TenantPaused { .. } = error {
        return PAUSED;
    }
    Duration::from_secs(1)
}
