//! What was removed is in no view.

use crate::native::conversation;
use loomline_interop::responses::ListOptions;
use loomline_interop::threads::ThreadView;
use loomline_interop::{ag_ui, ai_sdk, document, model, responses};
use proptest::prelude::*;
use thread::Json;
use timeline::{Command, Entry, Removed, Transcript};
use upp::Message;

fn told(transcript: &Transcript) -> Vec<Removed> {
    let names = transcript.entries.iter().flat_map(|entry| match entry {
        Entry::Item(item) => vec![Removed::Item(item.id.clone())],
        Entry::Reaction(reaction) => {
            let steps = reaction.steps.iter();
            steps
                .map(|step| Removed::Step(step.step.id.clone()))
                .collect()
        }
    });
    names.collect()
}

/// How many messages each view shows.
fn shown(transcript: &Transcript) -> [usize; 5] {
    let items = responses::conversation_items(transcript, ListOptions::default());
    [
        model::history(transcript, None).len(),
        ai_sdk::to_ui_messages(transcript).value.len(),
        ag_ui::to_messages(transcript).value.len(),
        ThreadView::of(transcript).messages().count(),
        items.value.len(),
    ]
}

proptest! {
    #[test]
    fn a_conversation_that_is_all_removed_is_empty_in_every_view(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let mut log = conversation(&bytes);
        prop_assume!(log.state.active().is_none() && log.state.waiting().len() == 0);
        for what in told(&log.transcript()) {
            log.run(Command::Remove { what });
        }
        let marked = log.transcript();
        // Those who go by places leave out what was said all the same.
        let history = model::history(&marked, None);
        let is_result = |message: &Message| matches!(message, Message::ToolResult(_));
        prop_assert!(history.iter().all(is_result), "{history:?}");
        let left = marked.without_removed();
        prop_assert_eq!(shown(&left), [0; 5]);
        let root = Json::from(document::to_document(&left).value.into_root());
        let text = root.to_string();
        prop_assert!(!text.contains("user-prompt"), "{text}");
    }
}
