//! Where the running run of a chat began.

use crate::error::ApiError;
use crate::state::Api;
use runtime::TenantId;
use timeline::{Active, Event, ExecutionId, ItemId, ItemType, Seq};

/// How many records are read at once.
const PAGE: u64 = 512;

/// Where a run began, whoever goes on with it by now.
pub(super) struct RunBegun {
    pub(super) execution: ExecutionId,
    pub(super) trigger: ItemId,
    /// Whether it answers calls.
    pub(super) is_answer: bool,
    /// The event before its first.
    pub(super) after: Seq,
}

/// Where the running run began. It is searched from the end, so that it costs what the run has
/// written.
pub(super) async fn begun(
    api: &Api,
    tenant: &TenantId,
    key: &str,
    active: &Active,
    tail: Seq,
) -> Result<RunBegun, ApiError> {
    let mut found = RunBegun {
        execution: active.execution.id.clone(),
        trigger: active.execution.trigger_item_id.clone(),
        is_answer: false,
        after: Seq::ZERO,
    };
    // The running execution is the last one that has begun.
    let mut is_sought = true;
    let mut kind = active.trigger.as_ref().map(|item| item.item_type);
    let mut end = tail.0;
    while end > 0 {
        let after = end.saturating_sub(PAGE);
        let limit = usize::try_from(end - after).unwrap_or(usize::MAX);
        let page = api.runtime().read(tenant, key, Seq(after), limit).await?;
        for record in page.iter().rev().map(|logged| &logged.record) {
            if let Event::ItemCreated { item } = &record.event
                && is_sought
                && found.after > Seq::ZERO
                && item.item_type == ItemType::Message
                && item.execution_id.is_none()
                && item.run.is_none()
            {
                // Something was said since: that is what it answers.
                return Ok(found);
            }
            if let Event::ExecutionCreated { execution } = &record.event
                && is_sought
            {
                found.execution = execution.id.clone();
                found.trigger = execution.trigger_item_id.clone();
                found.after = Seq(record.seq.0.saturating_sub(1));
                is_sought = false;
            } else if let Event::ItemCreated { item } = &record.event
                && !is_sought
                && item.id == found.trigger
            {
                kind = Some(item.item_type);
            }
            match kind.filter(|_| !is_sought) {
                None => {}
                // A pointer: it goes on with what the execution before it began.
                Some(ItemType::ItemReference) => (is_sought, kind) = (true, None),
                Some(ItemType::ActionResult) => {
                    found.is_answer = true;
                    return Ok(found);
                }
                Some(ItemType::Message | ItemType::ActionExecute) => return Ok(found),
            }
        }
        end = after;
    }
    Ok(found)
}
