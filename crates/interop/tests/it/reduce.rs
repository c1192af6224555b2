//! Messages out of streams, as the real client builds them.

use crate::ui_streams::{Watched, spoiled, stream, watch};
use loomline_interop::ai_sdk::{Aborted, Major, ReduceError, Reduced, Reducer, StreamError};
use proptest::prelude::*;
use thread::Json;

const MAJORS: [Major; 3] = [Major::V5, Major::V6, Major::V7];

/// The stream of a fixture: one chunk a line, without its braces.
fn lines(text: &str) -> Vec<Json> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines
        .map(|line| Json::parse(&format!("{{{line}}}")).unwrap())
        .collect()
}

fn watched(major: Major, text: &str) -> Watched {
    watch(Reducer::new(major, None).checked(), &lines(text))
}

fn parts(major: Major, text: &str) -> String {
    let watched = watched(major, text);
    assert_eq!(watched.error, None);
    let message = watched.reduced.message.unwrap();
    message.get("parts").unwrap().to_text()
}

#[test]
fn interleaved_blocks_stand_in_the_order_of_their_starts() {
    let stream = r#"
        "type":"text-start","id":"a"
        "type":"reasoning-start","id":"a","providerMetadata":{"p":{"k":1}}
        "type":"text-delta","id":"a","delta":"x"
        "type":"reasoning-delta","id":"a","delta":"y","providerMetadata":{"p":{"k":2}}
        "type":"text-delta","id":"a","delta":"z"
        "type":"text-end","id":"a"
    "#;
    let expected = r#"[{"type":"text","text":"xz","state":"done"},{"type":"reasoning","id":"a","text":"y","state":"streaming","providerMetadata":{"p":{"k":2}}}]"#;
    for major in MAJORS {
        assert_eq!(parts(major, stream), expected);
    }
}

#[test]
fn the_input_of_a_call_is_shown_as_far_as_it_came() {
    let stream = r#"
        "type":"tool-input-start","toolCallId":"c","toolName":"add"
        "type":"tool-input-delta","toolCallId":"c","inputTextDelta":"{\"a\":1.0,\"b"
        "type":"tool-input-delta","toolCallId":"c","inputTextDelta":"\":[2"
    "#;
    let shown = watched(Major::V7, stream).shown;
    let inputs: Vec<Option<String>> = shown
        .iter()
        .map(|message| Some(message.pointer("/parts/0/input")?.to_text()))
        .collect();
    let expected = [
        None,
        Some(r#"{"a":1.0}"#.to_owned()),
        Some(r#"{"a":1.0,"b":[2]}"#.to_owned()),
    ];
    assert_eq!(inputs, expected);
    let raw = shown[2].pointer("/parts/0/rawInput");
    assert_eq!(raw, Some(&r#"{"a":1.0,"b":[2"#.into()));
}

#[test]
fn an_answer_keeps_the_input_that_never_became_whole() {
    let stream = r#"
        "type":"start-step"
        "type":"tool-input-start","toolCallId":"c","toolName":"t","providerExecuted":true
        "type":"tool-input-delta","toolCallId":"c","inputTextDelta":"[1,2"
        "type":"start-step"
        "type":"tool-output-available","toolCallId":"c","output":null,"providerMetadata":{"p":{}}
        "type":"tool-input-delta","toolCallId":"c","inputTextDelta":"3"
    "#;
    let expected = r#"[{"type":"step-start"},{"type":"tool-t","toolCallId":"c","state":"output-available","providerExecuted":true,"output":null,"resultProviderMetadata":{"p":{}},"input":[1,2]},{"type":"step-start"},{"type":"tool-t","toolCallId":"c","state":"input-streaming","input":[1,23],"rawInput":"[1,23"}]"#;
    assert_eq!(parts(Major::V7, stream), expected);
}

#[test]
fn input_that_is_text_is_shown_as_text() {
    let stream = r#"
        "type":"tool-input-start","toolCallId":"c","toolName":"t","dynamic":true,"inputEncoding":"text"
        "type":"tool-input-delta","toolCallId":"c","inputTextDelta":"{\"a"
    "#;
    let expected = r#"[{"type":"dynamic-tool","toolName":"t","toolCallId":"c","state":"input-streaming","inputEncoding":"text","input":"{\"a","rawInput":"{\"a"}]"#;
    assert_eq!(parts(Major::V7, stream), expected);
}

#[test]
fn an_approval_is_asked_for_and_answered_by_its_id() {
    let stream = r#"
        "type":"tool-input-available","toolCallId":"c","toolName":"t","input":1
        "type":"tool-approval-request","toolCallId":"c","approvalId":"p","reason":"why","isAutomatic":true,"signature":"s"
        "type":"tool-approval-response","approvalId":"p","approved":false,"reason":"no"
        "type":"tool-output-denied","toolCallId":"c"
    "#;
    let expected = r#"[{"type":"tool-t","toolCallId":"c","state":"output-denied","input":1,"approval":{"id":"p","requestReason":"why","isAutomatic":true,"signature":"s","approved":false,"reason":"no"}}]"#;
    assert_eq!(parts(Major::V7, stream), expected);
}

#[test]
fn a_wrong_input_is_kept_where_each_version_keeps_it() {
    let stream = r#"
        "type":"tool-input-error","toolCallId":"c","toolName":"t","input":"{","errorText":"no","providerMetadata":{"p":{}}
    "#;
    let part = |rest: &str| {
        format!(r#"[{{"type":"tool-t","toolCallId":"c","state":"output-error",{rest}}}]"#)
    };
    let v5 = part(r#""rawInput":"{","errorText":"no","callProviderMetadata":{"p":{}}"#);
    let v6 = part(r#""rawInput":"{","errorText":"no","resultProviderMetadata":{"p":{}}"#);
    let v7 = part(r#""input":"{","errorText":"no","resultProviderMetadata":{"p":{}}"#);
    assert_eq!(MAJORS.map(|major| parts(major, stream)), [v5, v6, v7]);
}

#[test]
fn only_the_newest_client_goes_on_with_a_block_after_its_step() {
    let stream = r#"
        "type":"start-step"
        "type":"text-start","id":"a"
        "type":"finish-step"
        "type":"text-end","id":"a"
    "#;
    let refused = |major| watched(major, stream).error;
    let expected = ReduceError::NotStarted {
        place: 3,
        kind: "text-end".into(),
        id: "a".into(),
    };
    assert_eq!(refused(Major::V5).as_ref(), Some(&expected));
    assert_eq!(refused(Major::V6), Some(expected));
    assert_eq!(refused(Major::V7), None);
}

#[test]
fn a_step_that_is_taken_back_leaves_nothing_behind() {
    let stream = r#"
        "type":"data-x","id":"d","data":1
        "type":"start-step"
        "type":"data-y","id":"d","data":1
        "type":"tool-input-available","toolCallId":"c","toolName":"t","input":1
        "type":"tool-approval-request","toolCallId":"c","approvalId":"p"
        "type":"reset-step"
        "type":"data-y","id":"d","data":2
        "type":"data-x","id":"d","data":2
    "#;
    let expected = r#"[{"type":"data-x","id":"d","data":2},{"type":"step-start"},{"type":"data-y","id":"d","data":2}]"#;
    assert_eq!(parts(Major::V7, stream), expected);
    for gone in [
        r#""type":"tool-output-denied","toolCallId":"c""#,
        r#""type":"tool-approval-response","approvalId":"p","approved":true"#,
    ] {
        let error = watched(Major::V7, &format!("{stream}\n{gone}")).error;
        assert!(matches!(
            error,
            Some(ReduceError::NotStarted { place: 8, .. })
        ));
    }
}

#[test]
fn the_facts_of_a_stream_are_told_beside_its_message() {
    let stream = r#"
        "type":"start","messageId":"m","messageMetadata":{"a":{"b":1}}
        "type":"start-step"
        "type":"text-start","id":"a"
        "type":"finish-step"
        "type":"data-x","data":1,"transient":true
        "type":"start-step"
        "type":"source-url","sourceId":"s","url":"u"
        "type":"error","errorText":"down"
        "type":"finish","finishReason":"error","messageMetadata":{"a":{"c":2}}
        "type":"start-step"
        "type":"abort","reason":"enough"
    "#;
    let mut reducer = Reducer::new(Major::V7, None);
    for chunk in lines(stream) {
        reducer.push(&chunk).unwrap();
    }
    reducer.done();
    let Reduced {
        message: built,
        facts,
    } = reducer.finish();
    let message = r#"{"id":"m","role":"assistant","metadata":{"a":{"b":1,"c":2}},"parts":[{"type":"step-start"},{"type":"text","text":"","state":"streaming"},{"type":"step-start"},{"type":"source-url","sourceId":"s","url":"u"}]}"#;
    assert_eq!(built.unwrap().to_text(), message);
    assert_eq!(facts.steps, [0..2, 2..4]);
    assert_eq!(facts.finish_reason.as_deref(), Some("error"));
    let error = StreamError {
        index: 4,
        text: "down".into(),
    };
    assert_eq!(facts.errors, [error]);
    let reason = Some("enough".to_owned());
    assert_eq!(facts.aborted, Some(Aborted { reason }));
    assert_eq!(facts.transient.len(), 1);
    assert!(facts.finished && facts.done_seen);
}

#[test]
fn a_stream_that_shows_nothing_makes_no_message() {
    let stream = r#"
        "type":"start"
        "type":"start-step"
        "type":"finish-step"
        "type":"finish"
    "#;
    let watched = watched(Major::V7, stream);
    assert_eq!((watched.shown.len(), watched.reduced.message), (0, None));
}

#[test]
fn a_message_is_gone_on_with_unless_the_stream_begins_another() {
    let message = r#"{"id":"m","role":"assistant","x":1,"parts":[{"type":"step-start"},{"type":"tool-t","toolCallId":"c","state":"input-streaming","rawInput":"[1"}]}"#;
    let message = Json::parse(message).unwrap();
    let after = |reducer: Reducer, id: &str| {
        let start = format!(r#""type":"start","messageId":"{id}""#);
        let watched = watch(reducer, &lines(&start));
        watched.reduced.message.unwrap().to_text()
    };
    let given = || Reducer::new(Major::V7, Some(message.clone()));
    assert!(after(given(), "m").contains("\"x\":1"));
    assert_eq!(
        after(given(), "n"),
        r#"{"id":"n","role":"assistant","parts":[]}"#
    );
    assert!(after(given().renaming(), "n").starts_with(r#"{"id":"n","role":"assistant","x":1"#));
    let mut reducer = given();
    let delta = r#""type":"tool-input-delta","toolCallId":"c","inputTextDelta":",2""#;
    reducer.push(&lines(delta)[0]).unwrap();
    let input = reducer
        .message()
        .pointer("/parts/1/input")
        .map(Json::to_text);
    assert_eq!(input.as_deref(), Some("[1,2]"));
}

#[test]
fn the_message_of_a_user_is_not_gone_on_with() {
    let message = Json::parse(r#"{"id":"u","role":"user","parts":[{"type":"text","text":"x"}]}"#);
    let reducer = Reducer::new(Major::V7, Some(message.unwrap()));
    assert_eq!(
        reducer.message().to_text(),
        r#"{"id":"u","role":"assistant","parts":[]}"#
    );
}

#[test]
fn a_refused_chunk_ends_the_stream_and_leaves_the_message() {
    let mut reducer = Reducer::new(Major::V7, None);
    let [start, bad] = [
        r#""type":"text-start","id":"a""#,
        r#""type":"text-delta","id":"a""#,
    ]
    .map(|line| lines(line).remove(0));
    reducer.push(&start).unwrap();
    let before = reducer.message();
    let missing = ReduceError::Field {
        place: 1,
        kind: "text-delta".into(),
        field: "delta",
        expected: "a string",
        found: None,
    };
    assert_eq!(
        missing.to_string(),
        "delta of chunk 1 of type \"text-delta\" is missing, expected a string"
    );
    assert_eq!(reducer.push(&bad), Err(missing));
    assert_eq!(reducer.push(&start), Err(ReduceError::Over { place: 1 }));
    assert_eq!(reducer.finish().message, Some(before));
}

#[test]
fn metadata_of_the_wrong_shape_is_refused_only_when_asked_to_check() {
    let chunk = lines(r#""type":"text-start","id":"a","providerMetadata":{"p":1}"#);
    assert!(Reducer::new(Major::V7, None).push(&chunk[0]).is_ok());
    let error = watch(Reducer::new(Major::V7, None).checked(), &chunk).error;
    let found = Some("object");
    assert!(
        matches!(error, Some(ReduceError::Field { field: "providerMetadata", found: f, .. }) if f == found)
    );
}

#[test]
fn citations_keep_what_the_schema_knows() {
    let stream = r#"
        "type":"text-start","id":"a"
        "type":"text-end","id":"a","citations":[{"x":1,"startIndex":0,"source":{"type":"source","sourceType":"url","id":"i","url":"u","filename":"f"}}]
    "#;
    let expected = r#"[{"type":"text","text":"","state":"done","citations":[{"startIndex":0,"source":{"type":"source","sourceType":"url","id":"i","url":"u"}}]}]"#;
    assert_eq!(parts(Major::V7, stream), expected);
}

proptest! {
    #[test]
    fn no_chunk_of_any_kind_breaks_a_reducer(
        bytes in prop::collection::vec(any::<u8>(), 0..300),
        major in prop::sample::select(MAJORS.to_vec()),
    ) {
        let mut reducer = Reducer::new(major, None);
        for bytes in bytes.chunks(12) {
            let before = reducer.message();
            match reducer.push(&spoiled(bytes)) {
                Ok(pushed) if pushed.visible => {}
                Ok(_) | Err(_) => prop_assert_eq!(&reducer.message(), &before),
            }
        }
    }

    #[test]
    fn what_is_shown_last_is_the_message(
        bytes in prop::collection::vec(any::<u8>(), 0..250),
        major in prop::sample::select(MAJORS.to_vec()),
    ) {
        let watched = watch(Reducer::new(major, None), &stream(major, &bytes));
        prop_assert_eq!(watched.error, None);
        prop_assert_eq!(watched.shown.last(), watched.reduced.message.as_ref());
    }

    #[test]
    fn looking_at_a_message_changes_nothing(bytes in prop::collection::vec(any::<u8>(), 0..250)) {
        let chunks = stream(Major::V7, &bytes);
        let watched = watch(Reducer::new(Major::V7, None), &chunks);
        let mut unseen = Reducer::new(Major::V7, None);
        for chunk in &chunks {
            unseen.push(chunk).unwrap();
        }
        prop_assert_eq!(unseen.finish(), watched.reduced);
    }

    #[test]
    fn steps_follow_each_other_and_begin_where_they_say(bytes in prop::collection::vec(any::<u8>(), 0..250)) {
        let reduced = watch(Reducer::new(Major::V7, None), &stream(Major::V7, &bytes)).reduced;
        let message = reduced.message.unwrap_or_default();
        let parts = message.get("parts").and_then(Json::as_array).unwrap_or_default();
        let mut end = 0;
        for step in reduced.facts.steps {
            prop_assert!(end <= step.start && step.start < step.end && step.end <= parts.len());
            prop_assert_eq!(parts[step.start].get("type"), Some(&"step-start".into()));
            let starts = parts[step.clone()].iter().filter(|part| part.get("type") == Some(&"step-start".into()));
            prop_assert_eq!(starts.count(), 1);
            end = step.end;
        }
    }
}
