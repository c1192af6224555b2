//! Following a thread: live, replayed, or resumed after any event (EK-10).

use crate::live::Live;
use crate::pages::{PAGE, Page};
use futures_util::stream::BoxStream;
use futures_util::{StreamExt, TryStreamExt};
use std::sync::{Arc, Weak};
use store::{Filter, Logged, Store, StoreError};
use timeline::{Event, ExecutionId, Seq, ThreadId};

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

/// The records of a thread after an event: every one, once, in order.
///
/// Hints announce new records. A hint may be late or lost, so a follower always reads the log; a
/// follower that falls behind reads the store.
pub type Follow = BoxStream<'static, Result<Arc<Logged>, StoreError>>;

pub(crate) fn follow(live: Arc<Live>, after: Seq, until: Until) -> Follow {
    // A thread that is watched stays in memory, so the watch begins here and not at the first poll.
    let mut tail = live.watch();
    Box::pin(async_stream::try_stream! {
        let mut seen = after;
        loop {
            let end = *tail.borrow_and_update();
            if end.gone {
                Err(StoreError::NotFound)?;
            }
            while seen < end.seq {
                let mut page = Reading::of(live.after(seen).await?);
                if page.is_empty() {
                    break;
                }
                while let Some(record) = page.next() {
                    seen = record.record.seq;
                    let last = ends(&record.record.event, &until);
                    yield record;
                    if last {
                        return;
                    }
                }
            }
            if until == Until::Rest && !end.streaming && seen >= end.seq {
                return;
            }
            if tail.changed().await.is_err() {
                return;
            }
        }
    })
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
                yield Arc::new(logged);
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
    seen: Seq,
) -> Result<Follow, StoreError> {
    // The log is read twice, so that none of it is held.
    let mut step = None;
    let mut records = facts(Arc::clone(store), live.thread.clone(), seen);
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
    let from = step.unwrap_or(seen);
    let past = facts(Arc::clone(store), live.thread.clone(), from);
    Ok(past.chain(follow(live, from, Until::Forever)).boxed())
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
