//! Laws over generated messages, streams and histories.

use super::{again, document, messages, options, plain, through_browser, trusting};
use crate::dice::Dice;
use crate::ui_streams::{self, chunks_of};
use loomline_interop::ai_sdk::{self, Major, Reducer, sse};
use loomline_interop::archive::Archive;
use loomline_interop::convert::{ReadOptions, WriteOptions};
use loomline_interop::{Converted, pydantic_ai};
use proptest::prelude::*;
use thread::{Json, Object};

const LONG: &str = "a text with more than thirty-two characters, ž and 😀";

fn value(dice: &mut Dice<'_>) -> Json {
    let values = [
        "{\"b\":1.0,\"a\":[1e2,null]}",
        "\"@/parts/0/text\"",
        "12345678901234567890123",
        "-0",
        "1e400",
        "{\"10\":1,\"9\":2}",
        "\"a text with more than thirty-two characters, ž and 😀\"",
        "[]",
    ];
    Json::parse(dice.pick(&values)).unwrap()
}

/// A message of any version, sensible or not.
fn message(dice: &mut Dice<'_>, n: usize) -> Json {
    let role = dice.pick(&["user", "assistant", "assistant", "system"]);
    let part = |dice: &mut Dice<'_>| {
        let kind = dice.pick(&[
            "text",
            "reasoning",
            "file",
            "source-url",
            "step-start",
            "data-x",
            "tool-t",
            "tool-t",
            "dynamic-tool",
            "custom",
            "hologram",
        ]);
        let part = Object::new().with("type", kind);
        let state = dice.pick(&["streaming", "done", "done"]);
        match kind {
            "text" | "reasoning" => part.with("text", LONG).with("state", state),
            "file" => part
                .with(
                    "url",
                    dice.pick(&["data:image/png;base64,AA==", "https://a.example"]),
                )
                .with("mediaType", dice.pick(&["image/png", "video/mp4", ""])),
            "source-url" => part.with("sourceId", "s").with("url", "https://a.example"),
            "data-x" => part.with("data", value(dice)),
            "tool-t" | "dynamic-tool" => {
                let state = dice.pick(&[
                    "input-streaming",
                    "input-available",
                    "approval-requested",
                    "output-available",
                    "output-available",
                    "output-error",
                    "output-denied",
                ]);
                part.with("toolName", "t")
                    .with("toolCallId", dice.pick(&["c", "d", "e"]))
                    .with("state", state)
                    .with("input", value(dice))
                    .with_some("output", (state == "output-available").then(|| value(dice)))
                    .with_some("errorText", (state == "output-error").then_some("no"))
                    .with_some("providerExecuted", dice.one_in(4).then_some(true))
                    .with_some("preliminary", dice.one_in(6).then_some(true))
            }
            "custom" => part.with("kind", "a.b"),
            _ => part,
        }
    };
    let parts: Vec<Json> = (0..dice.roll(6)).map(|_| part(dice).into()).collect();
    let metadata = dice.pick(&[
        "null",
        "{\"createdAt\":\"2026-01-05T08:00:00Z\"}",
        "{\"usage\":{\"inputTokens\":1}}",
        "3",
    ]);
    let message = Object::new()
        .with("id", format!("m{n}"))
        .with("role", role)
        .with("metadata", Json::parse(metadata).unwrap())
        .with("parts", Json::Array(parts));
    message.into()
}

fn list(bytes: &[u8]) -> String {
    let mut dice = Dice::new(bytes);
    let n = dice.roll(5);
    let all: Vec<Json> = (0..n).map(|n| message(&mut dice, n)).collect();
    Json::Array(all).to_text()
}

/// A history as the library may write it.
fn history(bytes: &[u8]) -> String {
    let mut dice = Dice::new(bytes);
    let mut all = Vec::new();
    for n in 0..=dice.roll(8) {
        let request = dice.one_in(2);
        let part = |dice: &mut Dice<'_>| -> Object {
            let kinds: &[&str] = if request {
                &[
                    "user-prompt",
                    "tool-return",
                    "retry-prompt",
                    "system-prompt",
                ]
            } else {
                &[
                    "text",
                    "tool-call",
                    "tool-call",
                    "thinking",
                    "builtin-tool-call",
                    "builtin-tool-return",
                    "file",
                ]
            };
            let kind = dice.pick(kinds);
            let data = dice.pick(&[
                "-_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA==",
                "+/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA==",
                "AA==",
            ]);
            let binary = || {
                Object::new()
                    .with("data", data)
                    .with("media_type", "image/png")
                    .with("kind", "binary")
            };
            let part = Object::new();
            let at = "2026-01-05T08:00:00Z";
            let id = dice.pick(&["c", "d"]);
            let part = match kind {
                "user-prompt" => {
                    let contents: [Json; 4] = [
                        LONG.into(),
                        "@".into(),
                        Json::Array(vec![LONG.into(), binary().into()]),
                        Json::Array(Vec::new()),
                    ];
                    part.with("content", dice.pick(&contents))
                        .with("timestamp", at)
                }
                "tool-return" | "builtin-tool-return" => part
                    .with("tool_name", "t")
                    .with("content", value(dice))
                    .with("tool_call_id", id)
                    .with("timestamp", at)
                    .with(
                        "outcome",
                        dice.pick(&["success", "failed", "denied", "interrupted"]),
                    ),
                "retry-prompt" => part
                    .with("content", LONG)
                    .with("tool_name", "t")
                    .with("tool_call_id", id)
                    .with("timestamp", at),
                "tool-call" | "builtin-tool-call" => {
                    let args: [Json; 4] = [
                        Json::Null,
                        "{\"a\": ".into(),
                        "{\"a\" : 1.0}".into(),
                        Json::parse("{\"a\":1e2}").unwrap(),
                    ];
                    part.with("tool_name", "t")
                        .with("args", dice.pick(&args))
                        .with("tool_call_id", id)
                }
                "file" => part.with("content", binary()),
                "thinking" => part.with("content", "").with("signature", LONG),
                "system-prompt" => part.with("content", LONG).with("timestamp", at),
                _ => part.with("content", dice.pick(&[LONG, "@@", ""])),
            };
            part.with("part_kind", kind).with("x_unknown", value(dice))
        };
        let parts: Vec<Json> = (0..dice.roll(4)).map(|_| part(&mut dice).into()).collect();
        let message = Object::new()
            .with("parts", Json::Array(parts))
            .with("timestamp", format!("2026-01-05T08:00:0{n}Z"))
            .with("kind", if request { "request" } else { "response" })
            .with("run_id", dice.pick(&[Json::Null, "r1".into(), "r2".into()]))
            .with("state", dice.pick(&["complete", "complete", "interrupted"]));
        all.push(Json::from(message));
    }
    Json::Array(all).to_text()
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..160)
}

fn events(chunks: &[Json], done: bool) -> String {
    let mut text = String::new();
    for chunk in chunks {
        sse::write_event(&chunk.to_text(), &mut text);
    }
    if done {
        sse::write_event(sse::DONE, &mut text);
    }
    text
}

fn of(major: Major) -> (ReadOptions, WriteOptions) {
    let ai_sdk = match major {
        Major::V5 => 5,
        Major::V6 => 6,
        Major::V7 => 7,
    };
    let read = ReadOptions {
        ai_sdk,
        thread_id: Some("7c7e9d0a-5c1f-4f43-9a53-0c6f0a6b6f01".to_owned()),
        ..options()
    };
    (read, WriteOptions { ai_sdk, ..plain() })
}

fn same(one: &Json, other: &Json) -> bool {
    let browser = |json: &Json| ui_streams::in_javascript(&through_browser(json));
    browser(one) == browser(other)
}

/// One change that a client may make to a list, by where and which.
fn edited(list: &Json, dice: &mut Dice<'_>) -> Json {
    let mut messages = list.clone().into_array().unwrap();
    let place = dice.roll(messages.len());
    match dice.roll(4) {
        0 if messages.len() > 1 && place + 1 < messages.len() => {
            messages.remove(place);
        }
        1 => {
            let doubled = messages[place].clone();
            messages.insert(place, doubled);
        }
        2 if messages.len() > 1 => {
            let end = messages.len() - 1;
            messages.swap(place, end);
        }
        _ => {
            let message = messages[place].as_object_mut().unwrap();
            let parts = message.get_mut("parts").unwrap().as_array_mut().unwrap();
            let part = dice.roll(parts.len());
            if dice.one_in(2) {
                let part = parts[part].as_object_mut().unwrap();
                part.insert("edited", true);
            } else {
                parts.remove(part);
            }
        }
    }
    Json::Array(messages)
}

proptest! {
    #[test]
    fn any_list_of_messages_comes_back_and_has_a_document(bytes in bytes()) {
        let text = list(&bytes);
        let archive = again(&messages(&text));
        let written = ai_sdk::write_messages(&archive, &WriteOptions::default());
        prop_assert_eq!(&written.value, &text);
        prop_assert_eq!(written.losses, []);
        prop_assert_eq!(document(&archive), document(&messages(&text)));
    }

    #[test]
    fn any_stream_comes_back_and_server_and_client_derive_one_document(
        bytes in bytes(),
        major in prop::sample::select(vec![Major::V5, Major::V6, Major::V7]),
        done in any::<bool>(),
    ) {
        let chunks = ui_streams::stream(major, &bytes);
        let text = events(&chunks, done);
        prop_assume!(!text.is_empty());
        let (read, write) = of(major);
        let archive = again(&ai_sdk::read_stream(&text, &read).unwrap().value);
        prop_assert_eq!(&ai_sdk::write_stream(&archive, &write).value, &text);
        let server = document(&archive);
        let spelled = text.replace("\n\n", "\r\n\r\n").replace("data: ", ": ping\ndata:");
        let mut client = ai_sdk::read_stream(&spelled, &read).unwrap().value;
        prop_assert_eq!(document(&client), server.clone());
        let listed = Json::Array(chunks).to_text();
        client = ai_sdk::read_stream(&listed, &read).unwrap().value;
        client.runs[0].head.insert("done", done);
        prop_assert_eq!(document(&client), server);
    }

    #[test]
    fn a_message_makes_the_stream_that_makes_it_or_the_report_says_where_not(
        bytes in bytes(),
        major in prop::sample::select(vec![Major::V5, Major::V6, Major::V7]),
    ) {
        let mut reducer = Reducer::new(major, None);
        for chunk in ui_streams::stream(major, &bytes) {
            reducer.push(&chunk).unwrap();
        }
        let message = reducer.message();
        let (read, write) = of(major);
        let text = Json::Array(vec![message.clone()]).to_text();
        let archive = ai_sdk::read_messages(&text, &read).unwrap().value;
        let Converted { value, losses } = ai_sdk::write_stream(&archive, &write);
        let mut reducer = Reducer::new(major, None).checked();
        for chunk in chunks_of(value.as_bytes()) {
            prop_assert!(reducer.push(&chunk).is_ok(), "{}", value);
        }
        let built = reducer.finish().message.unwrap_or_default();
        prop_assert_eq!(losses.is_empty(), same(&built, &message), "{:?} {}", losses, message);
    }

    #[test]
    fn any_history_comes_back_exactly_through_a_browser(bytes in bytes(), major in 5u8..=7) {
        let text = history(&bytes);
        let archive = pydantic_ai::read(&text, &options()).unwrap();
        let to = WriteOptions { ai_sdk: major, namespace: true };
        let Converted { value: shown, losses } = ai_sdk::ui_messages(&archive, &to);
        prop_assert_eq!(losses, []);
        let browser = Json::Array(shown.iter().map(through_browser).collect()).to_text();
        let Converted { value: back, losses } = ai_sdk::read_messages(&browser, &trusting()).unwrap();
        prop_assert_eq!(losses, []);
        prop_assert_eq!(Json::parse(&pydantic_ai::write(&back).value), Json::parse(&text));
        prop_assert_eq!(back.root, archive.root);
    }

    #[test]
    fn no_edit_of_a_client_changes_unnoticed_what_a_trusted_namespace_says(bytes in bytes(), edit in bytes()) {
        let archive: Archive = pydantic_ai::read(&history(&bytes), &options()).unwrap();
        let shown = Json::Array(ai_sdk::ui_messages(&archive, &WriteOptions::default()).value);
        let edited = edited(&shown, &mut Dice::new(&edit));
        let read = ai_sdk::read_messages(&edited.to_text(), &trusting()).unwrap();
        if edited == shown {
            prop_assert_eq!(read.losses, []);
        } else {
            prop_assert!(!read.losses.is_empty(), "{}", edited.to_text());
        }
    }

    #[test]
    fn a_list_that_has_grown_is_the_list(bytes in bytes(), cut in 0usize..5) {
        let whole = Json::parse(&list(&bytes)).unwrap();
        let all = whole.as_array().unwrap();
        let some = all.get(..cut.min(all.len())).unwrap().to_vec();
        let mut archive = messages(&Json::Array(some).to_text());
        ai_sdk::append_messages(&mut archive, &whole.to_text(), &options()).unwrap();
        let written = ai_sdk::write_messages(&archive, &WriteOptions::default()).value;
        prop_assert_eq!(written, whole.to_text());
        let runs = messages(&whole.to_text()).runs;
        prop_assert_eq!(archive.runs, runs);
    }
}
