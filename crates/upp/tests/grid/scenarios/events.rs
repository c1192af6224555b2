//! What holds for the events of every answer.

use loomline_upp::{Aggregate, AssistantContent, Response, StreamEvent};
use std::collections::BTreeSet;

/// Blocks are opened and closed, and have their deltas in between.
pub(super) fn in_order(events: &[StreamEvent]) {
    assert_eq!(events.first(), Some(&StreamEvent::MessageStart));
    assert_eq!(events.last(), Some(&StreamEvent::MessageStop));
    let mut open = BTreeSet::new();
    for event in events {
        match event {
            StreamEvent::ContentBlockStart { index } => assert!(open.insert(*index)),
            StreamEvent::ContentBlockStop { index } => assert!(open.remove(index)),
            StreamEvent::TextDelta { index, .. } | StreamEvent::ReasoningDelta { index, .. } => {
                assert!(open.contains(index), "a delta outside of its block");
            }
            _ => {}
        }
    }
    assert!(open.is_empty(), "a block stays open");
}

/// The events alone give the message's texts, reasoning and calls.
pub(super) fn same(events: &[StreamEvent], response: &Response) {
    let mut aggregate = Aggregate::default();
    for event in events {
        aggregate.push(event);
    }
    let (content, calls) = aggregate.finish();
    assert_eq!(calls, response.message.tool_calls);
    let texts = |content: &[AssistantContent]| -> Vec<(bool, String)> {
        content
            .iter()
            .filter_map(|block| match block {
                AssistantContent::Text { text } => Some((false, text.clone())),
                AssistantContent::Reasoning { text, .. } => Some((true, text.clone())),
                _ => None,
            })
            .filter(|(_, text)| !text.is_empty())
            .collect()
    };
    assert_eq!(texts(&content), texts(&response.message.content));
}
