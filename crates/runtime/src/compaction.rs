//! Compactions: a summary replaces the oldest runs when a model reads a thread.
//!
//! The log, documents and all views still have the runs. A compaction ends where a run ends and
//! nothing of it waits, so it never separates a call from its result.

mod border;
mod draft;
mod illegal_cut;
mod stored;

pub(crate) use draft::{Draft, append};
pub use illegal_cut::{CutRefusal, IllegalCut, LegalCut};
pub(crate) use stored::{ForModel, StoredCompaction};

use crate::error::RuntimeError;
use crate::runtime::Runtime;
use crate::thread_page::{Chain, Position};
use crate::view::ReadSize;
use jiff::Timestamp;
use store::TenantId;
use timeline::{Compaction, CompactionId, ExecutionId, Rejected, Removed, Seq, SummaryAuthor};

/// How often a compaction is prepared again because the thread's history has changed meanwhile.
const MAX_ATTEMPTS: usize = 3;

/// The end of what a compaction replaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cut {
    /// The end of this execution.
    Through(ExecutionId),
    /// This event of the thread's own log, which ends a run.
    At(Seq),
    /// The newest possible end that leaves this many finished runs after it.
    KeepRuns(usize),
}

/// A compaction to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewCompaction {
    /// Where it ends.
    pub cut: Cut,
    /// The text for the model.
    pub summary: String,
    /// The author of the text.
    pub author: SummaryAuthor,
}

/// A compaction of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadCompaction {
    /// The compaction.
    pub compaction: Compaction,
    /// When it was made.
    pub at: Timestamp,
    /// Its event; `None` if it is in the log of an ancestor.
    pub seq: Option<Seq>,
    /// The last event that it replaces; `None` if it is in the log of an ancestor.
    pub through: Option<Seq>,
    /// Whether it was withdrawn.
    pub is_withdrawn: bool,
    /// Whether models read it. At most one compaction of a thread counts: the newest that is not
    /// withdrawn.
    pub counts: bool,
}

impl Runtime {
    /// Represents the oldest runs of a thread by a summary when a model reads the thread. If the
    /// compaction that counts has the same end and the same text, nothing is written.
    ///
    /// # Errors
    ///
    /// [`RuntimeError::Cut`] if no compaction can end there, [`RuntimeError::MessageTooLarge`] if the summary is larger
    /// than a message may be.
    pub async fn compact(
        &self,
        tenant: &TenantId,
        key: &str,
        new: NewCompaction,
    ) -> Result<ThreadCompaction, RuntimeError> {
        let (bytes, max) = (new.summary.len(), self.inner.options.message_bytes);
        if bytes > max {
            return Err(RuntimeError::MessageTooLarge { bytes, max });
        }
        let live = self.existing(tenant, key).await?;
        for _ in 0..MAX_ATTEMPTS {
            let generation = live.hold().await?.core()?.generation;
            let chain = self.chain(tenant, key).await?;
            let draft = Draft::of(&chain, &new.cut).await?;
            if let Some(current) = chain.current_compaction().await?
                && current.through() == draft.through
                && current.compaction.summary == new.summary
            {
                return Ok(listed(&chain, current, true));
            }
            let id = CompactionId::from(self.mint());
            let made = draft.finish(id.clone(), new.summary.clone(), new.author.clone());
            let live = std::sync::Arc::clone(&live);
            let appended = self
                .run_to_completion(async move { append(&live, generation, made).await })
                .await?;
            if appended.is_some() {
                return self.compaction(tenant, key, &id).await;
            }
        }
        Err(RuntimeError::BrokenOff)
    }

    /// Lists compactions of a thread, newest first. Those of its ancestors up to the fork are among
    /// them. [`Position::END`] reads the first page. Also returns the position that reads the next
    /// page; none if there is none. `limit` is at least one. A page of large compactions has fewer.
    pub async fn compactions(
        &self,
        tenant: &TenantId,
        key: &str,
        mut before: Position,
        limit: usize,
    ) -> Result<(Vec<ThreadCompaction>, Option<Position>), RuntimeError> {
        let chain = self.chain(tenant, key).await?;
        let current = chain.current_compaction().await?;
        let current = current.map(|current| current.position);
        let (mut list, mut size) = (Vec::new(), ReadSize::default());
        while let Some(found) = chain.compaction_before(before).await? {
            if list.len() >= limit {
                return Ok((list, Some(before)));
            }
            if let Err(error) = size.add(found.bytes).await {
                if list.is_empty() {
                    return Err(error.into());
                }
                return Ok((list, Some(before)));
            }
            before = found.position;
            let counts = current == Some(before);
            list.push(listed(&chain, found, counts));
        }
        Ok((list, None))
    }

    /// The compaction that counts for models; none if they read all runs.
    pub async fn current_compaction(
        &self,
        tenant: &TenantId,
        key: &str,
    ) -> Result<Option<ThreadCompaction>, RuntimeError> {
        let chain = self.chain(tenant, key).await?;
        let current = chain.current_compaction().await?;
        Ok(current.map(|it| listed(&chain, it, true)))
    }

    /// Withdraws a compaction: the one before it counts again, or the runs themselves.
    ///
    /// # Errors
    ///
    /// [`RuntimeError::Rejected`] if the thread has no such compaction, or it is withdrawn.
    pub async fn withdraw_compaction(
        &self,
        tenant: &TenantId,
        key: &str,
        id: CompactionId,
    ) -> Result<Seq, RuntimeError> {
        self.remove(tenant, key, Removed::Compaction(id)).await
    }

    async fn compaction(
        &self,
        tenant: &TenantId,
        key: &str,
        id: &CompactionId,
    ) -> Result<ThreadCompaction, RuntimeError> {
        let chain = self.chain(tenant, key).await?;
        let mut has_newer = false;
        let found = chain.newest_compaction(|it| {
            let is_it = it.compaction.id == *id;
            has_newer |= !is_it && !it.is_withdrawn;
            is_it
        });
        let missing = || Rejected::NotThere(Removed::Compaction(id.clone()));
        let found = found.await?.ok_or_else(missing)?;
        let counts = !found.is_withdrawn && !has_newer;
        Ok(listed(&chain, found, counts))
    }
}

fn listed(chain: &Chain<'_>, found: StoredCompaction, counts: bool) -> ThreadCompaction {
    ThreadCompaction {
        seq: chain.own_seq(found.position),
        through: chain.own_seq(found.through()),
        at: found.at,
        is_withdrawn: found.is_withdrawn,
        compaction: found.compaction,
        counts,
    }
}

/// Checks that a thread has a compaction that is not withdrawn.
pub(crate) async fn check_withdrawable(
    chain: &Chain<'_>,
    id: &CompactionId,
) -> Result<(), RuntimeError> {
    let what = Removed::Compaction(id.clone());
    let found = chain.newest_compaction(|found| found.compaction.id == *id);
    match found.await? {
        Some(found) if found.is_withdrawn => Err(Rejected::RemovedAlready(what).into()),
        Some(_) => Ok(()),
        None => Err(Rejected::NotThere(what).into()),
    }
}

/// The compactions that replace an event at or after this position, unless they are withdrawn.
pub(crate) async fn compactions_reaching(
    chain: &Chain<'_>,
    first: Position,
) -> Result<Vec<Removed>, RuntimeError> {
    let mut list = Vec::new();
    let walk = chain.newest_compaction(|found| {
        if !found.is_withdrawn && found.through() >= first {
            list.push(Removed::Compaction(found.compaction.id.clone()));
        }
        // Those before it replace only earlier events.
        found.position < first
    });
    walk.await?;
    Ok(list)
}
