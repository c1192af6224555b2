//! The archive form: a document in it and out of it, and what it keeps for every format.

use crate::document::errors;
use loomline_interop::archive::{Archive, ArchivedRun, Format, SourceText};
use loomline_interop::convert::{ReadOptions, SourceForm, WriteOptions, append, read, write};
use thread::{Json, Limits, Thread};

const DOCUMENT: &str = include_str!("../fixtures/thread_for_pydantic_ai.json");

fn compact(text: &str) -> String {
    Json::parse(text).unwrap().to_text()
}

#[test]
fn a_document_comes_back_as_it_was_member_by_member() {
    let texts = [
        compact(DOCUMENT),
        compact(DOCUMENT).replacen(r#""turns":["#, r#""turns":[],"x":{"turns":["#, 1) + "}",
        r#"{"version":"0.0.4","turns":[],"z":1.0,"archive":7,"runs":[1],"agents":null}"#.to_owned(),
        r#"{"version":"0.0.4","thread_id":7}"#.to_owned(),
        r#"{"turns":7,"version":"0.0.4"}"#.to_owned(),
        r#"{"x":1,"turns":[7,{"turn_type":"new","y":null}],"version":"0.0.4","after":[]}"#
            .to_owned(),
    ];
    for text in texts {
        let thread = Thread::decode(&text).unwrap();
        let archive = Archive::from_thread(&thread);
        let again = Archive::decode(archive.encode(), &Limits::default()).unwrap();
        assert_eq!(again, archive);
        let back = again.to_thread();
        assert_eq!(back.value.encode(), text);
        assert_eq!(back.losses, []);
    }
}

#[test]
fn an_older_document_comes_back_in_the_newest_version() {
    let text =
        r#"{"version":"2.0.0","turns":[{"turn_type":"agent","agent_id":"a","messages":[]}]}"#;
    let archive = Archive::from_thread(&Thread::decode(text).unwrap());
    let expected = r#"{"version":"0.0.4","turns":[{"turn_type":"agent","agent_id":"a","completion_status":"complete","messages":[]}]}"#;
    assert_eq!(archive.to_thread().value.encode(), expected);
    assert_eq!(archive.runs[0].records[0].text(), &text[28..text.len() - 2]);
}

#[test]
fn a_document_goes_on_with_a_history() {
    let mut archive = Archive::from_thread(&Thread::decode(DOCUMENT).unwrap());
    let text = r#"[{"parts":[{"content":"More","part_kind":"user-prompt"}],"timestamp":"2026-01-05T09:00:00Z","kind":"request"},{"parts":[{"content":"Sure","part_kind":"text"}],"timestamp":"2026-01-05T09:00:01Z","kind":"response"}]"#;
    let form = SourceForm::Of(Format::PydanticAi);
    append(&mut archive, form, text, &ReadOptions::default()).unwrap();
    assert_eq!(archive.runs.len(), 2);
    let document = archive.to_thread().value;
    assert_eq!(document.turns().len(), 4);
    assert_eq!(document.agents().count(), 2);
    assert_eq!(
        document.root().get_str("updated_at"),
        Some("2026-01-05T09:00:01Z")
    );
    // The part that breaks the protocol was in the document before.
    let wrong: Vec<_> = errors(&document)
        .into_iter()
        .filter(|error| !error.contains("/turns/1/"))
        .collect();
    assert_eq!(wrong, Vec::<String>::new());
    let history = write(form, &archive, &WriteOptions::default()).value;
    assert_eq!(
        Json::parse(&history).unwrap().as_array().map(<[Json]>::len),
        Some(6)
    );
}

#[test]
fn a_run_that_no_one_is_named_for_is_still_someones() {
    let mut archive = Archive::new(
        "7c7e9d0a-5c1f-4f43-9a53-0c6f0a6b6f01",
        "2026-01-05T08:00:00Z",
    );
    let text = r#"{"parts":[{"content":"Hi","part_kind":"text"}],"kind":"response"}"#;
    let record = SourceText::parse(text, &Limits::default()).unwrap();
    archive
        .runs
        .push(ArchivedRun::new(Format::PydanticAi, None, vec![record]));
    let document = archive.to_thread().value;
    assert_eq!(errors(&document), Vec::<String>::new());
    assert_eq!(document.agents().count(), 1);
}

#[test]
fn the_forms_are_found_by_name() {
    let document = compact(DOCUMENT);
    let form = SourceForm::Of(Format::Thread);
    let archive = read(form, &document, &ReadOptions::default())
        .unwrap()
        .value;
    let options = WriteOptions::default();
    assert_eq!(write(form, &archive, &options).value, document);
    let text = write(SourceForm::Archive, &archive, &options).value;
    let again = read(SourceForm::Archive, &text, &ReadOptions::default()).unwrap();
    assert_eq!(again.value, archive);
}

/// The only agent's turn of what an archive of a stream or a history gives: its status, why it was
/// interrupted, and the kinds of its parts and events.
fn agents_turn(format: Format, text: &str) -> (String, Option<String>, Vec<String>) {
    let archive = read(SourceForm::Of(format), text, &ReadOptions::default()).unwrap();
    let document = archive.value.to_thread().value;
    assert_eq!(errors(&document), Vec::<String>::new());
    let root = Json::from(document.root().clone());
    let turns = root.get("turns").and_then(Json::as_array).unwrap();
    let turn = turns.last().unwrap();
    let text = |json: &Json, key: &str| json.get(key)?.as_str().map(str::to_owned);
    let reason = turn.get("interruption").and_then(|why| text(why, "reason"));
    let messages = turn.get("messages").and_then(Json::as_array).unwrap();
    let mut kinds = Vec::new();
    for message in messages {
        kinds.extend(text(message, "event_type"));
        let parts = message.get("parts").and_then(Json::as_array);
        let parts = parts.unwrap_or_default().iter();
        kinds.extend(parts.filter_map(|part| text(part, "part_kind")));
    }
    (text(turn, "completion_status").unwrap(), reason, kinds)
}

#[test]
fn a_call_that_waits_stays_although_an_earlier_one_was_never_answered() {
    let history = r#"[{"parts":[{"content":"Hi","part_kind":"user-prompt"}],"kind":"request"},
        {"parts":[{"tool_name":"t","args":null,"tool_call_id":"a1","part_kind":"tool-call"}],"kind":"response","run_id":"r"},
        {"parts":[{"content":"Go on","part_kind":"user-prompt"}],"kind":"request","run_id":"r"},
        {"parts":[{"content":"May I?","part_kind":"text"},{"tool_name":"t","args":null,"tool_call_id":"b1","part_kind":"tool-call"}],"kind":"response","run_id":"r"}]"#;
    let (status, reason, kinds) = agents_turn(Format::PydanticAi, history);
    assert_eq!((status.as_str(), reason), ("complete", None));
    assert_eq!(kinds, ["user-prompt", "text", "tool-call"]);
}

#[test]
fn an_event_after_the_last_answer_does_not_hide_what_became_of_it() {
    let stream = r#"[{"type":"start"},{"type":"start-step"},
        {"type":"tool-input-available","toolCallId":"t0","toolName":"t","input":{}},{"type":"finish-step"},
        {"type":"start-step"},{"type":"text-start","id":"x"},{"type":"text-delta","id":"x","delta":"May I?"},{"type":"text-end","id":"x"},
        {"type":"tool-input-available","toolCallId":"t1","toolName":"t","input":{}},
        {"type":"data-w","data":1},{"type":"finish-step"},{"type":"finish"}]"#;
    let (status, _, kinds) = agents_turn(Format::AiSdkStream, stream);
    assert_eq!(status, "complete");
    assert_eq!(kinds, ["text", "tool-call", "data-w"]);
}

#[test]
fn a_run_that_was_cancelled_in_its_first_word_is_in_the_document() {
    let stream = r#"[{"type":"start"},{"type":"start-step"},{"type":"text-start","id":"x"},
        {"type":"text-delta","id":"x","delta":"Hel"},{"type":"abort"}]"#;
    let (status, reason, kinds) = agents_turn(Format::AiSdkStream, stream);
    assert_eq!(
        (status.as_str(), reason.as_deref()),
        ("interrupted", Some("user_cancelled"))
    );
    assert_eq!(kinds, Vec::<String>::new());
}
