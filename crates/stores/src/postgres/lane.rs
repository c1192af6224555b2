//! The connections that write: each commits what waits for it together.

use super::batch::Batch;
use super::columns::Known;
use super::connection::{Conn, Connector};
use super::decide::Decider;
use super::error::{Failure, Unavailable, failure, statement};
use super::hints::Notifier;
use super::known::KnownThreads;
use super::look::{Look, hold_usage, look};
use super::tasks::Tasks;
use super::work::Work;
use super::write::{Answer, Body, Decision, Write};
use crate::sum::Sum;
use crate::value::int;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use store::{Ownership, Quotas, StoreError};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};

/// Maximum number of requests in a batch, and of their bytes. A larger request is a batch of its own.
const REQUESTS: usize = 256;
const BYTES: usize = 1 << 20;

/// Maximum number of requests that wait for a lane. Further callers wait for a place.
const WAITING: usize = 4096;

/// The wait after a connection is lost.
const AFTER_LOSS: Duration = Duration::from_millis(20);

/// The first wait for space on the disk of the server, and the longest one.
const DISK_WAIT: Duration = Duration::from_millis(50);
const MAX_DISK_WAIT: Duration = Duration::from_secs(1);

/// An attempt without an end is stopped after this part of the patience of a request. The next one has twice the time, so
/// that a server that is slow can end it.
const SILENCE: u32 = 6;

/// How often a batch is done again that other transactions are in the way of.
const TRIES: usize = 10;

/// How often a refused new thread is looked at again.
const RACES: usize = 2;

/// The lanes of a store.
pub(super) struct Lanes {
    senders: Mutex<Vec<mpsc::Sender<Write>>>,
    tasks: Tasks,
    patience: Duration,
}

/// The parts of a store that all its lanes use.
#[derive(Clone)]
pub(super) struct Shared {
    pub(super) connector: Connector,
    pub(super) quotas: Quotas,
    pub(super) notifier: Notifier,
    /// How long a request waits for a database that can't be reached.
    pub(super) patience: Duration,
    pub(super) work: Arc<Work>,
}

impl Lanes {
    /// Starts lanes with these connections.
    pub(super) fn start(connections: Vec<Conn>, shared: &Shared) -> Self {
        let (mut senders, tasks) = (Vec::new(), Tasks::default());
        for conn in connections {
            let (sender, requests) = mpsc::channel(WAITING);
            let lane = Lane {
                shared: shared.clone(),
                conn: Some(conn),
                requests,
                later: VecDeque::new(),
                shard: fastrand::i16(0..16),
                known: KnownThreads::default(),
            };
            senders.push(sender);
            tasks.spawn(lane.run());
        }
        Self {
            senders: Mutex::new(senders),
            tasks,
            patience: shared.patience,
        }
    }

    /// Does a request on the lane of its thread. Dropping the caller does not undo it.
    pub(super) async fn run(&self, body: Body) -> Result<Answer, StoreError> {
        let lane = {
            let senders = self.senders.lock().unwrap_or_else(PoisonError::into_inner);
            let n = usize::try_from(hash(&body)).unwrap_or_default();
            let lane = n.checked_rem(senders.len()).and_then(|n| senders.get(n));
            lane.cloned().ok_or(StoreError::Closed)?
        };
        let (write, answered) = Write::new(body, Instant::now() + self.patience);
        lane.send(write).await.map_err(|_| StoreError::Closed)?;
        answered.await.map_err(|_| StoreError::Closed)?
    }

    fn end(&self) {
        let senders = self.senders.lock();
        senders.unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Waits until everything that was requested is done.
    pub(super) async fn close(&self) {
        self.end();
        self.tasks.ended().await;
    }
}

impl Drop for Lanes {
    fn drop(&mut self) {
        // What was requested is done all the same.
        self.end();
        self.tasks.detach();
    }
}

/// A number that all requests to a thread share. New threads with the same key go to the same lane.
fn hash(body: &Body) -> u32 {
    let text = match body {
        Body::Append(append) => append.thread.as_str(),
        Body::Create(new) => new.thread.key.as_deref().unwrap_or(new.thread.id.as_str()),
    };
    // FNV-1a.
    let mix = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    text.bytes().fold(0x811c_9dc5, mix)
}

struct Lane {
    shared: Shared,
    conn: Option<Conn>,
    requests: mpsc::Receiver<Write>,
    /// Requests that go into the next batch.
    later: VecDeque<Write>,
    /// Which of a tenant's rows of usage it counts in.
    shard: i16,
    known: KnownThreads,
}

/// Why a batch was not committed.
enum Fault {
    /// The connection is gone. Nothing was committed, unless a commit was sent: then it is unknown.
    Lost(StoreError),
    /// Other transactions were in the way.
    Overtaken,
    /// The disk of the server is full. The same statements succeed once it has space.
    DiskFull(StoreError),
    /// The server can write nothing now.
    Exhausted(StoreError),
    /// A statement was refused, and everything with it.
    Refused(StoreError),
}

impl Fault {
    fn of(error: tokio_postgres::Error) -> Self {
        Self::stored(statement(error))
    }

    fn stored(error: StoreError) -> Self {
        match failure(&error) {
            Some(Failure::Lost) => Self::Lost(error),
            Some(Failure::Overtaken) => Self::Overtaken,
            Some(Failure::DiskFull) => Self::DiskFull(error),
            Some(Failure::Exhausted) => Self::Exhausted(error),
            Some(Failure::Refused) | None => Self::Refused(error),
        }
    }
}

/// The sums of the first blocks of a batch, from the time on when its commit was sent.
type Sent = Vec<Option<Sum>>;

impl Lane {
    async fn run(mut self) {
        loop {
            let first = match self.later.pop_front() {
                Some(first) => first,
                None => match self.requests.recv().await {
                    Some(first) => first,
                    None => return,
                },
            };
            let batch = self.fill(first);
            self.commit(batch).await;
        }
    }

    /// A batch of what waits.
    fn fill(&mut self, first: Write) -> Vec<Write> {
        let mut bytes = first.bytes();
        let mut batch = vec![first];
        while batch.len() < REQUESTS && bytes < BYTES {
            let next = self.later.pop_front();
            let Some(next) = next.or_else(|| self.requests.try_recv().ok()) else {
                break;
            };
            bytes = bytes.saturating_add(next.bytes());
            batch.push(next);
        }
        batch
    }

    /// Commits a batch and answers its requests. If the database refuses it, they are done one by one.
    fn commit(&mut self, mut batch: Vec<Write>) -> BoxFuture<'_, ()> {
        async move {
            let (mut n_overtaken, mut n_refused) = (0, 0);
            let mut silence = self.shared.patience / SILENCE;
            let mut wait = DISK_WAIT;
            loop {
                self.refuse_late(&mut batch, &Unavailable::Silent.into());
                let Some(deadline) = batch.iter().map(|write| write.until).min() else {
                    return;
                };
                let mut sent = Sent::new();
                let attempt = self.attempt(&batch, (deadline, silence), &mut sent);
                match attempt.await {
                    Ok(decisions) => return self.answer(batch, decisions),
                    Err(Fault::Overtaken) => {
                        self.roll_back().await;
                        n_overtaken += 1;
                        if n_overtaken == TRIES {
                            return self.refuse(batch, &Unavailable::Overtaken.into());
                        }
                        sleep(Duration::from_millis(fastrand::u64(1..20))).await;
                    }
                    Err(Fault::Lost(error)) => {
                        self.conn = None;
                        silence = (silence * 2).min(self.shared.patience);
                        for (write, sum) in batch.iter_mut().zip(sent) {
                            write.doubt = sum.or(write.doubt);
                        }
                        // The next connection may lead to a server that does not write either.
                        self.wait_or_refuse(&mut batch, &error, AFTER_LOSS).await;
                    }
                    Err(Fault::DiskFull(error)) => {
                        self.roll_back().await;
                        self.shared.work.health.disk_full();
                        self.wait_or_refuse(&mut batch, &error, wait).await;
                        wait = (wait * 2).min(MAX_DISK_WAIT);
                    }
                    Err(Fault::Exhausted(error)) => {
                        self.roll_back().await;
                        return self.refuse(batch, &error);
                    }
                    Err(Fault::Refused(error)) => {
                        self.roll_back().await;
                        let is_new = |write: &Write| matches!(write.body, Body::Create(_));
                        if batch.len() == 1 && batch.iter().all(is_new) && n_refused < RACES {
                            n_refused += 1;
                            // Somebody may have made the thread, or deleted the one that it is forked from.
                            continue;
                        }
                        if batch.len() > 1 {
                            for write in batch {
                                self.commit(vec![write]).await;
                            }
                        } else {
                            self.refuse(batch, &error);
                        }
                        return;
                    }
                }
            }
        }
        .boxed()
    }

    /// Waits before a batch is tried again. Takes out those requests that have waited too long by then, and refuses them.
    async fn wait_or_refuse(&self, batch: &mut Vec<Write>, error: &StoreError, pause: Duration) {
        self.shared.work.health.commit_delayed(error);
        let first = batch.iter().map(|write| write.until).min();
        let end = Instant::now() + pause;
        sleep_until(first.map_or(end, |first| first.min(end))).await;
        self.refuse_late(batch, error);
    }

    /// Takes out those requests that have waited too long, and refuses them.
    fn refuse_late(&self, batch: &mut Vec<Write>, error: &StoreError) {
        let now = Instant::now();
        let late = batch.extract_if(.., |write| write.until <= now);
        let late: Vec<Write> = late.collect();
        if !late.is_empty() {
            self.refuse(late, error);
        }
    }

    /// Ends a transaction that has failed.
    async fn roll_back(&mut self) {
        if let Some(conn) = &self.conn {
            let silence = self.shared.patience / SILENCE;
            if !matches!(timeout(silence, conn.batch("ROLLBACK")).await, Ok(Ok(()))) {
                self.conn = None;
            }
        }
    }

    /// Connects again after the connection is lost, until the deadline.
    async fn connect(&mut self, deadline: Instant) -> Result<(), StoreError> {
        let mut wait = Duration::from_millis(10);
        if self.conn.as_ref().is_some_and(Conn::is_closed) {
            self.conn = None;
        }
        let work = self.shared.work.clone();
        let _unconnected = self.conn.is_none().then(|| work.unconnected());
        while self.conn.is_none() {
            match self.shared.connector.connect_to_write().await {
                Ok(conn) => self.conn = Some(conn),
                Err(error) if Instant::now() >= deadline => return Err(error),
                Err(error) => {
                    work.health.commit_delayed(&error);
                    sleep_until(deadline.min(Instant::now() + wait)).await;
                    wait = (wait * 2).min(Duration::from_secs(1));
                }
            }
        }
        Ok(())
    }

    /// Does a batch, with a limit for the connect and one for the rest. The rest has some time even if a request is near its
    /// end, because what was sent may land.
    async fn attempt(
        &mut self,
        batch: &[Write],
        (deadline, silence): (Instant, Duration),
        sent: &mut Sent,
    ) -> Result<Vec<Decision>, Fault> {
        let silent = |_| Fault::Lost(Unavailable::Silent.into());
        let connected = timeout_at(deadline, self.connect(deadline)).await;
        connected.map_err(silent)?.map_err(Fault::Lost)?;
        let now = Instant::now();
        let until = deadline.max(now + self.shared.patience / SILENCE);
        let until = until.min(now + silence);
        let done = timeout_at(until, self.attempt_connected(batch, sent)).await;
        done.unwrap_or_else(|elapsed| Err(silent(elapsed)))
    }

    async fn attempt_connected(
        &mut self,
        batch: &[Write],
        sent: &mut Sent,
    ) -> Result<Vec<Decision>, Fault> {
        let (quotas, shard) = (self.shared.quotas.clone(), self.shard);
        let Some(conn) = &self.conn else {
            return Err(Fault::Lost(StoreError::Closed));
        };
        conn.takes_unconfirmed();
        if let Some(look) = self.known.look(batch, &quotas) {
            match attempt_known(conn, batch, look, (&quotas, shard), sent).await {
                Ok(Some(done)) => {
                    self.known.note(&done.look);
                    return Ok(done.decisions);
                }
                Err(
                    fault @ (Fault::Lost(_)
                    | Fault::Overtaken
                    | Fault::DiskFull(_)
                    | Fault::Exhausted(_)),
                ) => {
                    return Err(fault);
                }
                // It is looked at before it is decided.
                Ok(None) | Err(Fault::Refused(_)) => {}
            }
            self.known.forget(batch);
            sent.clear();
        }
        let look = look(conn, batch, &quotas).await;
        let look = look.map_err(Fault::of)?;
        let mut look = look.map_err(Fault::Refused)?;
        let held = hold_usage(conn, batch, &mut look, &quotas).await;
        held.map_err(Fault::stored)?;
        let done = write(conn, batch, look, (&quotas, shard), sent).await?;
        self.known.note(&done.look);
        Ok(done.decisions)
    }

    fn answer(&mut self, batch: Vec<Write>, decisions: Vec<Decision>) {
        let is_accepted = |it: &&Decision| matches!(it, Decision::Accepted(_));
        let n_accepted = decisions.iter().filter(is_accepted).count();
        if n_accepted > 0 {
            self.shared.work.appended(n_accepted);
        }
        for (write, decision) in batch.into_iter().zip(decisions) {
            match decision {
                Decision::Accepted(answer) => {
                    self.hint(&write);
                    write.answer(Ok(answer));
                }
                Decision::Known(answer) => {
                    if write.doubt.is_some() {
                        self.hint(&write);
                    }
                    write.answer(Ok(answer));
                }
                Decision::Refused(error) => {
                    self.shared.work.health.read_failed(&error);
                    write.answer(Err(error));
                }
                Decision::Later => self.later.push_back(write),
            }
        }
    }

    fn refuse(&self, batch: Vec<Write>, error: &StoreError) {
        self.shared.work.health.write_failed(error);
        for write in batch {
            write.answer(Err(again(error)));
        }
    }

    fn hint(&self, write: &Write) {
        let notifier = &self.shared.notifier;
        notifier.grown(write.thread(), write.end());
        if let Body::Append(append) = &write.body
            && append.ownership == Ownership::Offer
        {
            notifier.due();
        }
    }
}

/// An error for another request of the same batch.
fn again(error: &StoreError) -> StoreError {
    if let StoreError::Duplicate(id) = error {
        StoreError::Duplicate(id.clone())
    } else if let StoreError::Damaged(what) = error {
        StoreError::Damaged(what.clone())
    } else {
        // The last cause says most.
        let mut last: &dyn std::error::Error = error;
        while let Some(cause) = last.source() {
            last = cause;
        }
        Unavailable::Refused(last.to_string()).into()
    }
}

/// The decisions that were committed, and the threads as they are since.
struct Done {
    decisions: Vec<Decision>,
    look: Look,
}

/// Decides about requests in an open transaction, and commits.
async fn write(
    conn: &Conn,
    batch: &[Write],
    look: Look,
    (quotas, shard): (&Quotas, i16),
    sent: &mut Sent,
) -> Result<Done, Fault> {
    let (decider, decisions, sums) = decide(conn, batch, look, quotas).await?;
    *sent = sums;
    let is_doubtful = batch.iter().any(|write| write.doubt.is_some());
    let Decider { look, batch, .. } = decider;
    let committed = if batch.is_empty() {
        let end = if is_doubtful { "COMMIT" } else { "ROLLBACK" };
        conn.batch(end).await
    } else {
        batch.commit(conn, shard).await
    };
    committed.map_err(Fault::of)?;
    if conn.takes_unconfirmed() {
        return Err(Fault::Lost(Unavailable::Unconfirmed.into()));
    }
    Ok(Done { decisions, look })
}

/// Writes requests without a look at their threads before: all that is sent fails if one is not as it was last. `None` if
/// a request would not be accepted.
async fn attempt_known(
    conn: &Conn,
    batch: &[Write],
    look: Look,
    (quotas, shard): (&Quotas, i16),
    sent: &mut Sent,
) -> Result<Option<Done>, Fault> {
    let known = look.threads.values().map(|found| Known {
        no: found.no,
        epoch: int(found.epoch.0),
        tail: int(found.tail.0),
        owner: found.owner,
        sum: found.sum.to_vec(),
    });
    let known = known.collect();
    let (decider, decisions, sums) = decide(conn, batch, look, quotas).await?;
    let is_clear = |it: &Decision| matches!(it, Decision::Accepted(_) | Decision::Later);
    let Decider {
        look, mut batch, ..
    } = decider;
    if batch.is_empty() || !decisions.iter().all(is_clear) {
        return Ok(None);
    }
    batch.known = known;
    *sent = sums;
    let committed = batch.commit(conn, shard).await;
    committed.map_err(Fault::of)?;
    if conn.takes_unconfirmed() {
        return Err(Fault::Lost(Unavailable::Unconfirmed.into()));
    }
    Ok(Some(Done { decisions, look }))
}

type Decided<'a> = (Decider<'a>, Vec<Decision>, Sent);

async fn decide<'a>(
    conn: &'a Conn,
    batch: &[Write],
    look: Look,
    quotas: &'a Quotas,
) -> Result<Decided<'a>, Fault> {
    let mut decider = Decider {
        conn,
        quotas,
        look,
        batch: Batch::default(),
    };
    let (mut decisions, mut sums) = (Vec::new(), Sent::new());
    for write in batch {
        let (decision, sum) = decider.decide(write).await.map_err(Fault::stored)?;
        decisions.push(decision);
        sums.push(sum);
    }
    Ok((decider, decisions, sums))
}
