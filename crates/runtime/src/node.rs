//! A node of a store that several processes share. It renews its lease, takes up due threads, and learns of the
//! changes that other nodes make.
//!
//! A store of one process needs none of this: its only node lives as long as the process.

use crate::error::{RuntimeError, render_error};
use crate::lease::LeaseFault;
use crate::live::Live;
use crate::planted::{self, Bug};
use crate::runtime::Runtime;
use crate::unrecovered::MAX_DUE;
use futures_util::StreamExt as _;
use futures_util::future::join_all;
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use store::{Hint, NodeId, StoreError, TenantId};
use timeline::{Seq, ThreadId};
use tokio::time::{Instant, timeout};

/// The number of searches for due threads between two searches for threads of this node that nobody works on.
const OWN_SEARCHES: u64 = 8;
/// Where more threads are due than one search takes up, the next one comes sooner by up to this factor: as soon as there
/// is room for them.
const HURRY: u32 = 16;
/// Time between two looks at the threads that followers read or that this node runs, as hints may be lost.
const LOOK: Duration = Duration::from_secs(1);
/// Maximum difference between the clocks of a node and of the store.
const MAX_OFFSET: jiff::SignedDuration = jiff::SignedDuration::from_secs(5);

impl Runtime {
    /// Whether this process may serve: its lease is valid, and its clock agrees with the store's.
    pub fn is_leased(&self) -> bool {
        self.lease_fault().is_none()
    }

    /// Why this process must not serve.
    pub fn lease_fault(&self) -> Option<LeaseFault> {
        let is_shared = self.inner.store.is_shared();
        self.inner.node.fault().filter(|_| is_shared)
    }

    /// The number of living nodes of the store, as of the last renewal of the lease.
    pub fn n_nodes(&self) -> usize {
        self.inner.node.n_nodes()
    }

    /// Joins the nodes of a shared store, takes up due threads, and starts the tasks of a node. Returns the number of
    /// due threads.
    pub(crate) async fn join(&self) -> Result<usize, RuntimeError> {
        let hints = self.inner.store.hints();
        self.join_again().await?;
        self.renew().await?;
        // What can fail comes first: a caller repeats all of it, and each task is started once.
        let first = timeout(self.inner.node.renewal(), self.sweep()).await;
        // The lease must be renewed before a search that takes long.
        let n_due = first.unwrap_or(Ok(0))?;
        let (renewing, sweeping, looking) = (self.clone(), self.clone(), self.clone());
        let hearing = self.clone();
        let tasks = &self.inner.tasks;
        tasks.spawn(async move { renewing.keep_lease().await });
        tasks.spawn(async move { sweeping.keep_sweeping().await });
        tasks.spawn(async move { looking.keep_looking().await });
        tasks.spawn(async move {
            let mut hints = hints;
            let shutdown = hearing.inner.shutdown.clone();
            while let Some(Some(hint)) = shutdown.run_until_cancelled(hints.next()).await {
                hearing.hear(hint).await;
            }
        });
        Ok(n_due)
    }

    async fn join_again(&self) -> Result<(), StoreError> {
        let node = &self.inner.node;
        let id = self.inner.store.join(&node.name).await?;
        node.joined(id);
        tracing::info!(
            node = id.0,
            name = node.name,
            "this process is a node of the store"
        );
        Ok(())
    }

    async fn renew(&self) -> Result<(), StoreError> {
        let node = &self.inner.node;
        let sent = Instant::now();
        let lease = self.inner.store.renew(node.id()).await?;
        let offset = self.inner.clock.now().duration_since(lease.now);
        let is_skewed = offset.abs() > MAX_OFFSET;
        if is_skewed {
            tracing::error!(%offset, "this machine's clock differs from the database's, so this node is not ready; synchronize the clocks");
        }
        node.renewed(sent, &lease, is_skewed);
        Ok(())
    }

    async fn keep_lease(&self) {
        while self.passed(self.inner.node.renewal()).await {
            match self.renew().await {
                Ok(()) => {}
                Err(StoreError::DeadNode) if planted::has(Bug::GoesOnWhenDead) => {}
                Err(StoreError::DeadNode) => self.start_over().await,
                Err(error) => {
                    tracing::warn!(
                        error = render_error(&error),
                        "the lease of this node was not renewed"
                    );
                    if self.inner.node.not_renewed() {
                        self.give_up_runs();
                    }
                }
            }
        }
    }

    /// Gives up all runs, because other nodes may have taken them, and joins again.
    async fn start_over(&self) {
        tracing::warn!("the lease of this node has ended; it gives up its runs and joins again");
        self.inner.node.not_renewed();
        if let Err(error) = self.join_again().await {
            tracing::warn!(
                error = render_error(&error),
                "this node could not join again yet"
            );
        }
        // Afterwards no run is taken any more under the old id.
        self.give_up_runs();
    }

    fn give_up_runs(&self) {
        // A thread can be locked for long, and the lease must be renewed meanwhile. A run may be about to start.
        let lives = self.threads_in_memory(|_| true);
        self.inner.tasks.spawn(async move {
            join_all(lives.iter().map(|live| live.give_up())).await;
        });
    }

    async fn keep_sweeping(&self) {
        let (mut finds_more, mut full) = (false, Vec::new());
        for n_searches in 0.. {
            let pause = self.inner.node.pause(n_searches);
            let end = Instant::now() + pause;
            let is_hurried = finds_more || !full.is_empty();
            loop {
                let part = self.passed(if is_hurried { pause / HURRY } else { pause });
                tokio::select! {
                    biased;
                    has_passed = part => {
                        if !has_passed {
                            return;
                        }
                    }
                    () = self.inner.node.has_due.notified() => break,
                }
                if self.has_room(finds_more, &full) || Instant::now() >= end {
                    break;
                }
            }
            if n_searches % OWN_SEARCHES == 0 {
                self.take_up_own().await;
            }
            let is_reading = self.unrecovered_threads().is_reading();
            let found = self.sweep().await;
            finds_more = matches!(found, Ok(n) if n >= MAX_DUE) || (finds_more && is_reading);
            full = self.unrecovered_threads().full_tenants();
            if let Err(error) = found {
                tracing::warn!(
                    error = render_error(&error),
                    "due threads could not be found"
                );
            }
        }
    }

    /// Whether a search can take up more threads than the last one, after which these tenants had enough.
    fn has_room(&self, finds_more: bool, full: &[TenantId]) -> bool {
        let unrecovered = self.unrecovered_threads();
        (finds_more && !unrecovered.is_reading()) || unrecovered.full_tenants() != full
    }

    /// Takes up threads whose run this node owns and nobody works on: the store has lost the end of the run, or its start
    /// had no answer.
    async fn take_up_own(&self) {
        if planted::has(Bug::ForgetsUnknownStarts) {
            return;
        }
        match self.inner.store.owned(self.inner.node.id()).await {
            Ok(mut owned) => {
                let is_worked_on = |live: Arc<Live>| live.is_worked_on();
                owned.retain(|thread| !self.known(thread).is_some_and(is_worked_on));
                self.recover_threads(owned);
            }
            Err(error) => tracing::debug!(
                error = render_error(&error),
                "the threads of this node could not be found"
            ),
        }
    }

    /// Takes up due threads, but those of tenants of which many wait for a free slot already.
    async fn sweep(&self) -> Result<usize, RuntimeError> {
        let store = &self.inner.store;
        if self.inner.node.is_steady() {
            store.declare_dead().await?;
        }
        let Some(search) = self.unrecovered_threads().search() else {
            return Ok(0);
        };
        let due = if planted::has(Bug::TakesThreadsOfLiving) {
            store.unfinished().await?
        } else {
            store.due(search).await?
        };
        Ok(self.recover_threads(due))
    }

    async fn keep_looking(&self) {
        while self.passed(LOOK).await {
            for live in self.threads_in_memory(Live::is_followed) {
                self.announce_follower(&live);
            }
            let is_watched = |live: &Live| live.is_worked_on() || live.is_followed();
            if !planted::has(Bug::TrustsHints) {
                self.look(self.threads_in_memory(is_watched)).await;
            }
            self.inner.subscriptions.wake_all();
        }
    }

    /// Compares threads in memory with the ends of their logs.
    async fn look(&self, lives: Vec<Arc<Live>>) {
        if lives.is_empty() {
            return;
        }
        let known: Vec<Seq> = lives.iter().map(|live| live.end()).collect();
        let ids = lives.iter().map(|live| live.thread.clone()).collect();
        let tails = match self.inner.store.tails(ids).await {
            Ok(tails) => tails.into_iter().collect::<BTreeMap<_, _>>(),
            Err(error) => {
                tracing::debug!(
                    error = render_error(&error),
                    "followed threads were not looked at"
                );
                return;
            }
        };
        for (live, known) in lives.into_iter().zip(known) {
            match tails.get(&live.thread) {
                Some(tail) => self.learn(&live, known, *tail).await,
                None if live.is_made() => self.forget(&live),
                None => {}
            }
        }
    }

    async fn learn(&self, live: &Live, known: Seq, tail: Seq) {
        if let Err(error) = live.learn(known, tail).await {
            tracing::debug!(error = render_error(&error), thread = %live.thread, "a thread that has changed was not read");
        }
    }

    async fn hear(&self, hint: Hint) {
        match hint {
            Hint::Grown(thread, tail) => {
                if let Some(live) = self.known(&thread) {
                    self.learn(&live, Seq::ZERO, tail).await;
                }
            }
            Hint::Gone(thread) => {
                if let Some(live) = self.known(&thread) {
                    self.look(vec![live]).await;
                }
            }
            Hint::Erased(thread) => {
                if let Some(live) = self.known(&thread)
                    && let Err(error) = Self::forget_removed_of(&live).await
                {
                    tracing::warn!(error = render_error(&error), %thread, "memory may have erased messages of a thread");
                }
                self.inner.pages.clear();
            }
            Hint::Watched(thread) => {
                if let Some(live) = self.known(&thread) {
                    live.watched();
                }
            }
            Hint::Due => self.inner.node.has_due.notify_one(),
            Hint::Lost => {
                // A thread may have been erased.
                for live in self.threads_in_memory(|_| true) {
                    live.forget_erased();
                }
                let is_watched = |live: &Live| live.is_worked_on() || live.is_followed();
                self.look(self.threads_in_memory(is_watched)).await;
            }
        }
    }

    /// The threads in memory that pass a test.
    fn threads_in_memory(&self, test: impl Fn(&Live) -> bool) -> Vec<Arc<Live>> {
        let lives = self.inner.live.lock();
        let lives = lives.unwrap_or_else(PoisonError::into_inner);
        lives.values().filter(|live| test(live)).cloned().collect()
    }

    /// Waits. False if the process stops meanwhile.
    async fn passed(&self, time: Duration) -> bool {
        let sleep = tokio::time::sleep(time);
        self.inner
            .shutdown
            .run_until_cancelled(sleep)
            .await
            .is_some()
    }

    /// Leaves the nodes of a shared store, so that the threads of this one are due at once.
    pub(crate) async fn leave(&self) {
        let (store, node) = (&self.inner.store, &self.inner.node);
        if !store.is_shared() || node.id() == NodeId::ALONE {
            return;
        }
        if let Err(error) = store.leave(node.id()).await {
            tracing::warn!(
                error = render_error(&error),
                "this node's threads are due when its lease has ended"
            );
        }
    }

    /// Has the owner of a run that is followed here store streamed chunks soon.
    pub(crate) fn announce_follower(&self, live: &Live) {
        if live.streams_at_other_node() {
            let hint = Hint::Watched(live.thread.clone());
            self.inner.store.announce(hint);
        }
    }

    /// A thread in memory, by its id.
    fn known(&self, thread: &ThreadId) -> Option<Arc<Live>> {
        let lives = self.inner.live.lock();
        let lives = lives.unwrap_or_else(PoisonError::into_inner);
        lives.get(thread).cloned()
    }
}
