//! Large contents of documents in a directory (TP-17).

use crate::support::cli::Home;
use serde_json::{Value, json};

/// A document whose two tool results are equal and large.
fn document() -> String {
    let words = "warp and weft ".repeat(10_000);
    let call = |id: &str| json!({"part_kind": "tool-call", "tool_name": "read", "tool_call_id": id, "args": {}});
    let result = |id: &str| {
        json!({"part_kind": "tool-return", "tool_name": "read", "tool_call_id": id, "content": {"words": words},
            "timestamp": "2026-01-05T08:00:01Z"})
    };
    let history = json!([
        {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "Read it twice.",
            "timestamp": "2026-01-05T08:00:00Z"}]},
        {"kind": "response", "timestamp": "2026-01-05T08:00:01Z", "parts": [call("a"), call("b")]},
        {"kind": "request", "parts": [result("a"), result("b")]},
        {"kind": "response", "timestamp": "2026-01-05T08:00:02Z",
            "parts": [{"part_kind": "text", "content": "I have."}]},
    ]);
    history.to_string()
}

/// A home with two threads that have the same large results.
fn home() -> Home {
    let home = Home::new();
    let file = home.file("history.json", &document());
    let file = file.to_str().unwrap();
    for key in ["one", "two"] {
        home.ok(&["import", "--from", "pydantic-ai", file, "--thread", key]);
    }
    home
}

fn files(home: &Home) -> Vec<String> {
    let files = std::fs::read_dir(home.path("contents")).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    names.collect()
}

fn turns(text: &str) -> Value {
    let mut document: Value = serde_json::from_str(text).unwrap();
    document["turns"].take()
}

fn moves_and_restores(home: &Home) {
    let contents = home.path("contents");
    let contents = contents.to_str().unwrap();
    let whole = home.ok(&["export", "--thread", "one"]);
    let small = home.ok(&["export", "--thread", "one", "--contents", contents]);
    home.ok(&["export", "--thread", "two", "--contents", contents]);
    assert!(
        whole.len() > 250_000 && small.len() < 10_000,
        "{} {}",
        whole.len(),
        small.len()
    );
    assert_eq!(small.matches("loomline+sha256:").count(), 2);
    assert_eq!(files(home).len(), 1, "four equal results of two threads");
    let file = home.file("small.json", &small);
    let file = file.to_str().unwrap();
    home.ok(&[
        "import",
        "--from",
        "thread",
        file,
        "--contents",
        contents,
        "--thread",
        "three",
    ]);
    let restored = home.ok(&["export", "--thread", "three"]);
    assert_eq!(turns(&restored), turns(&whole));
    home.ok(&["threads", "delete", "three", "--yes"]);
}

#[test]
fn equal_contents_of_exported_threads_are_stored_once_in_a_directory() {
    let home = home();
    moves_and_restores(&home);
    let _server = home.server();
    moves_and_restores(&home);
}

#[test]
fn a_missing_or_changed_content_is_refused() {
    let home = home();
    let contents = home.path("contents");
    let contents = contents.to_str().unwrap();
    let small = home.ok(&["export", "--thread", "one", "--contents", contents]);
    let file = home.file("small.json", &small);
    let import = [
        "import",
        "--from",
        "thread",
        file.to_str().unwrap(),
        "--contents",
        contents,
        "--thread",
        "new",
    ];
    let content = home.path("contents").join(&files(&home)[0]);
    let text = std::fs::read_to_string(&content).unwrap();
    std::fs::write(&content, text.replacen("warp", "wrap", 1)).unwrap();
    let changed = home.run(&import);
    assert_eq!(changed.code, 1);
    assert!(changed.err.contains("has the hash"), "{}", changed.err);
    home.ok(&["export", "--thread", "one", "--contents", contents]);
    assert_eq!(
        std::fs::read_to_string(&content).unwrap(),
        text,
        "an export repairs it"
    );
    std::fs::remove_file(&content).unwrap();
    let missing = home.run(&import);
    assert_eq!(missing.code, 1);
    assert!(
        missing.err.contains("the store has no sha256:"),
        "{}",
        missing.err
    );
    assert_eq!(
        home.run(&["threads", "show", "new"]).code,
        4,
        "nothing was imported"
    );
}

#[test]
fn only_documents_refer_to_contents() {
    let home = home();
    let contents = home.path("contents");
    let contents = contents.to_str().unwrap();
    let refused = home.run(&[
        "export",
        "--thread",
        "one",
        "--to",
        "archive",
        "--contents",
        contents,
    ]);
    assert_eq!(refused.code, 2);
    assert!(
        refused.err.contains("--contents needs the format `thread`"),
        "{}",
        refused.err
    );
    assert!(!home.path("contents").exists());
}
