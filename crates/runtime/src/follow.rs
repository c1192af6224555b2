//! Following a thread: live, replayed, or resumed after any event (EK-10).

use crate::lease::LeaseFault;
use crate::live::Live;
use crate::pages::{PAGE, Page};
use futures_util::stream::BoxStream;
use futures_util::{StreamExt, TryStreamExt};
use std::ops::Deref;
use std::sync::{Arc, Weak};
use std::time::Duration;
use store::{Filter, Logged, Store, StoreError};
use timeline::{Event, ExecutionId, ReadPosition, Seq, ThreadId};
use tokio::sync::watch;
use tokio::time::Instant;

/// The first and the longest pause before a follower repeats a read that failed…
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));
/// …and how long it repeats the read.
const PATIENCE: Duration = Duration::from_mins(1);

/// When a follower stops.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Until {
    /// Never: it waits for new records.
    Forever,
    /// When it has read all records and no execution runs.
    Rest,
    /// When it has read the end of this execution.
    Execution(ExecutionId),
}

/// A record that a follower reads, and the follower's position behind it.
///
/// A streamed chunk is followed before it is stored. Its record then has the position in the log
/// that it gets if nothing else is appended first.
#[derive(Clone, Debug)]
pub struct FollowedRecord {
    /// The record.
    pub logged: Arc<Logged>,
    /// The position from which a follower continues.
    pub position: ReadPosition,
}

impl FollowedRecord {
    /// A record of the log, for a reader that has all before it.
    pub fn stored(logged: Arc<Logged>) -> Self {
        let position = logged.record.seq.into();
        Self { logged, position }
    }

    /// Whether the log did not have the record when it was read.
    pub fn is_unstored(&self) -> bool {
        self.position.seq < self.logged.record.seq
    }
}

impl Deref for FollowedRecord {
    type Target = Logged;

    fn deref(&self) -> &Logged {
        &self.logged
    }
}

/// The records of a thread after a position: every one, once, in order. They are those of the log,
/// and the chunks of the running step before they are stored. If such chunks are lost, a reset of
/// their step follows. If the step has ended, the chunks that the log has of it follow the reset.
///
/// Hints announce new records. A hint may be late or lost, so a follower always reads the log; a
/// follower that falls behind reads the store.
pub type Follow = BoxStream<'static, Result<FollowedRecord, StoreError>>;

pub(crate) fn follow(live: Arc<Live>, after: ReadPosition, until: Until) -> Follow {
    // A thread that is watched stays in memory, so the watch begins here and not at the first poll.
    let mut tail = live.watch();
    let mut node_lost = live.lost();
    let n_shortened = live.n_shortened();
    Box::pin(async_stream::try_stream! {
        let mut position = after;
        'following: loop {
            let end = *tail.borrow_and_update();
            if end.gone {
                Err(StoreError::NotFound)?;
            }
            if live.n_shortened() != n_shortened {
                let (at, tail) = (position.seq, end.seq);
                Err(StoreError::AheadOfLog { at, tail })?;
            }
            while position.seq < end.seq {
                let page = page_after(&live, position.seq, &mut node_lost).await?;
                if live.n_shortened() != n_shortened {
                    continue 'following;
                }
                let mut page = Reading::of(page);
                if page.is_empty() {
                    break;
                }
                while let Some(logged) = page.next() {
                    let last = ends(&logged.record.event, &until);
                    let cut_off = position.lost_step(&logged.record.event);
                    if let Some(step) = cut_off.filter(|_| logged.record.seq > position.seq) {
                        for logged in live.restated(step, position.seq).await? {
                            position.pass_unstored();
                            yield FollowedRecord { logged, position };
                        }
                    }
                    if position.pass(logged.record.seq, &logged.record.event) {
                        yield FollowedRecord { logged, position };
                    }
                    if last {
                        return;
                    }
                }
            }
            for logged in live.unstored(position) {
                position.pass_unstored();
                yield FollowedRecord { logged, position };
            }
            if until == Until::Rest && !end.streaming && position.seq >= end.seq {
                return;
            }
            let (is_over, is_lost) = tokio::select! {
                biased;
                changed = tail.changed() => (changed.is_err(), false),
                changed = node_lost.changed() => (false, changed.is_ok()),
            };
            if is_lost {
                Err(StoreError::Failed(Box::new(LeaseFault::Ended)))?;
            }
            if is_over {
                return;
            }
        }
    })
}

/// A page of the records after a position. While a database that servers share does not answer, the follower waits, as
/// long as this node may have its lease again.
async fn page_after(
    live: &Live,
    after: Seq,
    node_lost: &mut watch::Receiver<()>,
) -> Result<Arc<Page>, StoreError> {
    let begin = Instant::now();
    let (mut pause, longest) = PAUSES;
    loop {
        let error = match live.after(after).await {
            Err(error) if error.is_retryable() && live.is_shared() => error,
            read => return read,
        };
        tracing::debug!(%error, thread = %live.thread, "a follower could not read yet");
        let is_lost = tokio::select! {
            changed = node_lost.changed() => changed.is_ok(),
            () = tokio::time::sleep(pause) => begin.elapsed() > PATIENCE,
        };
        if is_lost {
            return Err(error);
        }
        pause = (pause * 2).min(longest);
    }
}

/// A follower's position in a page. It does not hold a page from the store in memory; after a pause
/// of its reader it reads the page again.
struct Reading {
    page: Option<Arc<Page>>,
    shared: Weak<Page>,
    n_read: usize,
}

impl Reading {
    fn of(page: Arc<Page>) -> Self {
        Self {
            shared: Arc::downgrade(&page),
            page: Some(page),
            n_read: 0,
        }
    }

    fn is_empty(&self) -> bool {
        let page = self.page.as_ref();
        page.is_none_or(|page| page.records.is_empty())
    }

    /// The next record; none at the end of the page, or if the page is no longer in memory.
    fn next(&mut self) -> Option<Arc<Logged>> {
        let page = self.page.take().or_else(|| self.shared.upgrade())?;
        let record = page.records.get(self.n_read).cloned();
        self.n_read += 1;
        if !page.is_shared {
            self.page = Some(page);
        }
        record
    }
}

/// The facts of a thread up to `end`, in order: all of its records but the chunks.
pub(crate) fn facts(store: Arc<dyn Store>, thread: ThreadId, end: Seq) -> Follow {
    Box::pin(async_stream::try_stream! {
        let mut seen = Seq::ZERO;
        while seen < end {
            let page = store.read(&thread, seen, PAGE, Filter::Facts).await?;
            let Some(last) = page.last() else { return };
            seen = last.record.seq;
            for logged in page {
                if logged.record.seq > end {
                    return;
                }
                yield FollowedRecord::stored(Arc::new(logged));
            }
        }
    })
}

/// The records of a thread from its start, for readers that fold the log and have seen it up to
/// `seen`. Up to that event, finished steps have facts only; the step that ran then has all its
/// records.
pub(crate) async fn refollow(
    store: &Arc<dyn Store>,
    live: Arc<Live>,
    seen: ReadPosition,
) -> Result<Follow, StoreError> {
    // The log is read twice, so that none of it is held.
    let mut step = None;
    let mut records = facts(Arc::clone(store), live.thread.clone(), seen.seq);
    while let Some(logged) = records.try_next().await? {
        match &logged.record.event {
            Event::StepCreated { .. } => step = Some(logged.record.seq),
            Event::StepStatusChanged { .. } => step = None,
            Event::ContextCreated { .. }
            | Event::ContextResolved { .. }
            | Event::ContextStatusChanged { .. }
            | Event::ThreadCreated { .. }
            | Event::ThreadResolved { .. }
            | Event::ThreadStatusChanged { .. }
            | Event::ExecutionCreated { .. }
            | Event::ExecutionStatusChanged { .. }
            | Event::ItemCreated { .. }
            | Event::ItemStatusChanged { .. }
            | Event::PartCreated { .. }
            | Event::PartUpdated { .. }
            | Event::ChunkEmitted { .. }
            | Event::ThreadFinished { .. } => {}
        }
    }
    let from = step.unwrap_or(seen.seq);
    let past = facts(Arc::clone(store), live.thread.clone(), from);
    Ok(past
        .chain(follow(live, from.into(), Until::Forever))
        .boxed())
}

// `thread.finished` is the last event of an execution.
fn ends(event: &Event, until: &Until) -> bool {
    match (event, until) {
        (Event::ThreadFinished { execution_id, .. }, Until::Execution(wanted)) => {
            execution_id == wanted
        }
        _ => false,
    }
}
