//! The events that a fork shares with the threads that it was forked from.

use crate::error::ApiError;
use crate::threads::ThreadKey;
use runtime::{Filter, PageRequest, Position};

/// The number of events that a thread has from its ancestors. A fork's own log begins with 1, after the
/// events that it shares.
pub(super) async fn inherited(thread: &ThreadKey) -> Result<u64, ApiError> {
    let found = thread.find().await?;
    if found.row().thread.fork.is_none() {
        return Ok(0);
    }
    let last = PageRequest::Before {
        before: Position::END,
        n: 1,
    };
    let end = thread.page(last, Filter::Facts).await?;
    Ok(end.last.0.saturating_sub(end.transcript.seq.0))
}

/// The number of an event in the thread's own log; none if an ancestor has it.
pub(super) fn own_seq(position: Position, inherited: u64) -> Option<u64> {
    position.0.checked_sub(inherited).filter(|seq| *seq > 0)
}
