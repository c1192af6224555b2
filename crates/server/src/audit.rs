//! The audit log: the callers that changed something, or were refused.

use crate::auth::{Caller, Scope};
use axum::extract::Request;
use http::{Method, StatusCode};
use std::sync::{Arc, OnceLock};
use tracing::field::display;

/// The caller of a request; unknown until the guard has checked it.
#[derive(Clone, Default)]
pub(crate) struct Who(Arc<OnceLock<Caller>>);

impl Who {
    /// Stores the caller.
    pub(crate) fn is(&self, caller: &Caller) {
        // The guard is passed once; a second word would not count.
        let _ = self.0.set(caller.clone());
    }
}

/// The audit line of one request. It is written on drop, so that every end is recorded: a response, a
/// panic, or a client that disconnects.
///
/// Reads are recorded only if refused. Requests to unknown routes are not recorded.
pub(crate) struct Audit {
    method: Method,
    path: String,
    request_id: Option<String>,
    who: Who,
    status: Option<StatusCode>,
}

impl Audit {
    /// Starts the line of a request; the guard will add the caller.
    pub(crate) fn begin(request: &mut Request, request_id: Option<String>) -> Self {
        let who = Who::default();
        request.extensions_mut().insert(who.clone());
        Self {
            method: request.method().clone(),
            path: request.uri().path().to_owned(),
            request_id,
            who,
            status: None,
        }
    }

    /// The request was answered so.
    pub(crate) fn answered(mut self, status: StatusCode) {
        self.status = Some(status);
    }

    /// The outcome to log, if any.
    fn outcome_text(&self) -> Option<&'static str> {
        let is_refused = matches!(
            self.status,
            Some(StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::TOO_MANY_REQUESTS)
        );
        if is_refused {
            return Some("refused");
        }
        let changes = Scope::of(&self.method) != Scope::Read && self.who.0.get().is_some();
        match self.status {
            _ if !changes => None,
            Some(_) => Some("answered"),
            None => Some("cut off before the answer"),
        }
    }
}

impl Drop for Audit {
    fn drop(&mut self) {
        let Some(said) = self.outcome_text() else {
            return;
        };
        let caller = self.who.0.get();
        let tenant = caller.map(|caller| display(&caller.tenant));
        let key = caller.map(|caller| display(&caller.name));
        // The request's id stands in the line itself: a filter may leave the span out.
        tracing::info!(
            target: "audit",
            tenant,
            key,
            method = %self.method,
            path = self.path,
            status = self.status.map(|status| status.as_u16()),
            request_id = self.request_id,
            "audit: {said}"
        );
    }
}
