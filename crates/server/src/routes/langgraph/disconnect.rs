//! Runs whose readers asked that they stop when these go away.

use super::Found;
use crate::state::Api;
use futures_util::StreamExt as _;
use runtime::{Runtime, TenantId, Until};
use timeline::{Event, ExecutionId, Seq};

/// Why such a run ended.
const GONE: &str = "user_cancelled";

/// Stops a run when it is dropped before the run is over.
pub(super) struct Disconnect {
    api: Api,
    runtime: Runtime,
    tenant: TenantId,
    key: String,
    execution: ExecutionId,
    after: Seq,
    is_over: bool,
}

impl Disconnect {
    pub(super) fn new(api: &Api, found: &Found, execution: &ExecutionId, after: Seq) -> Self {
        Self {
            api: api.clone(),
            runtime: found.runtime.clone(),
            tenant: found.tenant().clone(),
            key: found.key().to_owned(),
            execution: execution.clone(),
            after,
            is_over: false,
        }
    }

    /// The run is over: nothing is left to be stopped.
    pub(super) fn over(&mut self) {
        self.is_over = true;
    }
}

impl Drop for Disconnect {
    fn drop(&mut self) {
        // A server that stops leaves what runs to its next start.
        if self.is_over || self.api.is_shutting_down() {
            return;
        }
        let Ok(tasks) = tokio::runtime::Handle::try_current() else {
            return;
        };
        let (runtime, tenant, key) = (self.runtime.clone(), self.tenant.clone(), self.key.clone());
        let (first, after) = (self.execution.clone(), self.after);
        tasks.spawn(async move {
            let Ok(mut follow) = runtime.follow(&tenant, &key, after, Until::Rest).await else {
                return;
            };
            // One that waits for its turn is stopped when that has come.
            while let Some(Ok(logged)) = follow.next().await {
                let Event::ExecutionCreated { execution } = &logged.record.event else {
                    continue;
                };
                if execution.id != first {
                    continue;
                }
                let stopped = runtime.cancel(&tenant, &key, Some(&first), GONE).await;
                if let Err(error) = stopped {
                    tracing::debug!(%error, "a run that nobody reads is over already");
                }
                return;
            }
        });
    }
}
