//! Changes of existing threads: the title, the metadata and removed entries.

use crate::compaction::check_withdrawable;
use crate::error::RuntimeError;
use crate::live::Live;
use crate::runtime::Runtime;
use crate::thread_page::{Chain, Position};
use store::{Landmark, TenantId};
use timeline::{Command, Event, Rejected, Removed, Seq, StepId, Thread, ThreadUpdate};

impl Runtime {
    /// Changes the title or the metadata of a thread, also while an execution runs.
    pub async fn update_thread(
        &self,
        tenant: &TenantId,
        key: &str,
        update: ThreadUpdate,
    ) -> Result<Seq, RuntimeError> {
        self.change_thread(tenant, key, move |_| update.clone())
            .await
    }

    /// Changes the title or the metadata of a thread by its present ones. Nothing is written for an empty change.
    /// `change` is called again if another process has written meanwhile.
    pub async fn change_thread(
        &self,
        tenant: &TenantId,
        key: &str,
        change: impl Fn(&Thread) -> ThreadUpdate + Send + Sync + 'static,
    ) -> Result<Seq, RuntimeError> {
        let live = self.existing(tenant, key).await?;
        let store = self.inner.store.clone();
        self.run_to_completion(async move {
            live.decided(async || {
                let mut held = live.hold().await?;
                // The append is refused if the log has grown since.
                let row = store.row(&live.thread).await?;
                let ThreadUpdate { title, metadata } = change(&row.thread);
                if title.is_none() && metadata.is_none() {
                    return Ok(row.tail);
                }
                let command = Command::Update { title, metadata };
                held.commit([(None, command)], None).await
            })
            .await
        })
        .await
    }

    /// Hides a posted message, or the output of one agent's step, from readers from now on; or withdraws
    /// a compaction. Earlier
    /// copies, such as a sub-agent's report or a stored tree's snapshot, still have it; so does the
    /// log.
    ///
    /// # Errors
    ///
    /// [`RuntimeError::Rejected`] if the entry does not exist, is already removed, is queued, or
    /// belongs to a running execution. Also if it is a step whose calls were left open for answers.
    pub async fn remove(
        &self,
        tenant: &TenantId,
        key: &str,
        what: Removed,
    ) -> Result<Seq, RuntimeError> {
        let live = self.existing(tenant, key).await?;
        self.run_to_completion(async move {
            live.decided(async || {
                let mut held = live.hold().await?;
                Self::check_removable(&live, &what).await?;
                let what = what.clone();
                let seq = held
                    .commit([(None, Command::Remove { what })], None)
                    .await?;
                // What a reactor remembers has it still.
                held.core()?.generation += 1;
                Ok(seq)
            })
            .await
        })
        .await
    }

    /// Checks that an entry can be removed. The caller holds the thread's lock. The cost is
    /// proportional to the entry.
    async fn check_removable(live: &Live, what: &Removed) -> Result<(), RuntimeError> {
        let chain = live.chain().await?;
        let (landmark, what) = match what {
            Removed::Compaction(id) => return check_withdrawable(&chain, id).await,
            Removed::Item(id) => (Landmark::Item(id), what),
            Removed::Step(id) => (Landmark::Step(id), what),
        };
        let place = removable(&chain, landmark, what).await?;
        match what {
            Removed::Compaction(_) => Ok(()),
            Removed::Item(id) => {
                if is_written(&chain, place).await? {
                    return Err(Rejected::Written(id.clone()).into());
                }
                Ok(())
            }
            Removed::Step(id) => {
                let run = chain.run_before(place).await?;
                if run.is_none_or(|run| run.finished.is_none()) {
                    return Err(Rejected::StillNeeded(what.clone()).into());
                }
                if left_open(&chain, place, id).await? {
                    return Err(Rejected::LeftOpen(id.clone()).into());
                }
                Ok(())
            }
        }
    }
}

/// The position of an entry that exists and is not removed yet.
pub(crate) async fn removable(
    chain: &Chain<'_>,
    landmark: Landmark<'_>,
    what: &Removed,
) -> Result<Position, RuntimeError> {
    let Some(place) = chain.position_of(landmark).await? else {
        return Err(Rejected::NotThere(what.clone()).into());
    };
    if !chain.removed(vec![what.clone()]).await?.is_empty() {
        return Err(Rejected::RemovedAlready(what.clone()).into());
    }
    Ok(place)
}

/// Whether an execution writes the item at this position.
pub(crate) async fn is_written(chain: &Chain<'_>, place: Position) -> Result<bool, RuntimeError> {
    let made = chain.records(place.before(), 1).await?;
    let made = made.first().map(|logged| &logged.record.event);
    Ok(matches!(made, Some(Event::ItemCreated { item }) if item.execution_id.is_some()))
}

/// Records read at once.
const PAGE: usize = 100;

/// Whether a finished step left calls open for answers.
async fn left_open(
    chain: &Chain<'_>,
    mut place: Position,
    wanted: &StepId,
) -> Result<bool, RuntimeError> {
    loop {
        let page = chain.records(place, PAGE).await?;
        let Some(last) = page.last() else {
            return Ok(false);
        };
        place = chain.position_after(place, last);
        let end = page.iter().find_map(|logged| {
            let Event::StepStatusChanged {
                step_id, outcome, ..
            } = &logged.record.event
            else {
                return None;
            };
            (step_id == wanted).then_some(outcome)
        });
        if let Some(outcome) = end {
            return Ok(outcome.open_calls.is_some());
        }
    }
}
