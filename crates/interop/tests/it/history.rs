//! Histories of Pydantic AI through the archive: runs and agents, appending, what a document gives.

mod onto;

use crate::document::errors;
use crate::histories::list;
use loomline_interop::archive::{Archive, ArchivedRun};
use loomline_interop::convert::{AttributedFields, ReadOptions};
use loomline_interop::document::agent_id;
use loomline_interop::pydantic_ai::{append, read, read_owned, write};
use thread::{Json, Limits, Thread};

pub(crate) fn archive_of(text: &str) -> Archive {
    let archive = read(text, &ReadOptions::default()).unwrap();
    let owned = read_owned(text.to_owned(), &ReadOptions::default());
    assert_eq!(owned.as_ref(), Ok(&archive));
    archive
}

pub(crate) fn through_json(archive: &Archive) -> Archive {
    Archive::decode(archive.encode(), &Limits::default()).unwrap()
}

fn named(agent: &str, run_id: Option<&str>) -> AttributedFields {
    AttributedFields {
        agent: agent.to_owned(),
        run_id: run_id.map(str::to_owned),
        ..AttributedFields::default()
    }
}

pub(crate) fn shape(archive: &Archive) -> Vec<(Option<String>, usize)> {
    let id = |run: &ArchivedRun| run.head.get_str("run_id").map(str::to_owned);
    archive
        .runs
        .iter()
        .map(|run| (id(run), run.records.len()))
        .collect()
}

fn plain(kind: &str, run_id: &str, at: usize) -> String {
    let part = if kind == "request" {
        "user-prompt"
    } else {
        "text"
    };
    format!(
        r#"{{"parts":[{{"content":"{at}","part_kind":"{part}"}}],"timestamp":"2026-01-05T08:00:{at:02}Z","kind":"{kind}","run_id":{run_id}}}"#
    )
}

fn turns(run_ids: &[&str]) -> Vec<String> {
    let each = run_ids.iter().enumerate();
    each.flat_map(|(n, id)| {
        [
            plain("request", id, 2 * n),
            plain("response", id, 2 * n + 1),
        ]
    })
    .collect()
}

#[test]
fn an_empty_history_has_no_runs_and_comes_back() {
    let archive = archive_of(" [ ] ");
    assert_eq!(shape(&archive), []);
    assert_eq!(write(&archive).value, "[]");
    assert_eq!(archive.to_thread().losses, []);
    assert_eq!(errors(&archive.to_thread().value), Vec::<String>::new());
}

#[test]
fn a_thread_is_named_by_its_conversation_or_by_what_was_said() {
    let id = "01a1fa4a-3c40-73fa-b93d-a928d8481152";
    let message =
        |id: &str| format!(r#"[{{"parts":[],"kind":"request","conversation_id":"{id}"}}]"#);
    assert_eq!(archive_of(&message(id)).thread_id(), Some(id));
    let other = archive_of(&message("mine"));
    assert_eq!(archive_of(&message("mine")).thread_id(), other.thread_id());
    assert_ne!(archive_of(&message("thine")).thread_id(), other.thread_id());
    assert_eq!(other.thread_id().map(str::len), Some(36));
}

#[test]
fn runs_are_attributed_by_id_by_count_and_else_to_the_default() {
    let text = list(&turns(&[r#""r1""#, "null", "null", r#""r2""#]));
    let count = |agent: &str, n| AttributedFields {
        n_messages: Some(n),
        ..named(agent, None)
    };
    let options = ReadOptions {
        attribution: vec![named("ann", Some("r1")), count("bob", 2), named("cy", None)],
        ..ReadOptions::default()
    };
    let archive = read(&text, &options).unwrap();
    let agents: Vec<_> = archive
        .runs
        .iter()
        .map(|run| run.agent_id.clone().unwrap())
        .collect();
    assert_eq!(agents, ["ann", "bob", "cy", "cy"].map(agent_id));
    let registered = archive.agent(&agent_id("bob")).unwrap();
    assert_eq!(
        registered.get_str("created_at"),
        Some("2026-01-05T08:00:02Z")
    );
    let unnamed = archive_of(&text);
    assert!(
        unnamed
            .runs
            .iter()
            .all(|run| run.agent_id == Some(agent_id("agent")))
    );
}

#[test]
fn counts_cut_where_no_id_tells() {
    let mut messages = turns(&["null"]);
    messages.extend([plain("response", "null", 7), plain("response", "null", 8)]);
    let count = |n| AttributedFields {
        n_messages: Some(n),
        ..named("a", None)
    };
    let options = ReadOptions {
        attribution: vec![count(2), count(1), count(1)],
        ..ReadOptions::default()
    };
    let archive = read(&list(&messages), &options).unwrap();
    assert_eq!(shape(&archive), [(None, 2), (None, 1), (None, 1)]);
}

#[test]
fn a_rewritten_history_is_kept_and_so_is_what_it_replaced() {
    let before = turns(&[r#""r1""#, r#""r2""#]);
    let mut after = turns(&[r#""r1""#, r#""r2""#, r#""r3""#]);
    after[0] = after[0].replace(r#""content":"0""#, r#""content":"new""#);
    // The library merges two requests into one without a run.
    after[3] = plain("request", "null", 9);
    after.remove(4);
    let mut archive = archive_of(&list(&before));
    append(&mut archive, &list(&after), &ReadOptions::default()).unwrap();
    assert_eq!(write(&archive).value, list(&after));
    let superseded = |run: usize| {
        let entries = archive.runs[run]
            .head
            .get("superseded")
            .and_then(Json::as_array)
            .unwrap();
        let at: Vec<_> = entries
            .iter()
            .map(|entry| entry.get("at").and_then(Json::as_u64).unwrap())
            .collect();
        let text = entries
            .iter()
            .map(|entry| entry.pointer("/records/0").unwrap().to_text());
        (at, text.collect::<Vec<_>>())
    };
    assert_eq!(superseded(0), (vec![0], vec![before[0].clone()]));
    assert_eq!(superseded(1), (vec![3], vec![before[3].clone()]));
    assert_eq!(through_json(&archive), archive);
    let again = archive.clone();
    append(&mut archive, &list(&after), &ReadOptions::default()).unwrap();
    assert_eq!(archive, again);
}

#[test]
fn what_a_run_added_is_added_once() {
    let all = turns(&[r#""r1""#, r#""r2""#]);
    let mut archive = archive_of(&list(&all[..2]));
    for _ in 0..2 {
        append(&mut archive, &list(&all[2..]), &ReadOptions::default()).unwrap();
        assert_eq!(write(&archive).value, list(&all));
    }
    assert_eq!(
        archive.root.get_str("updated_at"),
        Some("2026-01-05T08:00:03Z")
    );
}

#[test]
fn an_agent_that_is_new_in_an_append_is_registered() {
    let all = turns(&[r#""r1""#, r#""r2""#]);
    let mut archive = archive_of(&list(&all[..2]));
    let options = ReadOptions {
        attribution: vec![named("bob", Some("r2"))],
        ..ReadOptions::default()
    };
    append(&mut archive, &list(&all), &options).unwrap();
    assert_eq!(archive.runs[1].agent_id, Some(agent_id("bob")));
    assert!(archive.agent(&agent_id("bob")).is_some());
}

#[test]
fn unanswered_calls_in_the_middle_interrupt_their_turn() {
    let call = r#"{"parts":[{"tool_name":"t","args":"{}","tool_call_id":"c","part_kind":"tool-call"}],"usage":{"input_tokens":7},"timestamp":"2026-01-05T08:00:01Z","kind":"response","run_id":"r1"}"#;
    let mut messages = turns(&[r#""r1""#, r#""r2""#]);
    messages[1] = call.to_owned();
    let document = archive_of(&list(&messages)).to_thread();
    assert_eq!(errors(&document.value), Vec::<String>::new());
    let turn = document
        .value
        .root()
        .get("turns")
        .unwrap()
        .pointer("/1")
        .unwrap();
    let expected = r#"{"turn_type":"agent","agent_id":"AGENT","started_at":"2026-01-05T08:00:00Z","completion_status":"interrupted","interruption":{"reason":"interrupted","interrupted_at":"2026-01-05T08:00:01Z"},"messages":[],"total_usage":{"input_tokens":7}}"#;
    assert_eq!(
        turn.to_text(),
        expected.replace("AGENT", &agent_id("agent"))
    );
    assert_eq!(document.losses[0].pointer, "/runs/0/records/1");
}

#[test]
fn calls_that_wait_at_the_end_are_pending() {
    let call = r#"{"parts":[{"tool_name":"t","args":"{}","tool_call_id":"c","part_kind":"tool-call"}],"timestamp":"2026-01-05T08:00:01Z","kind":"response","run_id":"r1"}"#;
    let mut messages = turns(&[r#""r1""#]);
    messages[1] = call.to_owned();
    let document = archive_of(&list(&messages)).to_thread();
    assert_eq!(document.losses, []);
    assert_eq!(thread::pending_tool_calls(&document.value).len(), 1);
}

#[test]
fn a_document_of_another_source_is_written_as_messages_that_can_be_read() {
    let document = Thread::decode(include_str!("../fixtures/thread_for_pydantic_ai.json")).unwrap();
    let archive = Archive::from_thread(&document);
    let back = write(&archive);
    assert_eq!(shape(&archive_of(&back.value)).len(), 1);
    let expected = include_str!("../fixtures/thread_for_pydantic_ai.history.json").trim_end();
    assert_eq!(back.value, expected);
    let pointers: Vec<_> = back
        .losses
        .iter()
        .map(|loss| loss.pointer.as_str())
        .collect();
    let expected = [
        "/runs/0/records/1/messages/0/parts/2/args",
        "/runs/0/records/1/messages/1/parts/0/content_ref",
        "/runs/0/records/1/messages/2",
        "/runs/0/records/1/messages/3/parts/1",
        "/runs/0/records/1/messages/3/parts/2",
        "/runs/0/records/1/messages/3",
    ];
    assert_eq!(pointers, expected);
}
