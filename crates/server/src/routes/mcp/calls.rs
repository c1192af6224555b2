//! The running calls, which clients can cancel.

use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio_util::sync::CancellationToken;

/// A session and the id of a call in it, as JSON.
type Name = (String, String);

/// The running calls of sessions; at most one for each open request.
#[derive(Clone, Default)]
pub(super) struct Calls {
    open: Arc<Mutex<BTreeMap<Name, CancellationToken>>>,
}

/// A running call. It can be cancelled until this is dropped.
#[derive(Default)]
pub(super) struct Call {
    stopped: CancellationToken,
    known: Option<(Calls, Name)>,
}

impl Calls {
    /// Registers a call. A running call of the same name can't be cancelled any more; clients should not
    /// repeat names.
    pub(super) fn begin(&self, session: &str, id: &Value) -> Call {
        let name = (session.to_owned(), id.to_string());
        let stopped = CancellationToken::new();
        self.with(|open| open.insert(name.clone(), stopped.clone()));
        Call {
            stopped,
            known: Some((self.clone(), name)),
        }
    }

    /// Cancels a call, if it is running.
    pub(super) fn cancel(&self, session: &str, id: &Value) {
        let name = (session.to_owned(), id.to_string());
        if let Some(stopped) = self.with(|open| open.remove(&name)) {
            stopped.cancel();
        }
    }

    fn with<T>(&self, look: impl FnOnce(&mut BTreeMap<Name, CancellationToken>) -> T) -> T {
        look(&mut self.open.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Call {
    /// Cancelled when the client cancels it.
    pub(super) fn stopped(&self) -> CancellationToken {
        self.stopped.clone()
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if let Some((calls, name)) = self.known.take() {
            calls.with(|open| open.remove(&name));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_call_is_cancelled_by_its_session_and_its_id_while_it_is_answered() {
        let calls = Calls::default();
        let call = calls.begin("s", &json!(1));
        calls.cancel("s", &json!("1"));
        calls.cancel("t", &json!(1));
        assert!(!call.stopped().is_cancelled());
        calls.cancel("s", &json!(1));
        assert!(call.stopped().is_cancelled());
        let stopped = calls.begin("s", &json!(2)).stopped();
        calls.cancel("s", &json!(2));
        assert!(!stopped.is_cancelled());
        assert!(calls.with(|open| open.is_empty()));
    }
}
