//! Which threads are in this process's memory.

use crate::error::RuntimeError;
use crate::live::{Live, Tail};
use crate::react::Runtime;
use crate::request::NewThreadRequest;
use crate::store::{StoreError, TenantId, ThreadRow};
use std::sync::{Arc, PoisonError};
use timeline::ThreadId;

impl Runtime {
    pub(crate) async fn live_by_key(
        &self,
        tenant: &TenantId,
        key: &str,
    ) -> Result<Arc<Live>, RuntimeError> {
        match self.existing(tenant, key).await {
            Err(RuntimeError::Store(StoreError::NotFound)) => {
                let new = NewThreadRequest {
                    key: Some(key.to_owned()),
                    ..NewThreadRequest::default()
                };
                let (row, _) = self.get_or_create(tenant, new).await?;
                Ok(self.live_of(row))
            }
            found => found,
        }
    }

    pub(crate) async fn existing(
        &self,
        tenant: &TenantId,
        key: &str,
    ) -> Result<Arc<Live>, RuntimeError> {
        let known = {
            let keys = self
                .inner
                .keys
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            keys.get(&(tenant.clone(), key.to_owned())).cloned()
        };
        if let Some(id) = known {
            let live = self
                .inner
                .live
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            if let Some(live) = live.get(&id) {
                return Ok(Arc::clone(live));
            }
        }
        Ok(self.live_of(self.inner.store.find(tenant, key).await?))
    }

    pub(crate) async fn live_by_id(&self, thread: &ThreadId) -> Result<Arc<Live>, RuntimeError> {
        Ok(self.live_of(self.inner.store.row(thread).await?))
    }

    pub(crate) fn live_of(&self, row: ThreadRow) -> Arc<Live> {
        let key = row
            .thread
            .key
            .clone()
            .unwrap_or_else(|| row.thread.id.to_string());
        let mut live = self
            .inner
            .live
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if !live.contains_key(&row.thread.id) && live.len() >= self.inner.options.threads_in_memory
        {
            // Only what nobody else holds may go: two in one process would fence each other off.
            live.retain(|_, live| Arc::strong_count(live) > 1 || !live.is_idle());
            let mut keys = self
                .inner
                .keys
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            keys.retain(|_, id| live.contains_key(id));
        }
        self.inner
            .keys
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert((row.tenant.clone(), key.clone()), row.thread.id.clone());
        let found = live.entry(row.thread.id.clone()).or_insert_with(|| {
            let streaming = row.thread.status == timeline::ThreadStatus::Streaming;
            let tail = Tail {
                seq: row.tail,
                streaming,
                gone: false,
            };
            Arc::new(Live::new(
                Arc::clone(&self.inner.store),
                Arc::clone(&self.inner.clock),
                row.tenant,
                row.thread.id,
                key,
                tail,
            ))
        });
        Arc::clone(found)
    }

    /// Forgets a thread that the store no longer has.
    pub(crate) fn forget(&self, live: &Live) {
        live.gone();
        self.inner
            .live
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&live.thread);
        let key = (live.tenant.clone(), live.key.clone());
        self.inner
            .keys
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&key);
    }
}
