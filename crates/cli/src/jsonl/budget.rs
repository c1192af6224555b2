//! Limits the bytes that are processed concurrently.

use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// Bytes that were read and whose results are not written yet.
#[derive(Clone)]
pub(super) struct Budget(Arc<(Mutex<State>, Condvar)>);

struct State {
    used: usize,
    closed: bool,
}

const LIMIT: usize = 64 << 20;

impl Budget {
    pub(super) fn new() -> Self {
        let state = State {
            used: 0,
            closed: false,
        };
        Self(Arc::new((Mutex::new(state), Condvar::new())))
    }

    /// Waits until there is room, or no other bytes are in use: one batch may be larger than the limit.
    /// Returns false if the budget was closed.
    pub(super) fn take(&self, bytes: usize) -> bool {
        let (state, freed) = &*self.0;
        let state = state.lock().unwrap_or_else(PoisonError::into_inner);
        let full = |state: &mut State| {
            !state.closed && state.used > 0 && state.used.saturating_add(bytes) > LIMIT
        };
        let mut state = freed
            .wait_while(state, full)
            .unwrap_or_else(PoisonError::into_inner);
        state.used = state.used.saturating_add(bytes);
        !state.closed
    }

    pub(super) fn give_back(&self, bytes: usize) {
        self.change(|state| state.used = state.used.saturating_sub(bytes));
    }

    /// Closes the budget, because the results are no longer written.
    pub(super) fn close(&self) {
        self.change(|state| state.closed = true);
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let (state, freed) = &*self.0;
        change(&mut state.lock().unwrap_or_else(PoisonError::into_inner));
        freed.notify_all();
    }
}
