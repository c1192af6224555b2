//! The runtime: its dependencies and limits.

use crate::cache::CacheSize;
use crate::clock::{Clock, Ids, SystemClock, SystemIds};
use crate::error::RuntimeError;
use crate::lease::Node;
use crate::live::Live;
use crate::observer::{Nobody, Observer};
use crate::pages::Pages;
use crate::reactor::Reactors;
use crate::run_slots::RunSlots;
use crate::thread_changes::Subscriptions;
use crate::unrecovered::Unrecovered;
use crate::worker_steps::ExternalSteps;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use store::{ObjectTable, Store, TenantId};
use timeline::ThreadId;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The limits of a runtime.
#[derive(Clone, Copy, Debug)]
pub struct RuntimeOptions {
    /// Maximum number of triggers queued on one thread.
    pub queue_limit: usize,
    /// Maximum size of the threads that stay in memory for followers and later requests, in bytes.
    pub thread_cache_bytes: usize,
    /// Maximum size of one message, or of one part of an agent's answer, as JSON in bytes.
    pub message_bytes: usize,
    /// Maximum duration of an execution, unless its trigger sets one.
    pub run_timeout: Option<Duration>,
    /// Maximum number of handoffs between agents for one message of a user.
    pub max_handoffs: u32,
    /// Number of processes that may die while they execute one step of a run; the next process ends
    /// the run as failed.
    pub max_starts: u32,
    /// Pause before the second start of a step after a process died with it. Each further start
    /// waits four times as long, at most a minute.
    pub restart_pause: Duration,
}

impl Default for RuntimeOptions {
    fn default() -> Self {
        Self {
            queue_limit: 100,
            thread_cache_bytes: 64 << 20,
            message_bytes: 4 << 20,
            run_timeout: None,
            max_handoffs: 10,
            max_starts: 5,
            restart_pause: Duration::from_secs(1),
        }
    }
}

/// The runtime's dependencies. Default: the system's clock, random ids, and no observer.
#[derive(Clone)]
pub struct Sources {
    /// The source of the current time.
    pub clock: Arc<dyn Clock>,
    /// New ids.
    pub ids: Arc<dyn Ids>,
    /// Receives the ends of executions, for metrics.
    pub observer: Arc<dyn Observer>,
    /// The slots of concurrent runs. Runtimes that share them share their limits.
    pub runs: Arc<RunSlots>,
    /// The name of this process among the nodes of a shared store. A process that starts again under its name takes up
    /// its former runs at once.
    pub node: String,
}

impl Default for Sources {
    fn default() -> Self {
        Self {
            clock: Arc::new(SystemClock),
            ids: Arc::new(SystemIds),
            observer: Arc::new(Nobody),
            runs: Arc::default(),
            node: SystemIds.mint(),
        }
    }
}

pub(crate) struct Inner {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) node: Arc<Node>,
    pub(crate) reactors: Arc<dyn Reactors>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn Ids>,
    pub(crate) observer: Arc<dyn Observer>,
    pub(crate) runs: Arc<RunSlots>,
    pub(crate) external: ExternalSteps,
    pub(crate) unrecovered: Mutex<Unrecovered>,
    /// Locked while a run that may have killed its process is tried again.
    pub(crate) trial: tokio::sync::Mutex<()>,
    pub(crate) options: RuntimeOptions,
    pub(crate) pages: Arc<Pages>,
    pub(crate) subscriptions: Arc<Subscriptions>,
    pub(crate) cache: Arc<CacheSize>,
    pub(crate) tasks: TaskTracker,
    pub(crate) shutdown: CancellationToken,
    pub(crate) running: AtomicUsize,
    pub(crate) live: Mutex<BTreeMap<ThreadId, Arc<Live>>>,
    pub(crate) keys: Mutex<BTreeMap<(TenantId, String), ThreadId>>,
}

/// Runs the threads of a store. Clones share it.
#[derive(Clone)]
pub struct Runtime {
    pub(crate) inner: Arc<Inner>,
}

impl Runtime {
    /// A runtime with a store. Call [`Runtime::recover`] before the first request.
    pub fn new(
        store: Arc<dyn Store>,
        reactors: Arc<dyn Reactors>,
        options: RuntimeOptions,
    ) -> Self {
        Self::with_sources(store, reactors, options, Sources::default())
    }

    /// A runtime with its own clock, ids or observer.
    pub fn with_sources(
        store: Arc<dyn Store>,
        reactors: Arc<dyn Reactors>,
        options: RuntimeOptions,
        sources: Sources,
    ) -> Self {
        let Sources {
            clock,
            ids,
            observer,
            runs,
            node,
        } = sources;
        let node = Node::new(node, runs.shared_by());
        let (shutdown, tasks) = (CancellationToken::new(), TaskTracker::new());
        let external = ExternalSteps::new(
            Arc::clone(&store),
            Arc::clone(&clock),
            Arc::clone(&ids),
            shutdown.clone(),
            tasks.clone(),
        );
        Self {
            inner: Arc::new(Inner {
                store,
                node: Arc::new(node),
                reactors,
                clock,
                ids,
                observer,
                runs,
                external,
                unrecovered: Mutex::default(),
                trial: tokio::sync::Mutex::default(),
                options,
                pages: Arc::new(Pages::new(options.thread_cache_bytes)),
                subscriptions: Arc::default(),
                cache: Arc::new(CacheSize::new(options.thread_cache_bytes)),
                tasks,
                shutdown,
                running: AtomicUsize::new(0),
                live: Mutex::default(),
                keys: Mutex::default(),
            }),
        }
    }

    /// The store.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.inner.store
    }

    /// Sidecar objects of tenants.
    pub fn objects(&self) -> &dyn ObjectTable {
        self.inner.store.objects()
    }

    /// The steps that workers answer.
    pub fn external(&self) -> &ExternalSteps {
        &self.inner.external
    }

    /// A new id for an item or for any use of the caller.
    pub fn mint(&self) -> String {
        self.inner.ids.mint()
    }

    /// The slots of concurrent runs.
    pub fn slots(&self) -> &Arc<RunSlots> {
        &self.inner.runs
    }

    /// Number of threads that this process works on.
    pub fn running(&self) -> usize {
        self.inner.running.load(Ordering::Relaxed)
    }

    /// Runs a request to its end even if its caller is gone, so that writes are not left
    /// incomplete. [`Runtime::shutdown`] waits for it.
    ///
    /// # Errors
    ///
    /// The request's own, or [`RuntimeError::BrokenOff`] if it panicked.
    pub async fn run_to_completion<T, E>(
        &self,
        request: impl Future<Output = Result<T, E>> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<RuntimeError> + Send + 'static,
    {
        self.inner
            .tasks
            .spawn(request)
            .await
            .unwrap_or_else(|error| {
                tracing::error!(%error, "a request broke off");
                Err(RuntimeError::BrokenOff.into())
            })
    }

    /// Stops all work. Executions stay unfinished and continue at the next [`Runtime::recover`].
    /// Waits for the tasks, then closes the store.
    pub async fn shutdown(&self) -> Result<(), RuntimeError> {
        self.inner.shutdown.cancel();
        self.inner.tasks.close();
        self.inner.tasks.wait().await;
        self.leave().await;
        self.inner.store.close().await?;
        Ok(())
    }
}
