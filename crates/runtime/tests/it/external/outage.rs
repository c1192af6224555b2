//! Steps for workers while the store fails.

use super::{
    KEY, PATIENCE, at_rest, complete, external, is_clean, leased, over, post, says, tenant, text,
};
use futures_util::future::BoxFuture;
use loomline_runtime as runtime;
use runtime::WorkerPolicy;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use store::objects::{NewObject, ObjectPage, ObjectTable, SidecarObject};
use store::suite::Layer;
use store::{MemoryStore, Store, StoreError, TenantId};

/// The kinds of a step and of its answer in the store.
const STEP: &str = "external.step";
const ANSWER: &str = "external.answer";

/// A store whose objects can't be read or written at times.
struct Failing {
    store: Arc<MemoryStore>,
    is_down: Arc<AtomicBool>,
    /// Steps can't be deleted.
    keeps_steps: Arc<AtomicBool>,
}

impl Failing {
    /// With its memory and its switches.
    fn new() -> (Self, Arc<MemoryStore>, Arc<AtomicBool>, Arc<AtomicBool>) {
        let store = Arc::new(MemoryStore::new());
        let (is_down, keeps_steps) = <(Arc<AtomicBool>, Arc<AtomicBool>)>::default();
        let failing = Self {
            store: Arc::clone(&store),
            is_down: Arc::clone(&is_down),
            keeps_steps: Arc::clone(&keeps_steps),
        };
        (failing, store, is_down, keeps_steps)
    }

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

    // The memory is the disk of the next process.
    fn close(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(std::future::ready(Ok(())))
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
        if kind == STEP && self.keeps_steps.load(Ordering::SeqCst) {
            return Box::pin(std::future::ready(Err(StoreError::Failed("slow".into()))));
        }
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
    let (failing, store, is_down, _) = Failing::new();
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

/// Waits until the store has no answer of a worker.
async fn without_answers(store: &MemoryStore) {
    let gone = async {
        let page = || ObjectPage {
            limit: 1,
            ..ObjectPage::default()
        };
        while !store
            .list(&tenant(), ANSWER, page())
            .await
            .unwrap()
            .is_empty()
        {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(PATIENCE, gone).await.unwrap();
}

#[tokio::test]
async fn an_answer_counts_although_its_step_could_not_be_removed() {
    let (failing, store, _, keeps_steps) = Failing::new();
    let reactor = external(Vec::new(), WorkerPolicy::default());
    let runtime = over(Arc::new(failing), reactor);
    runtime.recover().await.unwrap();
    post(&runtime, &tenant(), KEY, "hello").await;
    let step = leased(&runtime).await;
    keeps_steps.store(true, Ordering::SeqCst);
    complete(&runtime, &step, &says("once")).await;
    without_answers(&store).await;
    keeps_steps.store(false, Ordering::SeqCst);
    at_rest(&runtime).await;
    assert_eq!(text(&runtime).await, "once");
    assert!(is_clean(&*store, &step).await);
}

#[tokio::test]
async fn a_step_whose_answer_died_with_its_process_is_offered_again() {
    let (failing, store, _, keeps_steps) = Failing::new();
    let reactor = || external(Vec::new(), WorkerPolicy::default());
    let first = over(Arc::new(failing), reactor());
    first.recover().await.unwrap();
    post(&first, &tenant(), KEY, "hello").await;
    let step = leased(&first).await;
    keeps_steps.store(true, Ordering::SeqCst);
    complete(&first, &step, &says("lost")).await;
    without_answers(&store).await;
    first.shutdown().await.unwrap();

    let second = over(store.clone(), reactor());
    second.recover().await.unwrap();
    let again = leased(&second).await;
    assert_eq!((again.step.clone(), again.attempt), (step.step, 2));
    complete(&second, &again, &says("again")).await;
    at_rest(&second).await;
    assert_eq!(text(&second).await, "again");
    assert!(is_clean(&*store, &again).await);
}
