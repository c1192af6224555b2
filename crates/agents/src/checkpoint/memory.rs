//! Checkpoints in memory, which are lost when the process ends.

use super::{CheckpointError, CheckpointMetadata, CheckpointStore};
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

type Saved = BTreeMap<String, (String, CheckpointMetadata)>;

/// Checkpoints in memory, for tests and for sessions within one process.
#[derive(Debug, Default)]
pub struct MemoryCheckpoints {
    saved: Mutex<Saved>,
}

impl MemoryCheckpoints {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    fn saved(&self) -> MutexGuard<'_, Saved> {
        self.saved.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CheckpointStore for MemoryCheckpoints {
    fn save<'a>(
        &'a self,
        session_id: &'a str,
        state: String,
    ) -> BoxFuture<'a, Result<(), CheckpointError>> {
        let saved = CheckpointMetadata::of(session_id, &state).map(|metadata| {
            self.saved()
                .insert(session_id.to_owned(), (state, metadata));
        });
        ready(saved).boxed()
    }

    fn load<'a>(
        &'a self,
        session_id: &'a str,
    ) -> BoxFuture<'a, Result<Option<String>, CheckpointError>> {
        let state = self.saved().get(session_id).map(|(state, _)| state.clone());
        ready(Ok(state)).boxed()
    }

    fn load_metadata<'a>(
        &'a self,
        session_id: &'a str,
    ) -> BoxFuture<'a, Result<Option<CheckpointMetadata>, CheckpointError>> {
        let saved = self.saved();
        let metadata = saved.get(session_id).map(|(_, metadata)| metadata.clone());
        ready(Ok(metadata)).boxed()
    }

    fn delete<'a>(&'a self, session_id: &'a str) -> BoxFuture<'a, Result<(), CheckpointError>> {
        self.saved().remove(session_id);
        ready(Ok(())).boxed()
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<String>, CheckpointError>> {
        ready(Ok(self.saved().keys().cloned().collect())).boxed()
    }
}
