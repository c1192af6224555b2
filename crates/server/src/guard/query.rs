//! Query parameters: some protocols accept only those that the route declares.

use crate::error::{ApiError, render_error};
use crate::protocol::Policy;
use axum::extract::Query;
use http::Uri;

/// Refuses a query parameter that the route does not declare.
pub(super) fn check(uri: &Uri, policy: &Policy) -> Result<(), ApiError> {
    if !policy.rules.declared_query || uri.query().is_none_or(str::is_empty) {
        return Ok(());
    }
    let sent = Query::<Vec<(String, String)>>::try_from_uri(uri);
    let Query(sent) = sent.map_err(|rejection| ApiError::InvalidQuery {
        what: render_error(&rejection),
    })?;
    let declared = &policy.query;
    let Some((name, _)) = sent.iter().find(|(name, _)| !declared.contains(name)) else {
        return Ok(());
    };
    let expected = if declared.is_empty() {
        "no parameters".to_owned()
    } else {
        declared.join(", ")
    };
    let what = format!("unknown parameter {name:?}, expected {expected}");
    Err(ApiError::InvalidQuery { what })
}
