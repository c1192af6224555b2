//! Saves checkpoints in the background: in order, without delaying the run or failing it (UAP
//! §12.4.7).

use super::{CheckpointError, CheckpointStore};
use crate::state::AgentState;
use futures_util::FutureExt;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio_util::task::TaskTracker;

/// A checkpoint store with its queue; clones share both.
///
/// [`save`](Self::save) only queues the state; a task writes it, which ends when its session has
/// nothing left to save. So a slow store delays no run, and a failing one fails none: the failure
/// is logged (`tracing`, level error).
///
/// Within one queue the saves of a session are written in order, so an earlier state never replaces
/// a later one. Agents that share sessions should share the queue. Every state is written. A state
/// in the queue shares its messages with the later ones, so a long queue uses little memory.
///
/// The queue is written even after the run, the agent and the queue are dropped, as long as the
/// Tokio runtime lives. Call [`flush`](Self::flush) before the runtime ends, or the last state may
/// be lost. Without a Tokio runtime nothing is saved, which is logged.
#[derive(Clone)]
pub struct Checkpoints {
    inner: Arc<Inner>,
}

struct Inner {
    store: Arc<dyn CheckpointStore>,
    /// The sessions that a task is saving, each with its queue, in order.
    busy: Mutex<BTreeMap<Arc<str>, VecDeque<Waiting>>>,
    tasks: TaskTracker,
}

/// An entry in a session's queue.
enum Waiting {
    /// A state to save.
    State(AgentState),
    /// Notified when all earlier entries are saved; dropped if that is impossible.
    Flush(oneshot::Sender<()>),
}

impl Checkpoints {
    /// A queue in front of a store.
    pub fn new(store: Arc<dyn CheckpointStore>) -> Self {
        Self {
            inner: Arc::new(Inner {
                store,
                busy: Mutex::default(),
                tasks: TaskTracker::new(),
            }),
        }
    }

    /// The store, to load, list and delete.
    pub fn store(&self) -> &Arc<dyn CheckpointStore> {
        &self.inner.store
    }

    /// Queues the state after the session's earlier ones, and returns at once.
    pub fn save(&self, session_id: &str, state: AgentState) {
        let Ok(runtime) = Handle::try_current() else {
            let why = "checkpoints need a Tokio runtime";
            tracing::error!(
                session_id,
                step = state.step(),
                error = why,
                "a checkpoint was not saved"
            );
            return;
        };
        match self.inner.busy().entry(session_id.into()) {
            Entry::Occupied(mut waiting) => {
                waiting.get_mut().push_back(Waiting::State(state));
                return;
            }
            Entry::Vacant(free) => {
                free.insert(VecDeque::from([Waiting::State(state)]));
            }
        }
        // Made here, so that it is also dropped when the runtime never polls the task.
        let session = Session {
            id: session_id.into(),
            inner: Arc::clone(&self.inner),
            is_done: false,
        };
        self.inner
            .tasks
            .spawn_on(async move { session.save_all().await }, &runtime);
    }

    /// Waits until every state passed to [`save`](Self::save) before is written, or its failure is
    /// logged.
    pub async fn flush(&self) {
        let waits: Vec<_> = {
            let mut busy = self.inner.busy();
            busy.values_mut()
                .map(|waiting| {
                    let (done, wait) = oneshot::channel();
                    waiting.push_back(Waiting::Flush(done));
                    wait
                })
                .collect()
        };
        for wait in waits {
            // An error means that the session is free, so there is nothing to wait for.
            let _free = wait.await;
        }
    }
}

impl Inner {
    fn busy(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, VecDeque<Waiting>>> {
        self.busy.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One session while its task runs. Dropping it, for example when the Tokio runtime shuts down,
/// frees the session for another task.
struct Session {
    id: Arc<str>,
    inner: Arc<Inner>,
    /// Whether the session is free already; then another task may have it.
    is_done: bool,
}

impl Session {
    async fn save_all(mut self) {
        while let Some(next) = self.next() {
            let state = match next {
                Waiting::State(state) => state,
                Waiting::Flush(flush) => {
                    // Who no longer waits need not be told.
                    let _left = flush.send(());
                    continue;
                }
            };
            let step = state.step();
            if let Err(error) = self.save(state).await {
                let error = &error as &(dyn std::error::Error + 'static);
                tracing::error!(
                    session_id = &*self.id,
                    step,
                    error,
                    "a checkpoint was not saved"
                );
            }
        }
    }

    /// Takes the oldest entry. If there is none, the session's task is done.
    fn next(&mut self) -> Option<Waiting> {
        let mut busy = self.inner.busy();
        let next = busy.get_mut(&self.id)?.pop_front();
        if next.is_none() {
            busy.remove(&self.id);
            self.is_done = true;
        }
        next
    }

    async fn save(&self, state: AgentState) -> Result<(), CheckpointError> {
        // Writing a long state takes a while, and the run may share this thread.
        let json = tokio::task::spawn_blocking(move || state.to_json()).await;
        let json = json
            .map_err(CheckpointError::store)?
            .map_err(CheckpointError::store)?;
        let saved = AssertUnwindSafe(async { self.inner.store.save(&self.id, json).await });
        saved
            .catch_unwind()
            .await
            .unwrap_or_else(|_| Err(CheckpointError::store("the store panicked")))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if self.is_done {
            return;
        }
        let left = self.inner.busy().remove(&self.id);
        for waiting in left.into_iter().flatten() {
            let Waiting::State(state) = waiting else {
                continue;
            };
            let why = "the runtime has shut down";
            tracing::error!(
                session_id = &*self.id,
                step = state.step(),
                error = why,
                "a checkpoint was not saved"
            );
        }
    }
}

impl From<Arc<dyn CheckpointStore>> for Checkpoints {
    fn from(store: Arc<dyn CheckpointStore>) -> Self {
        Self::new(store)
    }
}

impl<S: CheckpointStore + 'static> From<S> for Checkpoints {
    fn from(store: S) -> Self {
        Self::new(Arc::new(store))
    }
}

impl std::fmt::Debug for Checkpoints {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Checkpoints")
            .field("n_busy_sessions", &self.inner.busy().len())
            .finish_non_exhaustive()
    }
}
