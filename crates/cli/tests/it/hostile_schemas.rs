//! JSON Schemas that once took the server down, in requests and in logs.

use crate::support::server::Server;
use serde_json::{Map, Value, json};
use std::path::Path;
use std::process::Command;

/// A log of version 27bb77e whose last run has a client tool with a schema of 3,000 references in a
/// row: that version overflowed its stack at each start.
const OLD_LOG: &str = "tests/fixtures/deep_schema_27bb77e.db.gz";

fn unpacked(data: &Path) {
    let unpacked = Command::new("gzip")
        .args(["-dc", OLD_LOG])
        .output()
        .unwrap();
    assert!(unpacked.status.success());
    std::fs::write(data.join("loomline.db"), unpacked.stdout).unwrap();
}

fn chain(n: usize, link: impl Fn(Value) -> Value, last: &str) -> Value {
    let next = |n: usize| json!({"$ref": format!("#/$defs/a{n}")});
    let definitions = (0..n).map(|n| (format!("a{n}"), link(next(n + 1))));
    let mut definitions: Map<String, Value> = definitions.collect();
    definitions.insert(format!("a{n}"), json!({ "type": last }));
    json!({"type": "object", "$defs": definitions, "properties": {"x": {"$ref": "#/$defs/a0"}}, "required": ["x"]})
}

/// The schema that overflowed the stack, and the one that never ended.
fn proofs_of_concept() -> [Value; 2] {
    let deep = |next: Value| json!({"allOf": [{"anyOf": [{"allOf": [next, {"minLength": 0}]}, {"const": 0}, {"const": 1}]}, {"maxLength": 99}]});
    let wide = |next: Value| json!({"anyOf": [{"allOf": [next, {"type": "integer"}]}, {"allOf": [next, {"type": "boolean"}]}, next]});
    [chain(10_000, deep, "string"), chain(30, wide, "null")]
}

#[test]
fn a_log_with_a_deep_schema_recovers_to_a_failed_run() {
    let home = tempfile::tempdir().unwrap();
    unpacked(home.path());
    let mut server = Server::start(home.path(), None, &[]);
    server.rest("poisoned");
    let log = server.log("poisoned");
    let text = serde_json::to_string(&log).unwrap();
    assert!(text.contains("the parameters of the tool \\\"boom\\\" are no usable JSON Schema"));
    server.stop();

    let mut server = Server::start(home.path(), None, &[]);
    server.rest("poisoned");
    assert_eq!(server.log("poisoned"), log);
    let path = "/api/v1/threads/poisoned/messages";
    server
        .post(path, &json!({"content": "hello again"}))
        .unwrap();
    server.rest("poisoned");
    let text = serde_json::to_string(&server.log("poisoned")).unwrap();
    assert!(text.contains("You said: hello again"), "{text}");
    server.stop();
}

#[test]
fn both_proofs_of_concept_are_refused_and_leave_nothing() {
    let home = tempfile::tempdir().unwrap();
    let mut server = Server::start(home.path(), None, &[]);
    for schema in proofs_of_concept() {
        let function =
            json!({"type": "function", "function": {"name": "boom", "parameters": schema}});
        for (path, body) in [
            (
                "/v1/responses",
                json!({"model": "demo", "input": "boom now", "background": true,
                "tools": [{"type": "function", "name": "boom", "parameters": schema}],
                "tool_choice": {"type": "function", "name": "boom"}}),
            ),
            (
                "/v1/threads/runs",
                json!({"assistant_id": "demo", "tools": [function],
                "thread": {"messages": [{"role": "user", "content": "boom now"}]}}),
            ),
            (
                "/ag-ui",
                json!({"threadId": "poc", "runId": "r1", "state": {}, "context": [], "forwardedProps": {},
                "tools": [{"name": "boom", "description": "d", "parameters": schema}],
                "messages": [{"id": "u1", "role": "user", "content": "boom now"}]}),
            ),
        ] {
            let refused = server.post(path, &body);
            assert!(
                matches!(refused, Err(ureq::Error::StatusCode(400 | 422))),
                "{path} {refused:?}"
            );
        }
    }
    let threads = server.get("/api/v1/threads").unwrap();
    assert_eq!(threads["threads"], json!([]));
    server.stop();
    let mut server = Server::start(home.path(), None, &[]);
    assert_eq!(server.get("/api/v1/threads").unwrap(), threads);
    server.stop();
}
