//! Metrics of tool calls: built-in tools and those of MCP servers.

use super::{ERROR, OK, Timed, Timing};
use futures_util::future::BoxFuture;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::registry::Registry;
use serde_json::Value;
use std::sync::Arc;
use upp::{Tool, ToolContext, ToolOutput, ToolRun};

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfCall {
    tool: String,
    outcome: String,
}

#[derive(Clone)]
pub(super) struct ToolFigures {
    calls: Timed<OfCall>,
}

impl ToolFigures {
    pub(super) fn new(registry: &mut Registry) -> Self {
        let about = "Calls of tools that run here or on an MCP server; the outcome is ok, error or cancelled";
        Self {
            calls: Timed::new(registry, "tool_call_duration", about),
        }
    }

    pub(super) fn of(&self, tool: Tool) -> Tool {
        let run = Measured {
            name: tool.name.as_str().into(),
            run: tool.run,
            figures: self.clone(),
        };
        Tool {
            run: Arc::new(run),
            ..tool
        }
    }
}

/// A tool's code with counted calls.
struct Measured {
    name: Arc<str>,
    run: Arc<dyn ToolRun>,
    figures: ToolFigures,
}

impl ToolRun for Measured {
    fn run(&self, arguments: Value, context: ToolContext) -> BoxFuture<'static, ToolOutput> {
        let (name, calls) = (Arc::clone(&self.name), self.figures.calls.clone());
        let timing = Timing::begin(move |outcome, took| {
            let labels = OfCall {
                tool: name.as_ref().to_owned(),
                outcome: outcome.to_owned(),
            };
            calls.took(&labels, took);
        });
        let output = self.run.run(arguments, context);
        Box::pin(async move {
            let output = output.await;
            timing.end(if output.is_ok() { OK } else { ERROR });
            output
        })
    }
}
