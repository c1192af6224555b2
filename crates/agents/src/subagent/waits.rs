//! Runs of sub-agents that wait for somebody outside.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;
use upp::ToolCallId;

/// How a host says whether the run of a sub-agent waits. Cloning shares it. Without a parent nobody
/// listens.
#[derive(Clone, Debug, Default)]
pub struct Waits(Option<Run>);

#[derive(Clone, Debug)]
struct Run {
    call: ToolCallId,
    number: usize,
    board: Arc<Board>,
}

impl Waits {
    /// Says whether the run waits. It may go on, and wait again.
    pub fn set(&self, waits: bool) {
        if let Some(run) = &self.0 {
            run.board.set(run, waits);
        }
    }

    /// Whether the call was left open because this run and all that still runs beside it wait. Its
    /// future is dropped then, and the run is still wanted.
    pub fn is_suspended(&self) -> bool {
        let suspended = |run: &Run| run.board.lock().suspended.contains(&run.call);
        self.0.as_ref().is_some_and(suspended)
    }
}

/// Which calls of a step wait for their sub-agents.
#[derive(Debug, Default)]
pub(crate) struct Board {
    calls: Mutex<Calls>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Calls {
    /// The runs of each call that have not ended, and whether they wait.
    runs: BTreeMap<ToolCallId, BTreeMap<usize, bool>>,
    n_begun: usize,
    suspended: BTreeSet<ToolCallId>,
}

impl Calls {
    fn waiting(&self) -> impl Iterator<Item = &ToolCallId> {
        let waits = |runs: &BTreeMap<usize, bool>| !runs.is_empty() && runs.values().all(|it| *it);
        let runs = self.runs.iter();
        runs.filter(move |(_, runs)| waits(runs)).map(|(id, _)| id)
    }
}

/// A run that has begun; it ends when this is dropped.
pub(crate) struct Begun(Waits);

impl Drop for Begun {
    fn drop(&mut self) {
        if let Some(run) = &self.0.0 {
            let mut calls = run.board.lock();
            if let Some(runs) = calls.runs.get_mut(&run.call) {
                runs.remove(&run.number);
            }
        }
    }
}

impl Board {
    fn lock(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A run of this call begins.
    pub(crate) fn begin(self: &Arc<Self>, call: &ToolCallId) -> (Waits, Begun) {
        let mut calls = self.lock();
        let number = calls.n_begun;
        calls.n_begun += 1;
        calls
            .runs
            .entry(call.clone())
            .or_default()
            .insert(number, false);
        let run = Run {
            call: call.clone(),
            number,
            board: Arc::clone(self),
        };
        let waits = Waits(Some(run));
        (waits.clone(), Begun(waits))
    }

    /// The call has ended; what it has left behind means nothing.
    pub(crate) fn forget(&self, call: &ToolCallId) {
        self.lock().runs.remove(call);
    }

    fn set(&self, run: &Run, waits: bool) {
        let mut calls = self.lock();
        let slot = calls.runs.get_mut(&run.call);
        if let Some(slot) = slot.and_then(|runs| runs.get_mut(&run.number)) {
            *slot = waits;
        }
        drop(calls);
        if waits {
            self.changed.notify_one();
        }
    }

    /// Waits until so many calls wait for their sub-agents: all that run.
    pub(crate) async fn stuck(&self, n_running: usize) {
        loop {
            if n_running > 0 && self.lock().waiting().count() == n_running {
                return;
            }
            self.changed.notified().await;
        }
    }

    /// Leaves the calls that wait, and gives them.
    pub(crate) fn suspend(&self) -> BTreeSet<ToolCallId> {
        let mut calls = self.lock();
        let waiting: BTreeSet<ToolCallId> = calls.waiting().cloned().collect();
        calls.suspended.clone_from(&waiting);
        waiting
    }
}
