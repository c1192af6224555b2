//! Runs of sub-agents that wait for an outside answer.

use crate::trace::SubagentExecutionTrace;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;
use upp::ToolCallId;

/// Through this a host reports whether a sub-agent's run waits. Clones share it. Without a parent
/// it has no effect.
#[derive(Clone, Debug, Default)]
pub struct Waits(Option<Run>);

#[derive(Clone, Debug)]
struct Run {
    call: ToolCallId,
    number: usize,
    board: Arc<Board>,
}

impl Waits {
    /// Reports whether the run waits. It may change several times.
    pub fn set(&self, waits: bool) {
        if let Some(run) = &self.0 {
            run.board.set(run, waits);
        }
    }

    /// Whether the call was left open because this run, and all others that still run in the step,
    /// wait. The run's future is dropped then, but the run is still needed.
    pub fn is_suspended(&self) -> bool {
        let suspended = |run: &Run| run.board.lock().suspended.contains(&run.call);
        self.0.as_ref().is_some_and(suspended)
    }
}

/// The calls of a step that wait for their sub-agents, and the traces of ended sub-agents.
#[derive(Debug, Default)]
pub(crate) struct Board {
    /// Whether any run has started; until then no lock is taken.
    is_used: AtomicBool,
    calls: Mutex<Calls>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Calls {
    /// The runs of each call that have not ended, and whether they wait.
    runs: BTreeMap<ToolCallId, BTreeMap<usize, bool>>,
    n_begun: usize,
    suspended: BTreeSet<ToolCallId>,
    /// The traces of the runs that have ended, by the call that spawned them.
    traces: BTreeMap<ToolCallId, Vec<SubagentExecutionTrace>>,
}

impl Calls {
    fn waiting(&self) -> impl Iterator<Item = &ToolCallId> {
        let waits = |runs: &BTreeMap<usize, bool>| !runs.is_empty() && runs.values().all(|it| *it);
        let runs = self.runs.iter();
        runs.filter(move |(_, runs)| waits(runs)).map(|(id, _)| id)
    }
}

/// A started run; it ends when this is dropped.
pub(crate) struct StartedChild(Waits);

impl Drop for StartedChild {
    fn drop(&mut self) {
        if let Some(run) = &self.0.0 {
            let mut calls = run.board.lock();
            if let Some(runs) = calls.runs.get_mut(&run.call) {
                runs.remove(&run.number);
            }
            drop(calls);
            // The other runs of the call may all wait.
            run.board.changed.notify_one();
        }
    }
}

impl Board {
    fn lock(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a run of this call.
    pub(crate) fn begin(self: &Arc<Self>, call: &ToolCallId) -> (Waits, StartedChild) {
        self.is_used.store(true, Ordering::SeqCst);
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
        (waits.clone(), StartedChild(waits))
    }

    /// Stores the traces of a run of this call.
    pub(crate) fn keep(&self, call: &ToolCallId, traces: &[SubagentExecutionTrace]) {
        let mut calls = self.lock();
        let kept = calls.traces.entry(call.clone()).or_default();
        kept.extend(traces.iter().cloned());
    }

    /// Removes an ended call, and returns the traces of its runs.
    pub(crate) fn take(&self, call: &ToolCallId) -> Vec<SubagentExecutionTrace> {
        // Hardly any tool has a sub-agent.
        if !self.is_used.load(Ordering::SeqCst) {
            return Vec::new();
        }
        let mut calls = self.lock();
        calls.runs.remove(call);
        calls.traces.remove(call).unwrap_or_default()
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

    /// Waits until `n_running` calls, which is all running ones, wait for their sub-agents. Marks
    /// them as suspended and returns them; none of them continues in between.
    pub(crate) async fn stuck(&self, n_running: usize) -> BTreeSet<ToolCallId> {
        loop {
            if self.is_used.load(Ordering::SeqCst)
                && let Some(left) = self.waiting_calls(n_running)
            {
                return left;
            }
            self.changed.notified().await;
        }
    }

    fn waiting_calls(&self, n_running: usize) -> Option<BTreeSet<ToolCallId>> {
        let mut calls = self.lock();
        if n_running == 0 || calls.waiting().count() != n_running {
            return None;
        }
        let waiting: BTreeSet<ToolCallId> = calls.waiting().cloned().collect();
        calls.suspended.clone_from(&waiting);
        Some(waiting)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    #[test]
    fn a_run_that_waits_is_left_in_the_moment_in_which_it_is_found() {
        let board = Arc::new(Board::default());
        let call = ToolCallId::from("c");
        let (waits, _begun) = board.begin(&call);
        assert_eq!(board.stuck(1).now_or_never(), None);
        waits.set(true);
        assert_eq!(board.stuck(2).now_or_never(), None, "another call runs");
        assert!(!waits.is_suspended());
        let left = board.stuck(1).now_or_never();
        assert_eq!(left, Some(BTreeSet::from([call])));
        assert!(waits.is_suspended());
    }
}
