//! What the tests spawn as an MCP server: one tool, by `initialize`, over stdio. When its input
//! ends, it writes the file that its argument names.
#![expect(
    clippy::unwrap_used,
    reason = "a helper that fails is a test that fails"
)]

use serde_json::{Value, json};
use std::io::Write;

fn main() {
    for line in std::io::stdin().lines() {
        let request: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let Some(id) = request.get("id") else {
            continue;
        };
        let mut answer = json!({"jsonrpc": "2.0", "id": id});
        match result(&request) {
            Some(result) => answer["result"] = result,
            None => answer["error"] = json!({"code": -32601, "message": "no such method"}),
        }
        let mut out = std::io::stdout().lock();
        writeln!(out, "{answer}")
            .and_then(|()| out.flush())
            .unwrap();
    }
    if let Some(file) = std::env::args().nth(1).filter(|file| !file.is_empty()) {
        std::fs::write(file, "ended").unwrap();
    }
}

fn result(request: &Value) -> Option<Value> {
    let params = &request["params"];
    match request["method"].as_str()? {
        "initialize" => Some(json!({
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "toys", "version": "1"},
        })),
        "ping" => Some(json!({})),
        "tools/list" => Some(json!({"tools": [{
            "name": "echo",
            "description": "Says it again.",
            "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
            "annotations": {"readOnlyHint": true},
        }]})),
        "tools/call" => {
            let text = format!("echo of {}", params["arguments"]["text"].as_str()?);
            Some(json!({"content": [{"type": "text", "text": text}]}))
        }
        _ => None,
    }
}
