//! Streams of the real library and of the Python adapter, and what the real client made of them.

use crate::ui_streams::{Watched, chunks_of, files, in_javascript, json, recorded, spoiled, watch};
use loomline_interop::ai_sdk::{Major, Reducer, check_chunk};
use serde_json::Value;
use std::path::Path;
use thread::Json;

/// Compares a recorded stream with what the real client made of it.
fn compare(sse: &Path, major: Major, message: Option<Json>, expected: Option<&Json>) -> Watched {
    let chunks = chunks_of(&std::fs::read(sse).unwrap());
    let name = sse.display();
    let watched = watch(Reducer::new(major, message).checked(), &chunks);
    let built = watched.reduced.message.as_ref().map(in_javascript);
    let expected = expected.filter(|message| !message.is_null());
    assert_eq!(
        built,
        expected.map(in_javascript),
        "{name}: {:?}",
        watched.error
    );
    watched
}

fn compare_folder(folder: &Path, major: Major) -> (usize, usize) {
    let (mut n_streams, mut n_snapshots) = (0, 0);
    for sse in files(folder, ".sse") {
        let recorded = json(&sse.with_extension("ui.json"));
        let history = recorded.get("history").and_then(Json::as_array);
        let last = history.and_then(|history| history.last());
        let last = last.filter(|last| last.get("role") == Some(&"assistant".into()));
        let watched = compare(&sse, major, last.cloned(), recorded.get("final"));
        n_streams += 1;
        let name = sse.display();
        if let Some(errors) = recorded.get("errors").and_then(Json::as_array) {
            let told = watched.reduced.facts.errors.iter();
            let told: Vec<Json> = told.map(|error| error.text.as_str().into()).collect();
            assert_eq!(told, errors, "{name}");
        }
        if recorded
            .get("bad")
            .is_some_and(|bad| *bad == Json::Array(Vec::new()))
        {
            let failed = recorded.get("failed") == Some(&Json::Bool(true));
            assert_eq!(
                watched.error.is_some(),
                failed,
                "{name}: {:?}",
                watched.error
            );
        }
        let snapshots = sse.with_extension("snapshots.json");
        if snapshots.exists() {
            let snapshots = json(&snapshots);
            let snapshots: Vec<Value> = snapshots
                .as_array()
                .unwrap()
                .iter()
                .map(in_javascript)
                .collect();
            let shown: Vec<Value> = watched.shown.iter().map(in_javascript).collect();
            for (place, (shown, snapshot)) in shown.iter().zip(&snapshots).enumerate() {
                assert_eq!(shown, snapshot, "{name}, {place}");
            }
            assert_eq!(shown.len(), snapshots.len(), "{name}");
            n_snapshots += snapshots.len();
        }
    }
    (n_streams, n_snapshots)
}

#[test]
fn recorded_streams_build_the_messages_of_the_real_client_step_by_step() {
    let Some(folder) = recorded("ai-sdk") else {
        return;
    };
    for (major, under) in [(Major::V7, ""), (Major::V6, "v6"), (Major::V5, "v5")] {
        let (n_streams, n_snapshots) = compare_folder(&folder.join(under), major);
        println!("{major:?}: {n_streams} streams, {n_snapshots} snapshots");
        assert!(n_streams > 7);
        assert!(n_snapshots > 300 || major < Major::V7);
    }
}

#[test]
fn streams_of_the_python_adapter_build_the_messages_of_the_real_client() {
    let Some(folder) = recorded("pai-adapter") else {
        return;
    };
    let mut n_streams = 0;
    for sse in files(&folder, ".sse") {
        // Streams of the AG-UI protocol have no request.
        let request = sse.with_extension("request.json");
        if !request.exists() {
            continue;
        }
        let request = json(&request);
        let messages = request.get("messages").and_then(Json::as_array);
        let last = messages.and_then(|messages| messages.last()).cloned();
        let last = last.filter(|last| last.get("role") == Some(&"assistant".into()));
        let recorded = json(&sse.with_extension("ui.json"));
        // Whichever version the server wrote for, the client was the newest.
        compare(&sse, Major::V7, last, recorded.get("client_final_message"));
        n_streams += 1;
    }
    println!("{n_streams} streams");
    assert!(n_streams >= 44);
}

fn schemas() -> Option<Vec<(Major, jsonschema::Validator)>> {
    let folder = recorded("../schemas/ai-sdk")?;
    let schema = |version: &str| {
        let path = folder.join(format!("ui_message_chunk.ai-{version}.schema.json"));
        jsonschema::validator_for(&json(&path).to_value().unwrap()).unwrap()
    };
    Some(vec![
        (Major::V5, schema("5.0.277")),
        (Major::V6, schema("6.0.326")),
        (Major::V7, schema("7.0.173")),
    ])
}

#[test]
fn chunks_are_refused_where_the_real_schemas_refuse_them() {
    let Some(schemas) = schemas() else { return };
    let mut n_refused = 0;
    for seed in 0..3000u32 {
        let mixed = |n: u32| (seed ^ n << 13).wrapping_mul(2_654_435_761).to_be_bytes();
        let bytes: Vec<u8> = (0..6).flat_map(mixed).collect();
        let chunk = spoiled(&bytes);
        for (major, schema) in &schemas {
            let checked = check_chunk(&chunk, *major);
            let valid = schema.is_valid(&chunk.to_value().unwrap());
            assert_eq!(checked.is_ok(), valid, "{major:?} {chunk} {checked:?}");
            n_refused += usize::from(!valid);
        }
    }
    assert!((1000..8000).contains(&n_refused), "{n_refused}");
}
