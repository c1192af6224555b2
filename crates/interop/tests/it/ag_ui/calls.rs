//! Calls that wait, and those whose results come later.

use super::requests::waits;
use super::{asks, begun, check, emit, end, kinds, respond, runs, told};
use crate::log::Log;
use loomline_interop::ag_ui::{RunView, to_messages};
use loomline_interop::parts::{ToolPart, ToolState};
use serde_json::{Value, json};
use timeline::{Command, Ending, NewItem, OpenKind, StepOutcome, Trigger};

#[test]
fn what_a_person_is_asked_is_what_the_last_step_leaves_open() {
    let mut log = begun();
    let call = asks("{}");
    respond(&mut log, vec![call.write().unwrap()]);
    // The step asked, and its end leaves another call open and not that one.
    end(&mut log, &[waits("c2", OpenKind::Approval)]);
    let events = runs(&log).remove(0);
    let interrupts = &events.last().unwrap()["outcome"]["interrupts"];
    assert_eq!(interrupts.as_array().unwrap().len(), 1);
    assert_eq!(
        (&interrupts[0]["id"], &interrupts[0]["toolCallId"]),
        (&json!("q-c2"), &json!("c2"))
    );
}

#[test]
fn calls_of_several_steps_may_have_one_id() {
    let mut log = begun();
    for next in [Some("s2"), None] {
        let call = ToolPart::call("add", "call_0", "{}");
        respond(&mut log, vec![call.write().unwrap()]);
        log.run(Command::ImportStep {
            outcome: StepOutcome::default(),
            next: next.map(Into::into),
        });
    }
    log.run(Command::End {
        ending: Ending::Completed,
    });
    let events = runs(&log).remove(0);
    assert_eq!(check(&events), Ok(()));
    let begun = events.iter().filter(|it| it["type"] == "TOOL_CALL_START");
    let parents: Vec<&Value> = begun.map(|it| &it["parentMessageId"]).collect();
    assert_eq!(parents, ["s", "s2"]);
}

/// A log in which a call has waited, was answered, and its run goes on.
fn answered() -> Log {
    answered_as(json!([{"type": "loomline-answer", "toolCallId": "c1", "output": "paid"}]))
}

fn answered_as(answer: Value) -> Log {
    let mut log = begun();
    let call = ToolPart::call("pay", "c1", r#"{ "eur": 5 }"#);
    respond(&mut log, vec![call.write().unwrap()]);
    end(&mut log, &[waits("c1", OpenKind::External)]);
    log.run(Command::Start {
        trigger: Trigger::New(NewItem {
            id: "answer".into(),
            item_type: timeline::ItemType::ActionResult,
            role: None,
            channel: None,
            content: Some(answer.into()),
            metadata: None,
        }),
        run: None,
        execution_id: "e2".into(),
        reaction_item_id: "a2".into(),
        step_id: "s2".into(),
        workflow_run_id: None,
    });
    let done = ToolPart {
        state: ToolState::OutputAvailable,
        output: Some(json!("paid").into()),
        ..call
    };
    let parts = vec![done.write().unwrap()];
    let response = json!({"answers": true}).into();
    log.run(Command::Respond { parts, response });
    end(&mut log, &[]);
    log
}

#[test]
fn a_step_that_is_about_earlier_calls_adds_their_results_and_not_the_calls() {
    let log = answered();
    let messages = to_messages(&log.transcript()).value;
    let calls = messages.iter().filter_map(|it| it["toolCalls"].as_array());
    assert_eq!(calls.flatten().count(), 1, "{messages:#?}");
    let result = json!({"id": "c1-result", "role": "tool", "toolCallId": "c1", "content": "paid"});
    assert_eq!(messages.last(), Some(&result));

    let mut view = RunView::new("t", "r", "answer".into());
    let events = told(&mut view, &log.records, &log);
    assert_eq!(
        kinds(&events),
        [
            "RUN_STARTED",
            "STEP_STARTED",
            "TOOL_CALL_RESULT",
            "STEP_FINISHED",
            "RUN_FINISHED"
        ]
    );
}

#[test]
fn a_result_and_arguments_are_the_same_in_the_stream_and_in_the_messages() {
    let base = ToolPart {
        state: ToolState::OutputError,
        ..ToolPart::call("pay", "c1", "")
    };
    let denied = ToolPart {
        outcome: Some("denied".into()),
        error_text: Some("Ann says no".into()),
        ..base.clone()
    };
    let failed = ToolPart {
        output: Some(json!({"n": 1}).into()),
        error_text: Some("it broke".into()),
        ..base.clone()
    };
    let told_why = ToolPart {
        output: Some(json!("it broke").into()),
        ..base.clone()
    };
    let spaced = ToolPart {
        state: ToolState::OutputAvailable,
        output: Some(json!({"sum": 3}).into()),
        ..ToolPart::call("pay", "c1", "{ \"eur\": 5 }")
    };
    for (tool, arguments, content) in [
        (denied, "{}", "Ann says no"),
        (failed, "{}", "it broke"),
        (told_why, "{}", "it broke"),
        (spaced, "{ \"eur\": 5 }", "{\"sum\":3}"),
    ] {
        let mut log = begun();
        let call = ToolPart::call("pay", "c1", tool.arguments());
        respond(&mut log, vec![call.write().unwrap()]);
        let part = tool.write().unwrap();
        log.run(Command::PutPart { idx: 0, part });
        end(&mut log, &[]);
        let events = runs(&log).remove(0);
        let of = |kind: &str| events.iter().find(|event| event["type"] == kind).unwrap();
        assert_eq!(of("TOOL_CALL_ARGS")["delta"], arguments);
        assert_eq!(of("TOOL_CALL_RESULT")["content"], content);
        let messages = to_messages(&log.transcript()).value;
        let called = &messages[1]["toolCalls"][0]["function"];
        assert_eq!(called["arguments"], arguments);
        assert_eq!(messages[2]["content"], content);
    }
}

#[test]
fn arguments_that_were_streamed_are_ended_as_the_call_has_them() {
    for (streamed, is_prefix) in [("{\"eur\"", true), ("{\"usd\"", false)] {
        let mut log = begun();
        let start = json!({"toolCallId": "c1", "toolName": "pay"});
        emit(&mut log, "tool-input-start", start);
        let delta = json!({"toolCallId": "c1", "inputTextDelta": streamed});
        emit(&mut log, "tool-input-delta", delta);
        let call = ToolPart::call("pay", "c1", r#"{"eur":5}"#);
        respond(&mut log, vec![call.write().unwrap()]);
        end(&mut log, &[]);
        let events = runs(&log).remove(0);
        assert_eq!(check(&events), Ok(()));
        let said: String = events
            .iter()
            .filter(|event| event["type"] == "TOOL_CALL_ARGS")
            .map(|event| event["delta"].as_str().unwrap())
            .collect();
        let is_put_right = events.iter().any(|it| it["type"] == "MESSAGES_SNAPSHOT");
        assert_eq!(
            (said == r#"{"eur":5}"#, is_put_right),
            (is_prefix, !is_prefix)
        );
    }
}

/// A log whose first step calls two tools at once, of which the second one is done first.
fn parallel() -> Log {
    let mut log = begun();
    let calls = [
        ToolPart::call("slow", "c1", "{}"),
        ToolPart::call("fast", "c2", "{}"),
    ];
    let parts = calls.iter().map(|call| call.write().unwrap()).collect();
    respond(&mut log, parts);
    for (idx, call) in [(1, &calls[1]), (0, &calls[0])] {
        let done = ToolPart {
            state: ToolState::OutputAvailable,
            output: Some(json!(call.tool_name()).into()),
            ..call.clone()
        };
        let part = done.write().unwrap();
        log.run(Command::PutPart { idx, part });
    }
    end(&mut log, &[]);
    log
}

fn results(all: &[Value], kind: &str) -> Vec<Value> {
    let results = all
        .iter()
        .filter(|it| it["type"] == kind || it["role"] == kind);
    results.map(|it| it["toolCallId"].clone()).collect()
}

#[test]
fn parallel_results_have_one_order_live_and_on_reload() {
    let log = parallel();
    let messages = to_messages(&log.transcript()).value;
    let reloaded = results(&messages, "tool");
    assert_eq!(reloaded, ["c1", "c2"]);
    let events = runs(&log).remove(0);
    assert_eq!(check(&events), Ok(()));
    assert_eq!(results(&events, "TOOL_CALL_RESULT"), reloaded);
}

#[test]
fn a_result_behind_a_call_that_stays_open_is_told_in_its_step() {
    let mut log = begun();
    let call = ToolPart::call("fast", "c2", "{}");
    let open = ToolPart::call("pay", "c1", "{}");
    respond(&mut log, vec![open.write().unwrap(), call.write().unwrap()]);
    let done = ToolPart {
        state: ToolState::OutputAvailable,
        output: Some(json!(1).into()),
        ..call
    };
    let part = done.write().unwrap();
    log.run(Command::PutPart { idx: 1, part });
    end(&mut log, &[waits("c1", OpenKind::External)]);
    let events = runs(&log).remove(0);
    let kinds = kinds(&events);
    let place = |kind: &str| kinds.iter().position(|it| *it == kind).unwrap();
    assert!(
        place("TOOL_CALL_RESULT") < place("STEP_FINISHED"),
        "{kinds:?}"
    );
    assert_eq!(results(&events, "TOOL_CALL_RESULT"), ["c2"]);
}

#[test]
fn a_clients_own_result_keeps_its_id_and_is_not_streamed_back() {
    let log = answered_as(json!([{
        "type": "loomline-answer", "toolCallId": "c1", "output": "paid",
        "loomline.message_id": "m9",
    }]));
    let messages = to_messages(&log.transcript()).value;
    let result = json!({"id": "m9", "role": "tool", "toolCallId": "c1", "content": "paid"});
    assert_eq!(messages.last(), Some(&result));
    let mut view = RunView::new("t", "r", "answer".into());
    let events = told(&mut view, &log.records, &log);
    assert_eq!(results(&events, "TOOL_CALL_RESULT"), [""; 0]);
}
