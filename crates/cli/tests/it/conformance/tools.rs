//! The tools of the cases, and a thread to its own.

use futures_util::FutureExt;
use serde_json::{Value, json};
use upp::{Effect, Tool, ToolContext, ToolFailure, ToolOutput};

/// `compute`, which adds, and `broken`, which fails.
pub(crate) fn all() -> Vec<Tool> {
    let expression = json!({
        "type": "object", "properties": {"expression": {"type": "string"}}, "required": ["expression"],
    });
    let compute = Tool::new(
        "compute",
        "Adds.",
        expression,
        |arguments: Value, _: ToolContext| std::future::ready(sum(&arguments)).boxed(),
    );
    let nothing = json!({"type": "object"});
    let broken = Tool::new("broken", "Fails.", nothing, |_: Value, _: ToolContext| {
        std::future::ready(Err(ToolFailure::new("it is broken"))).boxed()
    });
    [compute, broken]
        .map(|tool| tool.with_effect(Effect::Pure))
        .into()
}

fn sum(arguments: &Value) -> ToolOutput {
    let terms = arguments["expression"].as_str().unwrap_or_default();
    let sum: Result<i64, _> = terms
        .split('+')
        .map(|term| term.trim().parse::<i64>())
        .sum();
    sum.map(Value::from)
        .map_err(|_| ToolFailure::new("only sums"))
}

/// Runs what waits, to its end.
pub(crate) fn wait<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(future)
}
