//! Turns that are still streaming.

use loomline_thread::partial::{
    DeltaRefused, MessageDelta, PartialEnding, PartialTurn, StreamedKind,
};
use loomline_thread::validate::Rule;
use loomline_thread::{Json, Object, Profile, Severity, Thread, validate};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

const AGENT: &str = "9a3b5c7d-1e2f-4a6b-8c9d-0e1f2a3b4c03";
const AT: &str = "2026-04-01T10:00:00Z";

fn members(text: &str) -> Object {
    let json = Json::parse(text).expect("JSON");
    json.into_object().expect("an object")
}

fn turn(deltas: impl IntoIterator<Item = MessageDelta>) -> PartialTurn {
    let mut turn = PartialTurn::new(AGENT, AT);
    for (event, delta) in deltas.into_iter().enumerate() {
        let pushed = turn.push(event as u64, delta);
        assert_eq!(pushed, Ok(true));
    }
    turn
}

fn usage(n_tokens: u64) -> MessageDelta {
    let usage = Object::new().with("output_tokens", n_tokens);
    MessageDelta::Usage { usage }
}

fn interrupted() -> PartialEnding {
    let reason = "user_cancelled".to_owned();
    PartialEnding::Interrupted {
        reason,
        at: AT.to_owned(),
    }
}

fn complete() -> PartialEnding {
    PartialEnding::Complete { at: AT.to_owned() }
}

fn answer(id: &str) -> MessageDelta {
    let message = Json::parse(&format!(
        r#"{{"message_type":"request","timestamp":"{AT}","agent_id":"{AGENT}","parts":[
            {{"part_kind":"tool-return","tool_name":"t","tool_call_id":"{id}","status":"success","content":1}}]}}"#
    ));
    MessageDelta::Message {
        message: message.expect("JSON"),
    }
}

/// A run that called a tool, got the answer, and was writing when this was taken.
fn run() -> Vec<MessageDelta> {
    vec![
        MessageDelta::response(AT),
        MessageDelta::start(0, StreamedKind::Thinking),
        MessageDelta::append(0, "Hm"),
        MessageDelta::append(0, "m."),
        MessageDelta::End {
            part: 0,
            members: members(r#"{"signature":"c2ln","provider_name":"fable"}"#),
        },
        MessageDelta::start_call(1, "t", "c"),
        MessageDelta::append(1, "{\"q\":"),
        MessageDelta::append(1, " 1}"),
        MessageDelta::end(1),
        usage(5),
        MessageDelta::Finish {
            members: members(r#"{"finish_reason":"tool_call"}"#),
        },
        answer("c"),
        MessageDelta::response(AT),
        MessageDelta::start(0, StreamedKind::Text),
        MessageDelta::append(0, "So"),
        usage(3),
    ]
}

#[test]
fn a_turn_that_streams_shows_what_came_so_far() {
    let json = turn(run().into_iter().take(8)).to_json();
    let expected = format!(
        r#"{{"turn_type":"partial","agent_id":"{AGENT}","started_at":"{AT}","last_event":7,"messages":[],"response":{{"timestamp":"{AT}","parts":[{{"part_kind":"thinking","state":"done","content":"Hmm.","signature":"c2ln","provider_name":"fable"}},{{"part_kind":"tool-call","state":"streaming","args_text":"{{\"q\": 1}}","tool_name":"t","tool_call_id":"c"}}]}}}}"#
    );
    assert_eq!(json.to_text(), expected);
}

#[test]
fn an_interrupted_turn_keeps_whole_cycles_and_counts_what_the_rest_used() {
    let settled = turn(run()).finish(interrupted());
    let expected = format!(
        r#"{{"turn_type":"agent","agent_id":"{AGENT}","started_at":"{AT}","completion_status":"interrupted","interruption":{{"reason":"user_cancelled","interrupted_at":"{AT}"}},"messages":[{{"message_type":"response","timestamp":"{AT}","agent_id":"{AGENT}","parts":[{{"part_kind":"thinking","content":"Hmm.","signature":"c2ln","provider_name":"fable"}},{{"part_kind":"tool-call","args":"{{\"q\": 1}}","tool_name":"t","tool_call_id":"c"}}],"usage":{{"output_tokens":5}},"finish_reason":"tool_call"}},{{"message_type":"request","timestamp":"{AT}","agent_id":"{AGENT}","parts":[{{"part_kind":"tool-return","tool_name":"t","tool_call_id":"c","status":"success","content":1}}]}}],"total_usage":{{"output_tokens":8}}}}"#
    );
    assert_eq!(settled.to_text(), expected);
}

#[test]
fn a_call_that_was_never_answered_goes_with_its_response_but_not_its_usage() {
    let before_the_answer = run().into_iter().take(11);
    let settled = turn(before_the_answer.clone()).finish(interrupted());
    assert_eq!(settled.pointer("/messages/0"), None);
    assert_eq!(
        settled.pointer("/total_usage/output_tokens"),
        Some(&5u64.into())
    );
    let pending = turn(before_the_answer).finish(complete());
    assert_eq!(
        pending.pointer("/messages/0/parts/1/tool_call_id"),
        Some(&"c".into())
    );
}

#[test]
fn arguments_given_whole_at_the_end_stand_for_their_draft() {
    let settled = turn([
        MessageDelta::response(AT),
        MessageDelta::start_call(0, "t", "c"),
        MessageDelta::append(0, "{\"q\":1"),
        MessageDelta::End {
            part: 0,
            members: members(r#"{"args":{"q":1.0}}"#),
        },
        MessageDelta::finish(),
    ])
    .finish(complete());
    let args = settled
        .pointer("/messages/0/parts/0/args")
        .map(Json::to_text);
    assert_eq!(args.as_deref(), Some(r#"{"q":1.0}"#));
}

#[test]
fn an_event_that_came_before_is_passed_over() {
    let mut turn = turn(run());
    let before = turn.clone();
    assert_eq!(turn.push(15, MessageDelta::append(0, "again")), Ok(false));
    assert_eq!(turn, before);
    assert_eq!(turn.push(16, MessageDelta::append(0, " on")), Ok(true));
    assert_eq!(turn.last_event(), Some(16));
}

#[test]
fn an_event_that_does_not_fit_is_refused_and_changes_nothing() {
    let mut turn = turn(run());
    let before = turn.clone();
    let reserved = members(r#"{"state":"done"}"#);
    let own = members(r#"{"parts":[]}"#);
    for (delta, refused) in [
        (MessageDelta::response(AT), DeltaRefused::ResponseOpen),
        (answer("c"), DeltaRefused::ResponseOpen),
        (
            MessageDelta::start(3, StreamedKind::Text),
            DeltaRefused::OutOfOrder {
                part: 3,
                expected: 1,
            },
        ),
        (
            MessageDelta::append(1, "x"),
            DeltaRefused::NoSuchPart {
                part: 1,
                n_parts: 1,
            },
        ),
        (
            MessageDelta::End {
                part: 0,
                members: reserved,
            },
            DeltaRefused::Reserved,
        ),
        (
            MessageDelta::Finish { members: own },
            DeltaRefused::Reserved,
        ),
    ] {
        assert_eq!(turn.push(99, delta), Err(refused));
        assert_eq!(turn, before);
    }
    turn.push(99, MessageDelta::end(0)).unwrap();
    assert_eq!(
        turn.push(100, MessageDelta::append(0, "x")),
        Err(DeltaRefused::PartDone { part: 0 })
    );
    turn.push(100, MessageDelta::finish()).unwrap();
    assert_eq!(turn.push(101, usage(1)), Err(DeltaRefused::NoResponse));
}

#[test]
fn what_is_no_streaming_turn_is_refused_where_it_is_wrong() {
    let json = turn(run()).to_json().to_text();
    for (from, to, pointer) in [
        ("\"partial\"", "\"agent\"", "/turn_type"),
        ("\"last_event\":15", "\"last_event\":-1", "/last_event"),
        ("\"agent_id\":\"9a", "\"agent\":\"9a", "/agent_id"),
        ("\"streaming\"", "\"asleep\"", "/response/parts/0/state"),
        ("\"So\"", "7", "/response/parts/0/content"),
    ] {
        let damaged = Json::parse(&json.replacen(from, to, 1)).unwrap();
        let error = PartialTurn::from_json(&damaged).unwrap_err();
        assert_eq!(error.pointer, pointer);
    }
    assert_eq!(
        PartialTurn::from_json(&Json::Null).unwrap_err().pointer,
        "/turn_type"
    );
}

fn document(turn: Json) -> Thread {
    let mut thread = Thread::new("0b6f7f0e-3d3e-4a57-9d0f-4b8e2f6f7a01", AT);
    let agent = Object::new()
        .with("agent_id", AGENT)
        .with("agent_name", "A")
        .with("created_at", AT);
    thread.put_agent(AGENT, agent).expect("a registry");
    thread.push_turn(turn).expect("turns");
    thread
}

#[test]
fn a_document_with_a_streaming_turn_must_not_be_written() {
    let thread = document(turn(run()).to_json());
    let found = |profile| {
        let found = validate(&thread, profile).into_iter();
        let found = found.map(|violation| (violation.pointer, violation.rule, violation.severity));
        found.collect::<Vec<_>>()
    };
    let place = || "/turns/0/turn_type".to_owned();
    assert_eq!(
        found(Profile::Strict),
        [(place(), Rule::UnknownKind, Severity::Error)]
    );
    assert_eq!(
        found(Profile::Lenient),
        [(place(), Rule::UnknownKind, Severity::Warning)]
    );
}

/// Deltas that may or may not fit; those that do not are refused.
fn delta() -> impl Strategy<Value = MessageDelta> {
    let kind = select(vec![StreamedKind::Text, StreamedKind::Thinking]);
    let ids = || select(vec!["c", "d"]);
    prop_oneof![
        Just(MessageDelta::response(AT)),
        (0usize..4, kind).prop_map(|(part, kind)| MessageDelta::start(part, kind)),
        (0usize..4, ids()).prop_map(|(part, id)| MessageDelta::start_call(part, "t", id)),
        (0usize..4, ".{0,6}").prop_map(|(part, text)| MessageDelta::append(part, text)),
        (0usize..4).prop_map(MessageDelta::end),
        (0usize..4).prop_map(|part| MessageDelta::End {
            part,
            members: members(r#"{"provider_name":"p","x":1.0}"#)
        }),
        (0u64..9).prop_map(usage),
        Just(MessageDelta::finish()),
        ids().prop_map(answer),
    ]
}

fn any_turn() -> impl Strategy<Value = PartialTurn> {
    vec(delta(), 0..60).prop_map(|deltas| {
        let mut turn = PartialTurn::new(AGENT, AT);
        for (event, delta) in deltas.into_iter().enumerate() {
            // What does not fit is passed over.
            let _ = turn.push(event as u64, delta);
        }
        turn
    })
}

proptest! {
    #[test]
    fn a_streaming_turn_comes_back_from_its_text(turn in any_turn()) {
        let text = turn.to_json().to_text();
        let back = PartialTurn::from_json(&Json::parse(&text).expect("our own text"));
        prop_assert_eq!(back, Ok(turn));
    }

    #[test]
    fn however_a_turn_is_interrupted_its_document_holds_only_whole_cycles(turn in any_turn()) {
        let thread = document(turn.finish(interrupted()));
        let cycles = [Rule::CompleteCycle, Rule::Interruption, Rule::CompletionStatus, Rule::Shape, Rule::Required];
        for violation in validate(&thread, Profile::Strict) {
            prop_assert!(!cycles.contains(&violation.rule), "{}", violation);
        }
    }

    #[test]
    fn usage_counts_however_a_turn_ends(turn in any_turn()) {
        let total = |settled: Json| settled.pointer("/total_usage").cloned();
        prop_assert_eq!(total(turn.clone().finish(interrupted())), total(turn.finish(complete())));
    }
}
