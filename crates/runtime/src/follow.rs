//! Following a thread: live, replayed, or resumed after any event (EK-10).

use crate::live::Live;
use crate::store::{Logged, StoreError};
use futures_util::stream::BoxStream;
use std::sync::Arc;
use timeline::{Event, ExecutionId, Seq};

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

// `thread.finished` is the last event of an execution.
fn ends(event: &Event, until: &Until) -> bool {
    match (event, until) {
        (Event::ThreadFinished { execution_id, .. }, Until::Execution(wanted)) => {
            execution_id == wanted
        }
        _ => false,
    }
}
