//! What the real libraries recorded.

use super::{again, document, options, plain, through_browser, trusting};
use crate::ui_streams::{self, chunks_of, files, json, recorded};
use loomline_interop::ai_sdk::{self, Major, Reducer};
use loomline_interop::archive::Archive;
use loomline_interop::convert::{ReadOptions, WriteOptions};
use loomline_interop::{Converted, pydantic_ai};
use std::path::{Path, PathBuf};
use thread::Json;

/// A message as a browser has it.
fn in_javascript(json: &Json) -> serde_json::Value {
    ui_streams::in_javascript(&through_browser(json))
}

/// Every recorded stream, with the major version it is from.
fn streams() -> Vec<(PathBuf, u8)> {
    let mut all = Vec::new();
    let Some(folder) = recorded("ai-sdk") else {
        return all;
    };
    for (under, major) in [("", 7), ("v6", 6), ("v5", 5)] {
        let found = files(&folder.join(under), ".sse");
        all.extend(found.into_iter().map(|path| (path, major)));
    }
    for path in files(&recorded("pai-adapter").unwrap(), ".sse") {
        // The client that built their messages is the newest, whatever the server wrote for.
        if !path.to_string_lossy().contains(".ag_ui.") {
            all.push((path, 7));
        }
    }
    assert!(all.len() > 90, "{}", all.len());
    all
}

fn of(major: u8) -> ReadOptions {
    ReadOptions {
        ai_sdk: major,
        thread_id: Some("7c7e9d0a-5c1f-4f43-9a53-0c6f0a6b6f01".to_owned()),
        ..options()
    }
}

fn to(major: u8) -> WriteOptions {
    WriteOptions {
        ai_sdk: major,
        ..plain()
    }
}

/// The messages before a recorded stream, and the one that the client built from it.
fn around(path: &Path) -> Option<(Option<Json>, Json)> {
    let beside = |ending: &str| {
        let name = path.to_string_lossy().replace(".sse", ending);
        let path = PathBuf::from(name);
        path.exists().then(|| json(&path))
    };
    let ui = beside(".ui.json")?;
    let built = ui.get("final").or_else(|| ui.get("client_final_message"))?;
    let request = beside(".request.json");
    let asked = request.as_ref().and_then(|request| request.get("messages"));
    let before = ui.get("history").or(asked).cloned();
    Some((before, built.clone()))
}

/// A stream as a client of this version takes it, chunk by chunk.
fn reduced(stream: &str, major: u8, path: &Path) -> Reducer {
    let mut reducer = Reducer::new(Major::of(major).unwrap(), None).checked();
    for chunk in chunks_of(stream.as_bytes()) {
        reducer
            .push(&chunk)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
    reducer
}

#[test]
fn a_recorded_stream_is_given_back_chunk_by_chunk() {
    for (path, major) in streams() {
        let text = std::fs::read_to_string(&path).unwrap();
        let archive = again(&ai_sdk::read_stream(&text, &of(major)).unwrap().value);
        let Converted { value, losses } = ai_sdk::write_stream(&archive, &to(major));
        assert_eq!(losses, [], "{}", path.display());
        assert_eq!(
            chunks_of(value.as_bytes()),
            chunks_of(text.as_bytes()),
            "{}",
            path.display()
        );
        assert_eq!(
            value.contains("[DONE]"),
            text.contains("[DONE]"),
            "{}",
            path.display()
        );
    }
}

#[test]
fn a_recorded_stream_makes_the_message_that_the_client_made() {
    let mut n = 0;
    for (path, major) in streams() {
        let Some((before, built)) = around(&path) else {
            continue;
        };
        let text = std::fs::read_to_string(&path).unwrap();
        let before = before.unwrap_or_else(|| Json::Array(Vec::new()));
        let n_before = before.as_array().unwrap().len();
        let read = ai_sdk::read_messages(&before.to_text(), &of(major));
        let mut archive = read.unwrap().value;
        let _ = ai_sdk::append_stream(&mut archive, &text, &of(major)).unwrap();
        let archive = again(&archive);
        document(&archive);
        let shown = ai_sdk::ui_messages(&archive, &to(major)).value;
        let continued = before
            .as_array()
            .unwrap()
            .last()
            .is_some_and(|last| last.get("role").and_then(Json::as_str) == Some("assistant"));
        if built.is_null() {
            assert_eq!(shown.len(), n_before, "{}", path.display());
            continue;
        }
        let last = shown.last().unwrap();
        assert_eq!(
            in_javascript(last),
            in_javascript(&built),
            "{} {continued}",
            path.display()
        );
        n += 1;
    }
    assert!(n > 70 || streams().is_empty(), "{n}");
}

#[test]
fn server_and_client_derive_the_same_document_from_a_recorded_stream() {
    for (path, major) in streams() {
        let text = std::fs::read_to_string(&path).unwrap();
        let server = ai_sdk::read_stream(&text, &of(major)).unwrap().value;
        let server = document(&server);
        let chunks = Json::Array(chunks_of(text.as_bytes())).to_text();
        let mut client = ai_sdk::read_stream(&chunks, &of(major)).unwrap().value;
        let done = text.contains("[DONE]");
        client.runs[0].head.insert("done", done);
        assert_eq!(document(&client), server, "{}", path.display());
    }
}

#[test]
fn recorded_messages_are_given_back_and_make_the_stream_that_makes_them() {
    for (path, major) in streams() {
        let Some((before, built)) = around(&path) else {
            continue;
        };
        let mut all = before.and_then(Json::into_array).unwrap_or_default();
        if !built.is_null() {
            all.retain(|message| message.get("id") != built.get("id"));
            all.push(built.clone());
        }
        let text = Json::Array(all).to_text();
        let archive = ai_sdk::read_messages(&text, &of(major)).unwrap().value;
        let archive = again(&archive);
        document(&archive);
        let Converted { value, losses } = ai_sdk::write_messages(&archive, &to(major));
        assert_eq!((value, losses), (text, Vec::new()), "{}", path.display());
        if built.is_null() {
            continue;
        }
        let Converted { value, losses } = ai_sdk::write_stream(&archive, &to(major));
        let reducer = reduced(&value, major, &path);
        let rebuilt = reducer.message();
        let told: Vec<&str> = losses
            .iter()
            .map(|loss| loss.what.as_str())
            .filter(|what| !what.contains("before the last answer"))
            .collect();
        assert_eq!(told, Vec::<&str>::new(), "{}", path.display());
        assert_eq!(
            in_javascript(&rebuilt),
            in_javascript(&built),
            "{}",
            path.display()
        );
    }
}

/// The histories of the real library.
fn histories() -> Vec<PathBuf> {
    let mut all = Vec::new();
    for under in [
        "pydantic-ai",
        "pydantic-ai/v1.0.18",
        "pydantic-ai/v1.107.10",
        "pydantic-ai-replay",
        "pai-adapter",
    ] {
        let Some(folder) = recorded(under) else {
            return all;
        };
        let found = files(&folder, ".json").into_iter();
        all.extend(found.filter(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let other = [
                "index.",
                ".runs.",
                ".children.",
                ".extra.",
                ".ui.",
                ".request.",
            ];
            !other.iter().any(|other| name.contains(other))
        }));
    }
    assert!(all.len() > 150, "{}", all.len());
    all
}

#[test]
fn every_recorded_history_comes_back_exactly_from_its_messages() {
    let (mut shown_bytes, mut history_bytes) = (0, 0);
    for path in histories() {
        let text = std::fs::read_to_string(&path).unwrap();
        let archive = pydantic_ai::read(&text, &options())
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        for major in 5..=7 {
            let to = WriteOptions {
                ai_sdk: major,
                namespace: true,
            };
            let Converted { value, losses } = ai_sdk::ui_messages(&archive, &to);
            assert_eq!(losses, [], "{}", path.display());
            let plain = ai_sdk::ui_messages(&archive, &plain()).value;
            if major == 7 && text.len() > 20_000 {
                let bytes = Json::Array(value.clone()).to_text().len();
                println!("{}: {bytes} for {}", path.display(), text.len());
            }
            shown_bytes += Json::Array(value.clone()).to_text().len();
            history_bytes += text.len() + Json::Array(plain).to_text().len();
            let browser = Json::Array(value.iter().map(through_browser).collect()).to_text();
            let read = ai_sdk::read_messages(&browser, &trusting()).unwrap();
            assert_eq!(read.losses, [], "{}", path.display());
            let back = pydantic_ai::write(&read.value).value;
            assert_eq!(
                Json::parse(&back).unwrap(),
                Json::parse(&text).unwrap(),
                "{}",
                path.display()
            );
            assert_eq!(read.value.root, archive.root, "{}", path.display());
        }
    }
    println!("{shown_bytes} bytes of messages for {history_bytes} of histories and messages");
}

#[test]
fn recorded_histories_are_valid_messages_without_a_namespace_and_make_documents() {
    for path in histories() {
        let text = std::fs::read_to_string(&path).unwrap();
        let archive = pydantic_ai::read(&text, &options()).unwrap();
        for major in 5..=7 {
            let written = ai_sdk::write_messages(&archive, &to(major)).value;
            let read = ai_sdk::read_messages(&written, &of(major)).unwrap();
            assert_eq!(read.losses, [], "{}", path.display());
            document(&again(&read.value));
            let Converted { value, losses } = ai_sdk::write_stream(&archive, &to(major));
            let reducer = reduced(&value, major, &path);
            let built = losses
                .iter()
                .filter(|loss| loss.what.contains("builds it otherwise"));
            let last = ai_sdk::ui_messages(&archive, &to(major))
                .value
                .pop()
                .unwrap();
            if built.count() == 0 && last.get("role").and_then(Json::as_str) == Some("assistant") {
                let built = reducer.message();
                assert_eq!(
                    in_javascript(&built),
                    in_javascript(&last),
                    "{}",
                    path.display()
                );
            } else if major == 7 {
                assert_ne!(
                    last.get("role").and_then(Json::as_str),
                    Some("assistant"),
                    "{} {losses:?}",
                    path.display()
                );
            }
        }
    }
}

#[test]
fn recorded_requests_are_read() {
    let Some(folder) = recorded("pai-adapter") else {
        return;
    };
    let requests = files(&folder, ".request.json");
    assert!(requests.len() > 30, "{}", requests.len());
    for path in requests {
        let text = std::fs::read_to_string(&path).unwrap();
        let read: Archive = ai_sdk::read_messages(&text, &options()).unwrap().value;
        let messages = Json::Array(ai_sdk::ui_messages(&read, &plain()).value);
        assert_eq!(
            Some(&messages),
            json(&path).get("messages"),
            "{}",
            path.display()
        );
    }
}
