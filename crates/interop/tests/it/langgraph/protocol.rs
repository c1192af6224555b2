//! The streaming protocol: what a thread's events come to.

use super::{Heard, executions, heard};
use crate::log::Log;
use crate::native::conversation;
use loomline_interop::langgraph::{
    CommandError, ErrorCode, EventRequest, FrameId, ProtocolCommand, ProtocolEvent, ProtocolRun,
    messages_of,
};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use timeline::{Event, ItemId, ItemType, OpenCall, Record};

pub(crate) const ALL: [&str; 9] = [
    "values",
    "updates",
    "messages",
    "tools",
    "lifecycle",
    "input",
    "checkpoints",
    "custom",
    "tasks",
];

pub(crate) fn request(channels: &[&str], since: Option<FrameId>) -> EventRequest {
    let mut body = json!({"channels": channels});
    if let Some(since) = since {
        body["since"] = since.number().into();
    }
    EventRequest::read(&body).unwrap()
}

/// The records up to the last one of the run that answers an item, over handovers.
fn until_end<'a>(log: &'a Log, trigger: &ItemId) -> &'a [Record] {
    let mut run = ProtocolRun::new("t", "r", trigger.clone(), request(&["tasks"], None));
    let mut n_records = log.records.len();
    for (place, record) in log.records.iter().enumerate() {
        run.select(record);
        if let Event::ThreadFinished { execution_id, .. } = &record.event
            && run.execution() == Some(execution_id)
        {
            n_records = place + 1;
        }
    }
    &log.records[..n_records]
}

/// The calls that the run's last step has left for others.
fn left_by(log: &Log, trigger: &ItemId) -> Vec<Value> {
    let mut left = Vec::new();
    for record in until_end(log, trigger) {
        if let Event::StepStatusChanged { outcome, .. } = &record.event {
            left = OpenCall::list(outcome.open_calls.as_ref());
        }
    }
    left.into_iter()
        .map(|call| call.tool_call_id.into())
        .collect()
}

/// The events of the run that answers an item; its end is told after its last record.
fn events(log: &Log, trigger: &ItemId, request: &EventRequest) -> Vec<ProtocolEvent> {
    let is_resumed = log.records.iter().any(|record| {
        let Event::ItemCreated { item } = &record.event else {
            return false;
        };
        item.id == *trigger && item.item_type == ItemType::ActionResult
    });
    let mut run = ProtocolRun::new("t", "r", trigger.clone(), request.clone());
    if is_resumed {
        run = run.resumed();
    }
    let mut events = Vec::new();
    for record in until_end(log, trigger) {
        events.extend(run.select(record).1);
        if run.wants_values() {
            events.extend(run.begin(json!({"messages": []})));
        }
    }
    if run.wants_end() {
        events.extend(run.end("t", None, &[]));
    }
    events
}

/// The messages that are whole, put together as a client does. Fails where blocks interleave, or an event is of no message.
fn gathered(events: &[ProtocolEvent]) -> BTreeMap<String, Heard> {
    let (mut writing, mut whole) = (BTreeMap::<String, Vec<Value>>::new(), BTreeMap::new());
    let mut open: Option<Value> = None;
    for event in events.iter().filter(|it| it.method == "messages") {
        let data = &event.data;
        let id = data["id"].as_str().unwrap().to_owned();
        match data["event"].as_str().unwrap() {
            "message-start" => assert!(writing.insert(id, Vec::new()).is_none(), "{data}"),
            "content-block-start" => {
                assert!(open.replace(data["index"].clone()).is_none(), "{data}");
                assert_eq!(data["index"], writing[&id].len());
            }
            "content-block-delta" => assert_eq!(open.as_ref(), Some(&data["index"])),
            "content-block-finish" => {
                assert_eq!(open.take().as_ref(), Some(&data["index"]));
                writing.get_mut(&id).unwrap().push(data["content"].clone());
            }
            "message-finish" => {
                let blocks = writing.remove(&id).unwrap();
                whole.insert(id.clone(), message(&id, blocks, &data["usage"]));
            }
            "error" => {
                if writing.remove(&id).is_some() {
                    open = None;
                } else {
                    assert!(whole.remove(&id).is_some(), "{data}");
                }
            }
            other => panic!("{other}"),
        }
    }
    assert!(writing.is_empty() && open.is_none(), "{writing:?}");
    whole
}

/// Finished blocks as the message that they are.
fn message(id: &str, blocks: Vec<Value>, usage: &Value) -> Heard {
    let (mut content, mut calls, mut invalid) = (Vec::new(), Vec::new(), Vec::new());
    for block in blocks {
        match block["type"].as_str().unwrap() {
            "tool_call" => calls.push(block),
            "invalid_tool_call" => invalid.push(block),
            _ => content.push(block),
        }
    }
    heard(&json!({
        "type": "ai", "id": id, "content": content, "tool_calls": calls, "invalid_tool_calls": invalid,
        "usage_metadata": usage,
    }))
}

/// What is compared: text, thoughts, files, calls, and what was used.
type Compared = (Vec<Value>, Vec<Value>, Value);

fn compared(messages: BTreeMap<String, Heard>) -> BTreeMap<String, Compared> {
    let of = |heard: Heard| {
        let calls = heard.calls.iter().map(|it| json!(it)).collect();
        (heard.blocks, calls, heard.rest[0].clone())
    };
    messages
        .into_iter()
        .map(|(id, heard)| (id, of(heard)))
        .collect()
}

proptest! {
    #[test]
    fn the_blocks_of_every_run_are_the_messages_of_its_thread(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let log = conversation(&bytes);
        let mut told = BTreeMap::new();
        for (_, trigger) in executions(&log) {
            told.extend(gathered(&events(&log, &trigger, &request(&["messages"], None))));
        }
        let messages = messages_of(&log.transcript());
        let kept = messages.iter().filter(|message| message["type"] == "ai");
        let kept: BTreeMap<String, Heard> = kept
            .map(|message| (message["id"].as_str().unwrap().to_owned(), heard(message)))
            .collect();
        prop_assert_eq!(compared(told), compared(kept));
    }

    #[test]
    fn who_follows_again_hears_exactly_what_was_missed(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        channels in prop::sample::subsequence(ALL.to_vec(), 1..=9),
    ) {
        let log = conversation(&bytes);
        for (_, trigger) in executions(&log) {
            let whole = events(&log, &trigger, &request(&channels, None));
            let ids: Vec<FrameId> = whole.iter().map(|event| event.id).collect();
            let numbers: Vec<u64> = ids.iter().map(|id| id.number()).collect();
            prop_assert!(numbers.is_sorted_by(|one, other| one < other), "{:?}", numbers);
            let broken_off = [0, ids.len() / 2, ids.len().saturating_sub(1)];
            for (n, id) in broken_off.into_iter().filter_map(|it| Some((it, ids.get(it)?))) {
                prop_assert_eq!(FrameId::of_number(id.number()), *id);
                let rest = events(&log, &trigger, &request(&channels, Some(*id)));
                prop_assert_eq!(rest.as_slice(), &whole[n + 1..]);
            }
            // What is wanted beside it changes nothing of what is said, nor its place.
            let methods: Vec<&str> = whole.iter().map(|event| event.method).collect();
            let all = events(&log, &trigger, &request(&ALL, None));
            let same: Vec<ProtocolEvent> = all.into_iter().filter(|it| methods.contains(&it.method)).collect();
            prop_assert_eq!(same, whole);
        }
    }

    #[test]
    fn a_tool_that_is_at_work_ends_unless_it_waits_for_others(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let log = conversation(&bytes);
        for (_, trigger) in executions(&log) {
            let mut at_work = Vec::new();
            for event in events(&log, &trigger, &request(&["tools"], None)) {
                let call = event.data["tool_call_id"].clone();
                match event.data["event"].as_str().unwrap() {
                    "tool-started" => at_work.push(call),
                    "tool-finished" | "tool-error" => {
                        let place = at_work.iter().position(|it| *it == call);
                        at_work.remove(place.unwrap());
                    }
                    other => panic!("{other}"),
                }
            }
            let left = left_by(&log, &trigger);
            prop_assert!(at_work.iter().all(|call| left.contains(call)), "{:?}", at_work);
        }
    }
}

#[test]
fn a_namespace_that_is_not_the_root_has_nothing_to_say() {
    let wants = |namespaces: Value| {
        let body = json!({"channels": ["lifecycle"], "namespaces": namespaces, "depth": 0});
        let request = EventRequest::read(&body).unwrap();
        let log = conversation(&[7; 64]);
        let (_, trigger) = executions(&log).remove(0);
        events(&log, &trigger, &request).len()
    };
    assert_eq!(wants(json!([])), 2);
    assert_eq!(wants(json!([[]])), 2);
    assert_eq!(wants(json!([["tools:1"], []])), 2);
    assert_eq!(wants(json!([["tools:1"]])), 0);
}

#[test]
fn a_subscription_that_can_not_be_heard_is_refused_with_its_place() {
    for (body, pointer) in [
        (json!({}), "/channels"),
        (json!({"channels": []}), "/channels"),
        (json!({"channels": ["values", "music"]}), "/channels/1"),
        (json!({"channels": ["custom:"]}), "/channels/0"),
        (json!({"channels": ["values"], "since": -1}), "/since"),
        (
            json!({"channels": ["values"], "namespaces": [["a", 1]]}),
            "/namespaces/0",
        ),
        (json!({"channels": ["values"], "more": 1}), "/more"),
    ] {
        let refused = EventRequest::read(&body).unwrap_err();
        assert_eq!(refused.pointer.as_deref(), Some(pointer), "{body}");
    }
}

#[test]
fn a_command_is_known_by_its_id_also_where_it_is_refused() {
    let refused = |method: &str, params: Value| {
        let body = json!({"id": 7, "method": method, "params": params});
        let CommandError { id, code, .. } = ProtocolCommand::read(&body).unwrap_err();
        assert_eq!(id, Some(7));
        code
    };
    let invalid = ErrorCode::InvalidArgument;
    let (start, respond) = ("run.start", "input.respond");
    assert_eq!(refused("run.stop", json!({})), ErrorCode::UnknownCommand);
    assert_eq!(refused("state.fork", json!({})), ErrorCode::NotSupported);
    assert_eq!(refused(start, json!({"input": {}})), invalid);
    let input = json!({"assistant_id": "a", "input": 1});
    assert_eq!(refused(start, input), invalid);
    assert_eq!(refused(respond, json!({"interrupt_id": "c"})), invalid);
    assert_eq!(refused(respond, json!({"responses": []})), invalid);
    let entry = json!({"namespace": [], "interrupt_id": "c", "response": true});
    let twice = json!({"responses": [entry, entry]});
    assert_eq!(refused(respond, twice), invalid);
    let goto = json!({"interrupt_id": "c", "response": true, "goto": "node"});
    assert_eq!(refused(respond, goto), invalid);
    for body in [
        json!([]),
        json!({"method": start}),
        json!({"id": "7", "method": start}),
    ] {
        assert_eq!(ProtocolCommand::read(&body).unwrap_err().id, None, "{body}");
    }
}

#[test]
fn a_run_that_is_commanded_makes_its_thread() {
    let params = json!({"assistant_id": "demo", "input": {"messages": "Hi"}});
    let body = json!({"id": 1, "method": "run.start", "params": params});
    let run = ProtocolCommand::read(&body).unwrap().run;
    assert!(run.makes_thread);
    assert_eq!(run.agent.as_deref(), Some("demo"));
    let params = json!({"interrupt_id": "c", "response": null});
    let body = json!({"id": 1, "method": "input.respond", "params": params});
    let run = ProtocolCommand::read(&body).unwrap().run;
    assert!(run.is_resumed() && !run.makes_thread);
}
