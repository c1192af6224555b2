//! Ephemeral threads: they exist in memory only, and are deleted when no request needs them.

use super::ThreadKey;
use futures_util::StreamExt as _;
use runtime::Until;
use timeline::Seq;

/// A thread that is deleted once this is dropped and its runs are over.
pub(crate) struct Ephemeral(ThreadKey);

impl Ephemeral {
    /// Deletes the thread once this is dropped.
    pub(crate) fn new(thread: ThreadKey) -> Self {
        Self(thread)
    }

    /// The thread.
    pub(crate) fn thread(&self) -> &ThreadKey {
        &self.0
    }

    /// Waits until nothing runs on the thread.
    pub(crate) async fn rests(&self) {
        rests(&self.0).await;
    }
}

/// Waits until nothing runs on a thread.
async fn rests(thread: &ThreadKey) {
    if let Ok(mut follow) = thread.follow(Seq::ZERO, Until::Rest).await {
        while let Some(Ok(_)) = follow.next().await {}
    }
}

impl Drop for Ephemeral {
    fn drop(&mut self) {
        let thread = self.0.clone();
        // Without one the process ends, and its memory with it.
        let Ok(tasks) = tokio::runtime::Handle::try_current() else {
            return;
        };
        tasks.spawn(async move {
            // A client that goes away does not stop what it has begun.
            rests(&thread).await;
            if let Err(error) = thread.delete().await {
                tracing::debug!(%error, "a thread in memory is gone already");
            }
        });
    }
}
