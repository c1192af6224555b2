//! Finds the run in which a thread receives an answer that a sub-agent below it has accepted.
//!
//! If the thread sleeps, or works for other sub-agents, an item of its own wakes it. The id of that
//! item is derived from the answer's id, so it can be found at any later time. In two cases nothing
//! is written for the answer: an earlier wake-up item is still queued, or the running execution
//! runs the sub-agent itself. Then the answer's time decides.

use super::wake::Woken;
use crate::error::RuntimeError;
use crate::request::Accepted;
use crate::runtime::Runtime;
use jiff::Timestamp;
use store::Run;
use store::{Filter, Landmark, Side, Store, StoreError, TenantId};
use timeline::{Event, ExecutionId, Item, ItemId, ItemType, Seq, ThreadId};
use uuid::Uuid;

/// The namespace of the ids of items that wake a thread for an answer; it never changes.
const NAMESPACE: Uuid = Uuid::from_u128(0x7e0d_93b4_51c8_4f6a_b2e1_6a90_3d5c_84f7);
/// Number of records read at once.
const PAGE: u64 = 512;

/// How a thread continues after its sub-agent accepted an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadContinuation {
    /// The trigger of the run that receives the answer. None if that run started before the answer,
    /// or if nothing has woken the thread yet.
    pub item: Option<ItemId>,
    /// The execution of that run. None if it is not started yet and its id is unknown.
    pub execution: Option<ExecutionId>,
    /// The last event of the thread before the item, or else before the answer.
    pub before: Seq,
}

/// The id of the item that wakes a thread for an answer.
pub(super) fn waker(answer: &ItemId, thread: &ThreadId) -> ItemId {
    let name = format!("{answer} {thread}");
    Uuid::new_v5(&NAMESPACE, name.as_bytes()).to_string().into()
}

impl Runtime {
    /// Returns how a thread continues after its sub-agent, the thread with the key `target`,
    /// accepted an answer. The answer may be old. If the answer woke the thread, this costs one
    /// look-up; otherwise it reads the thread's log from the answer on.
    pub async fn has_continuation(
        &self,
        tenant: &TenantId,
        key: &str,
        target: &str,
        answer: &Accepted,
    ) -> Result<ThreadContinuation, RuntimeError> {
        let thread = self.inner.store.find(tenant, key).await?.thread.id;
        let item = waker(&answer.item_id, &thread);
        if let Some(found) = self.taken_up(&thread, &item).await? {
            return Ok(found);
        }
        let store = self.inner.store.as_ref();
        let taken = store.read(&answer.thread_id, answer.after, 1, Filter::Facts);
        let taken = taken.await?.first().map(|logged| logged.record.at);
        // What was taken is there; nothing is before the beginning of time.
        let before = last_before(store, &thread, taken.unwrap_or(Timestamp::MIN)).await?;
        if let Some(child) = self.towards(tenant, &thread, target).await?
            && let Some(item) = self.woke_before(&thread, &child, before).await?
            && let Some(found) = self.taken_up(&thread, &item).await?
        {
            return Ok(found);
        }
        let ran = store
            .nearest_run(&thread, Side::Before(before.next()))
            .await?;
        let ran = ran.filter(|ran| ran.finished.is_none_or(|end| end > before));
        Ok(ThreadContinuation {
            item: None,
            execution: ran.map(|ran| ran.execution_id),
            before,
        })
    }

    /// The run that answers an item of the thread: started or queued. None if the thread has no
    /// such item.
    async fn taken_up(
        &self,
        thread: &ThreadId,
        item: &ItemId,
    ) -> Result<Option<ThreadContinuation>, RuntimeError> {
        let store = self.inner.store.as_ref();
        let goes_on = |execution, place: Seq| ThreadContinuation {
            item: Some(item.clone()),
            execution,
            before: last(place),
        };
        // It may begin between two looks, and does so once.
        let mut known = None;
        for _ in 0..2 {
            let Some(place) = store.position_of(thread, Landmark::Item(item)).await? else {
                return Ok(None);
            };
            let ran = store.nearest_run(thread, Side::After(last(place))).await?;
            // One that had to wait stands where its run began.
            let ran = ran.filter(|ran| ran.trigger == place || ran.created == place);
            if let Some(ran) = ran {
                return Ok(Some(goes_on(Some(ran.execution_id), ran.trigger)));
            }
            let state = store.head(thread).await?.state;
            let waits = state.waiting().find(|waiting| waiting.item.id == *item);
            if let Some(waits) = waits {
                let promised = Run::of(Some(&waits.run)).execution_id;
                return Ok(Some(goes_on(promised, place)));
            }
            known = Some(goes_on(None, place));
        }
        Ok(known)
    }

    /// The queued item that had already woken a thread for a child by then.
    async fn woke_before(
        &self,
        thread: &ThreadId,
        child: &ThreadId,
        before: Seq,
    ) -> Result<Option<ItemId>, RuntimeError> {
        let store = self.inner.store.as_ref();
        let is_woken =
            |item: &Item| Woken::read(item).is_some_and(|it| it.child.thread_id == *child);
        let state = store.head(thread).await?.state;
        // What waited then has begun since, in its order, or waits now.
        let mut seen = before;
        while let Some(ran) = store.nearest_run(thread, Side::After(seen)).await? {
            seen = ran.created;
            if ran.trigger_type == ItemType::ItemReference {
                // It was handed over to, or begun without a word, and never waited.
                continue;
            }
            if ran.trigger > before {
                return Ok(None);
            }
            let said = store
                .read(thread, last(ran.trigger), 1, Filter::Facts)
                .await?;
            if let Some(Event::ItemCreated { item }) = said.first().map(|it| &it.record.event)
                && is_woken(item)
            {
                return Ok(Some(item.id.clone()));
            }
        }
        let mut waiting = state.waiting().map(|waiting| &waiting.item);
        Ok(waiting
            .find(|item| is_woken(item))
            .map(|item| item.id.clone()))
    }
}

/// The position before another one.
fn last(place: Seq) -> Seq {
    Seq(place.0.saturating_sub(1))
}

/// The last event of a log before a time. Reads the records written since.
async fn last_before(
    store: &dyn Store,
    thread: &ThreadId,
    at: Timestamp,
) -> Result<Seq, StoreError> {
    let mut end = store.head(thread).await?.tail;
    while end > Seq::ZERO {
        let after = Seq(end.0.saturating_sub(PAGE));
        let (mut seen, mut earlier) = (after, None);
        while seen < end {
            let limit = usize::try_from(end.0 - seen.0).unwrap_or(usize::MAX);
            let page = store.read(thread, seen, limit, Filter::All).await?;
            let Some(last) = page.last() else { break };
            seen = last.record.seq;
            let found = page.iter().rev().find(|logged| logged.record.at < at);
            earlier = found.map(|logged| logged.record.seq).or(earlier);
        }
        if let Some(seq) = earlier {
            return Ok(seq);
        }
        end = after;
    }
    Ok(Seq::ZERO)
}
