//! The connection of one process to the store: slow, unreliable, and gone when the process is.

use crate::world::{World, names};
use futures_util::StreamExt as _;
use futures_util::future::{BoxFuture, pending};
use futures_util::stream::BoxStream;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use store::suite::Layer;
use store::{
    Append, Appended, Created, DueSearch, EventLog as _, Hint, Lease, NewRecord, NodeId,
    NodeTable as _, Ownership, Store, StoreError, TenantId, ThreadTable as _, Token,
};
use timeline::{Seq, ThreadId};
use tokio::sync::Notify;
use tokio::time::Instant;

/// The length of a lease.
const LEASE: Duration = Duration::from_secs(12);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Runs,
    Frozen,
    Dead,
}

/// Whether a process runs.
pub(crate) struct Life {
    state: Mutex<State>,
    changed: Notify,
}

impl Life {
    fn new() -> Self {
        Self {
            state: Mutex::new(State::Runs),
            changed: Notify::new(),
        }
    }

    fn set(&self, state: State) {
        let mut now = self.state.lock().unwrap();
        if *now != State::Dead {
            *now = state;
        }
        drop(now);
        self.changed.notify_waiters();
    }

    pub(crate) fn freeze(&self) {
        self.set(State::Frozen);
    }

    pub(crate) fn thaw(&self) {
        self.set(State::Runs);
    }

    pub(crate) fn die(&self) {
        self.set(State::Dead);
    }

    pub(crate) fn is_dead(&self) -> bool {
        *self.state.lock().unwrap() == State::Dead
    }

    /// Waits until the process runs; for ever if it is dead.
    pub(crate) async fn pass(&self) {
        loop {
            let changed = self.changed.notified();
            let state = *self.state.lock().unwrap();
            match state {
                State::Runs => return,
                State::Frozen => changed.await,
                State::Dead => pending().await,
            }
        }
    }

    /// Waits until the process is dead.
    pub(crate) async fn ended(&self) {
        loop {
            let changed = self.changed.notified();
            if self.is_dead() {
                return;
            }
            changed.await;
        }
    }
}

/// The hints on their way to a process, by the time of their arrival.
#[derive(Default)]
struct Hints {
    due: Mutex<BTreeMap<(Instant, u64), Hint>>,
    n_sent: Mutex<u64>,
    arrived: Notify,
}

/// How a process sees the store.
pub(crate) struct Link {
    pub(crate) world: Arc<World>,
    pub(crate) place: usize,
    pub(crate) life: Arc<Life>,
    /// The ids under which the process has joined.
    nodes: Mutex<Vec<NodeId>>,
    /// Whether it has heard that it is dead, and has not joined again.
    is_declared: AtomicBool,
    broken_until: Mutex<Option<Instant>>,
    hints: Arc<Hints>,
}

impl Link {
    pub(crate) fn new(world: &Arc<World>, place: usize) -> Arc<Self> {
        let link = Arc::new(Self {
            world: Arc::clone(world),
            place,
            life: Arc::new(Life::new()),
            nodes: Mutex::default(),
            is_declared: AtomicBool::new(false),
            broken_until: Mutex::default(),
            hints: Arc::default(),
        });
        world.connect(place, &link);
        link
    }

    /// Whether the process has joined under this id.
    pub(crate) fn is_node(&self, node: NodeId) -> bool {
        self.nodes.lock().unwrap().contains(&node)
    }

    /// Breaks the connection for a while. The hints of that time are lost, and then the process hears that.
    pub(crate) fn cut(&self, length: Duration) {
        *self.broken_until.lock().unwrap() = Some(Instant::now() + length);
        self.send(Hint::Lost, length);
    }

    pub(crate) fn mend(&self) {
        *self.broken_until.lock().unwrap() = None;
    }

    fn is_broken(&self) -> bool {
        let until = *self.broken_until.lock().unwrap();
        until.is_some_and(|until| until > Instant::now())
    }

    pub(crate) fn hinted(&self, hint: &Hint) {
        let faults = self.world.faults;
        if self.is_broken() || self.life.is_dead() || self.world.fails(faults.loses_hint) {
            return;
        }
        let n = 1 + u64::from(self.world.fails(faults.doubles_hint));
        for _ in 0..n {
            let delay = self.world.roll(faults.hint_ms + 1);
            self.send(hint.clone(), Duration::from_millis(delay));
        }
    }

    fn send(&self, hint: Hint, delay: Duration) {
        let mut n_sent = self.hints.n_sent.lock().unwrap();
        *n_sent += 1;
        let key = (Instant::now() + delay, *n_sent);
        self.hints.due.lock().unwrap().insert(key, hint);
        self.hints.arrived.notify_one();
    }

    /// The delay of a call or of an answer: some take ten times as long as the others.
    async fn delay(&self) {
        let is_slow = self.world.happens(30);
        let longest = self.world.faults.delay_ms[self.place] * if is_slow { 10 } else { 1 };
        self.world.pause(longest).await;
    }

    fn cut_off(what: &str) -> StoreError {
        StoreError::Failed(what.into())
    }

    /// A call on its way to the store.
    async fn sent(&self) -> Result<(), StoreError> {
        self.life.pass().await;
        let faults = self.world.faults;
        if !self.world.is_calm() {
            self.delay().await;
        }
        // What a process had sent before it died or froze may arrive.
        if self.life.is_dead() && self.world.happens(500) {
            pending::<()>().await;
        }
        if self.is_broken() || self.world.fails(faults.fails) {
            self.life.pass().await;
            return Err(Self::cut_off(
                "the connection broke before the call took effect",
            ));
        }
        Ok(())
    }

    /// The answer on its way back.
    async fn answered<T>(&self, answer: Result<T, StoreError>) -> Result<T, StoreError> {
        let faults = self.world.faults;
        let is_lost = self.world.fails(faults.loses_answer);
        if !self.world.is_calm() {
            self.delay().await;
        }
        self.life.pass().await;
        if is_lost || self.is_broken() {
            return Err(Self::cut_off("the connection broke before the answer"));
        }
        answer
    }

    async fn call<T>(&self, call: BoxFuture<'_, Result<T, StoreError>>) -> Result<T, StoreError> {
        self.sent().await?;
        let answer = call.await;
        self.answered(answer).await
    }

    async fn appends(&self, append: Append) -> Result<Appended, StoreError> {
        self.sent().await?;
        let (world, place) = (&self.world, self.place);
        let answer = world.store.append(append.clone()).await;
        let Append {
            thread,
            epoch,
            tail,
            ownership,
            records,
            ..
        } = &append;
        let result = match &answer {
            Ok(_) => "landed".to_owned(),
            Err(error) => error.to_string(),
        };
        let names = names(records);
        world.note(format_args!(
            "n{place} append {thread} @{tail} {epoch:?} {ownership:?}{names}: {result}"
        ));
        if let Ok(appended) = &answer {
            world.appended(self, &append, *appended);
            world.hint(place, &Hint::Grown(thread.clone(), appended.tail));
            if *ownership == Ownership::Offer {
                world.hint(place, &Hint::Due);
            }
        }
        self.answered(answer).await
    }
}

impl Layer for Link {
    fn inner(&self) -> &dyn Store {
        &*self.world.store
    }

    fn passed<'a, T: Send + 'a>(
        &'a self,
        answer: BoxFuture<'a, Result<T, StoreError>>,
    ) -> BoxFuture<'a, Result<T, StoreError>> {
        Box::pin(self.call(answer))
    }

    fn get_or_create<'a>(
        &'a self,
        tenant: &'a TenantId,
        first: Vec<NewRecord>,
        token: Option<Token>,
        owner: Option<NodeId>,
    ) -> BoxFuture<'a, Result<Created, StoreError>> {
        Box::pin(async move {
            self.sent().await?;
            let (world, place) = (&self.world, self.place);
            let made = world
                .store
                .get_or_create(tenant, first.clone(), token, owner);
            let answer = made.await;
            let names = names(&first);
            world.note(format_args!(
                "n{place} makes{names}: {:?}",
                answer.as_ref().map(|it| it.epoch)
            ));
            if let Ok(created) = &answer {
                world.created(created, &first, owner);
            }
            self.answered(answer).await
        })
    }

    fn append(&self, append: Append) -> BoxFuture<'_, Result<Appended, StoreError>> {
        Box::pin(self.appends(append))
    }

    fn delete<'a>(
        &'a self,
        tenant: &'a TenantId,
        thread: &'a ThreadId,
        tail: Option<Seq>,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            self.sent().await?;
            let (world, place) = (&self.world, self.place);
            let answer = world.store.delete(tenant, thread, tail).await;
            world.note(format_args!(
                "n{place} deletes {thread}: {}",
                answer.is_ok()
            ));
            if answer.is_ok() {
                world.deleted(thread);
                world.hint(place, &Hint::Gone(thread.clone()));
            }
            self.answered(answer).await
        })
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn join<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<NodeId, StoreError>> {
        Box::pin(async move {
            self.is_declared.store(false, Ordering::Relaxed);
            self.sent().await?;
            let world = &self.world;
            let answer = world.store.join(name).await;
            if let Ok(node) = &answer {
                world.joined(name, *node);
                world.lease(*node, LEASE);
                self.nodes.lock().unwrap().push(*node);
                world.note(format_args!("n{} joins as {node:?}", self.place));
            }
            self.answered(answer).await
        })
    }

    fn renew(&self, node: NodeId) -> BoxFuture<'_, Result<Lease, StoreError>> {
        Box::pin(async move {
            let (world, place) = (&self.world, self.place);
            let goes_on = self.is_declared.load(Ordering::Relaxed);
            world.check(!goes_on, || format!("n{place} goes on though it is dead"));
            self.sent().await?;
            let renewed = world.store.renew(node).await;
            let answer = renewed.map(|_| Lease {
                left: LEASE,
                n_nodes: world.lease(node, LEASE),
                now: world.now(),
            });
            let answer = self.answered(answer).await;
            if matches!(answer, Err(StoreError::DeadNode)) {
                world.note(format_args!("n{place} hears that it is dead: {node:?}"));
                self.is_declared.store(true, Ordering::Relaxed);
            }
            answer
        })
    }

    fn leave(&self, node: NodeId) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            self.sent().await?;
            self.world.note(format_args!("n{} leaves", self.place));
            self.world.end_lease(node);
            let answer = self.world.store.leave(node).await;
            self.world.hint(self.place, &Hint::Due);
            self.answered(answer).await
        })
    }

    fn declare_dead(&self) -> BoxFuture<'_, Result<usize, StoreError>> {
        Box::pin(async move {
            self.sent().await?;
            let ended = self.world.expired();
            for node in &ended {
                self.world
                    .note(format_args!("n{} declares {node:?} dead", self.place));
                self.world.store.leave(*node).await?;
            }
            self.answered(Ok(ended.len())).await
        })
    }

    fn owned(&self, node: NodeId) -> BoxFuture<'_, Result<Vec<ThreadId>, StoreError>> {
        Box::pin(async move {
            self.sent().await?;
            let answer = self.world.store.owned(node).await;
            self.answered(answer).await
        })
    }

    fn due(&self, search: DueSearch) -> BoxFuture<'_, Result<Vec<ThreadId>, StoreError>> {
        Box::pin(async move {
            self.sent().await?;
            let answer = self.world.store.due(search).await;
            if let Ok(due) = &answer
                && !due.is_empty()
            {
                self.world
                    .note(format_args!("n{} finds due {due:?}", self.place));
            }
            self.answered(answer).await
        })
    }

    fn hints(&self) -> BoxStream<'static, Hint> {
        let (hints, life) = (Arc::clone(&self.hints), Arc::clone(&self.life));
        async_stream::stream! {
            loop {
                let now = Instant::now();
                let next = {
                    let mut due = hints.due.lock().unwrap();
                    let first = due.first_key_value().map(|(key, _)| key.0);
                    match first {
                        Some(at) if at <= now => Ok(due.pop_first().map(|(_, hint)| hint)),
                        other => Err(other),
                    }
                };
                match next {
                    Ok(Some(hint)) => {
                        life.pass().await;
                        yield hint;
                    }
                    Ok(None) | Err(None) => hints.arrived.notified().await,
                    Err(Some(at)) => tokio::select! {
                        biased;
                        () = tokio::time::sleep_until(at) => {}
                        () = hints.arrived.notified() => {}
                    },
                }
            }
        }
        .boxed()
    }

    fn close(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        // It outlives the processes that use it.
        Box::pin(std::future::ready(Ok(())))
    }
}
