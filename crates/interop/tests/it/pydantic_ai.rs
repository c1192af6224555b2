//! Histories of Pydantic AI.

use crate::document::{errors, round_trip};
use crate::histories::history;
use crate::reference::reference;
use loomline_interop::convert::{AttributedFields, ReadOptions};
use loomline_interop::pydantic_ai::{PydanticAiError, to_document};
use loomline_interop::{Converted, Loss};
use proptest::prelude::*;
use std::path::PathBuf;
use thread::{Json, Thread};

fn options() -> ReadOptions {
    ReadOptions {
        thread_id: Some("7c7e9d0a-5c1f-4f43-9a53-0c6f0a6b6f01".to_owned()),
        attribution: vec![AttributedFields {
            agent: "solo".to_owned(),
            ..AttributedFields::default()
        }],
        at: "2026-01-01T00:00:00Z".to_owned(),
        ..ReadOptions::default()
    }
}

fn document_of(history: &str) -> Converted<Thread> {
    to_document(history, &options()).unwrap()
}

fn small() -> Converted<Thread> {
    document_of(include_str!("../fixtures/pydantic_ai_small.json"))
}

fn shape(thread: &Thread) -> Vec<String> {
    let turns = thread.root().get("turns").and_then(Json::as_array).unwrap();
    let text = |json: &Json, key: &str| {
        json.get(key)
            .and_then(Json::as_str)
            .unwrap_or("-")
            .to_owned()
    };
    turns
        .iter()
        .map(|turn| {
            let messages = turn
                .get("messages")
                .and_then(Json::as_array)
                .map(<[Json]>::len);
            format!(
                "{} {} {messages:?}",
                text(turn, "turn_type"),
                text(turn, "completion_status")
            )
        })
        .collect()
}

#[test]
fn runs_become_turns_and_an_interrupted_one_keeps_its_complete_cycles() {
    let document = small().value;
    let expected = [
        "user - None",
        "agent interrupted Some(2)",
        "user - None",
        "agent complete Some(1)",
    ];
    assert_eq!(shape(&document), expected);
    assert_eq!(errors(&document), Vec::<String>::new());
    let usage = document
        .root()
        .get("turns")
        .unwrap()
        .pointer("/1/total_usage/input_tokens");
    assert_eq!(usage, Some(&14u64.into()));
}

#[test]
fn prompts_and_what_was_cut_off_are_reported() {
    let losses = small().losses;
    let loss = |pointer: &str, what: &str| Loss {
        pointer: pointer.into(),
        what: what.into(),
    };
    let no_instant = "the source has no timestamp; one was made up";
    let expected = [
        loss("/0/parts/0", "a system prompt"),
        loss("/0/instructions", "instructions"),
        loss("/2/timestamp", no_instant),
        loss("/3", "an answer that was cut off"),
        loss("/4/timestamp", no_instant),
    ];
    assert_eq!(losses, expected);
}

#[test]
fn a_return_has_a_status_and_keeps_its_outcome() {
    let document = small().value;
    let part = document
        .root()
        .get("turns")
        .unwrap()
        .pointer("/1/messages/1/parts/0")
        .unwrap();
    let text = |key: &str| part.get(key).and_then(Json::as_str);
    assert_eq!(
        (text("status"), text("outcome")),
        (Some("validation_error"), Some("retried"))
    );
}

#[test]
fn a_history_through_the_log_gives_the_same_document() {
    let document = small().value;
    let (back, losses) = round_trip(&document);
    assert_eq!(back.encode(), document.encode());
    assert_eq!(losses, []);
}

#[test]
fn what_is_no_history_is_refused_where_it_stands() {
    let refused = |text: &str| to_document(text, &options()).unwrap_err();
    assert_eq!(refused("{}"), PydanticAiError::NotAList { found: "object" });
    let pointer = "/1".to_owned();
    let text = r#"[{"kind":"request","parts":[]},{"kind":"answer","parts":[]}]"#;
    assert_eq!(refused(text), PydanticAiError::NotAMessage { pointer });
}

#[test]
fn every_history_of_the_real_library_becomes_a_valid_document() {
    for path in vectors() {
        let document = document_of(&std::fs::read_to_string(&path).unwrap()).value;
        assert_eq!(
            errors(&document),
            Vec::<String>::new(),
            "{}",
            path.display()
        );
        let (back, losses) = round_trip(&document);
        assert_eq!(losses, [], "{}", path.display());
        assert_eq!(back.encode(), document.encode(), "{}", path.display());
    }
}

/// The histories of the shared corpus; says so when there is none.
fn vectors() -> Vec<PathBuf> {
    let Some(shared) = reference("the histories of the real library") else {
        return Vec::new();
    };
    let root = shared.join("vectors");
    let mut paths = Vec::new();
    for under in [
        "pydantic-ai",
        "pydantic-ai/v1.0.18",
        "pydantic-ai/v1.107.10",
        "pydantic-ai-replay",
    ] {
        let folder = root.join(under);
        let index =
            Json::parse(&std::fs::read_to_string(folder.join("index.json")).unwrap()).unwrap();
        for entry in index.as_array().unwrap() {
            let file = entry.get("file").and_then(Json::as_str).unwrap();
            paths.push(folder.join(file));
        }
    }
    assert!(
        paths
            .iter()
            .any(|path| path.ends_with("tools_multi_step.json"))
    );
    assert!(paths.len() > 100, "{}", paths.len());
    paths
}

proptest! {
    #[test]
    fn any_history_becomes_a_document_that_the_log_gives_back(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let document = document_of(&history(&bytes).text()).value;
        let (back, losses) = round_trip(&document);
        prop_assert!(losses.is_empty() == (back.encode() == document.encode()), "{losses:?}");
    }
}
