//! MCP: the progress of a run.

use crate::native::conversation;
use loomline_interop::mcp::{ProgressView, message_text};
use proptest::prelude::*;
use timeline::{Entry, Event, ExecutionStatus, Reaction, Record, chunk_type};

/// Whether an attempt at a step of this run died: its text was reported, too.
fn was_reset(reaction: &Reaction, records: &[Record]) -> bool {
    records.iter().any(|record| {
        let Event::ChunkEmitted {
            chunk_type,
            execution_id,
            ..
        } = &record.event
        else {
            return false;
        };
        let is_own = execution_id.as_ref() == Some(&reaction.execution.id);
        is_own && chunk_type == chunk_type::STEP_RESET
    })
}

proptest! {
    #[test]
    fn progress_reports_the_text_of_the_answer(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let log = conversation(&bytes);
        for entry in log.transcript().entries {
            let Entry::Reaction(reaction) = &entry else { continue };
            let is_complete = reaction.execution.status == ExecutionStatus::Completed;
            if !is_complete || was_reset(reaction, &log.records) {
                continue;
            }
            let mut progress = ProgressView::new(Some(reaction.execution.trigger_item_id.clone()));
            let messages = log.records.iter().flat_map(|record| progress.messages(record));
            let is_text = |message: &String| !message.starts_with("look ") && !message.starts_with("a tool ");
            let text: String = messages.filter(is_text).collect();
            prop_assert_eq!(text, message_text(&[entry]).replace("\n\n", ""));
        }
    }
}
