//! Checkpoints in memory.

use super::MemoryStore;
use crate::{CheckpointRow, CheckpointTable, StoreError, TenantId};
use futures_util::future::BoxFuture;

impl CheckpointTable for MemoryStore {
    fn save<'a>(
        &'a self,
        tenant: &'a TenantId,
        about: CheckpointRow,
        state: String,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            self.with(|kept| {
                let key = (tenant.clone(), about.session_id.clone());
                kept.checkpoints.insert(key, (about, state));
                Ok(())
            })
        })
    }

    fn load<'a>(
        &'a self,
        tenant: &'a TenantId,
        session_id: &'a str,
    ) -> BoxFuture<'a, Result<Option<String>, StoreError>> {
        Box::pin(async move {
            self.with(|kept| Ok(kept.checkpoint(tenant, session_id).map(|it| it.1.clone())))
        })
    }

    fn row<'a>(
        &'a self,
        tenant: &'a TenantId,
        session_id: &'a str,
    ) -> BoxFuture<'a, Result<Option<CheckpointRow>, StoreError>> {
        Box::pin(async move {
            self.with(|kept| Ok(kept.checkpoint(tenant, session_id).map(|it| it.0.clone())))
        })
    }

    fn forget<'a>(
        &'a self,
        tenant: &'a TenantId,
        session_id: &'a str,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            self.with(|kept| {
                let key = (tenant.clone(), session_id.to_owned());
                kept.checkpoints.remove(&key);
                Ok(())
            })
        })
    }

    fn sessions<'a>(
        &'a self,
        tenant: &'a TenantId,
    ) -> BoxFuture<'a, Result<Vec<String>, StoreError>> {
        Box::pin(async move {
            self.with(|kept| {
                let from = kept.checkpoints.range((tenant.clone(), String::new())..);
                let own = from.take_while(|((owner, _), _)| owner == tenant);
                Ok(own.map(|((_, session), _)| session.clone()).collect())
            })
        })
    }
}
