//! A limit on the size of tool results.

use futures_util::future::BoxFuture;
use serde_json::Value;
use std::io;
use std::sync::Arc;
use upp::{Tool, ToolContext, ToolFailure, ToolOutput, ToolRun};

/// Allowance for the data around a call's arguments and result, in bytes.
const BESIDE: usize = 4 << 10;

/// Limits a tool's arguments and result to `max_bytes` of JSON together. If the result is larger, the
/// model receives an error.
pub(crate) fn bounded(tool: Tool, max_bytes: usize) -> Tool {
    let run = Bounded {
        run: tool.run,
        max_bytes,
    };
    Tool {
        run: Arc::new(run),
        ..tool
    }
}

struct Bounded {
    run: Arc<dyn ToolRun>,
    max_bytes: usize,
}

impl ToolRun for Bounded {
    fn run(&self, arguments: Value, context: ToolContext) -> BoxFuture<'static, ToolOutput> {
        let taken = json_bytes(&arguments).saturating_add(BESIDE);
        let max = self.max_bytes.saturating_sub(taken);
        let output = self.run.run(arguments, context);
        Box::pin(async move {
            let output = output.await;
            let bytes = match &output {
                Ok(result) => json_bytes(result),
                Err(failure) => failure.message.len(),
            };
            if bytes <= max {
                return output;
            }
            Err(ToolFailure::new(format!(
                "the result has {bytes} bytes as JSON, more than the {max} that can be kept; ask for less of it"
            )))
        })
    }
}

fn json_bytes(value: &Value) -> usize {
    let mut counter = Counter(0);
    // Counting can't fail.
    let _ = serde_json::to_writer(&mut counter, value);
    counter.0
}

struct Counter(usize);

impl io::Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.saturating_add(bytes.len());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_of_a_value_is_that_of_its_json() {
        let value = serde_json::json!({"a": ["é\n", 1.5, null]});
        assert_eq!(json_bytes(&value), value.to_string().len());
    }
}
