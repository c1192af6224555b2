//! Following a thread: live, replayed, or resumed after any event (EK-10).

use crate::live::{Live, PAGE};
use crate::store::{Filter, Logged, Store, StoreError};
use futures_util::stream::BoxStream;
use futures_util::{StreamExt, TryStreamExt};
use std::sync::Arc;
use timeline::{Event, ExecutionId, Seq, ThreadId};

/// When a follower has seen enough.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Until {
    /// Never: it stays for what comes.
    Forever,
    /// When it has seen all there is and no execution runs.
    Rest,
    /// When it has seen the end of this execution.
    Execution(ExecutionId),
}

/// The records of a thread after some event: every one, once, in order.
///
/// What is new is announced by a hint that may be late or lost on the way; the log is what is
/// read, so a follower that falls behind catches up from the store.
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
                let records = live.after(seen).await?;
                if records.is_empty() {
                    break;
                }
                for record in records {
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

/// The records of a thread from its beginning on, for those who fold the log and have seen it up to
/// `seen`: of what was over by then the facts alone, of the step that ran then everything.
pub(crate) async fn refollow(
    store: &Arc<dyn Store>,
    live: Arc<Live>,
    seen: Seq,
) -> Result<Follow, StoreError> {
    let mut past = Vec::new();
    let mut step = None;
    let mut records = facts(Arc::clone(store), live.thread.clone(), seen);
    while let Some(logged) = records.try_next().await? {
        match &logged.record.event {
            Event::StepCreated { .. } => step = Some((past.len(), logged.record.seq)),
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
        past.push(logged);
    }
    let (n_past, from) = step.map_or((past.len(), seen), |(at, seq)| (at + 1, seq));
    past.truncate(n_past);
    let past = futures_util::stream::iter(past.into_iter().map(Ok));
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
