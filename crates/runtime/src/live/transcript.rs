//! A thread's log, folded as a whole, or as a model is to read it.

use super::Live;
use crate::compaction::ForModel;
use crate::error::RuntimeError;
use crate::pages::{PAGE, text_bytes};
use crate::thread_page::Chain;
use crate::view::ReadSize;
use store::{Filter, Store, StoreError};
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

impl Live {
    /// The logs of the thread as they are now.
    pub(crate) async fn chain(&self) -> Result<Chain<'_>, StoreError> {
        let store = self.store.as_ref();
        Chain::of(store, store.row(&self.thread).await?).await
    }

    /// The thread as a model is to read it: from the end of the compaction that counts.
    pub(crate) async fn for_model(&self) -> Result<ForModel, RuntimeError> {
        if !self.remembers_compaction()
            && let Some(transcript) = self.remembered_whole(Filter::Facts)
        {
            return Ok(ForModel {
                compaction: None,
                transcript,
            });
        }
        let chain = self.chain().await?;
        if let Some(compaction) = chain.current_compaction().await? {
            return chain.read_compacted(compaction).await;
        }
        let store = self.store.as_ref();
        Ok(ForModel {
            compaction: None,
            transcript: read_transcript(store, &self.thread, Filter::Facts).await?,
        })
    }
}
