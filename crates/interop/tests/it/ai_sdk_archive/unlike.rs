//! Streams that are none, or that clients give up on, and what they leave of an answer.

use super::{again, document, messages, only, options, plain, shape, stream};
use loomline_interop::Converted;
use loomline_interop::ai_sdk;
use loomline_interop::archive::{Archive, SourceText};
use proptest::prelude::*;
use thread::{Json, Object};

/// Events with these data.
fn events(data: &[&str]) -> String {
    let events = data.iter().map(|data| format!("data: {data}\n\n"));
    events.collect()
}

fn read(text: &str) -> (Archive, Vec<String>) {
    let Converted { value, losses } = ai_sdk::read_stream(text, &options()).unwrap();
    let told = losses
        .into_iter()
        .map(|loss| format!("{} {}", loss.pointer, loss.what));
    (value, told.collect())
}

fn written(archive: &Archive) -> (String, Vec<String>) {
    let Converted { value, losses } = ai_sdk::write_stream(archive, &plain());
    let told = losses
        .into_iter()
        .map(|loss| format!("{} {}", loss.pointer, loss.what));
    (value, told.collect())
}

fn reason(archive: &Archive) -> Option<String> {
    only(archive).0.interruption.map(|why| why.reason)
}

const START: &str = r#"{"type":"start","messageId":"m"}"#;
const BEGIN: &str = r#"{"type":"text-start","id":"x"}"#;
const DELTA: &str = r#"{"type":"text-delta","id":"x","delta":"Hello"}"#;
const END: &str = r#"{"type":"text-end","id":"x"}"#;
const FINISH: &str = r#"{"type":"finish","finishReason":"stop"}"#;
const DONE: &str = "[DONE]";

#[test]
fn what_is_no_stream_is_refused_where_it_begins() {
    let told = |text: &str| {
        let refused = ai_sdk::read_stream(text, &options()).unwrap_err();
        let mut archive = stream(&events(&[START]));
        let before = archive.clone();
        let appended = ai_sdk::append_stream(&mut archive, text, &options());
        assert_eq!(appended.unwrap_err(), refused);
        assert_eq!(archive, before);
        refused.to_string()
    };
    let expected = "expected server-sent events or an array of chunks";
    assert_eq!(told(""), format!("line 1: {expected}, found no chunk"));
    assert_eq!(
        told(" \r\n\t\n"),
        format!("line 1: {expected}, found no chunk")
    );
    assert_eq!(
        told("\r\ngarbage\n"),
        format!("line 2: {expected}, found \"garbage\"")
    );
    assert_eq!(
        told(r#"{"error":"Unauthorized"}"#),
        format!(r#"line 1: {expected}, found "{{\"error\":\"Unauthorized\"}}""#)
    );
    assert_eq!(
        told("event: x\nid: 1\n"),
        format!(r#"line 1: {expected}, found "event: x""#)
    );
    let old = told("0:\"Hello\"\ne:{\"finishReason\":\"stop\"}\n");
    let line = r#"found "0:\"Hello\"""#;
    assert_eq!(
        old,
        format!(
            "line 1: {expected} (the data stream protocol of ai 4, `0:\"…\"`, is not read), {line}"
        )
    );
    assert!(told(&"é".repeat(500)).len() < 250);
}

#[test]
fn a_stream_of_comments_or_without_chunks_is_an_empty_one() {
    for text in [
        ": keep-alive\n\n",
        "\u{feff}: ping\r\n\r\n",
        "data: [DONE]\n\n",
        "[]",
    ] {
        let (archive, losses) = read(text);
        assert_eq!(archive.runs[0].records, []);
        assert_eq!(losses, [""; 0]);
    }
    let (_, losses) = read("data: {}");
    assert_eq!(
        losses,
        ["/0 an event without its end, which was never sent"]
    );
}

#[test]
fn lines_that_are_no_field_of_an_event_are_named() {
    let text = events(&[START, DONE]);
    let noise =
        format!("\u{feff}: hi\r\nevent: message\nid\nretry: 1\n{text}oops\n<html>\n\nevents\n");
    let (archive, losses) = read(&noise);
    assert_eq!(
        losses,
        [r#" 3 lines that are no fields of an event, the first of them line 9: "oops""#]
    );
    assert_eq!(written(&archive).0, text);
}

#[test]
fn what_comes_behind_the_end_is_read_as_clients_do_and_given_back_in_its_place() {
    let behind = events(&[START, BEGIN, DONE, DELTA, DONE, DONE, END, FINISH, DONE]);
    let (archive, losses) = read(&behind);
    assert_eq!(losses, [""; 0]);
    let head = Json::from(again(&archive).runs[0].head.clone());
    assert_eq!(head.pointer("/done"), Some(&true.into()));
    let places: Json = [2u64, 3, 3].into_iter().map(Json::from).collect();
    assert_eq!(head.pointer("/done_at"), Some(&places));
    assert_eq!(written(&archive), (behind, Vec::new()));
    assert_eq!(shape(&only(&archive).0), ["response: text"]);

    let open = events(&[DONE, START, BEGIN, DELTA, END]);
    let (archive, _) = read(&open);
    let head = &archive.runs[0].head;
    assert_eq!(head.get("done"), Some(&false.into()));
    assert_eq!(written(&archive).0, open);

    let usual = read(&events(&[START, FINISH, DONE])).0;
    assert!(!usual.runs[0].head.contains_key("done_at"));
}

#[test]
fn places_of_an_end_that_make_no_sense_are_left_alone() {
    let (mut archive, _) = read(&events(&[START, FINISH]));
    let places: [Json; 4] = [9u64.into(), 0u64.into(), "x".into(), Json::Null];
    archive.runs[0]
        .head
        .insert("done_at", Json::Array(places.to_vec()));
    let text = events(&[DONE, START, FINISH]);
    assert_eq!(written(&archive).0, text);
}

#[test]
fn a_client_gives_up_on_a_field_of_the_wrong_type() {
    let bad = r#"{"type":"text-end","id":"x","providerMetadata":"bad"}"#;
    let text = events(&[START, BEGIN, DELTA, bad, FINISH, DONE]);
    let (archive, _) = read(&text);
    let (run, losses) = only(&archive);
    assert_eq!(
        run.interruption.map(|why| why.reason).as_deref(),
        Some("error")
    );
    let given_up = "/runs/0/records/3 the last 2 chunks, for a client gives up: ";
    assert!(
        losses
            .iter()
            .any(|loss| loss.starts_with(given_up) && loss.contains("providerMetadata")),
        "{losses:?}"
    );
    let weird = events(&[START, r#"{"type":"finish","finishReason":"weird"}"#]);
    assert_eq!(reason(&read(&weird).0).as_deref(), Some("error"));
    // It is given back as it came.
    assert_eq!(written(&archive), (text, Vec::new()));
}

#[test]
fn keys_that_no_client_reads_end_a_stream_and_are_not_sent() {
    for data in [
        r#"{"__proto__":1}"#,
        r#"[{"constructor":{"prototype":0}}]"#,
        r#"{"\u005f_proto__":1}"#,
    ] {
        let bad = format!(r#"{{"type":"data-a","data":{data}}}"#);
        let good = r#"{"type":"data-b","data":{"constructor":1}}"#;
        let (archive, _) = read(&events(&[START, &bad, good, FINISH, DONE]));
        let (run, losses) = only(&archive);
        assert_eq!(shape(&run), Vec::<String>::new());
        assert_eq!(
            run.interruption.map(|why| why.reason).as_deref(),
            Some("error")
        );
        assert!(
            losses[0]
                .starts_with("/runs/0/records/1 the last 3 chunks, for a client gives up: the key"),
            "{losses:?}"
        );
        let (text, losses) = written(&archive);
        assert_eq!(text, events(&[START, good, FINISH, DONE]));
        assert_eq!(losses.len(), 1);
        assert!(
            losses[0].starts_with("/runs/0/records/1 a chunk on which clients give up: the key"),
            "{losses:?}"
        );
        let part = |kind: &str, data: &str| format!(r#"{{"type":"data-{kind}","data":{data}}}"#);
        let list = format!(
            r#"[{{"id":"m","role":"assistant","parts":[{},{}]}}]"#,
            part("a", data),
            part("b", "2")
        );
        let (text, losses) = written(&messages(&list));
        assert!(!text.contains("proto") && text.contains("data-b"), "{text}");
        assert!(!losses.is_empty());
    }
}

#[test]
fn an_answer_of_which_nothing_is_left_is_named() {
    let list = r#"[{"id":"u","role":"user","parts":[{"type":"text","text":"a"}]},
        {"id":"a","role":"assistant","parts":[]},
        {"id":"b","role":"assistant","parts":[{"type":"step-start"}]}]"#;
    let (run, losses) = only(&messages(list));
    assert_eq!(shape(&run), ["request: user-prompt"]);
    let what = "an answer without a part that a model message has";
    assert_eq!(
        losses,
        [1, 2].map(|place| format!("/runs/0/records/{place} {what}"))
    );
    let (_, losses) = only(&stream(&events(&[START, FINISH, DONE])));
    assert!(losses.contains(&format!("/runs/0 {what}")), "{losses:?}");
}

#[test]
fn a_block_without_its_end_interrupts_a_stream_as_it_does_a_message() {
    let step = [r#"{"type":"start-step"}"#, r#"{"type":"finish-step"}"#];
    let text = events(&[START, step[0], BEGIN, DELTA, step[1], FINISH, DONE]);
    let (archive, _) = read(&text);
    let (run, losses) = only(&archive);
    assert_eq!(shape(&run), Vec::<String>::new());
    let dropped = "/parts/1 a part that was begun and never ended";
    assert!(
        losses.iter().any(|loss| loss.ends_with(dropped)),
        "{losses:?}"
    );
    let shown = ai_sdk::write_messages(&archive, &plain()).value;
    let message = messages(&shown);
    assert_eq!(reason(&archive).as_deref(), Some("interrupted"));
    assert_eq!(reason(&message), reason(&archive));
    document(&archive);
    // What ended a stream before it was over is still what is said.
    let cut = events(&[START, BEGIN, DELTA]);
    assert_eq!(reason(&read(&cut).0).as_deref(), Some("network_failure"));
    let aborted = events(&[START, BEGIN, DELTA, r#"{"type":"abort"}"#]);
    assert_eq!(reason(&read(&aborted).0).as_deref(), Some("user_cancelled"));
}

/// A delta of a tool's input, as it is spelled.
fn input(delta: &str) -> String {
    format!(r#"{{"type":"tool-input-delta","toolCallId":"c","inputTextDelta":"{delta}"}}"#)
}

#[test]
fn halves_of_a_character_in_neighbouring_deltas_are_joined() {
    let start = r#"{"type":"tool-input-start","toolCallId":"c","toolName":"t"}"#;
    let parts = [
        input(r"{\u0022a\u0022:\u0022x\ud83d"),
        input(r"\ude00\ud83d"),
        input(r"\uDE01y\u0022}"),
    ];
    let text = events(&[START, start, &parts[0], &parts[1], &parts[2], FINISH]);
    let (archive, losses) = read(&text);
    assert_eq!(
        losses,
        ["/2 where 3 deltas begin, joined for each has but half of a character"]
    );
    assert_eq!(archive.runs[0].records.len(), 4);
    let delta = archive.runs[0].records[2].json();
    let expected = Object::new()
        .with("type", "tool-input-delta")
        .with("toolCallId", "c")
        .with("inputTextDelta", "{\"a\":\"x😀😁y\"}");
    assert_eq!(delta, expected.into());
}

#[test]
fn other_halves_of_a_character_are_refused() {
    let other = input(r"\ude00").replace("\"c\"", "\"d\"");
    let data = r#"{"type":"data-a","data":"\ud83d"}"#;
    for stream in [
        vec![input(r"\ud83d")],
        vec![input(r"\ude00"), input(r"\ud83d")],
        vec![input(r"\ud83d"), other],
        vec![input(r"\ud83d"), input("x")],
        vec![input(r"\ud83dx"), input(r"\ude00")],
        vec![input(r"\ud83d"), DONE.to_owned(), input(r"\ude00")],
        vec![data.to_owned(), data.replace("d83d", "de00")],
    ] {
        let stream: Vec<&str> = stream.iter().map(String::as_str).collect();
        let refused = ai_sdk::read_stream(&events(&stream), &options()).unwrap_err();
        assert!(refused.to_string().contains("surrogate"), "{refused}");
    }
}

proptest! {
    #[test]
    fn a_stream_comes_back_wherever_it_says_that_it_is_over(
        data in prop::collection::vec(prop::sample::select(vec![START, DONE, DONE, FINISH]), 1..9),
    ) {
        let text = events(&data);
        let (archive, losses) = read(&text);
        prop_assert_eq!(losses, Vec::<String>::new());
        prop_assert_eq!(written(&again(&archive)), (text, Vec::new()));
        let (run, _) = only(&archive);
        prop_assert_eq!(run.interruption.is_none(), data.contains(&DONE) || data.contains(&FINISH));
    }

    #[test]
    fn a_text_cut_between_any_code_units_is_the_text(
        text in "[a\"\\\\é😀😁]{0,12}",
        cuts in prop::collection::vec(1usize..4, 1..8),
    ) {
        let mut rest: &[u16] = &text.encode_utf16().collect::<Vec<u16>>();
        let mut data = vec![START.to_owned()];
        for cut in cuts.iter().cycle() {
            let (piece, after) = rest.split_at((*cut).min(rest.len()));
            let spelled: Vec<String> = piece.iter().map(|unit| format!("\\u{unit:04x}")).collect();
            data.push(input(&spelled.concat()));
            rest = after;
            if rest.is_empty() {
                break;
            }
        }
        let data: Vec<&str> = data.iter().map(String::as_str).collect();
        let (archive, _) = read(&events(&data));
        let records = archive.runs[0].records.iter().map(SourceText::json);
        let deltas: Vec<String> = records
            .filter_map(|chunk| Some(chunk.get("inputTextDelta")?.as_str()?.to_owned()))
            .collect();
        prop_assert_eq!(deltas.concat(), text);
    }
}
