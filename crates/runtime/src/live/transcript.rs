//! A thread's log, folded as a whole.

use crate::error::RuntimeError;
use crate::pages::{PAGE, text_bytes};
use crate::view::ReadSize;
use store::{Filter, Store};
use timeline::{Seq, ThreadId, Transcript};

/// Folds a thread's log from its first event. A fork's log starts with the events of its parent.
/// Removed entries are still in the transcript.
pub(crate) async fn read_transcript(
    store: &dyn Store,
    thread: &ThreadId,
    filter: Filter,
) -> Result<Transcript, RuntimeError> {
    let mut chain = vec![(thread.clone(), Seq(u64::MAX))];
    while let Some(fork) = match chain.last() {
        Some((id, _)) => store.row(id).await?.thread.fork,
        None => None,
    } {
        chain.push((fork.thread_id, fork.seq));
    }
    let (mut transcript, mut size) = (Transcript::default(), ReadSize::default());
    while let Some((id, end)) = chain.pop() {
        transcript = transcript.continued();
        'log: loop {
            let page = store.read(&id, transcript.seq, PAGE, filter).await?;
            size.add(text_bytes(&page)).await?;
            for logged in &page {
                if logged.record.seq > end {
                    break 'log;
                }
                transcript.apply(&logged.record);
            }
            if page.is_empty() {
                break;
            }
        }
    }
    Ok(transcript)
}
