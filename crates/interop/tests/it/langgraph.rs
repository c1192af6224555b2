//! `LangGraph`: what is streamed of a run, and what its thread then has.

pub(crate) mod protocol;

use crate::log::Log;
use crate::native::conversation;
use loomline_interop::langgraph::{
    Frame, FrameId, Moment, RunEventStream, RunRecord, RunStatus, Snapshots, StreamMode,
    messages_of, values_at, values_of,
};
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use timeline::{Entry, Event, ExecutionId, ExecutionStatus, ItemId, ItemType, Payload, Transcript};

const ALL: [StreamMode; 5] = [
    StreamMode::Values,
    StreamMode::Updates,
    StreamMode::Messages,
    StreamMode::MessagesTuple,
    StreamMode::Custom,
];

/// The executions of a log, each with what it answers.
pub(crate) fn executions(log: &Log) -> Vec<(ExecutionId, ItemId)> {
    let begun = log.records.iter().filter_map(|record| {
        let Event::ExecutionCreated { execution } = &record.event else {
            return None;
        };
        Some((execution.id.clone(), execution.trigger_item_id.clone()))
    });
    begun.collect()
}

/// What an execution is to runs.
#[derive(Debug, PartialEq)]
enum Kind {
    /// The first one of a run.
    Begun,
    /// One that was handed over to.
    HandedTo,
    /// One by which a question was taken back.
    Stop,
}

/// What the executions of a thread are to runs.
fn kinds(transcript: &Transcript) -> BTreeMap<ExecutionId, Kind> {
    let (mut references, mut kinds) = (BTreeMap::new(), BTreeMap::new());
    for entry in &transcript.entries {
        match entry {
            Entry::Item(item) if item.item_type == ItemType::ItemReference => {
                let content = item.content.as_ref().map(Payload::value);
                references.insert(&item.id, content.unwrap_or_default());
            }
            Entry::Item(_) => {}
            Entry::Reaction(reaction) => {
                let execution = &reaction.execution;
                let run = execution.run.as_ref().map(Payload::value);
                let n_handoffs = run.unwrap_or_default()["handoffs"].as_u64();
                let kind = match references.get(&execution.trigger_item_id) {
                    Some(reference) if reference["cancels"].is_string() => Kind::Stop,
                    Some(_) if n_handoffs.is_some_and(|n| n > 0) => Kind::HandedTo,
                    Some(_) | None => Kind::Begun,
                };
                kinds.insert(execution.id.clone(), kind);
            }
        }
    }
    kinds
}

/// Whether an execution has left calls for others, or somebody has stopped it.
fn leaves_or_was_stopped(transcript: &Transcript, id: &ExecutionId) -> bool {
    let mut reactions = transcript.entries.iter().filter_map(|entry| match entry {
        Entry::Reaction(reaction) => Some(reaction),
        Entry::Item(_) => None,
    });
    let reaction = reactions.find(|it| it.execution.id == *id).unwrap();
    let execution = &reaction.execution;
    match execution.status {
        ExecutionStatus::Executing => false,
        ExecutionStatus::Completed => {
            let step = reaction.steps.last();
            let open = step.and_then(|it| it.step.outcome.open_calls.as_ref());
            open.is_some_and(|it| it.value().as_array().is_some_and(|calls| !calls.is_empty()))
        }
        ExecutionStatus::Failed => {
            let why = execution.interruption.as_ref();
            why.is_some_and(|why| why.reason == "user_cancelled")
        }
    }
}

/// The frames of a run that is read from after a frame.
fn frames(log: &Log, trigger: &ItemId, modes: &[StreamMode], last: Option<FrameId>) -> Vec<Frame> {
    let view = RunEventStream::new("t", "r", trigger.clone(), modes);
    let mut view = view.after(last);
    let mut frames = Vec::new();
    for record in &log.records {
        frames.extend(view.select(record).1);
        if view.wants_values() {
            frames.extend(view.begin(json!({"messages": []})));
        }
    }
    frames
}

/// The blocks of content, whether it is one text, a list, or a text and what came after it.
fn blocks(content: &Value) -> Vec<Value> {
    let block = |text: &str| json!({"type": "text", "text": text});
    match content {
        Value::String(text) if text.is_empty() => Vec::new(),
        Value::String(text) => vec![block(text)],
        Value::Array(list) => list
            .iter()
            .map(|it| it.as_str().map_or_else(|| it.clone(), block))
            .collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => panic!("{content}"),
    }
}

/// A message as it is compared: its blocks, its calls with their arguments, and what it used.
#[derive(Debug, PartialEq)]
struct Heard {
    kind: String,
    blocks: Vec<Value>,
    calls: Vec<(String, String, Value)>,
    rest: Value,
}

/// Arguments, as an object where they are one.
fn arguments(text: &str) -> Value {
    let object: Option<Map<String, Value>> = match text.trim() {
        "" => Some(Map::new()),
        _ => serde_json::from_str(text).ok(),
    };
    object.map_or_else(|| text.into(), Value::Object)
}

/// A whole message.
fn heard(message: &Value) -> Heard {
    let mut calls = Vec::new();
    for key in ["tool_calls", "invalid_tool_calls"] {
        for call in message[key].as_array().into_iter().flatten() {
            let text = |key: &str| call[key].as_str().unwrap().to_owned();
            let args = &call["args"];
            let args = args.as_str().map_or_else(|| args.clone(), arguments);
            calls.push((text("id"), text("name"), args));
        }
    }
    calls.sort_by(|one, other| one.0.cmp(&other.0));
    let rest = [
        "usage_metadata",
        "response_metadata",
        "tool_call_id",
        "status",
        "name",
    ]
    .map(|key| message.get(key).cloned().unwrap_or_default());
    Heard {
        kind: message["type"].as_str().unwrap().to_owned(),
        blocks: blocks(&message["content"]),
        calls,
        rest: json!(rest),
    }
}

/// Puts pieces of messages together as clients of `LangChain` do, by their rules alone.
fn gathered(frames: &[Frame]) -> BTreeMap<String, Heard> {
    let mut whole: BTreeMap<String, Value> = BTreeMap::new();
    let mut pieces: BTreeMap<String, BTreeMap<u64, (String, String, String)>> = BTreeMap::new();
    for frame in frames.iter().filter(|frame| frame.event == "messages") {
        let piece = &frame.data[0];
        let id = piece["id"].as_str().unwrap().to_owned();
        match piece["type"].as_str().unwrap() {
            "remove" => {
                assert!(whole.remove(&id).is_some(), "{id} was never said");
                pieces.remove(&id);
            }
            "AIMessageChunk" => {
                let known = whole.entry(id.clone()).or_insert_with(|| {
                    let mut first = piece.clone();
                    first["type"] = "ai".into();
                    first["content"] = "".into();
                    first
                });
                let more = added(&known["content"], &piece["content"]);
                known["content"] = more;
                for key in ["usage_metadata", "response_metadata"] {
                    let said = &piece[key];
                    if said.as_object().is_some_and(|it| !it.is_empty()) {
                        known[key] = said.clone();
                    }
                }
                let calls = pieces.entry(id).or_default();
                for call in piece["tool_call_chunks"].as_array().unwrap() {
                    let text = |key: &str| call[key].as_str().unwrap_or_default();
                    let known = calls.entry(call["index"].as_u64().unwrap()).or_default();
                    known.0.push_str(text("id"));
                    known.1.push_str(text("name"));
                    known.2.push_str(text("args"));
                }
            }
            _ => {
                whole.insert(id, piece.clone());
            }
        }
    }
    let heard_of = |(id, mut message): (String, Value)| {
        if let Some(calls) = pieces.remove(&id).filter(|_| message["type"] == "ai")
            && message.get("tool_call_chunks").is_some()
        {
            let calls = calls
                .into_values()
                .map(|(id, name, args)| json!({"id": id, "name": name, "args": args}));
            message["tool_calls"] = calls.collect();
        }
        (id, heard(&message))
    };
    whole.into_iter().map(heard_of).collect()
}

/// Content with more behind it: texts grow, blocks grow by their index.
fn added(known: &Value, more: &Value) -> Value {
    match (known, more) {
        (Value::String(known), Value::String(more)) => format!("{known}{more}").into(),
        (Value::String(known), Value::Array(more)) => {
            let mut list: Vec<Value> = if known.is_empty() {
                Vec::new()
            } else {
                vec![known.as_str().into()]
            };
            grow(&mut list, more);
            list.into()
        }
        (Value::Array(known), Value::Array(more)) => {
            let mut list = known.clone();
            grow(&mut list, more);
            list.into()
        }
        (known, more) if *more == "" => known.clone(),
        (known, more) => panic!("{known} and {more}"),
    }
}

fn grow(list: &mut Vec<Value>, more: &[Value]) {
    for block in more {
        let same = list
            .iter_mut()
            .find(|it| it.get("index") == block.get("index") && it.is_object());
        let Some(same) = same else {
            list.push(block.clone());
            continue;
        };
        for key in ["text", "reasoning"] {
            if let Some(text) = block.get(key).and_then(Value::as_str) {
                same[key] = format!("{}{text}", same[key].as_str().unwrap()).into();
            }
        }
    }
}

/// What is compared of content has no index.
fn without_index(mut heard: BTreeMap<String, Heard>) -> BTreeMap<String, Heard> {
    for block in heard.values_mut().flat_map(|it| &mut it.blocks) {
        block.as_object_mut().unwrap().remove("index");
    }
    heard
}

proptest! {
    #[test]
    fn the_pieces_of_every_run_are_the_messages_of_its_thread(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let log = conversation(&bytes);
        let mut told = BTreeMap::new();
        for (_, trigger) in executions(&log) {
            told.extend(without_index(gathered(&frames(&log, &trigger, &[StreamMode::MessagesTuple], None))));
        }
        let messages = messages_of(&log.transcript());
        let by_agents = messages.iter().filter(|message| message["type"] != "human");
        let kept: BTreeMap<String, Heard> = by_agents
            .map(|message| (message["id"].as_str().unwrap().to_owned(), heard(message)))
            .collect();
        prop_assert_eq!(told, kept);
    }

    #[test]
    fn the_updates_of_every_run_and_its_whole_messages_are_the_same_messages(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let log = conversation(&bytes);
        let (mut updates, mut complete) = (BTreeMap::new(), BTreeMap::new());
        for (_, trigger) in executions(&log) {
            let modes = [StreamMode::Updates, StreamMode::Messages];
            for frame in frames(&log, &trigger, &modes, None) {
                if frame.event == "messages/complete" {
                    let message = frame.data[0].clone();
                    let id = message["id"].to_string();
                    if message["type"] == "remove" { complete.remove(&id); } else { complete.insert(id, message); }
                }
                for (_, update) in frame.data.as_object().into_iter().flatten().filter(|_| frame.event == "updates") {
                    for message in update["messages"].as_array().unwrap() {
                        updates.insert(message["id"].to_string(), message.clone());
                    }
                }
            }
        }
        let messages = messages_of(&log.transcript());
        let by_agents = messages.into_iter().filter(|message| message["type"] != "human");
        let kept: BTreeMap<String, Value> = by_agents.map(|it| (it["id"].to_string(), it)).collect();
        prop_assert_eq!(&updates, &kept);
        prop_assert_eq!(&complete, &kept);
    }

    #[test]
    fn a_reader_that_comes_back_is_told_exactly_what_it_missed(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        mode in prop::sample::subsequence(ALL.to_vec(), 1..=5),
    ) {
        let log = conversation(&bytes);
        for (_, trigger) in executions(&log) {
            let whole = frames(&log, &trigger, &mode, None);
            let ids: Vec<FrameId> = whole.iter().map(|frame| frame.id.unwrap()).collect();
            prop_assert!(ids.is_sorted_by(|one, other| one < other), "{:?}", ids);
            let broken_off = [0, ids.len() / 2, ids.len().saturating_sub(1)];
            for (place, id) in broken_off.into_iter().filter_map(|it| Some((it, ids.get(it)?))) {
                prop_assert_eq!(FrameId::read(&id.to_string()), Some(*id));
                let rest = frames(&log, &trigger, &mode, Some(*id));
                prop_assert_eq!(rest.as_slice(), &whole[place + 1..]);
            }
            // What is wanted beside it changes nothing of a mode's frames, nor their ids.
            let events = whole.iter().map(|frame| frame.event).collect::<Vec<_>>();
            let all = frames(&log, &trigger, &ALL, None);
            let same: Vec<Frame> = all.into_iter().filter(|it| events.contains(&it.event)).collect();
            prop_assert_eq!(same, whole);
        }
    }

    #[test]
    fn the_last_state_has_the_values_of_its_thread_and_each_one_more_than_the_one_before(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let transcript = conversation(&bytes).transcript();
        let states = Snapshots::of(&transcript);
        let places = states.page(None, usize::MAX, usize::MAX);
        let shown: Vec<Value> = places.iter().map(|it| states.to_json(Some(*it), "t", "k", None)).collect();
        let n_messages = |state: &Value| state["values"]["messages"].as_array().unwrap().len();
        if let Some(last) = shown.first() {
            prop_assert_eq!(&last["values"], &values_of(&transcript));
        }
        prop_assert!(shown.is_sorted_by(|newer, older| n_messages(newer) >= n_messages(older)));
        for pair in shown.windows(2) {
            prop_assert_eq!(&pair[0]["parent_checkpoint"], &pair[1]["checkpoint"]);
        }
        // However little fits onto a page, all states are on one.
        let (mut paged, mut before) = (Vec::new(), None);
        loop {
            let page = states.page(before, 2, 1);
            let Some(last) = page.last() else { break };
            before = Some(*last);
            paged.extend(page);
        }
        prop_assert_eq!(paged, places);
    }

    #[test]
    fn every_execution_is_a_run_with_its_values(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let log = conversation(&bytes);
        let transcript = log.transcript();
        let runs = RunRecord::all(&transcript);
        let kinds = kinds(&transcript);
        prop_assert_eq!(kinds.len(), executions(&log).len());
        let n_begun = kinds.values().filter(|kind| **kind == Kind::Begun).count();
        prop_assert_eq!(runs.len(), n_begun, "{:?}", kinds);
        for run in &runs {
            prop_assert_eq!(kinds.get(&run.id), Some(&Kind::Begun));
            let last = run.last.as_ref().unwrap();
            let is_interrupted = run.status == RunStatus::Interrupted;
            prop_assert_eq!(is_interrupted, leaves_or_was_stopped(&transcript, last), "{:?}", run);
            let end = values_at(&transcript, last, Moment::End).unwrap();
            let begin = values_at(&transcript, &run.id, Moment::Begin).unwrap();
            let (begin, end) = (begin["messages"].as_array().unwrap(), end["messages"].as_array().unwrap());
            prop_assert_eq!(begin.as_slice(), &end[..begin.len()]);
            match run.status {
                RunStatus::Success | RunStatus::Pending | RunStatus::Running => {
                    prop_assert!(run.failure.is_none(), "{:?}", run);
                }
                RunStatus::Error | RunStatus::Timeout => prop_assert!(run.failure.is_some()),
                RunStatus::Interrupted => {}
            }
        }
        prop_assert!(values_at(&transcript, &"nobody".into(), Moment::End).is_none());
    }
}
