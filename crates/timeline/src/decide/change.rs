//! Changes of existing data: a thread's title and metadata, removals and compactions.

use super::Rejected;
use crate::change::{Removed, ThreadUpdate};
use crate::compaction::Compaction;
use crate::entity::Context;
use crate::event::{Event, chunk_type};
use crate::payload::Payload;
use crate::state::State;
use crate::status::ThreadStatus;

impl State {
    pub(super) fn update(&self, update: &ThreadUpdate) -> Result<Vec<Event>, Rejected> {
        let context = self.changeable()?;
        if update.is_empty() {
            return Ok(Vec::new());
        }
        let data = Payload::write(update).ok();
        Ok(vec![of_thread(context, chunk_type::THREAD_UPDATED, data)])
    }

    /// Rejects the removal of waiting items and of running steps. The caller, which has the whole
    /// log, checks that the item or step exists.
    pub(super) fn remove(&self, what: Removed) -> Result<Vec<Event>, Rejected> {
        let context = self.changeable()?;
        let is_needed = match &what {
            Removed::Item(id) => {
                let active = self.active.as_ref();
                let mut waiting = self.waiting.iter();
                waiting.any(|waiting| waiting.item.id == *id)
                    || active.is_some_and(|active| {
                        let execution = &active.execution;
                        execution.trigger_item_id == *id || execution.reaction_item_id == *id
                    })
            }
            Removed::Step(id) => {
                let step = self.active.as_ref().and_then(|active| active.step.as_ref());
                step.is_some_and(|step| step.step.id == *id)
            }
            Removed::Compaction(_) => false,
        };
        if is_needed {
            return Err(Rejected::StillNeeded(what));
        }
        let data = Payload::write(&what).ok();
        Ok(vec![of_thread(context, chunk_type::ITEM_REMOVED, data)])
    }

    /// Rejects a cut within the running execution. The caller, which has the whole log, checks the
    /// rest of the cut.
    pub(super) fn compact(&self, compaction: &Compaction) -> Result<Vec<Event>, Rejected> {
        let context = self.changeable()?;
        let running = self.active.as_ref().map(|active| &active.execution.id);
        if running == Some(&compaction.execution_id) {
            return Err(Rejected::Busy(compaction.execution_id.clone()));
        }
        let data = Payload::write(compaction).ok();
        Ok(vec![of_thread(context, chunk_type::THREAD_COMPACTED, data)])
    }

    fn changeable(&self) -> Result<&Context, Rejected> {
        let (thread, context) = self.existing()?;
        if thread.status == ThreadStatus::Closed {
            return Err(Rejected::Closed);
        }
        Ok(context)
    }
}

// A marker of the thread itself: no execution's and no step's.
fn of_thread(context: &Context, chunk_type: &str, data: Option<Payload>) -> Event {
    Event::ChunkEmitted {
        chunk_type: chunk_type.to_owned(),
        context_id: context.id.clone(),
        execution_id: None,
        step_id: None,
        data,
    }
}
