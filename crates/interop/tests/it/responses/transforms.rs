//! The transforms of EK §10, both ways, with extensions.

use super::past::listed;
use crate::log::{Log, ids};
use crate::native::thread;
use loomline_interop::responses::{CreateConversation, ListOptions, NewItems, conversation_items};
use serde_json::{Value, json};
use timeline::{Command, Ending, Entry, ItemType, NewItem, Role, StepOutcome, Transcript, Trigger};

const ALL: ListOptions = ListOptions {
    encrypted_reasoning: true,
    extensions: true,
};

fn at() -> jiff::Timestamp {
    "2026-01-05T08:00:00Z".parse().unwrap()
}

/// Items of each type, and parts of each kind.
fn items() -> Vec<Value> {
    let note = json!({"type": "loomline:part", "part": {"type": "app-note", "n": 1.50, "deep": {"a": [null]}}});
    vec![
        json!({"type": "message", "role": "system", "content": [{"type": "input_text", "text": "Be brief."}]}),
        json!({"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "Use tools."}]}),
        json!({"type": "message", "role": "user", "content": [
            {"type": "input_text", "text": "Look."},
            {"type": "input_image", "image_url": "https://a.example/b.png", "detail": "low"},
            {"type": "input_file", "filename": "a.csv", "file_data": "data:text/csv;base64,YSxi"},
            {"type": "input_file", "file_url": "https://a.example/c.pdf"},
            note,
        ]}),
        json!({"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}],
            "encrypted_content": "[\"p\",\"sealed\"]"}),
        json!({"type": "function_call", "call_id": "a", "name": "look", "arguments": "{\"at\": 1.0}"}),
        json!({"type": "function_call", "call_id": "b", "name": "look", "arguments": "{}"}),
        json!({"type": "function_call_output", "call_id": "a", "output": "seen"}),
        json!({"type": "function_call_output", "call_id": "b", "output": [
            {"type": "input_text", "text": "seen too"},
            {"type": "input_image", "image_url": "https://a.example/d.png", "detail": "auto"},
        ]}),
        json!({"type": "message", "role": "assistant", "phase": "final_answer", "content": [
            {"type": "output_text", "text": "It is there.", "annotations": [{"type": "url_citation",
                "start_index": 0, "end_index": 2, "url": "https://a.example", "title": "A"}]},
        ]}),
        json!({"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "No more."}]}),
        json!({"type": "message", "role": "assistant", "content": [note]}),
        json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Thanks."}]}),
    ]
}

/// A list without what the server adds: ids, statuses, empty lists.
fn bare(list: &Value) -> Vec<Value> {
    let mut items = list["data"].as_array().unwrap().clone();
    for item in &mut items {
        let item = item.as_object_mut().unwrap();
        if item["type"] != "item_reference" {
            item.remove("id");
        }
        item.remove("status");
        // Reasoning of a run is listed as its content, and added reasoning as a summary of it.
        if let Some(Value::Array(texts)) =
            item.get("content").filter(|_| item["type"] == "reasoning")
        {
            let text = texts[0]["text"].clone();
            item.insert(
                "summary".into(),
                json!([{"type": "summary_text", "text": text}]),
            );
            item.remove("content");
        }
        for part in item
            .get_mut("content")
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
        {
            let part = part.as_object_mut().unwrap();
            part.remove("logprobs");
            if part.get("annotations") == Some(&json!([])) {
                part.remove("annotations");
            }
        }
    }
    items
}

/// What a conversation shows of a thread, and how many losses that has.
fn shown(log: &Log, options: ListOptions) -> (Vec<Value>, usize) {
    let list = conversation_items(&log.transcript(), options);
    (bare(&listed(list.value)), list.losses.len())
}

fn created(items: &[Value]) -> Log {
    let mut log = Log::new(thread(), at());
    let create = CreateConversation::read(&json!({ "items": items })).unwrap();
    for (at, command) in create.commands(at(), &mut ids()).unwrap() {
        log.run_at(at, command);
    }
    log
}

#[test]
fn items_of_open_responses_come_back_from_a_thread() {
    let (back, losses) = shown(&created(&items()), ALL);
    assert_eq!(losses, 0);
    assert_eq!(back, items());
}

#[test]
fn items_that_are_added_without_a_run_come_back() {
    let mut log = Log::new(thread(), at());
    let new = NewItems::read(&json!({ "items": items() })).unwrap();
    let records = new.records(&mut ids()).unwrap();
    assert_eq!(records.losses, []);
    for item in records.value {
        log.run(Command::Record { item });
    }
    let (back, losses) = shown(&log, ALL);
    assert_eq!((back, losses), (items(), 0));
}

/// A thread with items and parts of each kind, as the runtime writes it.
fn written() -> Log {
    let mut log = Log::new(thread(), at());
    let note = json!({"type": "app-note", "text": "mine", "n": 1.50});
    let call = json!({"type": "tool-look", "toolCallId": "c", "state": "input-available", "input": {"at": 1}});
    let mut result = call.clone();
    result["state"] = "output-available".into();
    result["output"] = json!({"x": [1, null]});
    let trigger = NewItem::user(
        "asks",
        json!([{"type": "input_text", "text": "Look."}, note]).into(),
    );
    log.run(Command::Start {
        trigger: Trigger::New(trigger),
        run: None,
        execution_id: "run".into(),
        reaction_item_id: "answers".into(),
        step_id: "one".into(),
        workflow_run_id: None,
    });
    log.run(Command::Respond {
        parts: vec![
            json!({"type": "reasoning", "text": "Hm.", "signature": "sealed", "provider": "p"})
                .into(),
            call.into(),
        ],
        response: json!({}).into(),
    });
    log.run(Command::PutPart {
        idx: 1,
        part: result.into(),
    });
    let complete = |next: Option<&str>| Command::ImportStep {
        outcome: StepOutcome::default(),
        next: next.map(Into::into),
    };
    log.run(complete(Some("two")));
    log.run(Command::Respond {
        parts: vec![
            json!({"type": "output_text", "text": "It is there."}).into(),
            note.into(),
            json!({"type": "refusal", "refusal": "No more."}).into(),
        ],
        response: json!({}).into(),
    });
    log.run(complete(None));
    log.run(Command::End {
        ending: Ending::Completed,
    });
    log
}

/// The parts of a thread, with the roles of their authors; parts of one author as one list.
fn parts(transcript: &Transcript) -> Vec<(Role, Vec<Value>)> {
    let mut all: Vec<(Role, Vec<Value>)> = Vec::new();
    let mut add = |role: Role, parts: Vec<Value>| match all.last_mut() {
        Some((last, known)) if *last == role => known.extend(parts),
        Some(_) | None => all.push((role, parts)),
    };
    for entry in &transcript.entries {
        match entry {
            Entry::Item(item) if item.item_type == ItemType::Message => {
                let content = item.content.as_ref().unwrap().value();
                add(item.role.unwrap(), content.as_array().unwrap().clone());
            }
            Entry::Item(_) => {}
            Entry::Reaction(reaction) => {
                let parts = reaction.steps.iter().flat_map(|step| &step.parts);
                let parts = parts.map(|part| {
                    let mut part = part.part.value();
                    // A result is a text in Open Responses.
                    if let Some(output) = part.get_mut("output").filter(|it| !it.is_string()) {
                        *output = output.to_string().into();
                    }
                    part
                });
                add(Role::Assistant, parts.collect());
            }
        }
    }
    all
}

#[test]
fn a_thread_comes_back_from_its_items() {
    let log = written();
    let (items, losses) = shown(&log, ALL);
    assert_eq!(losses, 0);
    let types: Vec<&str> = items
        .iter()
        .map(|item| item["type"].as_str().unwrap())
        .collect();
    assert_eq!(
        types,
        [
            "message",
            "reasoning",
            "function_call",
            "function_call_output",
            "message",
            "message",
            "message"
        ]
    );
    let back = created(&items);
    assert_eq!(parts(&back.transcript()), parts(&log.transcript()));
    assert_eq!(shown(&back, ALL), (items, 0));
}

#[test]
fn extensions_are_losses_for_clients_that_do_not_request_them() {
    let (items, losses) = shown(&written(), ListOptions::default());
    assert_eq!(losses, 2, "one of the user's message and one of the answer");
    let text = json!(items).to_string();
    assert!(
        !text.contains("app-note") && !text.contains("loomline:"),
        "{text}"
    );
}

#[test]
fn actions_of_a_thread_are_calls_and_outputs() {
    let mut log = Log::new(thread(), at());
    let action = |id: &str, item_type, content: Value| NewItem {
        item_type,
        role: None,
        content: Some(content.into()),
        ..NewItem::user(id, json!([]).into())
    };
    // The type may be absent, and a result may be any JSON.
    let call = json!({"call_id": "c", "name": "look", "arguments": "{}"});
    let result = json!({"type": "function_call_output", "call_id": "c", "output": {"x": 1}});
    for item in [
        action("call", ItemType::ActionExecute, call),
        action("result", ItemType::ActionResult, result),
    ] {
        log.run(Command::Record { item });
    }
    let expected = [
        json!({"type": "function_call", "call_id": "c", "name": "look", "arguments": "{}"}),
        json!({"type": "function_call_output", "call_id": "c", "output": "{\"x\":1}"}),
    ];
    let (items, losses) = shown(&log, ListOptions::default());
    assert_eq!((items.as_slice(), losses), (expected.as_slice(), 0));
}

#[test]
fn a_pointer_of_a_thread_is_an_item_reference() {
    let mut log = Log::new(thread(), at());
    let item = NewItem::reference(
        "points",
        Some(&"0197b2c4-0000-7000-8000-000000000002".into()),
    );
    log.run(Command::Record { item });
    let expected = json!({"type": "item_reference", "id": "msg_0197b2c4000070008000000000000002"});
    assert_eq!(shown(&log, ALL), (vec![expected], 0));
    // Lists of the specification have no such item.
    assert_eq!(shown(&log, ListOptions::default()), (Vec::new(), 1));
}

#[test]
fn a_part_that_is_no_extension_is_refused() {
    for part in [
        json!({"type": "output_text", "text": "x"}),
        json!({"type": "note"}),
        json!(1),
        Value::Null,
    ] {
        let content = json!([{"type": "loomline:part", "part": part}]);
        let items = json!({"items": [{"type": "message", "role": "user", "content": content}]});
        let refused = CreateConversation::read(&items).unwrap_err();
        assert_eq!(refused.pointer.as_deref(), Some("/items/0/content/0/part"));
    }
}
