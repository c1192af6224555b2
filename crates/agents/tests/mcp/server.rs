//! What the tests of MCP spawn: a server over stdio. The first argument says how it behaves.
#![expect(
    clippy::unwrap_used,
    reason = "a helper that fails is a test that fails"
)]

mod toys;

use rmcp::ServiceExt;
use serde_json::{Value, json};
use std::io::Write;

fn main() {
    let mode = std::env::args().nth(1).unwrap();
    match mode.as_str() {
        "toys" => toys(),
        "garbage" => {
            say("Welcome to my server!");
            say("{\"half\": ");
            say("\u{1b}[1mready\u{1b}[0m");
            toys();
        }
        "silent" => {
            let _ = std::io::stdin().lines().count();
        }
        "broken" => {
            let mut err = std::io::stderr().lock();
            err.write_all(b"no module named toys\n").unwrap();
            std::process::exit(7);
        }
        "flood" => flood(),
        mode => raw(mode),
    }
}

fn toys() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let service = toys::Toys::new()
            .serve(rmcp::transport::stdio())
            .await
            .unwrap();
        service.waiting().await.unwrap();
    });
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    // Whoever reads may have gone.
    if writeln!(out, "{line}").and_then(|()| out.flush()).is_err() {
        std::process::exit(0);
    }
}

/// One line without an end.
fn flood() {
    let mut out = std::io::stdout().lock();
    while out.write_all(&[b'x'; 4096]).is_ok() {}
}

/// A server of few words, for what the SDK would not do.
fn raw(mode: &str) {
    let mut answers = Vec::new();
    for line in std::io::stdin().lines() {
        let message: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let id = &message["id"];
        if message["method"].is_null() {
            answers.push(json!([id, message["error"]["code"]]));
            if answers.len() == 4 {
                let content = json!([{"type": "text", "text": json!(answers).to_string()}]);
                say(
                    &json!({"jsonrpc": "2.0", "id": answers_to(), "result": {"content": content}})
                        .to_string(),
                );
            }
            continue;
        }
        let result = match message["method"].as_str().unwrap() {
            "initialize" => json!({
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "raw", "version": "1"},
            }),
            "tools/list" => list(mode, &message["params"]["cursor"]),
            "tools/call" => {
                CALL.set(id.clone()).unwrap();
                ask();
                continue;
            }
            _ if id.is_null() => continue,
            method => {
                let error = json!({"code": -32601, "message": method});
                say(&json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string());
                continue;
            }
        };
        say(&json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string());
    }
}

static CALL: std::sync::OnceLock<Value> = std::sync::OnceLock::new();

fn answers_to() -> &'static Value {
    CALL.get().unwrap()
}

/// Asks the client for all a server may ask of one.
fn ask() {
    let sampling = json!({
        "messages": [{"role": "user", "content": {"type": "text", "text": "Hi"}}],
        "maxTokens": 1,
    });
    let elicitation = json!({
        "message": "Your password?",
        "requestedSchema": {"type": "object", "properties": {}},
    });
    let asked = [
        ("ping", None),
        ("sampling/createMessage", Some(sampling)),
        ("elicitation/create", Some(elicitation)),
        ("roots/list", None),
    ];
    for (method, params) in asked {
        let mut request = json!({"jsonrpc": "2.0", "id": method, "method": method});
        if let Some(params) = params {
            request["params"] = params;
        }
        say(&request.to_string());
    }
}

fn list(mode: &str, cursor: &Value) -> Value {
    let object = json!({"type": "object"});
    let tool = |name: &str, schema: &Value| json!({"name": name, "inputSchema": schema});
    match mode {
        "many" => {
            let names = (0..10_000).map(|at| tool(&format!("tool_{at}"), &object));
            json!({"tools": names.collect::<Vec<_>>()})
        }
        "pages" => {
            let next = cursor.as_str().unwrap_or_default().len() + 1;
            json!({"tools": [], "nextCursor": "n".repeat(next)})
        }
        "bad" => json!({"tools": [
            tool("good", &object),
            tool("no_schema", &json!("text")),
            tool("bad_type", &json!({"type": "objekt"})),
            tool("elsewhere", &json!({"$ref": "http://127.0.0.1:9/schema.json"})),
            tool("no_object", &json!({"type": "string"})),
            tool("bad\nname", &object),
            tool("good", &object),
            {"inputSchema": object},
            {"name": "long", "description": "x".repeat(65_536), "inputSchema": object},
            {"name": "bad_output", "inputSchema": object, "outputSchema": {"type": 5}},
        ]}),
        _ => json!({"tools": [tool("ask", &object)]}),
    }
}
