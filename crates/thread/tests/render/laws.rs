//! Laws that hold for every thread, turns without sense included, and every policy.

use super::given::{
    agent_turn, answer, call, json, message, options, prompt, retry, text, thread, user_turn,
};
use loomline_thread::render::{
    MarkerStripper, RenderOptions, SpeakerAttribution, ToolTraffic, Unanswered, render,
    strip_markers,
};
use loomline_thread::{Json, Thread, pending_tool_calls};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use std::collections::BTreeSet;

/// A turn in a few letters: who, and what each cycle calls and how that is answered.
fn turn() -> impl Strategy<Value = Json> {
    let ending = select(vec!["return", "retry", "none"]);
    let cycle = (any::<bool>(), any::<bool>(), vec((0u8..4, ending), 0..3));
    let agent = (select(vec!["a", "b", "c"]), vec(cycle, 0..4)).prop_map(|(agent, cycles)| {
        let mut messages = Vec::new();
        for (says, thinks, mut calls) in cycles {
            calls.sort_unstable();
            calls.dedup_by_key(|(id, _)| *id);
            let mut parts = Vec::new();
            if thinks {
                parts.push(json(
                    r#"{"part_kind":"thinking","content":"…","signature":"s","id":"t"}"#,
                ));
            }
            if says || calls.is_empty() {
                parts.push(json(r#"{"part_kind":"text","content":"said","id":"m"}"#));
            }
            parts.extend(calls.iter().map(|(id, _)| call(&id.to_string())));
            messages.push(message("response", agent, parts));
            let answers: Vec<Json> = calls
                .iter()
                .filter_map(|(id, ending)| match *ending {
                    "return" => Some(answer(&id.to_string())),
                    "retry" => Some(retry(&id.to_string())),
                    _ => None,
                })
                .collect();
            if !answers.is_empty() {
                messages.push(message("request", agent, answers));
            }
        }
        agent_turn(agent, messages)
    });
    let late = (select(vec!["a", "b"]), 0u8..4).prop_map(|(agent, id)| {
        let answers = vec![answer(&id.to_string())];
        let messages = vec![
            message("request", agent, answers),
            message("response", agent, vec![text("on")]),
        ];
        agent_turn(agent, messages)
    });
    let user = (any::<bool>(), 0u8..4).prop_map(|(answers, id)| {
        let mut parts = vec![prompt("and?")];
        if answers {
            parts.insert(0, answer(&id.to_string()));
        }
        user_turn(parts)
    });
    prop_oneof![3 => agent, 1 => late, 1 => user]
}

fn policies() -> impl Strategy<Value = RenderOptions> {
    let attribution = select(vec![
        SpeakerAttribution::Prefix,
        SpeakerAttribution::NameField,
        SpeakerAttribution::QuotedInUserMessage,
    ]);
    let tool_traffic = select(vec![
        ToolTraffic::Show,
        ToolTraffic::Summarise,
        ToolTraffic::Hide,
    ]);
    let unanswered = select(vec![Unanswered::AnswerAsInterrupted, Unanswered::Drop]);
    (attribution, tool_traffic, unanswered, any::<bool>()).prop_map(
        |(attribution, tool_traffic, unanswered, configured)| RenderOptions {
            attribution,
            tool_traffic,
            unanswered,
            system_prompts: if configured {
                vec!["Be.".into()]
            } else {
                vec![]
            },
            instructions: configured.then(|| "Do.".to_owned()),
            ..options("a")
        },
    )
}

fn ids(message: &Json, kinds: &[&str]) -> Vec<String> {
    let parts = message
        .get("parts")
        .and_then(Json::as_array)
        .unwrap_or_default();
    let text = |part: &Json, key: &str| part.get(key).and_then(Json::as_str).map(str::to_owned);
    let of_kind =
        |part: &&Json| text(part, "part_kind").is_some_and(|kind| kinds.contains(&&*kind));
    parts
        .iter()
        .filter(of_kind)
        .filter_map(|part| text(part, "tool_call_id"))
        .collect()
}

/// Checks that a provider takes the messages: every call is answered once before the next
/// response, and nothing else is answered. The calls of the last response may be open.
fn check_cycles(messages: &[Json], may_be_open: bool) -> Result<(), TestCaseError> {
    let mut open = BTreeSet::new();
    for message in messages {
        if message.get("kind").and_then(Json::as_str) == Some("response") {
            prop_assert!(open.is_empty(), "{open:?} have no answer");
            let calls = ids(message, &["tool-call"]);
            let n_calls = calls.len();
            open = calls.into_iter().collect();
            prop_assert_eq!(open.len(), n_calls);
        } else {
            for id in ids(message, &["tool-return", "retry-prompt"]) {
                prop_assert!(open.remove(&id), "{id} was not called");
            }
            let prompts = message
                .get("parts")
                .and_then(Json::as_array)
                .unwrap_or_default();
            let prompted = prompts
                .iter()
                .any(|part| part.get("part_kind") == Some(&"user-prompt".into()));
            prop_assert!(!prompted || open.is_empty(), "{open:?} were talked over");
        }
    }
    prop_assert!(may_be_open || open.is_empty(), "{open:?} stay open");
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1024, ..ProptestConfig::default() })]

    #[test]
    fn a_provider_takes_every_rendering(turns in vec(turn(), 0..7), options in policies()) {
        let thread = thread(turns);
        let rendered = render(&thread, &options);
        check_cycles(&rendered.messages, options.unanswered != Unanswered::Drop)?;
        let empty = rendered.messages.iter().any(|message| message.pointer("/parts/0").is_none());
        prop_assert!(!empty);
    }

    #[test]
    fn what_is_reported_is_in_the_thread(turns in vec(turn(), 0..7), options in policies()) {
        let thread = thread(turns);
        let root = Json::Object(thread.root().clone());
        for change in render(&thread, &options).changes {
            prop_assert!(root.pointer(&change.pointer).is_some(), "{:?}", change);
        }
    }

    #[test]
    fn what_is_not_reported_is_shown_as_it_is(turns in vec(turn(), 0..7)) {
        let thread = thread(turns);
        let rendered = render(&thread, &options("a"));
        let changed: BTreeSet<_> = rendered.changes.iter().map(|change| &*change.pointer).collect();
        let mut shown: Vec<&Json> = rendered.messages.iter().collect();
        shown.reverse();
        for (turn, json) in thread.root().get("turns").and_then(Json::as_array).unwrap_or_default().iter().enumerate() {
            for (place, message) in json.get("messages").and_then(Json::as_array).unwrap_or_default().iter().enumerate() {
                if message.get("agent_id") != Some(&"a".into()) {
                    continue;
                }
                let pointer = format!("/turns/{turn}/messages/{place}");
                let parts = message.get("parts").and_then(Json::as_array).unwrap_or_default();
                for (part, json) in parts.iter().enumerate() {
                    let pointer = format!("{pointer}/parts/{part}");
                    let kind = json.get("part_kind").and_then(Json::as_str);
                    let whole = kind != Some("tool-call") || !changed.contains(&*pointer);
                    if changed.contains(&*pointer) && whole {
                        continue;
                    }
                    // Its message comes next, and the part is in it as the thread has it.
                    while shown.last().is_some_and(|message| !has_part(message, json)) {
                        shown.pop();
                    }
                    prop_assert!(!shown.is_empty(), "{} is missing", pointer);
                }
            }
        }
    }

    #[test]
    fn a_thread_with_one_more_turn_begins_with_the_same_messages(
        turns in vec(turn(), 1..7),
        options in policies(),
    ) {
        let longer = thread(turns.clone());
        let mut turns = turns;
        turns.pop();
        let shorter = thread(turns);
        let (before, after) = (render(&shorter, &options), render(&longer, &options));
        // A call whose answer may still come changes what follows it; nothing else does.
        let is_settled = open_calls(&shorter).is_empty();
        let kept = if is_settled {
            before.messages.len()
        } else {
            let first = open_calls(&shorter)[0];
            render(&cut(&shorter, first), &options).messages.len()
        };
        let kept_after = after.messages.iter().take(kept);
        prop_assert!(before.messages.iter().take(kept).eq(kept_after));
    }

    #[test]
    fn rendering_leaves_the_thread_as_it_was_and_comes_out_the_same_again(
        turns in vec(turn(), 0..7),
        options in policies(),
    ) {
        let thread = thread(turns);
        let before = thread.encode();
        let once = render(&thread, &options);
        prop_assert_eq!(render(&thread, &options), once);
        prop_assert_eq!(thread.encode(), before);
    }

    #[test]
    fn hidden_tool_traffic_leaves_no_trace_of_other_agents_tools(turns in vec(turn(), 0..7)) {
        let tool_traffic = ToolTraffic::Hide;
        let thread = thread(turns);
        let rendered = render(&thread, &RenderOptions { tool_traffic, ..options("nobody") });
        for message in &rendered.messages {
            prop_assert!(ids(message, &["tool-call", "tool-return", "retry-prompt"]).is_empty());
        }
    }

    #[test]
    fn any_chunking_of_a_text_strips_the_same(
        pieces in vec(select(vec![
            "{agent:", "Ada", "Bo", "}", ":", " ", "{agent:Ada}: ", "{agent:Bo}:", "A", "ä", "{",
        ]), 0..12),
        cuts in vec(any::<proptest::sample::Index>(), 0..8),
    ) {
        let names = ["Ada", "Bo", "A", "Ada}: {agent:Bo"];
        let text = pieces.concat();
        let mut places: Vec<_> = text.char_indices().map(|(at, _)| at).collect();
        places.push(text.len());
        let mut cuts: Vec<_> = cuts.iter().map(|cut| *cut.get(&places)).collect();
        cuts.sort_unstable();
        let mut stripper = MarkerStripper::new(names);
        let mut out = String::new();
        let mut from = 0;
        for cut in cuts {
            out += &stripper.push(&text[from..cut]);
            from = cut;
        }
        out += &stripper.push(&text[from..]);
        out += &stripper.finish();
        prop_assert_eq!(out, strip_markers(&text, names));
    }

    #[test]
    fn the_renderers_own_marker_is_stripped(text in ".{0,20}") {
        let marked = format!("{{agent:Ada}}: {{agent:Bo}}: .{text}");
        let expected = format!(".{text}");
        prop_assert_eq!(strip_markers(&marked, ["Bo", "Ada"]), expected);
    }
}

fn has_part(message: &Json, part: &Json) -> bool {
    let parts = message
        .get("parts")
        .and_then(Json::as_array)
        .unwrap_or_default();
    parts.contains(part)
}

/// The turns with a call to which no answer has come, in order.
fn open_calls(thread: &Thread) -> Vec<usize> {
    let mut open = Vec::new();
    for (turn, json) in thread
        .root()
        .get("turns")
        .and_then(Json::as_array)
        .unwrap_or_default()
        .iter()
        .enumerate()
    {
        let messages = json
            .get("messages")
            .and_then(Json::as_array)
            .unwrap_or_default();
        let calls = messages
            .iter()
            .flat_map(|message| ids(message, &["tool-call"]));
        let answers = messages
            .iter()
            .flat_map(|message| ids(message, &["tool-return", "retry-prompt"]));
        if calls.count() > answers.count() {
            open.push(turn);
        }
    }
    for call in pending_tool_calls(thread) {
        assert!(open.contains(&call.turn));
    }
    open
}

/// The thread before a turn.
fn cut(thread: &Thread, turn: usize) -> Thread {
    let mut cut = thread.clone();
    let turns = cut.root_mut().get_mut("turns").and_then(Json::as_array_mut);
    turns.expect("turns").truncate(turn);
    cut
}
