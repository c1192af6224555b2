//! Where the message began that a chat's running run writes.

use crate::error::ApiError;
use crate::threads::ThreadKey;
use interop::ai_sdk::continues_message;
use timeline::{Active, Event, Execution, ItemId, ItemType, Record, Seq};

/// How many records are read at once.
const PAGE: u64 = 512;

/// Where a message began, however often an execution went on with it.
pub(super) struct MessageStart {
    /// What its first execution answers.
    pub(super) trigger: ItemId,
    /// The event before its first.
    pub(super) after: Seq,
    /// Of the executions after the first: whether each answers calls.
    pub(super) goes_on: Vec<bool>,
}

/// Where the running message began. It is searched from the end, so that it costs what the message has
/// written.
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

/// The records of a piece of the log that the search looks at, without the contents of messages.
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

/// The search through a log, backwards.
struct Search {
    begun: MessageStart,
    /// The execution that is looked at, until its trigger is found.
    execution: Option<Execution>,
    /// Whether the execution after it, which goes on with it, answers calls.
    later: Option<bool>,
}

impl Search {
    /// Looks at the record before; says whether the message began with what was seen last.
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
