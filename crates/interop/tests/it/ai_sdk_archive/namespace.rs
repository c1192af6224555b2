//! What a UI message can't carry, and who is believed about it.

use super::{options, plain, through_browser, trusting};
use loomline_interop::ai_sdk;
use loomline_interop::archive::{Archive, Format};
use loomline_interop::convert::{ReadOptions, WriteOptions};
use loomline_interop::{Converted, pydantic_ai};
use thread::Json;

const HISTORY: &str = r#"[
 {"parts":[{"content":"You are helpful and this is more than thirty-two characters.","timestamp":"2026-01-01T00:00:00Z","part_kind":"system-prompt"},
  {"content":["look",{"data":"__8AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA","media_type":"image/png","vendor_metadata":null,"kind":"binary","identifier":"x"},{"kind":"cache-point","ttl":"5m"}],"timestamp":"2026-01-01T00:00:00Z","part_kind":"user-prompt"}],"timestamp":null,"instructions":"short","kind":"request","run_id":"r","state":"complete"},
 {"parts":[{"content":"@/parts/0 is no reference","id":null,"part_kind":"thinking","signature":"a signature of more than thirty-two characters"},{"tool_name":"t","args":"{\"n\": 1.0}","tool_call_id":"c","part_kind":"tool-call"},{"tool_name":"t","args":"{\"n\": ","tool_call_id":"d","part_kind":"tool-call"}],"usage":{"input_tokens":5,"output_tokens":1},"model_name":"m","timestamp":"2026-01-01T00:00:01Z","kind":"response","run_id":"r"},
 {"parts":[{"tool_name":"t","content":{"big":123456789012345678901234567890,"f":1.0},"tool_call_id":"c","timestamp":"2026-01-01T00:00:02Z","part_kind":"tool-return","outcome":"success"},{"content":"try again","tool_name":"t","tool_call_id":"d","timestamp":"2026-01-01T00:00:02Z","part_kind":"retry-prompt"},{"content":"also say this","timestamp":"2026-01-01T00:00:02Z","part_kind":"user-prompt"}],"kind":"request","run_id":"r"},
 {"parts":[{"content":"done","part_kind":"text"}],"usage":{"input_tokens":9,"output_tokens":2},"model_name":"m","timestamp":"2026-01-01T00:00:03Z","kind":"response","run_id":"r","finish_reason":"stop"},
 {"parts":[],"kind":"request","run_id":"r2"}
]"#;

#[test]
fn a_history_is_shown_and_comes_back_exactly_where_the_namespace_is_trusted() {
    let archive = pydantic_ai::read(HISTORY, &options()).unwrap();
    let Converted {
        value: shown,
        losses,
    } = ai_sdk::ui_messages(&archive, &WriteOptions::default());
    assert_eq!(losses, []);
    let roles: Vec<&str> = shown
        .iter()
        .map(|one| one.get("role").unwrap().as_str().unwrap())
        .collect();
    assert_eq!(roles, ["user", "assistant", "assistant"]);
    let types: Vec<String> = shown[1]
        .get("parts")
        .and_then(Json::as_array)
        .unwrap()
        .iter()
        .map(|part| {
            let of = |key: &str| part.get(key).and_then(Json::as_str).unwrap_or_default();
            format!("{} {}", of("type"), of("state"))
        })
        .collect();
    let expected = [
        "step-start ",
        "reasoning done",
        "tool-t output-available",
        "tool-t output-error",
        "steering-message ",
        "step-start ",
        "text done",
    ];
    assert_eq!(types, expected);
    let browser = Json::Array(shown.iter().map(through_browser).collect()).to_text();
    assert_eq!(
        browser
            .matches("a signature of more than thirty-two")
            .count(),
        1
    );
    assert_eq!(browser.matches("8AAAAAAAAAAAAAAAAAA").count(), 1);
    let Converted {
        value: back,
        losses,
    } = ai_sdk::read_messages(&browser, &trusting()).unwrap();
    assert_eq!(losses, []);
    let written = pydantic_ai::write(&back).value;
    assert_eq!(Json::parse(&written), Json::parse(HISTORY));
    assert_eq!(back.root, archive.root);
}

#[test]
fn a_namespace_from_a_client_is_kept_and_never_believed() {
    let archive = pydantic_ai::read(HISTORY, &options()).unwrap();
    let text = ai_sdk::write_messages(&archive, &WriteOptions::default()).value;
    let Converted {
        value: read,
        losses,
    } = ai_sdk::read_messages(&text, &options()).unwrap();
    assert_eq!(losses.len(), 3);
    assert!(losses[0].what.contains("not believed"), "{losses:?}");
    assert!(read.runs.iter().all(|run| run.format == Format::AiSdkUi));
    let Converted {
        value: again,
        losses,
    } = ai_sdk::write_messages(&read, &plain());
    assert_eq!(Json::parse(&again), Json::parse(&text));
    assert_eq!(losses.len(), 3);
    let edited = text.replace("\"text\":\"done\"", "\"text\":\"dome\"");
    let Converted {
        value: read,
        losses,
    } = ai_sdk::read_messages(&edited, &trusting()).unwrap();
    assert!(
        losses
            .iter()
            .any(|loss| loss.what.contains("changed since")),
        "{losses:?}"
    );
    assert!(read.runs.iter().any(|run| run.format == Format::AiSdkUi));
}

#[test]
fn without_a_namespace_everything_that_is_lost_is_named() {
    let archive = pydantic_ai::read(HISTORY, &options()).unwrap();
    let Converted {
        value: shown,
        losses,
    } = ai_sdk::ui_messages(&archive, &plain());
    assert!(!Json::Array(shown).to_text().contains("loomline"));
    let told: Vec<String> = losses
        .iter()
        .map(|loss| format!("{} {}", loss.pointer, loss.what))
        .collect();
    for expected in [
        "/runs/0/records/0/parts/0 a part of kind \"system-prompt\"",
        "/runs/0/records/0/instructions `instructions` of a request",
        "/runs/0/records/0/parts/1/content/1/identifier `identifier` of a file",
        "/runs/0/records/0/parts/1/content/1/data the alphabet of base64",
        "/runs/0/records/0/parts/1/content/2 content of kind \"cache-point\"",
        "/runs/0/records/1/parts/1/args how arguments are spelled",
        "/runs/0/records/1/run_id `run_id` of a response",
    ] {
        assert!(
            told.iter().any(|loss| loss == expected),
            "{expected}: {told:#?}"
        );
    }
}

/// A document of two agents' turns with what a UI message has no place for.
const DOCUMENT: &str = r#"{"version":"0.0.4","thread_id":"7c7e9d0a-5c1f-4f43-9a53-0c6f0a6b6f01","created_at":"2026-01-05T08:00:00Z","updated_at":"2026-01-05T08:01:00Z","x_cost":1.50,
 "agents":{"6d1e0d5a-1f6b-4a57-9f0e-2a6b1c3d4e5f":{"agent_id":"6d1e0d5a-1f6b-4a57-9f0e-2a6b1c3d4e5f","agent_name":"one","created_at":"2026-01-05T08:00:00Z"}},
 "turns":[
  {"turn_type":"user","submitted_at":"2026-01-05T08:00:00Z","parts":[{"part_kind":"user-prompt","content":"go"}],"client_metadata":{"app:x":12345678901234567890}},
  {"turn_type":"agent","agent_id":"6d1e0d5a-1f6b-4a57-9f0e-2a6b1c3d4e5f","started_at":"2026-01-05T08:00:01Z","completed_at":"2026-01-05T08:00:09Z","completion_status":"complete","messages":[
   {"message_type":"system","timestamp":"2026-01-05T08:00:01Z","event_type":"source.url","event_data":{"sourceId":"s","url":"https://a.example"}},
   {"message_type":"response","timestamp":"2026-01-05T08:00:02Z","agent_id":"6d1e0d5a-1f6b-4a57-9f0e-2a6b1c3d4e5f","parts":[{"part_kind":"text","content":"gone"}]},
   {"message_type":"system","timestamp":"2026-01-05T08:00:03Z","event_type":"data-app-x","event_data":{"n":1.0},"source_agent":"a"}]},
  {"turn_type":"user","submitted_at":"2026-01-05T08:01:00Z","parts":[{"part_kind":"user-prompt","content":["more"]}]}]}"#;

#[test]
fn a_document_is_shown_and_comes_back_exactly_where_the_namespace_is_trusted() {
    let thread = thread::Thread::decode(DOCUMENT).unwrap();
    let archive = Archive::from_thread(&thread);
    let shown = ai_sdk::ui_messages(&archive, &WriteOptions::default()).value;
    let parts: Vec<String> = shown
        .iter()
        .flat_map(|message| message.get("parts").and_then(Json::as_array).unwrap())
        .map(|part| part.get("type").unwrap().to_text())
        .collect();
    let expected = r#""text" "source-url" "step-start" "text" "data-app-x" "text""#;
    assert_eq!(parts.join(" "), expected);
    let browser = Json::Array(shown.iter().map(through_browser).collect()).to_text();
    let Converted {
        value: back,
        losses,
    } = ai_sdk::read_messages(&browser, &trusting()).unwrap();
    assert_eq!(losses, []);
    assert_eq!(back.to_thread().value.encode(), thread.encode());
    let Converted { losses, .. } = ai_sdk::ui_messages(&archive, &plain());
    let told = |what: &str| losses.iter().any(|loss| loss.what.contains(what));
    assert!(told("`source_agent` of a system message") && told("`client_metadata` of a request"));
}

#[test]
fn a_history_that_its_client_gives_back_is_not_told_twice() {
    for ai_sdk in 5..=7 {
        let mut archive = pydantic_ai::read(HISTORY, &options()).unwrap();
        let ours = archive.clone();
        let to = WriteOptions {
            ai_sdk,
            namespace: true,
        };
        let mut shown = ai_sdk::ui_messages(&archive, &to).value;
        let from = ReadOptions {
            ai_sdk,
            ..options()
        };
        let question = r#"{"id":"q","role":"user","parts":[{"type":"text","text":"and?"}]}"#;
        shown.push(Json::parse(question).unwrap());
        let echo = Json::Array(shown.iter().map(through_browser).collect()).to_text();
        ai_sdk::append_messages(&mut archive, &echo, &from).unwrap();
        let (question, before) = archive.runs.split_last().unwrap();
        assert_eq!(before, ours.runs);
        assert_eq!(question.records.len(), 1);
    }
}
