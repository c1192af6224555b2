//! The runtime: threads by key, triggers, and what happens to those that find a thread busy.

use crate::clock::{Clock, Ids, SystemClock, SystemIds};
use crate::error::RuntimeError;
use crate::follow::{Follow, Until, follow};
use crate::live::{Held, Live, Tail};
use crate::reactor::Reactors;
use crate::request::{Accepted, Cancelled, Import, NewThreadRequest, Policy, React, Run};
use crate::store::{
    Filter, Logged, NewRecord, Page, Store, StoreError, TenantId, ThreadRow, Token,
};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use timeline::{
    Command, Ending, ExecutionId, Fork, Interruption, NewItem, NewThread, Payload, Rejected, Seq,
    State, ThreadId, Transcript, Trigger,
};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// What a runtime allows.
#[derive(Clone, Copy, Debug)]
pub struct RuntimeOptions {
    /// How many triggers may wait on one thread.
    pub queue_limit: usize,
    /// How many threads at rest stay in memory.
    pub threads_in_memory: usize,
    /// How long an execution may take, if its trigger does not say.
    pub run_timeout: Option<Duration>,
}

impl Default for RuntimeOptions {
    fn default() -> Self {
        Self {
            queue_limit: 100,
            threads_in_memory: 10_000,
            run_timeout: None,
        }
    }
}

pub(crate) struct Inner {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) reactors: Arc<dyn Reactors>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn Ids>,
    pub(crate) options: RuntimeOptions,
    pub(crate) tasks: TaskTracker,
    pub(crate) shutdown: CancellationToken,
    live: Mutex<BTreeMap<ThreadId, Arc<Live>>>,
    keys: Mutex<BTreeMap<(TenantId, String), ThreadId>>,
}

/// Runs the threads of a store. Cloning shares it.
#[derive(Clone)]
pub struct Runtime {
    pub(crate) inner: Arc<Inner>,
}

impl Runtime {
    /// A runtime over a store. Call [`Runtime::recover`] before the first request.
    pub fn new(
        store: Arc<dyn Store>,
        reactors: Arc<dyn Reactors>,
        options: RuntimeOptions,
    ) -> Self {
        Self::with_sources(
            store,
            reactors,
            options,
            Arc::new(SystemClock),
            Arc::new(SystemIds),
        )
    }

    /// The same with a clock and ids of the caller's.
    pub fn with_sources(
        store: Arc<dyn Store>,
        reactors: Arc<dyn Reactors>,
        options: RuntimeOptions,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn Ids>,
    ) -> Self {
        Self {
            inner: Arc::new(Inner {
                store,
                reactors,
                clock,
                ids,
                options,
                tasks: TaskTracker::new(),
                shutdown: CancellationToken::new(),
                live: Mutex::default(),
                keys: Mutex::default(),
            }),
        }
    }

    /// The store.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.inner.store
    }

    /// A new id for an item, or for whatever the caller needs one.
    pub fn mint(&self) -> String {
        self.inner.ids.mint()
    }

    /// How many executions run in this process.
    pub fn running(&self) -> usize {
        self.inner.tasks.len()
    }

    /// Goes on with every execution and trigger that a crash or a stop left unfinished. Answers
    /// with how many threads that are.
    pub async fn recover(&self) -> Result<usize, RuntimeError> {
        let threads = self.inner.store.unfinished().await?;
        for thread in &threads {
            let live = self.live_by_id(thread).await?;
            let mut held = live.hold().await?;
            self.resume(&live, &mut held).await?;
        }
        Ok(threads.len())
    }

    /// Stops all work as a crash would, but tidily: executions stay unfinished and go on at the
    /// next [`Runtime::recover`]. Waits for the tasks, then closes the store.
    pub async fn shutdown(&self) -> Result<(), RuntimeError> {
        self.inner.shutdown.cancel();
        self.inner.tasks.close();
        self.inner.tasks.wait().await;
        self.inner.store.close().await?;
        Ok(())
    }

    /// Makes a thread, or finds the one with that key.
    pub async fn get_or_create(
        &self,
        tenant: &TenantId,
        new: NewThreadRequest,
    ) -> Result<(ThreadRow, bool), RuntimeError> {
        if let Some(key) = &new.key {
            match self.inner.store.find(tenant, key).await {
                Ok(row) => return Ok((row, false)),
                Err(StoreError::NotFound) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let first = self.first(new, None)?;
        let created = self.inner.store.get_or_create(tenant, first).await?;
        Ok((
            self.inner.store.row(&created.thread).await?,
            created.created,
        ))
    }

    fn first(
        &self,
        new: NewThreadRequest,
        at: Option<jiff::Timestamp>,
    ) -> Result<Vec<NewRecord>, RuntimeError> {
        let id = self.inner.ids.mint();
        let key = new.key.unwrap_or_else(|| id.clone());
        let thread = NewThread {
            id: id.into(),
            key: Some(key),
            title: new.title,
            metadata: new.metadata,
            fork: new.fork,
        };
        let at = at.unwrap_or_else(|| self.inner.clock.now());
        let create = Command::Create {
            thread,
            context_id: self.inner.ids.mint().into(),
        };
        let events = State::default().decide(create, at)?;
        events
            .into_iter()
            .map(|event| {
                Ok(NewRecord {
                    at,
                    text: event.encode()?.into(),
                    event,
                })
            })
            .collect()
    }

    /// Finds a thread by its key.
    pub async fn find(&self, tenant: &TenantId, key: &str) -> Result<ThreadRow, RuntimeError> {
        Ok(self.inner.store.find(tenant, key).await?)
    }

    /// Lists the tenant's threads, the last changed first.
    pub async fn list(
        &self,
        tenant: &TenantId,
        page: Page,
    ) -> Result<Vec<ThreadRow>, RuntimeError> {
        Ok(self.inner.store.list(tenant, page).await?)
    }

    /// Takes a trigger: durable, and its execution begun or its place in the queue kept, when this
    /// returns. The execution runs on whether or not anyone waits for it.
    pub async fn react(&self, mut request: React) -> Result<Accepted, RuntimeError> {
        if self.inner.shutdown.is_cancelled() {
            return Err(RuntimeError::ShuttingDown);
        }
        if self
            .inner
            .reactors
            .find(request.run.agent.as_deref())
            .is_none()
        {
            return Err(RuntimeError::UnknownAgent(
                request.run.agent.unwrap_or_default(),
            ));
        }
        request.run.agent = self.inner.reactors.name(request.run.agent.as_deref());
        let live = self.live_by_key(&request.tenant, &request.key).await?;
        let mut held = live.hold().await?;
        let core = held.core()?;
        let after = core.tail;
        let run = Payload::write(&request.run)?;
        let item_id = request.item.id.clone();
        let active = core
            .state
            .active()
            .map(|active| active.execution.id.clone());
        let busy = active.is_some() || core.state.waiting().len() > 0;
        let mut commands = Vec::new();
        let mut execution_id = None;
        match (active, request.policy) {
            (Some(active), Policy::Reject) => return Err(RuntimeError::Busy(active)),
            (_, Policy::Queue) if busy => {
                let limit = self.inner.options.queue_limit;
                if core.state.waiting().len() >= limit {
                    return Err(RuntimeError::QueueFull { limit });
                }
                commands.push(Command::Enqueue {
                    item: request.item,
                    run,
                });
            }
            (active, Policy::Queue | Policy::Reject | Policy::Interrupt) => {
                if active.is_some() {
                    let why = Interruption {
                        reason: "user_cancelled".into(),
                        detail: Some("a newer message came".into()),
                    };
                    commands.push(Command::End {
                        ending: Ending::Stopped(why),
                    });
                    core.memory = None;
                }
                let start = self.start(Trigger::New(request.item), Some(run));
                if let Command::Start {
                    execution_id: id, ..
                } = &start
                {
                    execution_id = Some(id.clone());
                }
                commands.push(start);
            }
        }
        let accepted = Accepted {
            thread_id: live.thread.clone(),
            item_id,
            queued: execution_id.is_none(),
            execution_id,
            after,
            repeated: false,
        };
        let token = match request.token {
            Some(token) => Some(Token {
                token,
                answer: serde_json::to_string(&accepted)?,
            }),
            None => None,
        };
        match held
            .commit(commands.into_iter().map(|command| (None, command)), token)
            .await
        {
            Ok(_) => {
                self.ensure_runner(&live, &mut held)?;
                Ok(accepted)
            }
            Err(RuntimeError::Store(StoreError::Repeated { answer })) => Ok(Accepted {
                repeated: true,
                ..serde_json::from_str(&answer)?
            }),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn start(&self, trigger: Trigger, run: Option<Payload>) -> Command {
        let ids = &self.inner.ids;
        Command::Start {
            trigger,
            run,
            execution_id: ids.mint().into(),
            reaction_item_id: ids.mint().into(),
            step_id: ids.mint().into(),
            workflow_run_id: None,
        }
    }

    /// Stops the running execution, or this one if it runs: a recorded fact. What was complete
    /// stays; what waits begins.
    pub async fn cancel(
        &self,
        tenant: &TenantId,
        key: &str,
        execution: Option<&ExecutionId>,
        reason: &str,
    ) -> Result<Cancelled, RuntimeError> {
        let live = self.existing(tenant, key).await?;
        let mut held = live.hold().await?;
        let active = held
            .core()?
            .state
            .active()
            .map(|active| active.execution.id.clone());
        if let Some(wanted) = execution
            && active.as_ref() != Some(wanted)
        {
            return Err(RuntimeError::NotRunning(wanted.clone()));
        }
        if let Some(id) = &active {
            let why = Interruption {
                reason: reason.to_owned(),
                detail: None,
            };
            self.end(&live, &mut held, id, Ending::Stopped(why)).await?;
        }
        Ok(Cancelled {
            execution_id: active,
            seq: held.core()?.tail,
        })
    }

    /// Ends an execution and begins what waits, in one transaction.
    pub(crate) async fn end(
        &self,
        live: &Arc<Live>,
        held: &mut Held<'_>,
        execution: &ExecutionId,
        ending: Ending,
    ) -> Result<(), RuntimeError> {
        let mut commands = vec![(None, Command::End { ending })];
        if held.core()?.state.waiting().len() > 0 && !self.inner.shutdown.is_cancelled() {
            commands.push((None, self.start(Trigger::Waiting, None)));
        }
        held.core()?.memory = None;
        held.commit(commands, None).await?;
        let core = held.core()?;
        if let Some((_, signal)) = core.runner.take_if(|(of, _)| of == execution) {
            signal.cancel();
        }
        self.ensure_runner(live, held)
    }

    /// Closes a thread for good (ruling 9).
    pub async fn close(&self, tenant: &TenantId, key: &str) -> Result<Seq, RuntimeError> {
        self.ask(tenant, key, Command::Close).await
    }

    /// Opens a failed thread again.
    pub async fn reopen(&self, tenant: &TenantId, key: &str) -> Result<Seq, RuntimeError> {
        self.ask(tenant, key, Command::Reopen).await
    }

    /// Keeps an item that nothing answers.
    pub async fn record(
        &self,
        tenant: &TenantId,
        key: &str,
        item: NewItem,
    ) -> Result<Seq, RuntimeError> {
        let live = self.live_by_key(tenant, key).await?;
        let mut held = live.hold().await?;
        held.core()?.memory = None;
        held.commit([(None, Command::Record { item })], None).await
    }

    async fn ask(
        &self,
        tenant: &TenantId,
        key: &str,
        command: Command,
    ) -> Result<Seq, RuntimeError> {
        let live = self.existing(tenant, key).await?;
        live.hold().await?.commit([(None, command)], None).await
    }

    /// Makes a thread whose content is everything of this one up to `at`; costs nothing for what
    /// it shares (architecture rule 5). Without `at`, up to its end.
    pub async fn fork(
        &self,
        tenant: &TenantId,
        key: &str,
        new_key: Option<String>,
        at: Option<Seq>,
    ) -> Result<ThreadRow, RuntimeError> {
        let live = self.existing(tenant, key).await?;
        let seq = {
            let mut held = live.hold().await?;
            let core = held.core()?;
            match at {
                Some(at) if at < core.tail => at,
                Some(_) | None if core.state.active().is_none() => core.tail,
                Some(_) | None => return Err(RuntimeError::NotAtRest(core.tail)),
            }
        };
        self.check_rest(&live, seq).await?;
        let fork = Some(Fork {
            thread_id: live.thread.clone(),
            seq,
        });
        if let Some(new_key) = &new_key
            && self.inner.store.find(tenant, new_key).await.is_ok()
        {
            return Err(StoreError::KeyTaken(new_key.clone()).into());
        }
        let new = NewThreadRequest {
            key: new_key,
            fork,
            ..NewThreadRequest::default()
        };
        let created = self
            .inner
            .store
            .get_or_create(tenant, self.first(new, None)?)
            .await?;
        Ok(self.inner.store.row(&created.thread).await?)
    }

    async fn check_rest(&self, live: &Live, seq: Seq) -> Result<(), RuntimeError> {
        let mut state = State::default();
        let mut seen = Seq::ZERO;
        while seen < seq {
            let page = self
                .inner
                .store
                .read(&live.thread, seen, crate::live::PAGE, Filter::Facts)
                .await?;
            let Some(last) = page.last() else { break };
            seen = last.record.seq;
            for logged in page.iter().take_while(|logged| logged.record.seq <= seq) {
                state.apply(&logged.record.event);
            }
        }
        if state.active().is_some() {
            Err(RuntimeError::NotAtRest(seq))
        } else {
            Ok(())
        }
    }

    /// Writes a conversation from elsewhere into a new thread, in one transaction.
    pub async fn import(
        &self,
        tenant: &TenantId,
        key: Option<String>,
        import: Import,
    ) -> Result<ThreadRow, RuntimeError> {
        let new = NewThreadRequest {
            key,
            title: import.title,
            metadata: import.metadata,
            fork: None,
        };
        if let Some(key) = &new.key
            && self.inner.store.find(tenant, key).await.is_ok()
        {
            return Err(RuntimeError::NotEmpty);
        }
        let mut state = State::default();
        let mut records = self.first(new, import.created_at)?;
        for record in &records {
            state.apply(&record.event);
        }
        for (at, command) in import.commands {
            for event in state.decide(command, at)? {
                state.apply(&event);
                records.push(NewRecord {
                    at,
                    text: event.encode()?.into(),
                    event,
                });
            }
        }
        if let Some(active) = state.active() {
            return Err(Rejected::Busy(active.execution.id.clone()).into());
        }
        let created = self.inner.store.get_or_create(tenant, records).await?;
        if !created.created {
            return Err(RuntimeError::NotEmpty);
        }
        Ok(self.inner.store.row(&created.thread).await?)
    }

    /// Deletes a thread and everything of it; refused while it runs or has forks.
    pub async fn delete(&self, tenant: &TenantId, key: &str) -> Result<(), RuntimeError> {
        let live = self.existing(tenant, key).await?;
        {
            let mut held = live.hold().await?;
            if let Some(active) = held.core()?.state.active() {
                return Err(RuntimeError::Busy(active.execution.id.clone()));
            }
            self.inner.store.delete(tenant, &live.thread).await?;
        }
        self.inner
            .live
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&live.thread);
        self.inner
            .keys
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&(tenant.clone(), key.to_owned()));
        Ok(())
    }

    /// Follows a thread: every record after `after`, once, in order, then what comes.
    pub async fn follow(
        &self,
        tenant: &TenantId,
        key: &str,
        after: Seq,
        until: Until,
    ) -> Result<Follow, RuntimeError> {
        let live = self.existing(tenant, key).await?;
        // The state tells whether more is coming; it is loaded before the follower looks.
        drop(live.hold().await?);
        Ok(follow(live, after, until))
    }

    /// Reads at most `limit` records after `after`.
    pub async fn read(
        &self,
        tenant: &TenantId,
        key: &str,
        after: Seq,
        limit: usize,
    ) -> Result<Vec<Logged>, RuntimeError> {
        let row = self.inner.store.find(tenant, key).await?;
        Ok(self
            .inner
            .store
            .read(&row.thread.id, after, limit, Filter::All)
            .await?)
    }

    /// The whole conversation; as large as the thread. With the chunks, it also has what answers
    /// that were cut off had said.
    pub async fn transcript(
        &self,
        tenant: &TenantId,
        key: &str,
        filter: Filter,
    ) -> Result<Transcript, RuntimeError> {
        let row = self.inner.store.find(tenant, key).await?;
        Ok(crate::live::read_transcript(self.inner.store.as_ref(), &row.thread.id, filter).await?)
    }

    /// The state of a thread.
    pub async fn state(&self, tenant: &TenantId, key: &str) -> Result<(State, Seq), RuntimeError> {
        let live = self.existing(tenant, key).await?;
        let mut held = live.hold().await?;
        let core = held.core()?;
        Ok((core.state.clone(), core.tail))
    }

    async fn live_by_key(&self, tenant: &TenantId, key: &str) -> Result<Arc<Live>, RuntimeError> {
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

    async fn existing(&self, tenant: &TenantId, key: &str) -> Result<Arc<Live>, RuntimeError> {
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

    async fn live_by_id(&self, thread: &ThreadId) -> Result<Arc<Live>, RuntimeError> {
        Ok(self.live_of(self.inner.store.row(thread).await?))
    }

    fn live_of(&self, row: ThreadRow) -> Arc<Live> {
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
        if live.len() >= self.inner.options.threads_in_memory {
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

    /// The parameters a running execution was begun with.
    pub(crate) fn run_of(state: &State) -> Run {
        Run::of(
            state
                .active()
                .and_then(|active| active.execution.run.as_ref()),
        )
    }
}
