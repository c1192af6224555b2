//! Connections with a common cap, in the order in which they became idle.

use super::connection::Connection;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::time::Instant;

/// The connections of all clients, or of one address.
pub(super) struct Group {
    max: usize,
    members: Mutex<Members>,
}

#[derive(Default)]
struct Members {
    n: usize,
    /// The times at which connections became idle, in order. An entry is stale once its connection is
    /// busy, idle again, or closed.
    idle: VecDeque<Idle>,
}

struct Idle {
    connection: Weak<Connection>,
    turn: u64,
    since: Instant,
}

impl Group {
    pub(super) fn new(max: usize) -> Self {
        Self {
            max,
            members: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Members> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Number of open connections.
    pub(super) fn len(&self) -> usize {
        self.lock().n
    }

    pub(super) fn join(&self) {
        self.lock().n += 1;
    }

    /// Removes a connection, and returns the number that remains.
    pub(super) fn release(&self) -> usize {
        let mut members = self.lock();
        members.n = members.n.saturating_sub(1);
        members.n
    }

    /// Notes that a connection became idle in this turn.
    pub(super) fn note_idle(&self, connection: &Arc<Connection>, turn: u64) {
        let mut members = self.lock();
        members.idle.push_back(Idle {
            connection: Arc::downgrade(connection),
            turn,
            since: Instant::now(),
        });
        // A request adds an entry, so they are sifted once half of them must be stale.
        if members.idle.len() > 2 * members.n + 64 {
            let idle = |it: &Idle| it.connection.upgrade().is_some_and(|c| c.is_idle(it.turn));
            members.idle.retain(idle);
        }
    }

    /// Closes the connection that has been idle the longest, if it has been so for at least `min`.
    /// Returns whether there was one.
    pub(super) fn close_oldest_idle(&self, min: Duration) -> bool {
        loop {
            // The lock is not held while the connection closes, which takes it.
            let oldest = self
                .lock()
                .idle
                .pop_front_if(|it| it.since.elapsed() >= min);
            let Some(oldest) = oldest else {
                return false;
            };
            let connection = oldest.connection.upgrade();
            if connection.is_some_and(|it| it.close_for_room(oldest.turn)) {
                return true;
            }
        }
    }

    /// Number of entries of the order, stale ones included.
    #[cfg(test)]
    pub(super) fn n_entries(&self) -> usize {
        self.lock().idle.len()
    }

    /// Whether another connection may join after closing idle ones.
    pub(super) fn has_room(&self) -> bool {
        while self.len() >= self.max {
            if !self.close_oldest_idle(Duration::ZERO) {
                return false;
            }
        }
        true
    }
}
