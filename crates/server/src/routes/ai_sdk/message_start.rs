//! The start of the message that a chat's running execution writes.

use crate::error::ApiError;
use crate::threads::ThreadKey;
use interop::ai_sdk::continues_message;
use timeline::{Active, Event, Execution, ItemId, ItemType, Record, Seq};

/// Number of records read at once.
const PAGE: u64 = 512;

/// Where a message began, regardless of how many executions continued it.
pub(super) struct MessageStart {
    /// The item that its first execution responds to.
    pub(super) trigger: ItemId,
    /// The event before its first.
    pub(super) after: Seq,
    /// For each execution after the first, whether it answers calls.
    pub(super) goes_on: Vec<bool>,
}

/// Finds where the running message began. Searches from the end, so it costs time proportional to the
/// message.
pub(super) async fn message_start(
    thread: &ThreadKey,
    active: &Active,
    tail: Seq,
) -> Result<MessageStart, ApiError> {
    let mut search = Search {
        begun: MessageStart {
            trigger: active.execution.trigger_item_id.clone(),
            after: Seq::ZERO,
            goes_on: Vec::new(),
        },
        execution: None,
        later: None,
    };
    let mut end = tail.0;
    while end > 0 {
        let after = end.saturating_sub(PAGE);
        let records = searched(thread, Seq(after), Seq(end)).await?;
        if records.iter().rev().any(|record| search.see(record)) {
            break;
        }
        end = after;
    }
    Ok(search.done())
}

/// The records of a part of the log that the search needs, without message contents.
async fn searched(thread: &ThreadKey, after: Seq, end: Seq) -> Result<Vec<Record>, ApiError> {
    let (mut seen, mut found) = (after, Vec::new());
    while seen < end {
        let limit = usize::try_from(end.0 - seen.0).unwrap_or(usize::MAX);
        let page = thread.read(seen, limit).await?;
        let Some(last) = page.last() else { break };
        seen = last.record.seq;
        found.extend(page.into_iter().filter_map(|logged| {
            let mut record = logged.record;
            if let Event::ItemCreated { item } = &mut record.event {
                if item.item_type == ItemType::Message {
                    item.content = None;
                }
                return Some(record);
            }
            matches!(record.event, Event::ExecutionCreated { .. }).then_some(record)
        }));
    }
    Ok(found)
}

/// The backward search through a log.
struct Search {
    begun: MessageStart,
    /// The execution whose trigger is being searched.
    execution: Option<Execution>,
    /// Whether the execution after it, which continues it, answers calls.
    later: Option<bool>,
}

impl Search {
    /// Reads the previous record; returns whether the message began with the record read last.
    fn see(&mut self, record: &Record) -> bool {
        if let Event::ExecutionCreated { execution } = &record.event
            && self.execution.is_none()
        {
            self.begun.trigger = execution.trigger_item_id.clone();
            self.begun.after = Seq(record.seq.0.saturating_sub(1));
            self.begun.goes_on.extend(self.later.take());
            self.execution = Some(execution.clone());
            return false;
        }
        let Event::ItemCreated { item } = &record.event else {
            return false;
        };
        if let Some(execution) = &self.execution {
            if item.id != execution.trigger_item_id {
                return false;
            }
            if !continues_message(execution, Some(item)) {
                return true;
            }
            self.later = Some(item.item_type == ItemType::ActionResult);
            self.execution = None;
            return false;
        }
        // Something was said since: that is what it answers.
        self.later.is_some()
            && item.item_type == ItemType::Message
            && item.execution_id.is_none()
            && item.run.is_none()
    }

    fn done(mut self) -> MessageStart {
        self.begun.goes_on.reverse();
        self.begun
    }
}
