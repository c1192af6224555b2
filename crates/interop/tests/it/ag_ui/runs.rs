//! Runs from their beginning to their end, and the messages that they come to.

use super::{asks, begun, check, emit, end, kinds, respond, runs};
use loomline_interop::ag_ui::to_messages;
use loomline_interop::parts::{ToolPart, ToolState};
use serde_json::json;
use timeline::{Command, Ending, Interruption, OpenCall, OpenKind};

#[test]
fn a_run_with_a_tool_streams_its_parts_and_the_messages_have_the_same_ids() {
    let mut log = begun();
    emit(&mut log, "reasoning-start", json!({"id": "r"}));
    emit(
        &mut log,
        "reasoning-delta",
        json!({"id": "r", "delta": "hm"}),
    );
    emit(&mut log, "text-start", json!({"id": "t"}));
    emit(
        &mut log,
        "text-delta",
        json!({"id": "t", "delta": "let me "}),
    );
    emit(&mut log, "text-delta", json!({"id": "t", "delta": "see"}));
    emit(
        &mut log,
        "tool-input-start",
        json!({"toolCallId": "c1", "toolName": "add"}),
    );
    emit(
        &mut log,
        "tool-input-delta",
        json!({"toolCallId": "c1", "inputTextDelta": "{\"a\":1}"}),
    );
    let call = ToolPart::call("add", "c1", r#"{"a":1}"#);
    respond(
        &mut log,
        vec![
            json!({"type": "reasoning", "text": "hm"}).into(),
            json!({"type": "output_text", "text": "let me see"}).into(),
            call.write().unwrap(),
        ],
    );
    let done = ToolPart {
        state: ToolState::OutputAvailable,
        output: Some(json!({"sum": 3}).into()),
        ..call
    };
    log.run(Command::PutPart {
        idx: 2,
        part: done.write().unwrap(),
    });
    end(&mut log, &[]);
    let events = runs(&log).remove(0);
    assert_eq!(
        kinds(&events),
        [
            "RUN_STARTED",
            "STEP_STARTED",
            "REASONING_START",
            "REASONING_MESSAGE_START",
            "REASONING_MESSAGE_CONTENT",
            "TEXT_MESSAGE_START",
            "TEXT_MESSAGE_CONTENT",
            "TEXT_MESSAGE_CONTENT",
            "TOOL_CALL_START",
            "TOOL_CALL_ARGS",
            "REASONING_MESSAGE_END",
            "REASONING_END",
            "TEXT_MESSAGE_END",
            "TOOL_CALL_END",
            "TOOL_CALL_RESULT",
            "STEP_FINISHED",
            "RUN_FINISHED",
        ]
    );
    let messages = to_messages(&log.transcript()).value;
    assert_eq!(
        json!(messages),
        json!([
            {"id": "u", "role": "user", "content": "hi"},
            {"id": events[2]["messageId"], "role": "reasoning", "content": "hm"},
            {"id": events[5]["messageId"], "role": "assistant", "content": "let me see",
                "toolCalls": [{"id": "c1", "type": "function", "function": {"name": "add", "arguments": "{\"a\":1}"}}]},
            {"id": events[14]["messageId"], "role": "tool", "toolCallId": "c1", "content": "{\"sum\":3}"},
        ])
    );
    assert_eq!(events[8]["parentMessageId"], events[5]["messageId"]);
    assert_eq!(events[16]["outcome"], json!({"type": "success"}));
}

#[test]
fn a_question_is_an_interrupt_after_all_messages() {
    let mut log = begun();
    let call = asks(r#"{"eur":5}"#);
    let part = call.write().unwrap();
    respond(&mut log, vec![part.clone()]);
    end(
        &mut log,
        &[OpenCall {
            tool_call_id: "c1".into(),
            kind: OpenKind::Approval,
            part,
            origin: None,
            children: Vec::new(),
        }],
    );
    let events = runs(&log).remove(0);
    let n = events.len();
    assert_eq!(
        kinds(&events[n - 2..]),
        ["MESSAGES_SNAPSHOT", "RUN_FINISHED"]
    );
    assert_eq!(events[n - 2]["messages"].as_array().unwrap().len(), 2);
    let outcome = &events[n - 1]["outcome"];
    assert_eq!(outcome["type"], "interrupt");
    let asked = &outcome["interrupts"][0];
    assert_eq!(
        (&asked["id"], &asked["reason"], &asked["toolCallId"]),
        (&json!("q1"), &json!("tool_call"), &json!("c1"))
    );
}

#[test]
fn a_call_that_the_client_runs_is_left_pending() {
    let mut log = begun();
    let part = ToolPart::call("ask_user", "c1", "{}").write().unwrap();
    respond(&mut log, vec![part.clone()]);
    end(
        &mut log,
        &[OpenCall {
            tool_call_id: "c1".into(),
            kind: OpenKind::External,
            part,
            origin: None,
            children: Vec::new(),
        }],
    );
    let events = runs(&log).remove(0);
    let expected = json!({"type": "success", "pendingToolCallIds": ["c1"]});
    assert_eq!(events.last().unwrap()["outcome"], expected);
}

#[test]
fn a_dead_attempt_is_closed_and_the_messages_put_it_right() {
    let mut log = begun();
    emit(&mut log, "text-start", json!({"id": "t"}));
    emit(&mut log, "text-delta", json!({"id": "t", "delta": "dead"}));
    log.run(Command::ResetStep);
    emit(&mut log, "text-start", json!({"id": "t"}));
    emit(&mut log, "text-delta", json!({"id": "t", "delta": "alive"}));
    respond(
        &mut log,
        vec![json!({"type": "output_text", "text": "alive"}).into()],
    );
    end(&mut log, &[]);
    let events = runs(&log).remove(0);
    assert_eq!(check(&events), Ok(()));
    let snapshot = &events[events.len() - 2];
    assert_eq!(snapshot["type"], "MESSAGES_SNAPSHOT");
    assert_eq!(snapshot["messages"][1]["content"], "alive");
}

#[test]
fn a_run_that_is_stopped_is_cancelled_and_one_that_fails_says_why() {
    let ended = |reason: &str| {
        let mut log = begun();
        let why = Interruption {
            reason: reason.into(),
            detail: Some("too slow".into()),
        };
        log.run(Command::End {
            ending: Ending::Stopped(why),
        });
        runs(&log).remove(0).pop().unwrap()
    };
    assert_eq!(
        ended("user_cancelled")["outcome"],
        json!({"type": "cancelled"})
    );
    let failed = ended("timeout");
    assert_eq!(
        (&failed["type"], &failed["message"]),
        (&json!("RUN_ERROR"), &json!("too slow"))
    );
}

#[test]
fn what_a_run_had_said_when_it_was_stopped_is_in_its_messages_under_the_same_ids() {
    let mut log = begun();
    for (kind, data) in [
        ("reasoning-delta", json!({"id": "r", "delta": "hm"})),
        ("text-start", json!({"id": "0"})),
        ("text-end", json!({"id": "0"})),
        ("text-delta", json!({"id": "1", "delta": "let me "})),
        ("text-delta", json!({"id": "1", "delta": "see"})),
        ("text-end", json!({"id": "1"})),
        ("text-delta", json!({"id": "1", "delta": "well"})),
    ] {
        emit(&mut log, kind, data);
    }
    let running = to_messages(&log.transcript()).value;
    assert_eq!(running.len(), 1, "what is being written is not there");
    log.run(Command::End {
        ending: Ending::Stopped(Interruption {
            reason: "user_cancelled".into(),
            detail: None,
        }),
    });
    let events = runs(&log).remove(0);
    let id = |kind: &str, n: usize| {
        let mut found = events.iter().filter(|event| event["type"] == kind);
        found.nth(n).unwrap()["messageId"].clone()
    };
    assert_eq!(
        json!(to_messages(&log.transcript()).value[1..]),
        json!([
            {"id": id("REASONING_START", 0), "role": "reasoning", "content": "hm"},
            {"id": id("TEXT_MESSAGE_START", 0), "role": "assistant", "content": "let me see"},
            {"id": id("TEXT_MESSAGE_START", 1), "role": "assistant", "content": "well"},
        ])
    );
}

#[test]
fn texts_that_say_nothing_are_no_messages_and_take_no_ids() {
    let mut log = begun();
    emit(&mut log, "text-start", json!({"id": "0"}));
    emit(&mut log, "text-end", json!({"id": "0"}));
    emit(&mut log, "reasoning-start", json!({"id": "h"}));
    emit(&mut log, "reasoning-end", json!({"id": "h"}));
    emit(&mut log, "reasoning-start", json!({"id": "r"}));
    emit(
        &mut log,
        "reasoning-delta",
        json!({"id": "r", "delta": "hm"}),
    );
    emit(&mut log, "text-start", json!({"id": "1"}));
    emit(&mut log, "text-delta", json!({"id": "1", "delta": "ho"}));
    let parts = vec![
        json!({"type": "output_text", "text": ""}).into(),
        json!({"type": "reasoning", "text": "", "signature": "sealed"}).into(),
        json!({"type": "reasoning", "text": "hm"}).into(),
        json!({"type": "output_text", "text": "ho"}).into(),
    ];
    respond(&mut log, parts);
    end(&mut log, &[]);
    let events = runs(&log).remove(0);
    let begun = |kind: &str| {
        let begun = events.iter().filter(|event| event["type"] == kind);
        begun.map(|it| &it["messageId"]).collect::<Vec<_>>()
    };
    let messages = to_messages(&log.transcript()).value;
    let with = |content: &str| {
        let mut all = messages.iter();
        &all.find(|it| it["content"] == content).unwrap()["id"]
    };
    assert_eq!(begun("REASONING_START"), [with("hm")]);
    assert_eq!(begun("TEXT_MESSAGE_START"), [with("ho")]);
}

#[test]
fn no_message_of_a_dead_attempt_has_the_id_of_a_later_one() {
    let mut log = begun();
    for attempt in ["one", "two", "three"] {
        emit(&mut log, "text-start", json!({"id": "t"}));
        let said = json!({"id": "t", "delta": attempt});
        emit(&mut log, "text-delta", said);
        if attempt != "three" {
            log.run(Command::ResetStep);
        }
    }
    respond(
        &mut log,
        vec![json!({"type": "output_text", "text": "three"}).into()],
    );
    end(&mut log, &[]);
    let events = runs(&log).remove(0);
    assert_eq!(check(&events), Ok(()));
    let begun = events
        .iter()
        .filter(|event| event["type"] == "TEXT_MESSAGE_START");
    let ids: std::collections::BTreeSet<_> = begun.map(|it| it["messageId"].as_str()).collect();
    assert_eq!(ids.len(), 3, "{ids:?}");
}
