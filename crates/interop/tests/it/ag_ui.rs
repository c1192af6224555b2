//! AG-UI: what holds of every run, and how the logs of its tests are written.

mod calls;
mod requests;
mod runs;

use crate::log::Log;
use crate::native::{conversation, thread};
use loomline_interop::ag_ui::{RunView, to_messages};
use loomline_interop::parts::{ToolApproval, ToolPart, ToolState};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use timeline::{
    Command, Ending, Event, NewChunk, NewItem, OpenCall, Payload, Record, StepOutcome, Trigger,
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
        .flat_map(|record| view.select(record).1)
        .collect();
    if view.is_over() {
        let messages = view
            .wants_messages()
            .then(|| to_messages(&log.transcript()).value);
        events.extend(view.end(messages));
    }
    events
}

/// A call of `pay` that a person is asked about.
fn asks(arguments: &str) -> ToolPart {
    ToolPart {
        state: ToolState::ApprovalRequested,
        approval: Some(ToolApproval {
            id: "q1".into(),
            approved: None,
            reason: None,
        }),
        ..ToolPart::call("pay", "c1", arguments)
    }
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

/// The messages that a client builds from the events of a run, by their ids. Calls that were cut off
/// are left out: they are not `stored`.
fn built(events: &[Value], stored: &BTreeMap<String, Value>) -> BTreeMap<String, Value> {
    let mut messages: BTreeMap<String, Value> = BTreeMap::new();
    let mut calls: BTreeMap<String, (String, usize)> = BTreeMap::new();
    let append = |text: &mut Value, event: &Value| {
        *text = format!(
            "{}{}",
            text.as_str().unwrap(),
            event["delta"].as_str().unwrap()
        )
        .into();
    };
    for event in events {
        let text = |key: &str| event[key].as_str().unwrap().to_owned();
        match event["type"].as_str().unwrap() {
            "TEXT_MESSAGE_START" | "REASONING_MESSAGE_START" => {
                let id = text("messageId");
                let message = messages.entry(id.clone()).or_insert(json!({ "id": id }));
                message["role"] = event["role"].clone();
                message["content"] = "".into();
            }
            "TEXT_MESSAGE_CONTENT" | "REASONING_MESSAGE_CONTENT" => {
                let message = messages.get_mut(&text("messageId")).unwrap();
                append(&mut message["content"], event);
            }
            "TOOL_CALL_START" => {
                let (id, name) = (text("parentMessageId"), text("toolCallName"));
                let new = json!({"id": id, "role": "assistant"});
                let message = messages.entry(id.clone()).or_insert(new);
                if message.get("toolCalls").is_none() {
                    message["toolCalls"] = json!([]);
                }
                let of_message = message["toolCalls"].as_array_mut().unwrap();
                calls.insert(text("toolCallId"), (id, of_message.len()));
                of_message.push(json!({
                    "id": text("toolCallId"), "type": "function",
                    "function": {"name": name, "arguments": ""},
                }));
            }
            "TOOL_CALL_ARGS" => {
                let (id, n) = &calls[&text("toolCallId")];
                let call = &mut messages.get_mut(id).unwrap()["toolCalls"][*n];
                append(&mut call["function"]["arguments"], event);
            }
            "TOOL_CALL_RESULT" => {
                let mut message = event.clone();
                message["id"] = text("messageId").into();
                let object = message.as_object_mut().unwrap();
                object.retain(|key, _| !["type", "messageId"].contains(&key.as_str()));
                messages.insert(text("messageId"), message);
            }
            _ => {}
        }
    }
    if events
        .last()
        .is_some_and(|it| it["outcome"]["type"] != "success")
    {
        messages.retain(|id, message| {
            let calls = stored.get(id).and_then(|it| it.get("toolCalls"));
            if calls.is_none() {
                message.as_object_mut().unwrap().shift_remove("toolCalls");
            }
            message.get("content").is_some() || calls.is_some()
        });
    }
    messages
}

/// The messages of a thread that this run wrote, by their ids.
fn of_run(messages: &[Value], events: &[Value]) -> BTreeMap<String, Value> {
    let named = |kind: &str, key: &str| -> Vec<String> {
        let events = events.iter().filter(|event| event["type"] == kind);
        events
            .map(|it| it[key].as_str().unwrap().to_owned())
            .collect()
    };
    let steps = named("STEP_STARTED", "stepName");
    let calls = named("TOOL_CALL_START", "toolCallId");
    let own = messages.iter().filter(|message| {
        let id = message["id"].as_str().unwrap();
        let of_step = |step: &String| id == step || id.starts_with(&format!("{step}-"));
        let of_call = |call: &String| message["toolCallId"] == **call;
        steps.iter().any(of_step) || calls.iter().any(of_call)
    });
    let own = own.map(|message| {
        let mut message = message.clone();
        // Events have no member for it.
        message.as_object_mut().unwrap().shift_remove("error");
        (message["id"].as_str().unwrap().to_owned(), message)
    });
    own.collect()
}

proptest! {
    #[test]
    fn the_official_client_can_follow_every_run(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        for events in runs(&conversation(&bytes)) {
            prop_assert_eq!(check(&events), Ok(()), "{:#?}", events);
        }
    }

    #[test]
    fn a_run_streams_the_messages_of_its_snapshot(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let log = conversation(&bytes);
        let messages = to_messages(&log.transcript()).value;
        for events in runs(&log) {
            // Where the client gets all messages at the end, they replace those of the stream.
            if !kinds(&events).contains(&"MESSAGES_SNAPSHOT") {
                let of_run = of_run(&messages, &events);
                prop_assert_eq!(built(&events, &of_run), of_run, "{:#?}", events);
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
        chunks: vec![NewChunk { chunk_type, data }],
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
    log.run(Command::ImportStep {
        outcome,
        next: None,
    });
    log.run(Command::End {
        ending: Ending::Completed,
    });
}
