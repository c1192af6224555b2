//! The steps that workers answer, in the store.

use super::answer::{ExternalAnswer, RefusedAnswer, StepDelta};
use super::stored::{ANSWER, REQUEST, STEP, Status, StoredStep, after, attempt_id, chunks};
use super::wakes::{Change, Wakes};
use crate::clock::{Clock, Ids};
use crate::view::ViewRefused;
use jiff::Timestamp;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use store::objects::{NewObject, ObjectPage, ObjectTable, SidecarObject};
use store::{Store, StoreError, TenantId};
use timeline::{Payload, StepId, ThreadId};
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// How often the runner of a step reads a store that other processes write to…
const POLL: Duration = Duration::from_millis(250);
/// …and how often a worker without a step does. It reads all steps of a tenant.
const OFFER_POLL: Duration = Duration::from_secs(1);
/// Number of objects that are read at once.
pub(super) const PAGE: usize = 100;
/// Maximum number of requests with streamed pieces in one attempt.
const MAX_CHUNKS: u32 = 4096;
/// Maximum number of pieces in one request.
const MAX_DELTAS: usize = 256;
/// Maximum size of the pieces of one request, in bytes of their text.
const MAX_DELTA_BYTES: usize = 64 << 10;
/// Maximum length of a failure's message, in bytes.
const MAX_MESSAGE: usize = 4096;

/// Errors of workers' requests.
#[derive(Debug, thiserror::Error)]
pub enum ExternalError {
    /// The lease has ended, the step is over, or another attempt runs.
    #[error("this lease of the step has ended")]
    NotLeased,
    /// The run was cancelled.
    #[error("the run of the step was cancelled")]
    Cancelled,
    /// The answer has a wrong value.
    #[error(transparent)]
    Refused(#[from] RefusedAnswer),
    /// There is no memory to send the request of a step.
    #[error(transparent)]
    View(#[from] ViewRefused),
    /// The store has failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The steps that a worker wants.
pub struct LeaseRequest<'a> {
    /// The agents.
    pub agents: &'a BTreeSet<String>,
    /// Whether the worker may see the thread with this key.
    pub covers: &'a (dyn Fn(&str) -> bool + Send + Sync),
    /// The worker's name for itself.
    pub worker: Option<String>,
    /// Reserves memory for this number of bytes, before a step is leased.
    pub reserve: &'a (dyn Fn(usize) -> Result<(), ViewRefused> + Send + Sync),
}

/// A step that a worker has leased.
#[derive(Clone, Debug)]
pub struct LeasedStep {
    /// The step.
    pub step: StepId,
    /// The id of the lease, for all further requests.
    pub lease: String,
    /// How long the lease lasts without a heartbeat.
    pub lease_for: Duration,
    /// The number of the attempt, from 1.
    pub attempt: u32,
    /// The agent.
    pub agent: String,
    /// The thread.
    pub thread: ThreadId,
    /// The key of the thread.
    pub key: String,
    /// The execution.
    pub execution: String,
    /// The number of the step in the execution, from 0.
    pub iteration: u32,
    /// The messages for the model, the tools and the parameters.
    pub request: Payload,
}

/// The state of a lease after a heartbeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseState {
    /// It lasts this long without another heartbeat.
    Running(Duration),
    /// The run was cancelled: the worker can stop.
    Cancelled,
}

/// The steps of a store that workers answer. A worker may use any node of the store. Clones share the
/// wake-ups of this process.
#[derive(Clone)]
pub struct ExternalSteps {
    store: Arc<dyn Store>,
    pub(super) clock: Arc<dyn Clock>,
    ids: Arc<dyn Ids>,
    pub(super) wakes: Arc<Wakes>,
    pub(super) shutdown: CancellationToken,
    tasks: TaskTracker,
}

impl ExternalSteps {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn Ids>,
        shutdown: CancellationToken,
        tasks: TaskTracker,
    ) -> Self {
        Self {
            store,
            clock,
            ids,
            wakes: Arc::default(),
            shutdown,
            tasks,
        }
    }

    /// Notifies its waiters when this process offers a step of the tenant. Begin to wait before
    /// [`lease`](Self::lease).
    pub fn offers(&self, tenant: &TenantId) -> Arc<Notify> {
        self.wakes.of(Change::Offered(tenant.clone()))
    }

    /// How often a wait must look for steps of other processes; `None` if there are none.
    pub fn poll(&self) -> Option<Duration> {
        self.store.is_shared().then_some(OFFER_POLL)
    }

    /// How often the runner of a step must read it; `None` if no other process writes.
    pub(crate) fn step_poll(&self) -> Option<Duration> {
        self.store.is_shared().then_some(POLL)
    }

    /// Whether the store has this step, in any state.
    ///
    /// # Errors
    ///
    /// [`ExternalError::Store`].
    pub async fn has(&self, tenant: &TenantId, step: &str) -> Result<bool, ExternalError> {
        Ok(self.read(tenant, step).await?.is_some())
    }

    /// Leases the oldest waiting step, if there is one.
    ///
    /// # Errors
    ///
    /// [`ExternalError::Store`].
    pub async fn lease(
        &self,
        tenant: &TenantId,
        wanted: LeaseRequest<'_>,
    ) -> Result<Option<LeasedStep>, ExternalError> {
        let mut page = ObjectPage {
            limit: PAGE,
            ..ObjectPage::default()
        };
        loop {
            let found = self.objects().list(tenant, STEP, page.clone()).await?;
            for object in &found {
                let Ok(step) = serde_json::from_str::<StoredStep>(&object.json) else {
                    continue;
                };
                let now = self.clock.now();
                if step.stale_at <= now {
                    self.remove(tenant, object, step.attempt).await?;
                    continue;
                }
                let waits = matches!(step.status, Status::Waiting { until } if until > now);
                if !waits || !wanted.agents.contains(&step.agent) || !(wanted.covers)(&step.key) {
                    continue;
                }
                (wanted.reserve)(step.request_bytes)?;
                let leased = self
                    .take(tenant, object, step, wanted.worker.clone())
                    .await?;
                if leased.is_some() {
                    return Ok(leased);
                }
            }
            match found.last() {
                Some(last) if found.len() == PAGE => {
                    page.beyond = Some((last.created_at, last.id.clone()));
                }
                Some(_) | None => return Ok(None),
            }
        }
    }

    /// Leases this step; `None` if another worker was faster, or if its attempt is over.
    async fn take(
        &self,
        tenant: &TenantId,
        object: &SidecarObject,
        mut step: StoredStep,
        worker: Option<String>,
    ) -> Result<Option<LeasedStep>, ExternalError> {
        let id = attempt_id(&object.id, step.attempt);
        let request = self.objects().get(tenant, REQUEST, &id).await?;
        let request = request.and_then(|it| Payload::from_text(it.json).ok());
        let Some(request) = request else {
            return Ok(None);
        };
        let now = self.clock.now();
        let lease = self.ids.mint();
        let status = Status::Leased {
            lease: lease.clone(),
            worker,
            since: now,
            until: after(now, step.lease()),
        };
        step.set(status, now);
        if !self.replace(tenant, object, &step).await? {
            return Ok(None);
        }
        self.woken(tenant, &object.id);
        Ok(Some(LeasedStep {
            step: object.id.as_str().into(),
            lease,
            lease_for: step.lease(),
            attempt: step.attempt,
            agent: step.agent,
            thread: step.thread,
            key: step.key,
            execution: step.execution,
            iteration: step.iteration,
            request,
        }))
    }

    /// Prolongs a lease.
    ///
    /// # Errors
    ///
    /// [`ExternalError::NotLeased`] if the lease has ended.
    pub async fn heartbeat(&self, at: LeaseRef<'_>) -> Result<LeaseState, ExternalError> {
        let changed = self.change(at, |step, now| {
            let until = after(now, step.lease());
            let mut status = step.status.clone();
            if let Status::Leased { until: end, .. } = &mut status {
                *end = until;
            }
            Ok(status)
        });
        match changed.await {
            Ok(step) => Ok(LeaseState::Running(step.lease())),
            Err(ExternalError::Cancelled) => Ok(LeaseState::Cancelled),
            Err(error) => Err(error),
        }
    }

    /// Shows pieces of the answer to those that follow the thread. `seq` orders the requests of a lease;
    /// a repeated one is ignored.
    ///
    /// # Errors
    ///
    /// Those of [`heartbeat`](Self::heartbeat), [`ExternalError::Cancelled`], and
    /// [`ExternalError::Refused`] above the limits.
    pub async fn stream(
        &self,
        at: LeaseRef<'_>,
        seq: u32,
        deltas: &[StepDelta],
    ) -> Result<(), ExternalError> {
        let refused = |pointer: &str, what: String| {
            let pointer = pointer.to_owned();
            Err(ExternalError::Refused(RefusedAnswer { pointer, what }))
        };
        if seq >= MAX_CHUNKS {
            return refused("/seq", format!("expected a number below {MAX_CHUNKS}"));
        }
        let bytes: usize = deltas.iter().map(|delta| delta.text().len()).sum();
        if deltas.len() > MAX_DELTAS || bytes > MAX_DELTA_BYTES {
            let what = format!("expected at most {MAX_DELTAS} pieces and {MAX_DELTA_BYTES} bytes");
            return refused("/deltas", what);
        }
        let (_, step) = self.held(at).await?;
        if !matches!(step.status, Status::Leased { .. }) {
            return Err(ExternalError::NotLeased);
        }
        let (kind, id) = (chunks(at.step, step.attempt), format!("{seq:010}"));
        let chunk = NewObject {
            kind: kind.clone(),
            id: id.clone(),
            created_at: Timestamp::UNIX_EPOCH,
            json: serde_json::to_string(deltas).unwrap_or_default(),
            content: None,
            thread: Some(step.thread),
            is_limited: true,
        };
        self.objects().put(at.tenant, chunk).await?;
        if let Err(error) = self.held(at).await {
            // Its step may be gone, and nobody would remove it.
            self.objects().delete(at.tenant, &kind, &id, None).await?;
            return Err(error);
        }
        self.woken(at.tenant, at.step);
        Ok(())
    }

    /// Answers a step.
    ///
    /// # Errors
    ///
    /// Those of [`stream`](Self::stream).
    pub async fn complete(
        &self,
        at: LeaseRef<'_>,
        answer: &ExternalAnswer,
    ) -> Result<(), ExternalError> {
        answer.response("", self.clock.now())?;
        let (_, step) = self.held(at).await?;
        let Status::Leased { since, .. } = step.status else {
            return Ok(());
        };
        let mut answer = answer.clone();
        let taken = u64::try_from(self.clock.now().duration_since(since).as_millis());
        answer
            .usage
            .latency_ms
            .get_or_insert(taken.unwrap_or_default());
        let id = attempt_id(at.step, step.attempt);
        let object = NewObject {
            kind: ANSWER.to_owned(),
            id: id.clone(),
            created_at: Timestamp::UNIX_EPOCH,
            json: serde_json::to_string(&answer).unwrap_or_default(),
            content: None,
            thread: Some(step.thread),
            is_limited: false,
        };
        self.objects().put(at.tenant, object).await?;
        let changed = self.change(at, |_, _| {
            let lease = at.lease.to_owned();
            Ok(Status::Answered { lease })
        });
        if let Err(error) = changed.await {
            // The lease has ended meanwhile, and its attempt with it. After a fault of the store it is unknown.
            if !matches!(error, ExternalError::Store(_)) {
                self.objects().delete(at.tenant, ANSWER, &id, None).await?;
            }
            return Err(error);
        }
        self.woken(at.tenant, at.step);
        Ok(())
    }

    /// Fails a step, and with it the run.
    ///
    /// # Errors
    ///
    /// Those of [`stream`](Self::stream).
    pub async fn fail(&self, at: LeaseRef<'_>, message: &str) -> Result<(), ExternalError> {
        if message.is_empty() || message.len() > MAX_MESSAGE {
            return Err(ExternalError::Refused(RefusedAnswer {
                pointer: "/message".to_owned(),
                what: format!("expected 1 to {MAX_MESSAGE} bytes"),
            }));
        }
        let changed = self.change(at, |_, _| {
            Ok(Status::Failed {
                lease: at.lease.to_owned(),
                message: message.to_owned(),
            })
        });
        changed.await?;
        self.woken(at.tenant, at.step);
        Ok(())
    }

    /// Changes the status of a step under its lease. A repeated end of the same lease changes nothing.
    async fn change(
        &self,
        at: LeaseRef<'_>,
        status: impl Fn(&StoredStep, Timestamp) -> Result<Status, ExternalError>,
    ) -> Result<StoredStep, ExternalError> {
        loop {
            let (object, mut step) = self.held(at).await?;
            if !matches!(step.status, Status::Leased { .. }) {
                return Ok(step);
            }
            let now = self.clock.now();
            let status = status(&step, now)?;
            step.set(status, now);
            if self.replace(at.tenant, &object, &step).await? {
                return Ok(step);
            }
        }
    }

    /// The step of a lease that has not ended, or was answered under it.
    async fn held(&self, at: LeaseRef<'_>) -> Result<(SidecarObject, StoredStep), ExternalError> {
        let found = self.read(at.tenant, at.step).await?;
        let (object, step) = found.ok_or(ExternalError::NotLeased)?;
        if !(at.covers)(&step.key) {
            return Err(ExternalError::NotLeased);
        }
        match &step.status {
            Status::Leased { lease, until, .. } if lease == at.lease => {
                if *until <= self.clock.now() {
                    return Err(ExternalError::NotLeased);
                }
            }
            Status::Answered { lease, .. } | Status::Failed { lease, .. } if lease == at.lease => {}
            Status::Cancelled { lease } if lease == at.lease => {
                return Err(ExternalError::Cancelled);
            }
            Status::Waiting { .. }
            | Status::Leased { .. }
            | Status::Answered { .. }
            | Status::Failed { .. }
            | Status::Lost
            | Status::Cancelled { .. } => return Err(ExternalError::NotLeased),
        }
        Ok((object, step))
    }
}

/// A lease as a worker names it.
#[derive(Clone, Copy)]
pub struct LeaseRef<'a> {
    /// Whose step.
    pub tenant: &'a TenantId,
    /// The step.
    pub step: &'a str,
    /// The lease.
    pub lease: &'a str,
    /// Whether the worker may see the thread with this key.
    pub covers: &'a (dyn Fn(&str) -> bool + Send + Sync),
}

/// For both sides.
impl ExternalSteps {
    /// Runs a task that the shutdown of the runtime waits for.
    pub(crate) fn run(&self, task: impl Future<Output = ()> + Send + 'static) {
        if let Ok(handle) = Handle::try_current() {
            self.tasks.spawn_on(task, &handle);
        }
    }

    pub(super) fn woken(&self, tenant: &TenantId, step: &str) {
        self.wakes
            .wake(&Change::Step(tenant.clone(), step.to_owned()));
    }

    pub(super) fn objects(&self) -> &dyn ObjectTable {
        self.store.objects()
    }
}
