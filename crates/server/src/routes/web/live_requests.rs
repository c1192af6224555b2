//! The requests of AITP on an open page.

use super::request_view::read_requests;
use crate::state::Api;
use crate::threads::ThreadKey;
use interop::aitp::{ParticipantChange, find};
use timeline::{Event, Item, Record, ThreadStatus, chunk_type, messages_with_answers};
use web::CapabilityRequest;

/// Reads the requests of a thread again when a record may have changed them.
#[derive(Clone)]
pub(super) struct RequestWatch {
    api: Api,
    thread: ThreadKey,
}

impl RequestWatch {
    pub(super) fn new(api: &Api, thread: &ThreadKey) -> Self {
        Self {
            api: api.clone(),
            thread: thread.clone(),
        }
    }

    /// The requests after a record of the thread, if it may have changed them. If they can't be read, the
    /// page keeps those that it has until the next change.
    pub(super) async fn after(&self, record: &Record) -> Option<Vec<CapabilityRequest>> {
        if !may_change(record) {
            return None;
        }
        let thread = self.thread.find().await.ok()?;
        read_requests(&self.api, &thread).await.ok()
    }
}

/// Whether a record may change the requests of its thread. The messages of a run count when their step is
/// complete.
fn may_change(record: &Record) -> bool {
    match &record.event {
        Event::ItemCreated { item } => {
            ParticipantChange::of_item(item).is_some()
                || has_messages(item)
                || messages_with_answers(item).iter().any(has_messages)
        }
        Event::StepStatusChanged { .. } => true,
        Event::ThreadStatusChanged { to, .. } => *to == ThreadStatus::Closed,
        Event::ChunkEmitted { chunk_type, .. } => chunk_type == chunk_type::ITEM_REMOVED,
        Event::ContextCreated { .. }
        | Event::ContextResolved { .. }
        | Event::ContextStatusChanged { .. }
        | Event::ThreadCreated { .. }
        | Event::ThreadResolved { .. }
        | Event::ThreadFinished { .. }
        | Event::ItemStatusChanged { .. }
        | Event::ExecutionCreated { .. }
        | Event::ExecutionStatusChanged { .. }
        | Event::StepCreated { .. }
        | Event::PartCreated { .. }
        | Event::PartUpdated { .. } => false,
    }
}

fn has_messages(item: &Item) -> bool {
    let found = item.content.as_ref().map(find);
    found.is_some_and(|found| found.is_ok_and(|found| !found.is_empty()))
}
