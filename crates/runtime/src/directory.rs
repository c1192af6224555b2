//! Which threads are in this process's memory.

use crate::error::RuntimeError;
use crate::live::{Live, Tail};
use crate::react::Runtime;
use crate::request::NewThreadRequest;
use crate::store::{Created, StoreError, TenantId, ThreadRow};
use std::sync::{Arc, PoisonError};
use timeline::{Seq, ThreadId};

impl Runtime {
    pub(crate) async fn live_by_key(
        &self,
        tenant: &TenantId,
        key: &str,
    ) -> Result<Arc<Live>, RuntimeError> {
        match self.existing(tenant, key).await {
            Err(RuntimeError::Store(StoreError::NotFound)) => self.made(tenant, key).await,
            found => found,
        }
    }

    /// Makes a thread that was not there a moment ago: one commit, and nothing is read.
    pub(crate) async fn made(
        &self,
        tenant: &TenantId,
        key: &str,
    ) -> Result<Arc<Live>, RuntimeError> {
        let new = NewThreadRequest {
            key: Some(key.to_owned()),
            ..NewThreadRequest::default()
        };
        let first = self.first(new, None)?;
        let created = self.inner.store.get_or_create(tenant, first.clone());
        let Created { thread, claim } = created.await?;
        let Some(epoch) = claim else {
            return self.live_by_id(&thread).await;
        };
        let tail = Tail {
            seq: Seq(first.len() as u64),
            streaming: false,
            gone: false,
        };
        Ok(
            self.kept_or(thread, (tenant.clone(), key.to_owned()), tail, |live| {
                live.made(first, epoch)
            }),
        )
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
        let tail = Tail {
            seq: row.tail,
            streaming: row.thread.status == timeline::ThreadStatus::Streaming,
            gone: false,
        };
        self.kept_or(row.thread.id, (row.tenant, key), tail, |live| live)
    }

    /// The thread as it is in memory; where it is not, as it is made here.
    fn kept_or(
        &self,
        thread: ThreadId,
        (tenant, key): (TenantId, String),
        tail: Tail,
        make: impl FnOnce(Live) -> Live,
    ) -> Arc<Live> {
        let mut live = self
            .inner
            .live
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let mut keys = self
            .inner
            .keys
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if !live.contains_key(&thread) && live.len() >= self.inner.options.threads_in_memory {
            // Only what nobody else holds may go: two in one process would fence each other off.
            live.retain(|_, live| Arc::strong_count(live) > 1 || !live.is_idle());
            keys.retain(|_, id| live.contains_key(id));
        }
        keys.insert((tenant.clone(), key.clone()), thread.clone());
        let found = live.entry(thread.clone()).or_insert_with(|| {
            let (store, clock) = (&self.inner.store, &self.inner.clock);
            let new = Live::new(
                Arc::clone(store),
                Arc::clone(clock),
                tenant,
                thread,
                key,
                tail,
            );
            Arc::new(make(new))
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
