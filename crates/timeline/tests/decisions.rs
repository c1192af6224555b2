//! What `decide` refuses, and what its events say, where the runtime alone would not show it.

#![allow(
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "a failed expectation is the test's failure"
)]

use jiff::Timestamp;
use loomline_timeline as timeline;
use serde_json::{Value, json};
use timeline::chunk_type::MARKERS;
use timeline::{
    Command, Ending, Event, Interruption, NewChunk, NewItem, NewThread, Payload, Rejected, State,
    StepOutcome, StepStatus, Trigger,
};

fn decide(state: &State, command: Command) -> Result<Vec<Event>, Rejected> {
    state.decide(command, Timestamp::UNIX_EPOCH)
}

fn after(commands: impl IntoIterator<Item = Command>) -> State {
    let mut state = State::default();
    for command in commands {
        for event in decide(&state, command).unwrap() {
            state.apply(&event);
        }
    }
    state
}

fn create() -> Command {
    Command::Create {
        thread: NewThread::new("t", Some("k")),
        context_id: "c".into(),
    }
}

fn message(id: &str) -> NewItem {
    NewItem::user(id, json!([{"type": "input_text", "text": "hi"}]).into())
}

fn start(trigger: Trigger, execution: &str) -> Command {
    Command::Start {
        trigger,
        run: None,
        execution_id: execution.into(),
        reaction_item_id: format!("{execution}-answer").into(),
        step_id: format!("{execution}-step").into(),
        workflow_run_id: None,
    }
}

fn begun() -> [Command; 2] {
    [create(), start(Trigger::New(message("u")), "e")]
}

fn respond(parts: Value) -> Command {
    let parts: Vec<Payload> = serde_json::from_value(parts).unwrap();
    Command::Respond {
        parts,
        response: json!({"model": "m"}).into(),
    }
}

/// A thread at rest whose last execution has left a call open.
fn waits() -> Vec<Command> {
    let call =
        json!({"type": "tool-touch", "toolCallId": "c", "state": "input-available", "input": {}});
    let open = json!([{"toolCallId": "c", "kind": "external", "part": call}]);
    let complete = Command::CompleteStep {
        outcome: StepOutcome {
            open_calls: Some(open.into()),
            ..StepOutcome::default()
        },
        next: None,
    };
    let end = Command::End {
        ending: Ending::Completed,
    };
    let commands = begun().into_iter();
    commands
        .chain([respond(json!([call])), complete, end])
        .collect()
}

fn enqueue(id: &str) -> Command {
    Command::Enqueue {
        item: message(id),
        run: json!({"agent": "demo"}).into(),
    }
}

#[test]
fn a_step_that_fails_says_why_in_its_error_text() {
    for (detail, told) in [
        (None, "error"),
        (Some("the model is gone"), "the model is gone"),
    ] {
        let why = Interruption {
            reason: "error".into(),
            detail: detail.map(str::to_owned),
        };
        for ending in [Ending::Failed(why.clone()), Ending::Stopped(why)] {
            let events = decide(&after(begun()), Command::End { ending }).unwrap();
            let step = events.iter().find_map(|event| match event {
                Event::StepStatusChanged { to, outcome, .. } => Some((*to, outcome)),
                _ => None,
            });
            let (to, outcome) = step.unwrap();
            assert_eq!(to, StepStatus::Failed);
            assert_eq!(outcome.error_text.as_deref(), Some(told));
            assert_eq!(outcome.continue_loop, Some(false));
        }
    }
}

#[test]
fn a_step_takes_the_answer_of_its_model_once() {
    let said = || respond(json!([{"type": "output_text", "text": "hello"}]));
    let state = after(begun().into_iter().chain([said()]));
    let again = decide(&state, said());
    assert_eq!(again, Err(Rejected::AlreadyResponded("e-step".into())));
    let complete = Command::CompleteStep {
        outcome: StepOutcome::default(),
        next: Some("next".into()),
    };
    let next = after(begun().into_iter().chain([said(), complete]));
    assert!(decide(&next, said()).is_ok());
}

#[test]
fn a_queued_message_gives_up_open_calls_when_its_execution_begins() {
    let rests = after(waits());
    assert_eq!(rests.open().unwrap().calls.len(), 1);
    let begins = start(Trigger::Waiting, "e2");
    let state = after(waits().into_iter().chain([enqueue("u2"), begins]));
    let active = state.active().unwrap();
    assert_eq!(active.execution.trigger_item_id, "u2".into());
    assert_eq!(active.open_calls, []);
    assert_eq!(state.unanswered(), Vec::<&timeline::OpenCall>::new());
}

#[test]
fn a_closed_thread_takes_no_message_that_would_wait() {
    let closed = after([create(), Command::Close]);
    for command in [enqueue("u"), start(Trigger::New(message("u")), "e")] {
        let refused = decide(&closed, command).unwrap_err();
        assert!(matches!(refused, Rejected::Transition(_)), "{refused}");
    }
    assert_eq!(closed.waiting().len(), 0);
}

#[test]
fn no_marker_of_the_runtimes_own_can_be_emitted() {
    let running = after(begun());
    let emit = |kinds: &[&str]| {
        let chunk = |kind: &&str| NewChunk {
            chunk_type: (*kind).to_owned(),
            data: Some(json!({"toolCallId": "c"}).into()),
        };
        let chunks = kinds.iter().map(chunk).collect();
        decide(&running, Command::Emit { chunks })
    };
    assert_eq!(emit(&["text-delta"]).unwrap().len(), 1);
    for marker in MARKERS {
        let reserved = Err(Rejected::Reserved(marker.to_owned()));
        assert_eq!(emit(&[marker]), reserved);
        assert_eq!(emit(&["text-delta", marker]), reserved);
    }
}

#[test]
fn a_canonical_part_keeps_its_meaning_and_takes_what_is_added() {
    let kinds = [
        ("input_text", "text"),
        ("output_text", "text"),
        ("reasoning", "text"),
        ("refusal", "refusal"),
        ("input_image", "image_url"),
        ("input_image", "file_id"),
        ("input_file", "file_url"),
        ("input_file", "file_data"),
        ("input_file", "file_id"),
    ];
    let running = after(begun());
    for (kind, field) in kinds {
        let said = |value: Value| {
            let part = json!({"type": kind, field: value, "acme:note": {"n": 1}});
            let item = NewItem::user("u2", json!([part]).into());
            let written = decide(&running, respond(json!([part])));
            (decide(&running, Command::Record { item }), written)
        };
        let (recorded, written) = said(json!("so"));
        assert!(recorded.is_ok() && written.is_ok(), "{kind}/{field}");
        for other in [json!({"rich": true}), json!(1), Value::Null] {
            let (recorded, written) = said(other);
            for refused in [recorded, written] {
                assert!(
                    matches!(refused, Err(Rejected::Content(_))),
                    "{kind}/{field}"
                );
            }
        }
    }
}
