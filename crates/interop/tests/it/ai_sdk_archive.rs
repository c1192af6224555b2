//! UI messages and streams in and out of archives.

mod laws;
mod namespace;
mod recorded;
mod unlike;

use loomline_interop::Converted;
use loomline_interop::ai_sdk::{self, AiSdkError};
use loomline_interop::archive::{Archive, Format};
use loomline_interop::convert::{AttributedFields, ReadOptions, Trust, WriteOptions};
use loomline_interop::runs::{ModelRun, model_runs};
use thread::{Json, Profile, validate};

pub(super) fn options() -> ReadOptions {
    ReadOptions {
        at: "2026-02-03T04:05:06Z".to_owned(),
        ..ReadOptions::default()
    }
}

pub(super) fn trusting() -> ReadOptions {
    ReadOptions {
        trust: Trust::OwnNamespace,
        ..options()
    }
}

pub(super) fn plain() -> WriteOptions {
    WriteOptions {
        namespace: false,
        ..WriteOptions::default()
    }
}

pub(super) fn messages(text: &str) -> Archive {
    ai_sdk::read_messages(text, &options()).unwrap().value
}

pub(super) fn stream(text: &str) -> Archive {
    ai_sdk::read_stream(text, &options()).unwrap().value
}

pub(super) fn again(archive: &Archive) -> Archive {
    let again = Archive::decode(archive.encode(), &thread::Limits::default()).unwrap();
    assert_eq!(&again, archive);
    again
}

/// Whether the canonical document is valid where it is written; its text.
pub(super) fn document(archive: &Archive) -> String {
    let thread = archive.to_thread().value;
    let wrong: Vec<String> = validate(&thread, Profile::Strict)
        .iter()
        .filter(|violation| violation.severity == thread::Severity::Error)
        .map(ToString::to_string)
        .collect();
    assert_eq!(wrong, Vec::<String>::new(), "{}", thread.encode());
    thread.encode()
}

/// A value as a browser gives it back: numbers are doubles.
pub(super) fn through_browser(json: &Json) -> Json {
    match json {
        Json::Number(number) => match number.as_f64() {
            None => Json::Null,
            #[expect(clippy::cast_possible_truncation, reason = "it is whole and small")]
            Some(double) if double.fract() == 0.0 && double.abs() < 1e15 => {
                Json::from(double as i64)
            }
            Some(double) => thread::Number::from_f64(double).unwrap().into(),
        },
        Json::Array(items) => items.iter().map(through_browser).collect(),
        Json::Object(object) => {
            // Keys that are array indices come first, in their order.
            let index = |key: &str| {
                let number = key.parse::<u32>().ok();
                number.filter(|number| number.to_string() == key)
            };
            let mut members: Vec<_> = object.iter().collect();
            members.sort_by_key(|(key, _)| index(key).map_or(u64::MAX, u64::from));
            let members = members.into_iter();
            Json::object(members.map(|(key, value)| (key, through_browser(value))))
        }
        Json::Null | Json::Bool(_) | Json::String(_) => json.clone(),
    }
}

fn only(archive: &Archive) -> (ModelRun, Vec<String>) {
    let Converted { value, losses } = model_runs(archive);
    let [run] = value.try_into().unwrap();
    let told = losses
        .into_iter()
        .map(|loss| format!("{} {}", loss.pointer, loss.what));
    (run, told.collect())
}

/// The messages of a run, each in short.
fn shape(run: &ModelRun) -> Vec<String> {
    let text = |json: &Json, key: &str| {
        let text = json.get(key).and_then(Json::as_str);
        text.unwrap_or_default().to_owned()
    };
    let messages = run.messages.iter().map(|message| &message.json);
    messages
        .map(|message| {
            if text(message, "message_type") == "system" {
                return text(message, "event_type");
            }
            let parts = message.get("parts").and_then(Json::as_array).unwrap();
            let kinds: Vec<String> = parts.iter().map(|part| text(part, "part_kind")).collect();
            format!("{}: {}", text(message, "kind"), kinds.join(" "))
        })
        .collect()
}

const ANSWERED: &str = r#"[
  {"id":"s","role":"system","parts":[{"type":"text","text":"be kind"}]},
  {"id":"u","role":"user","metadata":{"createdAt":"2026-01-01T10:00:00Z"},"parts":[
    {"type":"text","text":"what is this?"},
    {"type":"file","mediaType":"image/png","url":"data:image/png;base64,AAAA","filename":"a.png"},
    {"type":"file","mediaType":"application/pdf","url":"https://a.example/b.pdf"}]},
  {"id":"a","role":"assistant","metadata":{"createdAt":"2026-01-01T10:00:05Z","model":"m-1","usage":{"inputTokens":7,"outputTokens":3}},"parts":[
    {"type":"data-tp-agent_turn","data":{"n":1}},
    {"type":"step-start"},
    {"type":"reasoning","text":"hm","state":"done","providerMetadata":{"anthropic":{"signature":"sig"}}},
    {"type":"tool-look","toolCallId":"c1","state":"output-available","input":{"x":1.0},"output":[1]},
    {"type":"tool-look","toolCallId":"c2","state":"output-error","rawInput":"{\"x\":","errorText":"bad"},
    {"type":"dynamic-tool","toolName":"web","toolCallId":"c3","state":"output-available","input":{},"output":"w","providerExecuted":true},
    {"type":"tool-drop","toolCallId":"c4","state":"output-denied","input":null,"approval":{"id":"c4","approved":false,"reason":"no"}},
    {"type":"source-url","sourceId":"s1","url":"https://a.example"},
    {"type":"step-start"},
    {"type":"text","text":"a cat","state":"done"},
    {"type":"custom","kind":"a.b"},
    {"type":"text","text":"unfini","state":"streaming"}]}]"#;

#[test]
fn messages_are_kept_as_they_came_and_a_run_begins_at_each_users() {
    let first = ANSWERED.strip_suffix(']').unwrap();
    let later = format!(
        r#"{first},{{"id":"u2","role":"user","parts":[{{"type":"text","text":"and?"}}]}} ]"#
    );
    let archive = again(&messages(&later));
    let sizes: Vec<usize> = archive.runs.iter().map(|run| run.records.len()).collect();
    assert_eq!(sizes, [3, 1]);
    assert_eq!(
        archive.root.get_str("created_at"),
        Some("2026-01-01T10:00:00Z")
    );
    assert_eq!(
        archive.root.get_str("updated_at"),
        Some("2026-01-01T10:00:05Z")
    );
    let written = ai_sdk::write_messages(&archive, &WriteOptions::default());
    assert_eq!(Json::parse(&written.value), Json::parse(&later));
    assert_eq!(written.losses, []);
    let body = format!(r#"{{"id":"chat","messages":{later},"trigger":"submit-message"}}"#);
    assert_eq!(messages(&body).runs, archive.runs);
}

#[test]
fn every_part_of_a_message_has_its_place_in_the_model_messages() {
    let (run, losses) = only(&messages(ANSWERED));
    let expected = [
        "request: system-prompt user-prompt",
        "data-tp-agent_turn",
        "response: thinking tool-call tool-call builtin-tool-call builtin-tool-return tool-call",
        "request: tool-return tool-return tool-return",
        "source.url",
        "response: text custom:ai-sdk.custom",
    ];
    assert_eq!(shape(&run), expected);
    let at = |message: usize, pointer: &str| {
        let found = run.messages[message].json.pointer(pointer);
        found.unwrap_or_else(|| panic!("{pointer}")).to_text()
    };
    let prompt = r#"["what is this?",{"data":"AAAA","media_type":"image/png","kind":"binary","filename":"a.png"},{"url":"https://a.example/b.pdf","kind":"document-url","media_type":"application/pdf"}]"#;
    assert_eq!(at(0, "/parts/1/content"), prompt);
    assert_eq!(at(2, "/parts/0/signature"), r#""sig""#);
    assert_eq!(at(2, "/parts/1/args"), r#"{"x":1.0}"#);
    assert_eq!(at(2, "/parts/2/args"), r#""{\"x\":""#);
    assert_eq!(at(3, "/parts/0/outcome"), r#""success""#);
    assert_eq!(at(3, "/parts/1/content"), r#""bad""#);
    assert_eq!(at(3, "/parts/1/status"), r#""error""#);
    assert_eq!(at(3, "/parts/2/outcome"), r#""denied""#);
    assert_eq!(at(4, "/event_data/url"), r#""https://a.example""#);
    assert_eq!(at(5, "/usage"), r#"{"input_tokens":7,"output_tokens":3}"#);
    assert_eq!(at(5, "/model_name"), r#""m-1""#);
    let expected = [
        "/runs/0/records/2/parts/5/type that a tool is dynamic",
        "/runs/0/records/2/parts/10 a part of a kind that no model message has, carried as it is",
        "/runs/0/records/2/parts/11 a part that was begun and never ended",
    ];
    assert_eq!(losses, expected);
}

#[test]
fn metadata_that_no_model_message_has_is_named() {
    let metadata =
        r#"{"createdAt":1760000000000,"usage":{"inputTokens":1,"x":2},"model":"m","rating":5}"#;
    let text = format!(
        r#"[{{"id":"a","role":"assistant","metadata":{metadata},"parts":[{{"type":"text","text":"hi"}}]}}]"#
    );
    let (run, losses) = only(&messages(&text));
    let expected = ["createdAt", "usage", "rating"];
    let expected = expected
        .map(|key| format!("/runs/0/records/0/metadata/{key} a member of a message's metadata"));
    assert_eq!(losses, expected);
    let at = run.messages[0].json.get("timestamp").and_then(Json::as_str);
    assert_eq!(at, Some("2026-02-03T04:05:06Z"));
}

#[test]
fn what_is_no_message_is_refused_where_it_is_wrong() {
    let told = |text: &str| match ai_sdk::read_messages(text, &options()) {
        Err(error @ AiSdkError::Shape { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    };
    assert_eq!(
        told("1"),
        r#""": expected a list of messages, found number"#
    );
    assert_eq!(
        told("{}"),
        r#""": expected the member `messages`, a list, found none"#
    );
    assert_eq!(
        told(r#"[{"id":"a","role":"bot","parts":[]}]"#),
        r#""/0/role": expected `system`, `user` or `assistant`, found "bot""#
    );
    assert_eq!(
        told(r#"[{"id":"a","role":"user","parts":[{"type":"text"}]}]"#),
        r#""/0/parts/0/text": expected a string, found none"#
    );
    let call = r#"[{"id":"a","role":"assistant","parts":[{"type":"tool-x","toolCallId":"c","state":"x"}]}]"#;
    assert_eq!(
        told(call),
        r#""/0/parts/0/state": expected a state of a call, found "x""#
    );
    let unknown = r#"[{"id":"a","role":"user","parts":[{"type":"hologram","n":1}]}]"#;
    assert!(ai_sdk::read_messages(unknown, &options()).is_ok());
    let chunk = ai_sdk::read_stream("data: {\"type\":1}\n\n", &options()).unwrap_err();
    assert_eq!(
        chunk.to_string(),
        r#""/0/type": expected the type of a chunk, found number"#
    );
}

const TOOLS: &str = concat!(
    "data: {\"type\":\"start\",\"messageId\":\"m\"}\n\n",
    "data: {\"type\":\"start-step\"}\n\n",
    "data: {\"type\":\"tool-input-available\",\"toolCallId\":\"c\",\"toolName\":\"t\",\"input\":{ \"a\":1}}\n\n",
    "data: {\"type\":\"finish-step\"}\n\n",
    "data: {\"type\":\"finish\",\"finishReason\":\"tool-calls\"}\n\n",
    "data: [DONE]\n\n",
);
const REST: &str = concat!(
    "data: {\"type\":\"start\",\"messageId\":\"m\"}\n\n",
    "data: {\"type\":\"tool-output-available\",\"toolCallId\":\"c\",\"output\":2}\n\n",
    "data: {\"type\":\"start-step\"}\n\n",
    "data: {\"type\":\"text-start\",\"id\":\"t\"}\n\n",
    "data: {\"type\":\"text-delta\",\"id\":\"t\",\"delta\":\"two\"}\n\n",
    "data: {\"type\":\"text-end\",\"id\":\"t\"}\n\n",
    "data: {\"type\":\"finish-step\"}\n\n",
    "data: {\"type\":\"finish\",\"finishReason\":\"stop\"}\n\n",
    "data: [DONE]\n\n",
);

#[test]
fn a_stream_that_goes_on_with_a_message_answers_its_calls() {
    let mut archive = stream(TOOLS);
    assert_eq!(ai_sdk::write_stream(&archive, &plain()).value, TOOLS);
    let losses = ai_sdk::append_stream(&mut archive, REST, &options()).unwrap();
    assert_eq!(losses, []);
    let archive = again(&archive);
    let Converted { value: runs, .. } = model_runs(&archive);
    let shapes: Vec<Vec<String>> = runs.iter().map(shape).collect();
    assert_eq!(shapes[0], ["response: tool-call"]);
    assert_eq!(shapes[1], ["request: tool-return", "response: text"]);
    assert_eq!(
        runs[1].messages[1].json.pointer("/finish_reason"),
        Some(&"stop".into())
    );
    let shown = ai_sdk::ui_messages(&archive, &plain()).value;
    assert_eq!(shown.len(), 1);
    let parts = r#"[{"type":"step-start"},{"type":"tool-t","toolCallId":"c","state":"output-available","input":{"a":1},"output":2},{"type":"step-start"},{"type":"text","text":"two","state":"done"}]"#;
    assert_eq!(shown[0].get("parts").unwrap().to_text(), parts);
    assert_eq!(ai_sdk::write_stream(&archive, &plain()).value, REST);
    document(&archive);
}

#[test]
fn a_stream_of_another_message_begins_one() {
    let mut archive = stream(TOOLS);
    let other = REST
        .replace("\"m\"", "\"n\"")
        .replace("tool-output-available", "data-x");
    let other = other.replace("\"output\":2", "\"data\":2");
    ai_sdk::append_stream(&mut archive, &other, &options()).unwrap();
    let shown = ai_sdk::ui_messages(&archive, &plain()).value;
    assert_eq!(shown.len(), 2);
}

#[test]
fn how_a_stream_ended_is_how_its_run_ended() {
    let reason = |tail: &str| {
        let text = format!(
            "data: {{\"type\":\"text-start\",\"id\":\"t\"}}\n\ndata: {{\"type\":\"text-end\",\"id\":\"t\"}}\n\n{tail}"
        );
        let archive = stream(&text);
        document(&archive);
        let (run, _) = only(&archive);
        let events = shape(&run).len() - 1;
        (run.interruption.map(|why| why.reason), events)
    };
    let said = |reason: &str| Some(reason.to_owned());
    let error = "data: {\"type\":\"error\",\"errorText\":\"down\"}\n\n";
    let finish = "data: {\"type\":\"finish\"}\n\n";
    assert_eq!(reason(finish), (None, 0));
    assert_eq!(reason("data: [DONE]\n\n"), (None, 0));
    assert_eq!(reason(""), (said("network_failure"), 0));
    assert_eq!(
        reason("data: {\"type\":\"abort\"}\n\ndata: [DONE]\n\n"),
        (said("user_cancelled"), 0)
    );
    assert_eq!(reason(&format!("{error}{finish}")), (said("error"), 1));
}

#[test]
fn data_in_the_form_that_no_client_takes_is_read_and_never_written() {
    let text = "data: {\"type\":\"data\",\"name\":\"data-tp-thread_end\",\"value\":{\"reason\":\"x\"}}\n\ndata: [DONE]\n\n";
    let archive = stream(text);
    let (run, losses) = only(&archive);
    assert_eq!(shape(&run), ["data-tp-thread_end"]);
    assert_eq!(losses.len(), 1, "{losses:?}");
    let written = ai_sdk::write_stream(&archive, &plain()).value;
    let expected =
        "data: {\"type\":\"data-tp-thread_end\",\"data\":{\"reason\":\"x\"}}\n\ndata: [DONE]\n\n";
    assert_eq!(written, expected);
}

#[test]
fn a_newer_list_supersedes_what_it_has_otherwise() {
    let list = |texts: &[&str]| -> String {
        let message = |(place, text): (usize, &&str)| {
            let role = ["user", "assistant"][place % 2];
            format!(
                r#"{{"id":"{place}","role":"{role}","parts":[{{"type":"text","text":"{text}"}}]}}"#
            )
        };
        let all: Vec<String> = texts.iter().enumerate().map(message).collect();
        format!("[{}]", all.join(","))
    };
    let mut archive = messages(&list(&["a", "b", "c", "d"]));
    let append = |archive: &mut Archive, texts: &[&str]| {
        ai_sdk::append_messages(archive, &list(texts), &options()).unwrap();
        let shown = ai_sdk::write_messages(archive, &plain()).value;
        assert_eq!(shown, list(texts));
        again(archive);
    };
    append(&mut archive, &["a", "b", "c", "d", "e"]);
    assert!(
        archive
            .runs
            .iter()
            .all(|run| !run.head.contains_key("superseded"))
    );
    append(&mut archive, &["a", "b", "c", "other"]);
    let old = |archive: &Archive, run: usize, pointer: &str| {
        let head = Json::from(archive.runs[run].head.clone());
        head.pointer(pointer).cloned()
    };
    assert_eq!(old(&archive, 1, "/superseded/0/at"), Some(1u64.into()));
    assert_eq!(
        old(&archive, 1, "/superseded/0/records/0/parts/0/text"),
        Some("d".into())
    );
    assert_eq!(
        old(&archive, 1, "/superseded/1/records/0/id"),
        Some("4".into())
    );
    append(&mut archive, &["a", "b"]);
    assert_eq!(archive.runs.len(), 1);
    assert_eq!(
        old(&archive, 0, "/superseded/0/head/superseded/0/at"),
        Some(1u64.into())
    );
    let new = r#"[{"id":"9","role":"user","parts":[]}]"#;
    ai_sdk::append_messages(&mut archive, new, &options()).unwrap();
    assert_eq!(archive.runs.len(), 2);
}

#[test]
fn a_stream_that_its_client_gives_back_is_not_told_twice() {
    let mut archive = stream(TOOLS);
    let mut shown = ai_sdk::ui_messages(&archive, &plain()).value;
    let ours = archive.clone();
    let echo = Json::Array(shown.iter().map(through_browser).collect()).to_text();
    ai_sdk::append_messages(&mut archive, &echo, &options()).unwrap();
    assert_eq!(archive, ours);
    let part = shown[0].as_object_mut().unwrap().get_mut("parts").unwrap();
    let part = part.as_array_mut().unwrap()[1].as_object_mut().unwrap();
    part.insert("state", "output-available");
    part.insert("output", 5u64);
    ai_sdk::append_messages(&mut archive, &Json::Array(shown).to_text(), &options()).unwrap();
    let formats: Vec<Format> = archive.runs.iter().map(|run| run.format).collect();
    assert_eq!(formats, [Format::AiSdkUi]);
    let (run, _) = only(&archive);
    assert_eq!(shape(&run), ["response: tool-call", "request: tool-return"]);
}

#[test]
fn older_clients_get_what_they_know() {
    let archive = messages(ANSWERED);
    for (major, n_types) in [(7, 0), (6, 1), (5, 2)] {
        let to = WriteOptions {
            ai_sdk: major,
            ..plain()
        };
        let Converted { value, losses } = ai_sdk::write_messages(&archive, &to);
        assert_eq!(value.contains("\"custom\""), major == 7);
        assert_eq!(value.contains("output-denied"), major > 5);
        assert!(losses.len() >= n_types, "{losses:?}");
        assert_eq!(losses.is_empty(), major == 7);
    }
}

#[test]
fn who_ran_is_told_by_the_count_of_messages_however_large_it_is() {
    let user = |id: &str| {
        format!(r#"{{"id":"{id}","role":"user","parts":[{{"type":"text","text":"hi"}}]}}"#)
    };
    let list = format!("[{},{},{}]", user("a"), user("b"), user("c"));
    let who = |agent: &str, n_messages| AttributedFields {
        agent: agent.to_owned(),
        agent_id: Some(agent.to_owned()),
        n_messages,
        ..AttributedFields::default()
    };
    let ran = |attribution: Vec<AttributedFields>| -> Vec<Option<String>> {
        let options = ReadOptions {
            attribution,
            ..options()
        };
        let archive = ai_sdk::read_messages(&list, &options).unwrap().value;
        archive.runs.into_iter().map(|run| run.agent_id).collect()
    };
    let [ada, bo, cy] = ["ada", "bo", "cy"].map(|id| Some(id.to_owned()));
    assert_eq!(
        ran(vec![
            who("ada", Some(1)),
            who("cy", None),
            who("bo", Some(1))
        ]),
        [ada.clone(), bo.clone(), cy]
    );
    assert_eq!(
        ran(vec![who("ada", Some(1)), who("bo", Some(usize::MAX))]),
        [ada, bo.clone(), bo]
    );
}
