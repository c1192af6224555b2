//! Kinds of events: which of them are facts.

use timeline::{Event, EventType, chunk_type};

/// A chunk that only shows. Every other kind is a fact.
pub(super) const SHOWN: u8 = EventType::ChunkEmitted.code();
/// The marker `data-step-response`.
pub(super) const STEP_RESPONSE: u8 = 32;
/// The marker `data-step-reset`.
pub(super) const STEP_RESET: u8 = 33;
/// The marker `data-tool-started`.
pub(super) const TOOL_STARTED: u8 = 34;
/// The marker `data-thread-updated`.
pub(super) const THREAD_UPDATED: u8 = 35;
/// The marker `data-item-removed`.
pub(super) const ITEM_REMOVED: u8 = 36;
/// The marker `data-step-noted`.
pub(super) const STEP_NOTED: u8 = 37;
/// The marker `data-execution-resumed`.
pub(super) const EXECUTION_RESUMED: u8 = 38;
/// The marker `data-execution-parked`.
pub(super) const EXECUTION_PARKED: u8 = 39;

/// The event's type, and for the markers one code each.
pub(super) fn kind(event: &Event) -> u8 {
    let Event::ChunkEmitted { chunk_type, .. } = event else {
        return event.event_type().code();
    };
    match chunk_type.as_str() {
        chunk_type::STEP_RESPONSE => STEP_RESPONSE,
        chunk_type::STEP_RESET => STEP_RESET,
        chunk_type::TOOL_STARTED => TOOL_STARTED,
        chunk_type::STEP_NOTED => STEP_NOTED,
        chunk_type::EXECUTION_RESUMED => EXECUTION_RESUMED,
        chunk_type::EXECUTION_PARKED => EXECUTION_PARKED,
        chunk_type::THREAD_UPDATED => THREAD_UPDATED,
        chunk_type::ITEM_REMOVED => ITEM_REMOVED,
        _ => SHOWN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use store::Filter;

    #[test]
    fn what_is_a_fact_is_what_the_filter_keeps() {
        for name in chunk_type::MARKERS
            .into_iter()
            .chain([chunk_type::THREAD_PING, "text-delta"])
        {
            let event = Event::ChunkEmitted {
                chunk_type: name.into(),
                context_id: "c".into(),
                execution_id: None,
                step_id: None,
                data: None,
            };
            assert_eq!(kind(&event) != SHOWN, Filter::Facts.keeps(&event), "{name}");
        }
    }
}
