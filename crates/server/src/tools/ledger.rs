//! `record`: a tool with a countable effect, for tests of crashes.

use futures_util::FutureExt;
use serde_json::{Value, json};
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use upp::{Effect, Tool, ToolContext, ToolFailure, ToolOutput};

/// Maximum wait that a call may request, in milliseconds.
const MAX_MS: u64 = 60_000;

pub(super) fn tool(path: &Path, effect: Effect) -> Tool {
    let path: Arc<Path> = path.into();
    let parameters = json!({
        "type": "object",
        "properties": {
            "line": { "type": "string", "description": "What is written" },
            "ms": { "type": "integer", "minimum": 0, "maximum": MAX_MS, "description": "How long to wait before writing" }
        },
        "required": ["line"],
        "additionalProperties": false
    });
    let run = move |arguments: Value, context: ToolContext| {
        let path = Arc::clone(&path);
        async move {
            let line = arguments
                .get("line")
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned();
            let ms = arguments
                .get("ms")
                .and_then(Value::as_u64)
                .unwrap_or(0)
                .min(MAX_MS);
            tokio::time::sleep(Duration::from_millis(ms)).await;
            let key = context.idempotency_key.to_string();
            let once = effect == Effect::Idempotent;
            tokio::task::spawn_blocking(move || record(&path, &key, &line, once))
                .await
                .unwrap_or_else(|_| Err(ToolFailure::new("The line could not be written.")))
        }
        .boxed()
    };
    Tool::new(
        super::RECORD,
        "Writes one line into the ledger.",
        parameters,
        run,
    )
    .with_effect(effect)
}

fn record(path: &Path, key: &str, line: &str, once: bool) -> ToolOutput {
    let failed =
        |error: &io::Error| ToolFailure::new(format!("The ledger can't be written: {error}."));
    // One line each, so that lines can be counted.
    let entry = json!({ "key": key, "line": line }).to_string();
    if once && has(path, &entry).map_err(|error| failed(&error))? {
        return Ok(json!({ "recorded": line, "before": true }));
    }
    let write = || {
        let mut file = OpenOptions::new().create(true).append(true).open(path)?;
        file.write_all(format!("{entry}\n").as_bytes())?;
        file.flush()?;
        file.sync_all()
    };
    write().map_err(|error| failed(&error))?;
    Ok(json!({ "recorded": line }))
}

fn has(path: &Path, entry: &str) -> io::Result<bool> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(text.lines().any(|line| line == entry)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idempotent_record_is_written_once_a_key() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("ledger");
        for (key, once) in [
            ("k1", true),
            ("k1", true),
            ("k2", true),
            ("k3", false),
            ("k3", false),
        ] {
            record(&path, key, "paid", once).unwrap();
        }
        let text = std::fs::read_to_string(path).unwrap();
        assert_eq!(text.lines().count(), 4);
        assert_eq!(text.lines().next(), Some(r#"{"key":"k1","line":"paid"}"#));
    }
}
