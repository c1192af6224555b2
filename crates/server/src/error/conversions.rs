//! Conversions of other modules' errors into errors of requests.

use super::ApiError;
use crate::auth::TenantUnclear;
use runtime::{LimitReached, StoreError};

impl From<LimitReached> for ApiError {
    fn from(reached: LimitReached) -> Self {
        Self::Runtime(reached.into())
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        Self::Runtime(error.into())
    }
}

impl From<TenantUnclear> for ApiError {
    fn from(unclear: TenantUnclear) -> Self {
        Self::Tenant(unclear)
    }
}
