//! Abandoned calls whose remote run has no id yet.
//!
//! A remote run can only be stopped by its id. If a call is abandoned before it has one, it is stored
//! here with its request in flight. The runtime's notification that the answer is no longer needed
//! fetches it.

use super::call::RemoteCall;
use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// Maximum number of stored calls; the oldest is dropped. Some are never fetched, for example if another
/// process has claimed the thread.
const MAX_LEFT: usize = 32;

/// The calls of one agent that may be abandoned.
#[derive(Default)]
pub(super) struct Unnamed {
    calls: Mutex<Calls>,
    changed: Notify,
}

#[derive(Default)]
struct Calls {
    /// The keys of the running calls.
    made: BTreeSet<String>,
    /// The abandoned calls, oldest first.
    left: VecDeque<(String, Box<dyn RemoteCall>)>,
}

impl Unnamed {
    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the call with this key is abandoned, and takes it. None if no such call runs here, or
    /// if its remote run needs no stop or already has an id.
    pub(super) async fn take_abandoned(&self, key: &str) -> Option<Box<dyn RemoteCall>> {
        loop {
            let changed = self.changed.notified();
            {
                let mut calls = self.calls();
                let place = calls.left.iter().position(|(left, _)| left == key);
                if let Some(place) = place {
                    return calls.left.remove(place).map(|(_, talk)| talk);
                }
                if !calls.made.contains(key) {
                    return None;
                }
            }
            changed.await;
        }
    }
}

/// A running call; on drop it is stored as abandoned if its run has no id yet.
pub(super) struct Made {
    unnamed: Arc<Unnamed>,
    /// None if nobody would fetch the call.
    key: Option<String>,
    /// The call; none once it is abandoned.
    talk: Option<Box<dyn RemoteCall>>,
}

impl Made {
    pub(super) fn new(
        unnamed: &Arc<Unnamed>,
        key: Option<String>,
        talk: Box<dyn RemoteCall>,
    ) -> Self {
        unnamed.calls().made.extend(key.clone());
        Self {
            unnamed: Arc::clone(unnamed),
            key,
            talk: Some(talk),
        }
    }

    /// The running call.
    pub(super) fn call(&mut self) -> Option<&mut Box<dyn RemoteCall>> {
        self.talk.as_mut()
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        let Some(key) = self.key.take() else {
            return;
        };
        let talk = self.talk.take().filter(|talk| talk.is_unnamed());
        {
            let mut calls = self.unnamed.calls();
            calls.made.remove(&key);
            if let Some(talk) = talk {
                calls.left.push_back((key, talk));
            }
            if calls.left.len() > MAX_LEFT {
                calls.left.pop_front();
            }
        }
        self.unnamed.changed.notify_waiters();
    }
}
