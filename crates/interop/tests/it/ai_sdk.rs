//! The UI message stream.

use crate::log::Log;
use crate::native::{conversation, thread};
use crate::reference::reference;
use loomline_interop::ai_sdk::{ChunkJson, Major, ReduceError, StreamView, reduce, to_ui_messages};
use loomline_interop::parts::{ToolPart, ToolState};
use loomline_interop::run::RunSelector;
use proptest::prelude::*;
use serde_json::{Value, json};
use timeline::{
    Command, Ending, Event, Interruption, NewChunk, NewItem, Record, StepOutcome, Trigger,
};

/// The chunks of each execution of a log.
fn streams(records: &[Record], major: u8) -> Vec<Vec<Value>> {
    let triggers = records.iter().filter_map(|record| {
        let Event::ExecutionCreated { execution } = &record.event else {
            return None;
        };
        Some(execution.trigger_item_id.clone())
    });
    triggers
        .map(|trigger| {
            let mut view = StreamView::new(major, RunSelector::answering(trigger)).with_ek();
            let all: Vec<ChunkJson> = records
                .iter()
                .flat_map(|record| view.chunks(record))
                .collect();
            assert_eq!(all.last(), Some(&ChunkJson::Done));
            let chunk = |chunk: ChunkJson| match chunk {
                ChunkJson::Chunk(chunk) => Some(chunk),
                ChunkJson::Done => None,
            };
            all.into_iter().filter_map(chunk).collect()
        })
        .collect()
}

fn schema(major: u8) -> Option<jsonschema::Validator> {
    let shared = reference("the real schemas of chunks")?;
    let version = [(5, "5.0.277"), (6, "6.0.326"), (7, "7.0.173")]
        .into_iter()
        .find(|(of, _)| *of == major)?
        .1;
    let path = shared.join(format!(
        "schemas/ai-sdk/ui_message_chunk.ai-{version}.schema.json"
    ));
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    Some(jsonschema::validator_for(&schema).unwrap())
}

/// A message without last steps that have no parts: such are shown only where one had some that
/// were taken back.
fn without_empty_step(mut message: Value) -> Value {
    if let Some(Value::Array(parts)) = message.get_mut("parts") {
        while parts.pop_if(|part| part["type"] == "step-start").is_some() {}
    }
    message
}

proptest! {
    #[test]
    fn a_reloading_client_shows_what_one_that_watched_does(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let log = conversation(&bytes);
        let watched: Vec<Value> = streams(&log.records, 7).iter().map(|stream| without_empty_step(reduce(stream).unwrap())).collect();
        let loaded = to_ui_messages(&log.transcript()).value;
        let loaded = loaded.into_iter().filter(|message| message["role"] == "assistant");
        let loaded: Vec<Value> = loaded.map(without_empty_step).collect();
        prop_assert_eq!(loaded, watched);
    }

    #[test]
    fn the_client_of_every_version_can_follow(bytes in prop::collection::vec(any::<u8>(), 0..200), major in 5u8..=7) {
        for stream in streams(&conversation(&bytes).records, major) {
            prop_assert!(reduce(&stream).is_ok(), "{:?} {stream:?}", reduce(&stream));
            prop_assert!(major == 7 || stream.iter().all(|chunk| chunk["type"] != "reset-step"));
        }
    }
}

#[test]
fn every_chunk_satisfies_the_real_schema() {
    for major in [5, 6, 7] {
        let Some(schema) = schema(major) else { return };
        let seeds = (0..60u8).map(|seed| {
            (0..150u8)
                .map(|n| n.wrapping_mul(31).wrapping_add(seed) ^ (seed << 3))
                .collect()
        });
        for bytes in seeds.collect::<Vec<Vec<u8>>>() {
            for chunk in streams(&conversation(&bytes).records, major)
                .into_iter()
                .flatten()
            {
                assert!(schema.is_valid(&chunk), "ai {major}: {chunk}");
            }
        }
    }
}

fn begun() -> Log {
    let mut log = Log::new(thread(), "2026-01-05T08:00:00Z".parse().unwrap());
    log.run(Command::Start {
        trigger: Trigger::New(NewItem::user(
            "u",
            json!([{"type": "input_text", "text": "hi"}]).into(),
        )),
        run: None,
        execution_id: "e".into(),
        reaction_item_id: "a".into(),
        step_id: "s".into(),
        workflow_run_id: None,
    });
    log
}

fn emit(log: &mut Log, kind: &str, data: Value) {
    let chunk = NewChunk {
        chunk_type: kind.to_owned(),
        data: Some(data.into()),
    };
    log.run(Command::Emit {
        chunks: vec![chunk],
    });
}

fn types(log: &Log, major: u8) -> Vec<String> {
    let mut view = StreamView::new(major, RunSelector::running(None));
    let all = log.records.iter().flat_map(|record| view.chunks(record));
    all.map(|chunk| match chunk {
        ChunkJson::Chunk(chunk) => chunk["type"].as_str().unwrap().to_owned(),
        ChunkJson::Done => "[DONE]".to_owned(),
    })
    .collect()
}

#[test]
fn a_run_with_a_tool_is_told_in_the_order_of_the_real_library() {
    let mut log = begun();
    let call = ToolPart::call("add", "c1", r#"{"a":1}"#);
    let text = json!({"type": "output_text", "text": "let me see"}).into();
    let parts = vec![text, call.write().unwrap()];
    log.run(Command::Respond {
        parts,
        response: json!({"stopReason": "tool_use"}).into(),
    });
    let done = ToolPart {
        state: ToolState::OutputAvailable,
        output: Some(json!(3).into()),
        ..call
    };
    log.run(Command::PutPart {
        idx: 1,
        part: done.write().unwrap(),
    });
    log.run(Command::ImportStep {
        outcome: StepOutcome::default(),
        next: None,
    });
    log.run(Command::End {
        ending: Ending::Completed,
    });
    let expected = [
        "start",
        "start-step",
        "text-start",
        "text-delta",
        "text-end",
        "tool-input-available",
        "tool-output-available",
        "finish-step",
        "finish",
        "[DONE]",
    ];
    assert_eq!(types(&log, 7), expected);
}

#[test]
fn a_dead_attempt_is_taken_back_where_the_client_can() {
    let mut log = begun();
    emit(&mut log, "text-start", json!({"id": "t0-0"}));
    emit(
        &mut log,
        "text-delta",
        json!({"id": "t0-0", "delta": "dead"}),
    );
    log.run(Command::ResetStep);
    assert_eq!(
        types(&log, 7),
        [
            "start",
            "start-step",
            "text-start",
            "text-delta",
            "reset-step"
        ]
    );
    assert_eq!(
        types(&log, 6),
        [
            "start",
            "start-step",
            "text-start",
            "text-delta",
            "text-end"
        ]
    );
}

#[test]
fn a_cancelled_run_aborts_and_a_failed_one_says_why() {
    let ended = |reason: &str| {
        let mut log = begun();
        let why = Interruption {
            reason: reason.into(),
            detail: None,
        };
        log.run(Command::End {
            ending: Ending::Stopped(why),
        });
        types(&log, 7).split_off(2)
    };
    assert_eq!(
        ended("user_cancelled"),
        ["message-metadata", "abort", "[DONE]"]
    );
    assert_eq!(
        ended("timeout"),
        ["error", "finish-step", "finish", "[DONE]"]
    );
}

#[test]
fn the_runtimes_own_chunks_are_shown_only_when_asked_for() {
    let mut log = begun();
    emit(&mut log, "data-context-substate", json!({"key": "actions"}));
    emit(
        &mut log,
        "data-app-poll",
        json!({"id": "p", "data": {"n": 1}}),
    );
    assert_eq!(types(&log, 7), ["start", "start-step", "data-app-poll"]);
    let mut view = StreamView::new(7, RunSelector::running(None)).with_ek();
    let shown: Vec<ChunkJson> = log
        .records
        .iter()
        .flat_map(|record| view.chunks(record))
        .collect();
    let substate =
        json!({"type": "data-context-substate", "data": {"key": "actions"}, "transient": true});
    assert!(shown.contains(&ChunkJson::Chunk(substate)));
}

#[test]
fn a_stream_that_a_client_would_refuse_is_refused() {
    let unknown = reduce(&[json!({"type": "thinking-delta"})]).unwrap_err();
    assert_eq!(
        unknown,
        ReduceError::UnknownType {
            place: 0,
            kind: "thinking-delta".into(),
            major: Major::V7,
        }
    );
    let chunk = json!({"type": "text-delta", "id": "x", "delta": ""});
    let expected = ReduceError::NotStarted {
        place: 0,
        kind: "text-delta".into(),
        id: "x".into(),
    };
    assert_eq!(reduce(&[chunk]).unwrap_err(), expected);
}

#[test]
fn files_of_a_user_are_shown_as_files() {
    let mut log = begun();
    let content = json!([{"type": "input_file", "file_data": "AAAA", "media_type": "text/csv", "filename": "a.csv"},
        {"type": "input_image", "image_url": "https://a/b.png"}, {"type": "input_file", "file_id": "f"}]);
    log.run(Command::Record {
        item: NewItem::user("files", content.into()),
    });
    let shown = to_ui_messages(&log.transcript());
    let expected = json!({"id": "files", "role": "user", "parts": [
        {"type": "file", "mediaType": "text/csv", "url": "data:text/csv;base64,AAAA", "filename": "a.csv"},
        {"type": "file", "mediaType": "image/*", "url": "https://a/b.png"}]});
    assert_eq!(shown.value[1], expected);
    assert_eq!(shown.losses.len(), 1);
}

#[test]
fn an_event_beside_an_answer_is_a_data_part_in_the_stream_and_in_the_messages() {
    let mut log = begun();
    log.run(Command::Respond {
        parts: vec![json!({"type": "output_text", "text": "a"}).into()],
        response: json!({}).into(),
    });
    let part = json!({
        "type": "data-tp-thread_spawn", "id": "child", "data": {"spawned_thread_id": "child"},
    });
    log.run(Command::AddPart {
        part: part.clone().into(),
    });
    log.run(Command::ImportStep {
        outcome: StepOutcome::default(),
        next: None,
    });
    log.run(Command::End {
        ending: Ending::Completed,
    });
    assert!(types(&log, 7).contains(&"data-tp-thread_spawn".to_owned()));
    let messages = to_ui_messages(&log.transcript());
    assert_eq!(messages.losses, Vec::new());
    let parts = messages.value.last().unwrap()["parts"].as_array().unwrap();
    assert!(parts.contains(&part));
}

#[test]
fn a_block_that_nobody_ended_ends_before_its_step_does() {
    let mut log = begun();
    let said = json!({"id": "t0", "delta": "so"});
    emit(&mut log, "text-delta", said);
    log.run(Command::Respond {
        parts: Vec::new(),
        response: json!({}).into(),
    });
    log.run(Command::CompleteStep {
        outcome: StepOutcome::default(),
        next: None,
    });
    let step = [
        "start",
        "start-step",
        "text-start",
        "text-delta",
        "text-end",
        "finish-step",
    ];
    assert_eq!(types(&log, 7), step, "before the run ends");
}
