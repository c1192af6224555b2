//! Laws that hold for any conversation.

use super::*;

/// Kinds in an order that a conversation can have, open calls at the end included.
fn conversation() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        Just("ua"),
        Just("ucra"),
        Just("ucrcra"),
        Just("uua"),
        Just("ucr"),
        Just("uchga"),
        Just("upapcra"),
        Just("upapcrchgcrpa"),
        Just("s")
    ];
    (
        prop::collection::vec(part, 0..8),
        prop_oneof![
            Just(""),
            Just("u"),
            Just("uc"),
            Just("uch"),
            Just("upc"),
            Just("upapcrch"),
            Just("upcrchgc"),
        ],
    )
        .prop_map(|(parts, end)| parts.concat() + end)
}

/// Whether a state that waits still has the input of its run, and what was said to the model last.
fn keeps_what_a_run_reads(before: &AgentState, after: &AgentState) -> bool {
    let last = |state, kinds: &[char]| {
        let ids: Vec<&str> = ids(state);
        let id = ids.into_iter().rfind(|id| id.starts_with(kinds));
        id.map(str::to_owned)
    };
    before.open_calls().is_empty()
        || [&['u'][..], &['u', 'p']]
            .iter()
            .all(|kinds| last(before, kinds) == last(after, kinds))
}

proptest! {
    #[test]
    fn a_window_is_sound_begins_with_the_user_and_is_as_long_as_it_may_be(kinds in conversation(), max in 1_usize..20) {
        let state = history(&kinds);
        let kept = now(&window(max), state.clone());
        prop_assert!(is_sound(&list(&kept)));
        prop_assert_eq!(kept.open_calls(), state.open_calls());
        prop_assert_eq!(kept.messages().last(), state.messages().last());
        prop_assert!(!matches!(kept.messages().first(), Some(Message::ToolResult(_) | Message::Assistant(_))));
        // The last cycle, its input, a prompt and a summary may be more than the window.
        prop_assert!(kept.messages().len() <= max.max(6));
        prop_assert!(keeps_what_a_run_reads(&state, &kept));
        let again = now(&window(max), kept.clone());
        prop_assert_eq!(ids(&again), ids(&kept));
        if let Some(summary) = ids(&state).iter().rfind(|id| id.starts_with('s')) {
            prop_assert!(ids(&kept).contains(summary), "the latest summary stays");
        }
    }

    #[test]
    fn pruning_keeps_any_conversation_sound(kinds in conversation(), usable in 0_u64..200, recent in 0_u64..200) {
        let state = history(&kinds);
        let pruned = now(&prune(usable, recent), state.clone());
        prop_assert!(is_sound(&list(&pruned)));
        prop_assert_eq!(ids(&pruned), ids(&state));
        let unread = list(&state).iter().rposition(|it| matches!(it, Message::Assistant(_)));
        let unread = unread.unwrap_or_default();
        prop_assert_eq!(&list(&pruned)[unread..], &list(&state)[unread..], "it was not read yet");
    }

    #[test]
    fn summarising_keeps_any_conversation_sound(kinds in conversation(), keep_recent in 0_usize..6) {
        let state = history(&kinds);
        let layer = Summarise { keep_recent, ..summarise(Canned::new(|_| Some(said("in short")))) };
        let summed = now(&layer, state.clone());
        prop_assert!(is_sound(&list(&summed)));
        prop_assert_eq!(summed.open_calls(), state.open_calls());
        prop_assert!(keeps_what_a_run_reads(&state, &summed));
        let recent = ids(&state).len().min(keep_recent);
        prop_assert!(ids(&summed).ends_with(&ids(&state)[ids(&state).len() - recent..]));
    }
}
