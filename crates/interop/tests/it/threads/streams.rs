//! The events of a run, and what clients make of them.

use super::client::{Client, frames};
use super::logs::{THREAD, Writer, interruption, item, open, text_part, thread};
use crate::log::Log;
use jiff::Timestamp;
use loomline_interop::parts::{ToolPart, ToolState};
use loomline_interop::threads::{Run, RunStatus, RunStepId, RunStream, ThreadView, thread_object};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use timeline::{
    Command, Ending, Event, ItemId, ItemType, NewItem, OpenKind, Record, StepOutcome, Transcript,
};

/// What a stream says from its item on; and the place after its last record.
fn read(stream: &mut RunStream, records: &[Record], from: usize) -> (String, usize) {
    let mut out = String::new();
    for (place, record) in records.iter().enumerate().skip(from) {
        if stream.write(record, &mut out).is_break() {
            return (out, place + 1);
        }
    }
    (out, records.len())
}

fn view(records: &[Record]) -> ThreadView {
    let mut transcript = Transcript::default();
    for record in records {
        transcript.apply(record);
    }
    ThreadView::of(&transcript)
}

fn names(text: &str) -> Vec<String> {
    frames(text).into_iter().map(|(name, _)| name).collect()
}

fn stream(log: &Log, trigger: &ItemId) -> String {
    let mut stream = RunStream::answering(THREAD, trigger.clone());
    read(&mut stream, &log.records, 0).0
}

#[test]
fn a_text_is_streamed_in_the_order_clients_know() {
    let mut writer = Writer::new();
    let trigger = writer.says("Hi");
    let text = stream(&writer.log, &trigger);
    Client::default().read(&text);
    let expected = [
        "thread.run.created",
        "thread.run.queued",
        "thread.run.in_progress",
        "thread.run.step.created",
        "thread.run.step.in_progress",
        "thread.message.created",
        "thread.message.in_progress",
        "thread.message.delta",
        "thread.message.completed",
        "thread.run.step.completed",
        "thread.run.completed",
        "done",
    ];
    assert_eq!(names(&text), expected);
    assert!(text.ends_with("event: done\ndata: [DONE]\n\n"));
}

#[test]
fn a_delta_is_what_the_protocol_spells() {
    let mut writer = Writer::new();
    let trigger = writer.start(None);
    writer.stream_text("t0-0", &["a\n\"", "b"]);
    let mut text = stream(&writer.log, &trigger);
    let mut writer = Writer::new();
    let trigger = writer.start(None);
    writer.stream_call("c", "weather", &["{\"x\":"]);
    text.push_str(&stream(&writer.log, &trigger));
    let deltas: Vec<Value> = frames(&text)
        .into_iter()
        .filter(|(name, _)| name.rsplit('.').next() == Some("delta"))
        .map(|(_, data)| data)
        .collect();
    let id = |index: usize| deltas[index]["id"].as_str().unwrap();
    assert!(id(0).starts_with("msg_") && id(2).starts_with("step_"));
    let expected = [
        json!({"content": [{"index": 0, "type": "text", "text": {"value": "a\n\"", "annotations": []}}]}),
        json!({"content": [{"index": 0, "type": "text", "text": {"value": "b"}}]}),
        json!({"step_details": {"type": "tool_calls", "tool_calls": [{"index": 0, "id": "c", "type": "function",
            "function": {"name": "weather", "arguments": "", "output": null}}]}}),
        json!({"step_details": {"type": "tool_calls", "tool_calls": [{"index": 0, "type": "function",
            "function": {"arguments": "{\"x\":"}}]}}),
    ];
    let told: Vec<&Value> = deltas.iter().map(|delta| &delta["delta"]).collect();
    assert_eq!(told, expected.iter().collect::<Vec<_>>());
}

#[test]
fn a_thread_made_with_its_run_is_told_first() {
    let mut writer = Writer::new();
    let trigger = writer.says("Hi");
    let thread = thread_object(writer.log.state.thread().unwrap()).value;
    let mut stream = RunStream::answering(THREAD, trigger).with_thread(thread);
    let (text, _) = read(&mut stream, &writer.log.records, 0);
    Client::default().read(&text);
    assert_eq!(names(&text)[..2], ["thread.created", "thread.run.created"]);
}

#[test]
fn a_stream_ends_when_the_run_waits_and_goes_on_with_the_outputs() {
    let mut writer = Writer::new();
    let trigger = writer.asks("call_1");
    let first = stream(&writer.log, &trigger);
    let ended = names(&first);
    assert_eq!(
        ended[ended.len() - 2..],
        ["thread.run.requires_action", "done"]
    );
    assert!(!ended.contains(&"thread.run.step.completed".to_owned()));
    let mut client = Client::default();
    client.read(&first);
    let run = client.run.clone().unwrap();
    let calls = &run["required_action"]["submit_tool_outputs"]["tool_calls"];
    let function = json!({"name": "weather", "arguments": "{\"city\":\"Kyiv\"}"});
    assert_eq!(
        *calls,
        json!([{"id": "call_1", "type": "function", "function": function}])
    );

    let waiting = view(&writer.log.records).runs()[0].clone();
    let n_before = writer.log.records.len();
    let item = writer.answer_item(&[("call_1", OpenKind::External)]);
    let answers = item.id.clone();
    let part = ToolPart::call("weather", "call_1", r#"{"city":"Kyiv"}"#);
    writer.answer(item, &[part], &[]);
    writer.stream_text("t1-0", &["Warm."]);
    writer.respond(vec![text_part("Warm.")], "end_turn");
    writer.complete(&[], false);
    writer.end();
    let mut stream = RunStream::continuing(THREAD, waiting, answers);
    let (second, _) = read(&mut stream, &writer.log.records, n_before);
    client.read(&second);
    let begun = names(&second);
    let expected = [
        "thread.run.step.completed",
        "thread.run.queued",
        "thread.run.in_progress",
        "thread.run.step.created",
    ];
    assert_eq!(begun[..4], expected);
    let over = client.run.unwrap();
    assert_eq!(
        (&over["id"], &over["status"]),
        (&run["id"], &json!("completed"))
    );
    assert_eq!(
        over["usage"],
        json!({"prompt_tokens": 10, "completion_tokens": 4, "total_tokens": 14})
    );
    let mut outputs = client
        .steps
        .values()
        .filter(|step| step["type"] == "tool_calls");
    let output = &outputs.next().unwrap()["step_details"]["tool_calls"][0]["function"]["output"];
    assert_eq!(*output, "18 degrees");
}

#[test]
fn a_tool_of_the_server_is_a_run_step_that_completes() {
    let mut writer = Writer::new();
    let trigger = writer.start(None);
    let call = ToolPart::call("look", "c", "{}");
    writer.respond(vec![call.write().unwrap()], "tool_use");
    writer.put(0, &call, &json!({"n": 1}));
    writer.complete(&[], true);
    writer.respond(vec![text_part("one")], "end_turn");
    writer.complete(&[], false);
    writer.end();
    let mut client = Client::default();
    client.read(&stream(&writer.log, &trigger));
    let mut steps = client.steps.values();
    let step = steps.find(|step| step["type"] == "tool_calls").unwrap();
    assert_eq!(step["status"], "completed");
    assert_eq!(
        step["step_details"]["tool_calls"][0]["function"]["output"],
        "{\"n\":1}"
    );
    assert_eq!(client.run.unwrap()["status"], "completed");
}

#[test]
fn a_run_that_fails_ends_its_message_and_its_step_first() {
    for (reason, ended, why) in [
        ("error", "failed", "run_failed"),
        ("timeout", "expired", "run_expired"),
        ("user_cancelled", "cancelled", "run_cancelled"),
    ] {
        let mut writer = Writer::new();
        let trigger = writer.start(None);
        writer.stream_text("t0-0", &["I was ab"]);
        let ending = Ending::Stopped(interruption(reason));
        writer.log.run(Command::End { ending });
        let text = stream(&writer.log, &trigger);
        let mut client = Client::default();
        client.read(&text);
        let told = names(&text);
        let run = format!("thread.run.{ended}");
        let step = format!("thread.run.step.{ended}");
        let mut expected = vec!["thread.message.incomplete", &step, &run, "done"];
        if reason == "user_cancelled" {
            expected.insert(0, "thread.run.cancelling");
        }
        assert_eq!(told[told.len() - expected.len()..], expected);
        let message = client.messages.values().next().unwrap();
        assert_eq!(message["incomplete_details"], json!({"reason": why}));
        assert_eq!(message["content"][0]["text"]["value"], "I was ab");
        let error = &client.run.as_ref().unwrap()["last_error"];
        let is_error = reason == "error";
        assert_eq!(error["code"] == "server_error", is_error, "{error}");
        // Who loads the thread sees the same.
        let loaded = view(&writer.log.records).runs()[0]
            .messages()
            .next()
            .unwrap();
        assert_eq!(serde_json::to_value(loaded).unwrap(), *message);
    }
}

#[test]
fn a_dead_attempt_ends_as_failed_and_the_next_one_has_ids_of_its_own() {
    let mut writer = Writer::new();
    let trigger = writer.start(None);
    writer.stream_call("c1", "look", &["{"]);
    writer.stream_text("t0-0", &["The first"]);
    writer.log.run(Command::ResetStep);
    writer.stream_text("t0-0", &["The se", "cond"]);
    writer.respond(vec![text_part("The second")], "end_turn");
    writer.complete(&[], false);
    writer.end();
    let text = stream(&writer.log, &trigger);
    let mut client = Client::default();
    client.read(&text);
    let of_status = |status: &str| {
        let mut messages = client.messages.values();
        messages.find(|it| it["status"] == status).unwrap()
    };
    assert_eq!(client.messages.len(), 2);
    assert_eq!(
        of_status("incomplete")["content"][0]["text"]["value"],
        "The first"
    );
    let message = of_status("completed");
    assert_eq!(message["content"][0]["text"]["value"], "The second");
    // What was begun ends before anything else begins, and nothing begins twice.
    let told = names(&text);
    let expected = [
        "thread.message.incomplete",
        "thread.run.step.failed",
        "thread.run.step.failed",
        "thread.run.step.created",
        "thread.run.step.in_progress",
        "thread.message.created",
    ];
    assert!(told.windows(6).any(|it| it == expected), "{told:?}");
    let mut failed = client.steps.values().filter(|it| it["status"] == "failed");
    assert!(failed.any(|step| step["type"] == "tool_calls"));

    // Who loads the thread sees what counts, under the ids it was streamed with; either id leads to it.
    let view = view(&writer.log.records);
    let run = &view.runs()[0];
    let messages: Vec<_> = run.messages().collect();
    let [loaded] = messages.as_slice() else {
        panic!("{messages:?}");
    };
    assert_eq!(serde_json::to_value(loaded).unwrap(), *message);
    let (first, _) = loaded.id.rsplit_once('~').unwrap();
    for id in [first, &loaded.id] {
        assert_eq!(view.message(id).unwrap().id, loaded.id);
    }
    let steps = run.steps(writer.log.at);
    let [step] = steps.as_slice() else {
        panic!("{steps:?}");
    };
    assert!(client.steps.contains_key(&step.id), "{}", step.id);
    let found = run.step(&RunStepId::read(&step.id), writer.log.at).unwrap();
    assert_eq!(found.id, step.id);
}

#[test]
fn a_message_that_comes_to_nothing_has_the_parts_that_were_shown() {
    let mut writer = Writer::new();
    let trigger = writer.start(None);
    writer.stream_text("t0-0", &["The first"]);
    writer.stream_text("t0-1", &["and more"]);
    writer.log.run(Command::ResetStep);
    writer.stream_text("t0-0", &["Again"]);
    let call = ToolPart::call("look", "c", "{}");
    writer.respond(vec![call.write().unwrap()], "tool_use");
    let mut client = Client::default();
    let text = stream(&writer.log, &trigger);
    client.read(&format!("{text}event: done\ndata: [DONE]\n\n"));
    let message = client.messages.values().next().unwrap();
    assert_eq!(message["status"], "incomplete");
    let texts = |message: &Value| -> Vec<Value> {
        let content = message["content"].as_array().unwrap().iter();
        content.map(|part| part["text"]["value"].clone()).collect()
    };
    assert_eq!(texts(message), ["The first", "and more"]);
    let message = client.messages.values().nth(1).unwrap();
    assert_eq!(message["status"], "incomplete");
    assert_eq!(texts(message), ["Again"]);
}

#[test]
fn a_call_after_a_text_comes_whole_when_the_message_has_ended() {
    let mut writer = Writer::new();
    let trigger = writer.start(None);
    writer.stream_text("t0-0", &["Let me", " look."]);
    writer.stream_call("c", "weather", &["{\"city\":", "\"Kyiv\"}"]);
    let part = ToolPart::call("weather", "c", r#"{"city":"Kyiv"}"#);
    let parts = vec![text_part("Let me look."), part.write().unwrap()];
    writer.respond(parts, "tool_use");
    writer.complete(&[open(&part, OpenKind::External)], false);
    writer.end();
    let text = stream(&writer.log, &trigger);
    Client::default().read(&text);
    let told = names(&text);
    let expected = [
        "thread.message.completed",
        "thread.run.step.completed",
        "thread.run.step.created",
        "thread.run.step.in_progress",
        "thread.run.step.delta",
        "thread.run.requires_action",
        "done",
    ];
    assert_eq!(told[told.len() - expected.len()..], expected);
    let frames = frames(&text);
    let delta = frames
        .iter()
        .find(|(name, _)| name == "thread.run.step.delta");
    let call = &delta.unwrap().1["delta"]["step_details"]["tool_calls"][0];
    assert_eq!(
        call["function"],
        json!({"name": "weather", "arguments": "{\"city\":\"Kyiv\"}", "output": null})
    );
}

#[test]
fn a_run_that_waits_for_an_approval_is_in_progress_and_its_stream_goes_on() {
    let mut writer = Writer::new();
    let trigger = writer.start(None);
    let call = ToolPart::call("pay", "c", "{}");
    writer.respond(vec![call.write().unwrap()], "tool_use");
    let mut asked = call.clone();
    asked.state = ToolState::ApprovalRequested;
    writer.log.run(Command::PutPart {
        idx: 0,
        part: asked.write().unwrap(),
    });
    writer.complete(&[open(&asked, OpenKind::Approval)], false);
    writer.end();
    let waiting = view(&writer.log.records);
    assert_eq!(
        waiting.runs()[0].status(writer.log.at),
        RunStatus::InProgress
    );
    assert!(waiting.runs()[0].pending().is_empty());
    let item = writer.answer_item(&[("c", OpenKind::Approval)]);
    writer.answer(item, &[call], &[]);
    writer.respond(vec![text_part("Paid.")], "end_turn");
    writer.complete(&[], false);
    writer.end();
    let mut client = Client::default();
    client.read(&stream(&writer.log, &trigger));
    let run = client.run.unwrap();
    assert_eq!(run["status"], "completed");
    assert!(
        client
            .steps
            .values()
            .all(|step| step["status"] == "completed")
    );
    assert_eq!(view(&writer.log.records).runs().len(), 1);
}

#[test]
fn a_stream_that_breaks_tells_the_client_in_the_form_it_looks_for() {
    let mut out = String::new();
    RunStream::answering(THREAD, "i".into()).fail("the store failed", &mut out);
    let frames = frames(&out);
    super::schema::check_event(&frames[0].0, &frames[0].1);
    assert_eq!(frames[0].1["error"]["message"], "the store failed");
    assert_eq!(frames[1].0, "done");
}

#[test]
fn a_thread_that_is_closed_ends_the_stream_of_a_run_that_never_began() {
    let mut writer = Writer::new();
    writer.log.run(Command::Close);
    let text = stream(&writer.log, &"never".into());
    assert_eq!(names(&text), ["error", "done"]);
}

#[test]
fn what_others_do_on_the_thread_is_not_in_the_stream() {
    let mut writer = Writer::new();
    writer.says("one");
    let trigger = writer.says("two");
    writer.says("three");
    let mut client = Client::default();
    client.read(&stream(&writer.log, &trigger));
    assert_eq!(client.messages.len(), 1);
    let message = client.messages.values().next().unwrap();
    assert_eq!(message["content"][0]["text"]["value"], "two");
}

#[test]
fn a_delta_costs_its_own_size_whatever_came_before() {
    let mut writer = Writer::new();
    let trigger = writer.start(None);
    writer.emit(
        "text-delta",
        json!({"id": "t", "delta": "x".repeat(1 << 16)}),
    );
    writer.emit("text-delta", json!({"id": "t", "delta": "y"}));
    let mut stream = RunStream::answering(THREAD, trigger);
    let mut sizes = Vec::new();
    for record in &writer.log.records {
        let mut out = String::new();
        assert!(stream.write(record, &mut out).is_continue());
        sizes.push(out.len());
    }
    assert!(sizes.last().unwrap() < &300);
}

/// The items that begin runs, with the one that each run's answers come in.
fn begins(log: &Log) -> Vec<ItemId> {
    let begun = log.records.iter().filter_map(|record| {
        let Event::ExecutionCreated { execution } = &record.event else {
            return None;
        };
        let trigger = item(log, &execution.trigger_item_id);
        let goes_on = loomline_interop::run::continues(execution, Some(trigger));
        (!goes_on).then(|| execution.trigger_item_id.clone())
    });
    begun.collect()
}

/// Follows a run through all of its streams.
fn follow(log: &Log, trigger: &ItemId) -> (Client, Option<Run>) {
    let mut client = Client::default();
    let mut stream = RunStream::answering(THREAD, trigger.clone());
    let mut from = 0;
    loop {
        let (text, to) = read(&mut stream, &log.records, from);
        if !text.ends_with("[DONE]\n\n") {
            // The log ends before the run does.
            let text = format!("{text}event: done\ndata: [DONE]\n\n");
            client.read(&text);
            return (client, stream.run().cloned());
        }
        client.read(&text);
        let run = stream.run().cloned().unwrap();
        if client.run.as_ref().unwrap()["status"] != "requires_action" {
            return (client, Some(run));
        }
        let seen = view(&log.records[..to]);
        let waiting = seen.run(run.id()).unwrap().clone();
        let next = log.records.iter().skip(to).find_map(|record| {
            let Event::ItemCreated { item } = &record.event else {
                return None;
            };
            (item.item_type == ItemType::ActionResult || item.item_type == ItemType::Message)
                .then_some((record, item))
        });
        let Some((_, answers)) = next.filter(|(_, item)| item.item_type == ItemType::ActionResult)
        else {
            return (client, Some(run));
        };
        let brought = timeline::Answer::read(answers.content.as_ref()).unwrap();
        let is_brought = |id: &str| brought.iter().any(|answer| answer.tool_call_id == id);
        if !waiting.pending().iter().all(|call| is_brought(&call.id)) {
            // Another view answers some of the calls: no stream of this API goes on with that.
            return (client, Some(run));
        }
        stream = RunStream::continuing(THREAD, waiting, answers.id.clone());
        from = to;
    }
}

fn by_id(objects: impl IntoIterator<Item = Value>) -> BTreeMap<String, Value> {
    let objects = objects.into_iter();
    objects
        .map(|it| (it["id"].as_str().unwrap().to_owned(), it))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn who_watched_a_run_has_what_one_loads_who_did_not(bytes in prop::collection::vec(any::<u8>(), 0..160)) {
        let log = thread(&bytes);
        let loaded = view(&log.records);
        for trigger in begins(&log) {
            let (client, run) = follow(&log, &trigger);
            let run = run.unwrap();
            let loaded = loaded.run(run.id()).unwrap();
            let status = loaded.status(log.at);
            if client.run.as_ref().unwrap()["status"] == "requires_action" {
                // What came after this client's last stream it has not seen.
                continue;
            }
            let object = serde_json::to_value(loaded.object(log.at)).unwrap();
            if !status.is_active() {
                prop_assert_eq!(client.run.as_ref().unwrap(), &object);
            }
            let messages = by_id(loaded.messages().map(|it| serde_json::to_value(it).unwrap()));
            let steps = by_id(loaded.steps(log.at).into_iter().map(|it| serde_json::to_value(it).unwrap()));
            for (id, message) in &messages {
                prop_assert_eq!(Some(message), client.messages.get(id));
            }
            for (id, step) in &steps {
                if step["status"] != "in_progress" {
                    prop_assert_eq!(Some(step), client.steps.get(id));
                }
            }
            // What only the client knows of was void.
            let void = client.messages.iter().filter(|(id, _)| !messages.contains_key(*id));
            for (_, message) in void {
                prop_assert_eq!(&message["status"], "incomplete");
            }
            for (_, step) in client.steps.iter().filter(|(id, _)| !steps.contains_key(*id)) {
                prop_assert!(step["status"] != "completed" && step["status"] != "in_progress", "{}", step);
            }
        }
    }
}

/// A run with its messages and its steps.
fn objects(run: &Run, at: Timestamp) -> Value {
    json!([
        run.object(at),
        run.messages().collect::<Vec<_>>(),
        run.steps(at)
    ])
}

proptest! {
    #[test]
    fn a_run_folded_live_equals_the_replayed_one(
        bytes in prop::collection::vec(any::<u8>(), 0..160),
        cut in 1usize..=100,
    ) {
        let mut log = thread(&bytes);
        log.records.truncate((log.records.len() * cut).div_ceil(100));
        for trigger in begins(&log) {
            let mut stream = RunStream::answering(THREAD, trigger);
            let (_, to) = read(&mut stream, &log.records, 0);
            let (live, at) = (stream.run().unwrap(), log.records[to - 1].at);
            let replayed = view(&log.records[..to]);
            let replayed = replayed.run(live.id()).unwrap();
            prop_assert_eq!(objects(live, at), objects(replayed, at));
        }
    }
}

#[test]
fn a_run_is_one_through_handoffs_and_answers() {
    let mut writer = Writer::new();
    writer.asks("call_1");
    let item = writer.answer_item(&[("call_1", OpenKind::External)]);
    let part = ToolPart::call("weather", "call_1", "{}");
    writer.answer(item, &[part], &[]);
    let event = json!({"type": "data-tp-agent_handoff", "id": "x", "data": {"to": "bo"}});
    writer.respond(vec![text_part("Bo, please.")], "end_turn");
    writer.log.run(Command::AddPart { part: event.into() });
    let outcome = StepOutcome::default();
    writer.log.run(Command::ImportStep {
        outcome,
        next: None,
    });
    writer.end();
    writer.run = json!({"agent": "bo", "handoffs": 1});
    let reference = NewItem {
        item_type: ItemType::ItemReference,
        role: None,
        ..writer.user("")
    };
    writer.start(Some(reference));
    let running = view(&writer.log.records);
    assert_eq!(running.runs().len(), 1);
    assert_eq!(running.runs()[0].executions().len(), 3);
    assert_eq!(
        running.runs()[0].status(writer.log.at),
        RunStatus::InProgress
    );
    assert!(running.active(writer.log.at).is_some());
}
