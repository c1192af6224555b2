//! Steps for workers while the store fails.

use super::{KEY, at_rest, complete, external, is_clean, leased, over, post, says, tenant, text};
use futures_util::future::BoxFuture;
use loomline_runtime as runtime;
use runtime::WorkerPolicy;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use store::objects::{NewObject, ObjectPage, ObjectTable, SidecarObject};
use store::suite::Layer;
use store::{MemoryStore, Store, StoreError, TenantId};

/// A store whose objects can't be read or written at times.
struct Failing {
    store: Arc<MemoryStore>,
    is_down: Arc<AtomicBool>,
}

impl Failing {
    fn passed<'a, T: Send + 'a>(
        &self,
        answer: BoxFuture<'a, Result<T, StoreError>>,
    ) -> BoxFuture<'a, Result<T, StoreError>> {
        if self.is_down.load(Ordering::SeqCst) {
            return Box::pin(std::future::ready(Err(StoreError::Failed("down".into()))));
        }
        answer
    }
}

impl Layer for Failing {
    fn inner(&self) -> &dyn Store {
        &*self.store
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn objects(&self) -> &dyn ObjectTable {
        self
    }
}

impl ObjectTable for Failing {
    fn put<'a>(
        &'a self,
        tenant: &'a TenantId,
        object: NewObject,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        self.passed(self.store.put(tenant, object))
    }

    fn replace<'a>(
        &'a self,
        tenant: &'a TenantId,
        before: &'a SidecarObject,
        object: NewObject,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        self.passed(self.store.replace(tenant, before, object))
    }

    fn get<'a>(
        &'a self,
        tenant: &'a TenantId,
        kind: &'a str,
        id: &'a str,
    ) -> BoxFuture<'a, Result<Option<SidecarObject>, StoreError>> {
        self.passed(self.store.get(tenant, kind, id))
    }

    fn list<'a>(
        &'a self,
        tenant: &'a TenantId,
        kind: &'a str,
        page: ObjectPage,
    ) -> BoxFuture<'a, Result<Vec<SidecarObject>, StoreError>> {
        self.passed(self.store.list(tenant, kind, page))
    }

    fn delete<'a>(
        &'a self,
        tenant: &'a TenantId,
        kind: &'a str,
        id: &'a str,
        as_read: Option<&'a SidecarObject>,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        self.passed(self.store.delete(tenant, kind, id, as_read))
    }

    fn content<'a>(
        &'a self,
        tenant: &'a TenantId,
        kind: &'a str,
        id: &'a str,
    ) -> BoxFuture<'a, Result<Option<Arc<[u8]>>, StoreError>> {
        self.passed(self.store.content(tenant, kind, id))
    }
}

#[tokio::test]
async fn a_leased_step_outlives_failed_reads_of_the_store() {
    let (store, is_down) = (Arc::new(MemoryStore::new()), Arc::<AtomicBool>::default());
    let failing = Failing {
        store: Arc::clone(&store),
        is_down: Arc::clone(&is_down),
    };
    let runtime = over(
        Arc::new(failing),
        external(Vec::new(), WorkerPolicy::default()),
    );
    runtime.recover().await.unwrap();
    post(&runtime, &tenant(), KEY, "hello").await;
    let step = leased(&runtime).await;
    is_down.store(true, Ordering::SeqCst);
    // The step is read every 250 ms.
    tokio::time::sleep(Duration::from_millis(700)).await;
    is_down.store(false, Ordering::SeqCst);
    complete(&runtime, &step, &says("after the outage")).await;
    at_rest(&runtime).await;
    assert_eq!(text(&runtime).await, "after the outage");
    assert!(is_clean(&*store, &step).await);
}
