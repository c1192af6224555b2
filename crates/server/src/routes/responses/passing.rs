//! What leaves no trace: threads of the runtime in memory, deleted when nobody needs them.

use futures_util::StreamExt;
use runtime::{Runtime, TenantId, Until};
use timeline::Seq;

/// A thread that is deleted once it is dropped and what runs on it is over.
pub(in crate::routes) struct Passing {
    pub(in crate::routes) runtime: Runtime,
    pub(in crate::routes) tenant: TenantId,
    pub(in crate::routes) key: String,
}

impl Passing {
    /// Waits until nothing runs on it.
    pub(in crate::routes) async fn rests(&self) {
        rests(&self.runtime, &self.tenant, &self.key).await;
    }
}

/// Waits until nothing runs on a thread.
async fn rests(runtime: &Runtime, tenant: &TenantId, key: &str) {
    if let Ok(mut follow) = runtime.follow(tenant, key, Seq::ZERO, Until::Rest).await {
        while let Some(Ok(_)) = follow.next().await {}
    }
}

impl Drop for Passing {
    fn drop(&mut self) {
        let (runtime, tenant, key) = (self.runtime.clone(), self.tenant.clone(), self.key.clone());
        // Without one the process ends, and its memory with it.
        let Ok(tasks) = tokio::runtime::Handle::try_current() else {
            return;
        };
        tasks.spawn(async move {
            // A client that goes away does not stop what it has begun.
            rests(&runtime, &tenant, &key).await;
            if let Err(error) = runtime.delete(&tenant, &key).await {
                tracing::debug!(%error, "a thread in memory is gone already");
            }
        });
    }
}
