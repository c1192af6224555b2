//! What was begun elsewhere and has not said yet which it is.
//!
//! Who gives up a call can only stop what it has begun there once that has an id. So a call that is given up before is
//! left here, its request still on the way, for whoever is told that nobody wants the answer any more.

use super::call::RemoteCall;
use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// So many calls are left at most: nobody may come for one, as where another process has taken its thread over.
const MAX_LEFT: usize = 32;

/// The calls of an agent that may be given up.
#[derive(Default)]
pub(super) struct Unnamed {
    calls: Mutex<Calls>,
    changed: Notify,
}

#[derive(Default)]
struct Calls {
    /// The keys of those that are made.
    made: BTreeSet<String>,
    /// Those that were given up, the oldest first.
    left: VecDeque<(String, Box<dyn RemoteCall>)>,
}

impl Unnamed {
    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The call of this key, once it is given up; none if it is not made here, or has nothing to be stopped.
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

/// A call while it is made.
pub(super) struct Made {
    unnamed: Arc<Unnamed>,
    /// None where nobody would come for it.
    key: Option<String>,
    /// Until it is given up.
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

    /// The answer, as it comes.
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
