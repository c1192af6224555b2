//! The state that all requests share.

use crate::aitp::forms::Forms;
use crate::aitp::states::AitpStates;
use crate::app::App;
use crate::auth::Caller;
use crate::budgets::Permit;
use crate::error::ApiError;
use crate::metrics::Metrics;
use crate::thread_locks::ThreadLocks;
use http::Extensions;
use jiff::Timestamp;
use runtime::{Runtime, TenantId, ViewBudget};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The state that all requests share.
#[derive(Clone)]
pub(crate) struct Api {
    inner: Arc<Inner>,
}

struct Inner {
    app: App,
    turns: ThreadLocks,
    ephemeral_aitp_states: Arc<AitpStates>,
    forms: Forms,
    views: ViewBudget,
    /// The state of protocols between requests, one value of each type.
    protocols: Mutex<Extensions>,
    since: Timestamp,
    shutdown: CancellationToken,
}

/// The permission to hold one stream open; dropping it returns the permission.
pub(crate) struct OpenStream {
    lifetime: StreamLifetime,
    stalled_reader: Duration,
    _permit: Permit,
}

/// How long a stream may last: as long as the server runs, the caller's tenant is not paused, and the key is valid.
#[derive(Clone)]
pub(crate) struct StreamLifetime {
    shutdown: CancellationToken,
    paused: CancellationToken,
    caller: Caller,
}

impl StreamLifetime {
    /// Waits until the stream must end. Returns an error if the caller's key is the reason.
    pub(crate) async fn ended(&self) -> Option<ApiError> {
        tokio::select! {
            () = self.shutdown.cancelled() => None,
            () = self.paused.cancelled() => None,
            error = self.caller.ended() => Some(error),
        }
    }
}

impl OpenStream {
    /// After this time without reading, the stream's client is disconnected.
    pub(crate) fn stalled_reader(&self) -> Duration {
        self.stalled_reader
    }

    /// The lifetime of the stream.
    pub(crate) fn lifetime(&self) -> &StreamLifetime {
        &self.lifetime
    }

    /// Waits until the stream must end. Returns an error if the caller's key is the reason.
    // A method, so that an async block that calls it captures the permit too.
    pub(crate) async fn unwanted(&self) -> Option<ApiError> {
        self.lifetime.ended().await
    }
}

impl Api {
    pub(crate) fn new(app: App, shutdown: CancellationToken) -> Self {
        let views = ViewBudget::new(app.config().limits.thread_view_bytes);
        let passing_desks = Arc::new(AitpStates::new(app.ephemeral().clone(), false));
        let forms = Forms::new(app.config());
        Self {
            inner: Arc::new(Inner {
                ephemeral_aitp_states: passing_desks,
                forms,
                app,
                turns: ThreadLocks::default(),
                views,
                protocols: Mutex::default(),
                since: Timestamp::now(),
                shutdown,
            }),
        }
    }

    /// When the current configuration was loaded.
    pub(crate) fn since(&self) -> Timestamp {
        self.inner.since
    }

    pub(crate) fn app(&self) -> &App {
        &self.inner.app
    }

    /// The runtime of a tenant.
    pub(crate) fn runtime(&self, tenant: &TenantId) -> &Runtime {
        self.inner.app.runtime(tenant)
    }

    /// A new id.
    pub(crate) fn mint(&self) -> String {
        self.inner.app.default_runtime().mint()
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        self.inner.app.metrics()
    }

    pub(crate) fn turns(&self) -> &ThreadLocks {
        &self.inner.turns
    }

    /// A protocol's state between requests: one value of each type, which all clones share.
    pub(crate) fn shared<T: Clone + Default + Send + Sync + 'static>(&self) -> T {
        let protocols = self.inner.protocols.lock();
        let mut protocols = protocols.unwrap_or_else(PoisonError::into_inner);
        protocols.get_or_insert_default::<T>().clone()
    }

    /// Cancelled when the server stops.
    pub(crate) fn shutdown(&self) -> &CancellationToken {
        &self.inner.shutdown
    }

    /// The AITP states of a tenant's threads: their participants and open requests.
    pub(crate) fn aitp_states(&self, tenant: &TenantId) -> &Arc<AitpStates> {
        self.inner.app.aitp_states(tenant)
    }

    /// The AITP states of threads in memory only: their participants and open requests.
    pub(crate) fn ephemeral_aitp_states(&self) -> &Arc<AitpStates> {
        &self.inner.ephemeral_aitp_states
    }

    /// The cache of forms' documents.
    pub(crate) fn forms(&self) -> &Forms {
        &self.inner.forms
    }

    pub(crate) fn is_shutting_down(&self) -> bool {
        self.inner.shutdown.is_cancelled()
    }

    /// The limit on the memory that all requests may use for threads.
    pub(crate) fn views(&self) -> &ViewBudget {
        &self.inner.views
    }

    /// Opens a stream, which ends at the latest when the caller's key becomes invalid.
    pub(crate) fn open_stream(&self, caller: &Caller) -> Result<OpenStream, ApiError> {
        Ok(OpenStream {
            lifetime: StreamLifetime {
                shutdown: self.inner.shutdown.clone(),
                paused: self.inner.app.paused(&caller.tenant),
                caller: caller.clone(),
            },
            stalled_reader: self.inner.app.config().limits.stalled_reader,
            _permit: self.inner.app.budgets().open_stream(caller)?,
        })
    }
}
