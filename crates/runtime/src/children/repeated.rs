//! Finds the sub-agent that accepted a repeated answer.
//!
//! A client may send the answer to a sub-agent's question to a thread above. That thread has no
//! record of it once the sub-agent accepted it; the client's token is stored on the sub-agent's
//! thread.

use crate::error::RuntimeError;
use crate::runtime::Runtime;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use store::TenantId;
use timeline::ThreadId;

/// Maximum number of threads that are searched for a token.
const MAX_THREADS: usize = 1_000;

/// The sub-agents that are searched for a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Among {
    /// The sub-agents of the running step, or of the step that left calls open.
    Waiting,
    /// All that were ever started. Reads the logs of their parents.
    All,
}

impl Runtime {
    /// The key of the thread below this one that accepted an answer with this token.
    pub(super) async fn taken_by(
        &self,
        tenant: &TenantId,
        thread: &ThreadId,
        token: &str,
        among: Among,
    ) -> Result<Option<String>, RuntimeError> {
        let mut n_left = MAX_THREADS;
        self.find_taken(tenant, thread, token, among, &mut n_left)
            .await
    }

    fn find_taken<'a>(
        &'a self,
        tenant: &'a TenantId,
        thread: &'a ThreadId,
        token: &'a str,
        among: Among,
        n_left: &'a mut usize,
    ) -> BoxFuture<'a, Result<Option<String>, RuntimeError>> {
        async move {
            let started = match among {
                Among::Waiting => {
                    let head = self.inner.store.head(thread).await?;
                    super::pending_questions::started(&head.state)
                }
                Among::All => self.started_by(thread).await?,
            };
            // What is repeated was said not long ago.
            for child in started.into_iter().rev() {
                let Some(left) = n_left.checked_sub(1) else {
                    return Ok(None);
                };
                *n_left = left;
                let row = self.seen_child_row(tenant, thread, &child).await?;
                let Some(row) = row else { continue };
                if self.inner.store.answer(&child, token).await?.is_some() {
                    let key = row.thread.key.unwrap_or_else(|| child.to_string());
                    return Ok(Some(key));
                }
                let found = self
                    .find_taken(tenant, &child, token, among, n_left)
                    .await?;
                if found.is_some() {
                    return Ok(found);
                }
            }
            Ok(None)
        }
        .boxed()
    }
}
