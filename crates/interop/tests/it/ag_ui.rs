//! AG-UI: requests, runs, messages.

use crate::log::Log;
use crate::native::{conversation, thread};
use loomline_interop::ag_ui::{RunInputError, RunView, from_run_input, to_messages};
use loomline_interop::parts::{ToolApproval, ToolPart, ToolState};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use timeline::{
    Chunk, Command, Ending, Event, Interruption, NewItem, OpenCall, OpenKind, Payload, Record,
    StepOutcome, Trigger,
};

/// The events of each run of a log, with all messages where they are wanted.
fn runs(log: &Log) -> Vec<Vec<Value>> {
    let triggers = log.records.iter().filter_map(|record| {
        let Event::ExecutionCreated { execution } = &record.event else {
            return None;
        };
        Some(execution.trigger_item_id.clone())
    });
    triggers
        .map(|trigger| {
            let mut view = RunView::new("t", "r", trigger);
            told(&mut view, &log.records, log)
        })
        .collect()
}

fn told(view: &mut RunView, records: &[Record], log: &Log) -> Vec<Value> {
    let mut events: Vec<Value> = records
        .iter()
        .flat_map(|record| view.events(record))
        .collect();
    if view.is_over() {
        let messages = view
            .wants_messages()
            .then(|| to_messages(&log.transcript()).value);
        events.extend(view.end(messages));
    }
    events
}

fn kinds(events: &[Value]) -> Vec<&str> {
    events
        .iter()
        .map(|event| event["type"].as_str().unwrap())
        .collect()
}

/// What the official client checks of a stream.
fn check(events: &[Value]) -> Result<(), String> {
    let mut open = BTreeSet::new();
    let mut is_over = false;
    for (place, event) in events.iter().enumerate() {
        let kind = event["type"].as_str().unwrap();
        let wrong = |why: &str| Err(format!("{place}: {kind}: {why}"));
        if is_over {
            return wrong("after the end");
        }
        if (place == 0) != (kind == "RUN_STARTED") {
            return wrong("RUN_STARTED is the first event and only that");
        }
        let name = |member: &str| event[member].as_str().unwrap().to_owned();
        let (what, id) = match kind {
            "TEXT_MESSAGE_START" | "TEXT_MESSAGE_CONTENT" | "TEXT_MESSAGE_END" => {
                ("text", name("messageId"))
            }
            "REASONING_START" | "REASONING_END" => ("reasoning", name("messageId")),
            "REASONING_MESSAGE_START" | "REASONING_MESSAGE_CONTENT" | "REASONING_MESSAGE_END" => {
                ("thought", name("messageId"))
            }
            "TOOL_CALL_START" | "TOOL_CALL_ARGS" | "TOOL_CALL_END" => ("call", name("toolCallId")),
            "STEP_STARTED" | "STEP_FINISHED" => ("step", name("stepName")),
            "RUN_FINISHED" | "RUN_ERROR" => {
                is_over = true;
                if kind == "RUN_FINISHED" && !open.is_empty() {
                    return wrong("something is open");
                }
                continue;
            }
            _ => continue,
        };
        let key = (what, id);
        if kind.ends_with("_START") || kind.ends_with("_STARTED") {
            if !open.insert(key) {
                return wrong("begun twice");
            }
        } else if kind.ends_with("_END") || kind.ends_with("_FINISHED") {
            if !open.remove(&key) {
                return wrong("ended without a beginning");
            }
        } else if !open.contains(&key) {
            return wrong("grows without a beginning");
        } else if event["delta"].as_str().is_some_and(str::is_empty) {
            return wrong("an empty delta");
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn the_official_client_can_follow_every_run(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        for events in runs(&conversation(&bytes)) {
            prop_assert_eq!(check(&events), Ok(()), "{:#?}", events);
        }
    }

    #[test]
    fn what_was_streamed_of_any_thread_is_what_its_messages_say(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let log = conversation(&bytes);
        let messages = to_messages(&log.transcript()).value;
        let said = |id: &Value| messages.iter().find(|message| message["id"] == *id);
        let calls = messages.iter().filter_map(|message| message["toolCalls"].as_array());
        let calls: Vec<&Value> = calls.flatten().collect();
        // Where the client gets all messages at the end, they count.
        let plain = |events: &Vec<Value>| events.iter().all(|it| it["type"] != "MESSAGES_SNAPSHOT");
        for events in runs(&log).into_iter().filter(plain) {
            for event in events.iter().filter(|event| event["type"] == "TOOL_CALL_RESULT") {
                // A step that came to nothing is in no message.
                if let Some(message) = said(&event["messageId"]) {
                    prop_assert_eq!(&message["content"], &event["content"]);
                }
            }
            for event in events.iter().filter(|event| event["type"] == "TOOL_CALL_END") {
                let id = &event["toolCallId"];
                let deltas = events.iter().filter(|it| it["type"] == "TOOL_CALL_ARGS" && it["toolCallId"] == *id);
                let streamed: String = deltas.map(|it| it["delta"].as_str().unwrap()).collect();
                if let Some(call) = calls.iter().find(|call| call["id"] == *id) {
                    prop_assert_eq!(&call["function"]["arguments"], &streamed);
                }
            }
        }
    }

    #[test]
    fn a_thread_has_messages_with_ids_of_their_own(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let messages = to_messages(&conversation(&bytes).transcript()).value;
        let ids: Vec<&str> = messages.iter().map(|message| message["id"].as_str().unwrap()).collect();
        prop_assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len(), "{:?}", ids);
    }
}

fn begun() -> Log {
    let mut log = Log::new(thread(), "2026-01-05T08:00:00Z".parse().unwrap());
    let content = json!([{"type": "input_text", "text": "hi"}]).into();
    log.run(Command::Start {
        trigger: Trigger::New(NewItem::user("u", content)),
        run: None,
        execution_id: "e".into(),
        reaction_item_id: "a".into(),
        step_id: "s".into(),
        workflow_run_id: None,
    });
    log
}

fn emit(log: &mut Log, kind: &str, data: Value) {
    let chunk_type = kind.to_owned();
    let data = Some(data.into());
    log.run(Command::Emit {
        chunks: vec![Chunk { chunk_type, data }],
    });
}

fn respond(log: &mut Log, parts: Vec<Payload>) {
    let response = json!({"stopReason": "tool_use"}).into();
    log.run(Command::Respond { parts, response });
}

fn end(log: &mut Log, open: &[OpenCall]) {
    let open_calls = (!open.is_empty()).then(|| Payload::write(&open).unwrap());
    let outcome = StepOutcome {
        open_calls,
        ..StepOutcome::default()
    };
    log.run(Command::CompleteStep {
        outcome,
        next: None,
    });
    log.run(Command::End {
        ending: Ending::Completed,
    });
}

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
    let call = ToolPart {
        state: ToolState::ApprovalRequested,
        approval: Some(ToolApproval {
            id: "q1".into(),
            approved: None,
            reason: None,
        }),
        ..ToolPart::call("pay", "c1", r#"{"eur":5}"#)
    };
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
fn only_what_the_client_adds_is_read() {
    let input = from_run_input(&json!({
        "threadId": "t", "runId": "r1", "state": {"n": 1}, "forwardedProps": {},
        "messages": [
            {"id": "1", "role": "user", "content": "hi"},
            {"id": "2", "role": "assistant", "toolCalls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
            {"id": "3", "role": "tool", "toolCallId": "c", "content": "{\"ok\":true}"},
            {"id": "4", "role": "tool", "toolCallId": "d", "content": "broken", "error": "it broke"},
        ],
        "tools": [{"name": "f", "description": "F.", "parameters": {"type": "object"}}],
        "context": [{"description": "Where", "value": "Bonn"}],
    }))
    .unwrap();
    assert_eq!(input.said, None);
    let open = [
        waits("c", OpenKind::External),
        waits("d", OpenKind::External),
    ];
    let results = input.results_for(&open);
    let parts: Vec<&Value> = results.iter().map(|result| &result.part).collect();
    assert_eq!(
        parts,
        [
            &json!({"type": "loomline-answer", "toolCallId": "c", "output": "{\"ok\":true}"}),
            &json!({"type": "loomline-answer", "toolCallId": "d", "errorText": "it broke"}),
        ]
    );
    assert_eq!(input.options.tools[0].name, "f");
    assert_eq!(
        input.options.additional_instructions.as_deref(),
        Some("Where: Bonn")
    );
    assert_eq!(input.options.echo["ag-ui"]["state"], json!({"n": 1}));
}

fn waits(call: &str, kind: OpenKind) -> OpenCall {
    let approval = (kind == OpenKind::Approval).then(|| ToolApproval {
        id: format!("q-{call}"),
        approved: None,
        reason: None,
    });
    let tool = ToolPart {
        approval,
        ..ToolPart::call("pay", call, r#"{"eur":5}"#)
    };
    OpenCall {
        tool_call_id: call.into(),
        kind,
        part: tool.write().unwrap(),
        origin: None,
        children: Vec::new(),
    }
}

#[test]
fn tool_messages_of_calls_that_wait_for_no_client_are_no_results() {
    let input = from_run_input(&json!({
        "threadId": "t", "runId": "r1",
        "messages": [
            {"id": "1", "role": "tool", "toolCallId": "servers-own", "content": "3"},
            {"id": "2", "role": "tool", "toolCallId": "asked", "content": "yes"},
            {"id": "3", "role": "tool", "toolCallId": "clients", "content": "4"},
        ],
    }))
    .unwrap();
    let open = [
        waits("asked", OpenKind::Approval),
        waits("clients", OpenKind::External),
    ];
    let results = input.results_for(&open);
    let calls: Vec<&str> = results.iter().map(|it| it.tool_call_id.as_str()).collect();
    assert_eq!(calls, ["clients"]);
    assert!(input.results_for(&[]).is_empty());
}

#[test]
fn what_a_person_is_asked_is_what_the_last_step_leaves_open() {
    let mut log = begun();
    let call = ToolPart {
        state: ToolState::ApprovalRequested,
        approval: Some(ToolApproval {
            id: "q1".into(),
            approved: None,
            reason: None,
        }),
        ..ToolPart::call("pay", "c1", "{}")
    };
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
        log.run(Command::CompleteStep {
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
    let mut log = begun();
    let call = ToolPart::call("pay", "c1", r#"{ "eur": 5 }"#);
    respond(&mut log, vec![call.write().unwrap()]);
    end(&mut log, &[waits("c1", OpenKind::External)]);
    let answer = json!([{"type": "loomline-answer", "toolCallId": "c1", "output": "paid"}]);
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

    let mut view = RunView::new("t", "r", "answer".into()).continuing();
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
fn what_a_client_has_sent_comes_back_as_it_was() {
    let content = json!([
        {"type": "text", "text": "look"},
        {"type": "image", "source": {"type": "url", "value": "https://a.b/c"}},
        {"type": "image", "source": {"type": "url", "value": "https://a.b/c.png", "mimeType": "image/png"}},
        {"type": "audio", "source": {"type": "url", "value": "https://a.b/c.wav"}},
        {"type": "video", "source": {"type": "url", "value": "https://a.b/c.mp4", "mimeType": "video/mp4"}},
        {"type": "video", "source": {"type": "url", "value": "https://a.b/c"}},
        {"type": "document", "source": {"type": "data", "value": "AAAA", "mimeType": "application/pdf"}},
    ]);
    let message = json!({"id": "1", "role": "user", "content": content});
    let body = json!({"threadId": "t", "runId": "r", "messages": [message]});
    let said = from_run_input(&body).unwrap().said.unwrap();
    let mut log = Log::new(thread(), "2026-01-05T08:00:00Z".parse().unwrap());
    let item = NewItem::user(said.id.as_str(), said.content);
    log.run(Command::Record { item });
    assert_eq!(to_messages(&log.transcript()).value, [message]);
}

#[test]
fn what_a_user_says_may_have_files() {
    let input = from_run_input(&json!({
        "threadId": "t", "runId": "r", "messages": [{"id": "1", "role": "user", "content": [
            {"type": "text", "text": "look"},
            {"type": "image", "source": {"type": "data", "value": "AAAA", "mimeType": "image/png"}},
            {"type": "document", "source": {"type": "url", "value": "https://example.org/a.pdf", "mimeType": "application/pdf"}},
        ]}],
    }))
    .unwrap();
    assert_eq!(
        input.said.unwrap().content.value(),
        json!([
            {"type": "input_text", "text": "look"},
            {"type": "input_image", "image_url": "data:image/png;base64,AAAA", "media_type": "image/png"},
            {"type": "input_file", "file_url": "https://example.org/a.pdf", "media_type": "application/pdf"},
        ])
    );
}

#[test]
fn an_answer_to_an_interrupt_becomes_an_answer_to_the_call() {
    let resume = |entry: Value| {
        let body = json!({"threadId": "t", "runId": "r", "resume": [entry]});
        from_run_input(&body).map(|mut input| input.resume.remove(0))
    };
    let approval = |entry: Value| resume(entry).unwrap().approval("c", "/resume/0");
    let resolved = |payload: Value| {
        approval(json!({"interruptId": "q", "status": "resolved", "payload": payload}))
    };
    assert_eq!(
        resolved(json!({"approved": true, "editedArgs": {"eur": 4}})).unwrap(),
        json!({"type": "loomline-answer", "toolCallId": "c", "approved": true, "arguments": {"eur": 4}})
    );
    assert_eq!(
        resolved(json!({"approved": false, "reason": "no"})).unwrap(),
        json!({"type": "loomline-answer", "toolCallId": "c", "approved": false, "message": "no"})
    );
    let gone = approval(json!({"interruptId": "q", "status": "cancelled"})).unwrap();
    assert_eq!(gone["approved"], false);
    assert_eq!(
        resolved(json!({"yes": 1})).unwrap_err().pointer(),
        "/resume/0/payload/approved"
    );
    let wrong = resume(json!({"interruptId": "q", "status": "perhaps"}));
    assert_eq!(wrong.unwrap_err().pointer(), "/resume/0/status");
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    let long = "x".repeat(2_000_000);
    let with = |message: Value| json!({"threadId": "t", "runId": "r", "messages": [message]});
    for (body, pointer) in [
        (json!([]), ""),
        (json!({"runId": "r", "messages": []}), "/threadId"),
        (
            json!({"threadId": "t", "runId": "", "messages": []}),
            "/runId",
        ),
        (
            json!({"threadId": "t", "runId": "r", "messages": {}}),
            "/messages",
        ),
        (
            with(json!({"role": "user", "content": "x"})),
            "/messages/0/id",
        ),
        (
            with(json!({"id": "1", "role": "user", "content": []})),
            "/messages/0/content",
        ),
        (
            with(json!({"id": "1", "role": "user", "content": long})),
            "/messages/0/content",
        ),
        (
            with(json!({"id": "1", "role": "user", "content": [{"type": "x"}]})),
            "/messages/0/content/0/type",
        ),
        (
            with(
                json!({"id": "1", "role": "user", "content": [{"type": "image", "source": {"type": "url", "value": "file:///etc/passwd"}}]}),
            ),
            "/messages/0/content/0/source/value",
        ),
        (
            with(json!({"id": "1", "role": "tool", "content": "x"})),
            "/messages/0/toolCallId",
        ),
        (
            json!({"threadId": "t", "runId": "r", "tools": [{"name": "f", "parameters": 1}]}),
            "/tools/0/parameters",
        ),
        (
            json!({"threadId": "t", "runId": "r", "tools": [{"name": "two words"}]}),
            "/tools/0/name",
        ),
        (
            json!({"threadId": "t", "runId": "r", "tools": [{"name": "f"}, {"name": "f"}]}),
            "/tools/1/name",
        ),
        (
            with(
                json!({"id": "1", "role": "user", "content": [{"type": "image", "source": {"type": "data", "value": "<>", "mimeType": "image/png"}}]}),
            ),
            "/messages/0/content/0/source/value",
        ),
        (
            json!({"threadId": "t", "runId": "r", "context": [{"description": "d"}]}),
            "/context/0/value",
        ),
    ] {
        let error: RunInputError = from_run_input(&body).unwrap_err();
        assert_eq!(error.pointer(), pointer, "{error}");
    }
}
