//! A tool of a server, as an agent runs it.

use super::answer;
use super::catalog::Offered;
use super::client::Inner;
use super::exchange::{self, End};
use crate::schema::Schema;
use rmcp::model::JsonObject;
use serde_json::Value;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, Span};
use upp::{Effect, Tool, ToolCallId, ToolContext, ToolFailure, ToolOutput};

/// The tool an agent gets.
pub(super) fn tool(inner: &Arc<Inner>, offered: &Offered) -> Tool {
    let target = Target {
        inner: Arc::clone(inner),
        name: Arc::clone(&offered.name),
        shown: Arc::clone(&offered.shown),
        effect: offered.effect,
        output: offered.output.clone(),
    };
    Tool {
        parameters: Arc::clone(&offered.parameters),
        metadata: offered.metadata.clone(),
        ..Tool::new(
            &*offered.shown,
            offered.description.as_str(),
            Value::Null,
            move |arguments: Value, context: ToolContext| {
                let target = target.clone();
                Box::pin(target.run(arguments, context))
                    as futures_util::future::BoxFuture<'static, ToolOutput>
            },
        )
        .with_effect(offered.effect)
    }
}

#[derive(Clone)]
struct Target {
    inner: Arc<Inner>,
    name: Arc<str>,
    shown: Arc<str>,
    effect: Effect,
    output: Option<Schema>,
}

impl Target {
    /// Runs the call in a task of its own. If this future is dropped, the task cancels the call and
    /// notifies the server.
    async fn run(self, arguments: Value, context: ToolContext) -> ToolOutput {
        let shown = Arc::clone(&self.shown);
        let arguments = match arguments {
            Value::Object(fields) => Some(fields),
            Value::Null => None,
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                return Err(not_run(&shown, "its arguments must be an object"));
            }
        };
        let stop = context.signal.child_token();
        let _guard = stop.clone().drop_guard();
        let calls = self.inner.calls.clone();
        let attempt = async move {
            let id = context.tool_call_id;
            self.attempt(arguments, &id, &stop).await
        };
        let task = calls.spawn(attempt.instrument(Span::current()));
        task.await.unwrap_or_else(|_| {
            Err(ToolFailure::new(format!(
                "The call of '{shown}' broke down."
            )))
        })
    }

    async fn attempt(
        self,
        arguments: Option<JsonObject>,
        id: &ToolCallId,
        stop: &CancellationToken,
    ) -> ToolOutput {
        let mut lost = None;
        for may_repeat in [true, false] {
            let connected = tokio::select! {
                biased;
                () = stop.cancelled() => return Err(self.failure_of(End::Cancelled)),
                connected = self.inner.connected() => connected,
            };
            let connection = match (connected, lost.take()) {
                (Ok(connection), _) => connection,
                (Err(_), Some(cause)) => return Err(self.failure_of(End::Lost(cause))),
                (Err(error), None) => return Err(not_run(&self.shown, &error.to_string())),
            };
            let limits = &self.inner.server.limits;
            let answer = exchange::call(
                &connection,
                &self.name,
                arguments.clone(),
                id,
                limits.call,
                stop,
            );
            match answer.await {
                Ok(result) => {
                    let output = self.output.as_ref();
                    return answer::read(&self.shown, result, output, limits.max_result_bytes);
                }
                Err(End::NotSent(_)) if may_repeat => {}
                Err(End::Lost(cause)) if may_repeat && self.repeats() => lost = Some(cause),
                Err(end) => return Err(self.failure_of(end)),
            }
        }
        Err(self.failure_of(End::NotSent("it went away twice".to_owned())))
    }

    /// Whether a call with an unknown outcome may run again.
    fn repeats(&self) -> bool {
        match self.effect {
            Effect::Pure | Effect::Idempotent => true,
            Effect::Effect | Effect::Reconcilable => false,
        }
    }

    fn failure_of(&self, end: End) -> ToolFailure {
        let server = &self.inner.server.name;
        ToolFailure::new(match end {
            End::NotSent(cause) => {
                return not_run(
                    &self.shown,
                    &format!("the MCP server '{server}' is away: {cause}"),
                );
            }
            End::Lost(cause) => format!(
                "The MCP server '{server}' went away during this call; its outcome is unknown ({cause})."
            ),
            End::Refused(cause) => {
                format!(
                    "The MCP server '{server}' refused the call of '{}': {cause}.",
                    self.shown
                )
            }
            End::TimedOut => format!(
                "The tool '{}' did not answer within {:?} and was told to stop; its outcome is unknown.",
                self.shown, self.inner.server.limits.call
            ),
            End::Cancelled => format!("The call of '{}' was cancelled.", self.shown),
        })
    }
}

fn not_run(tool: &str, cause: &str) -> ToolFailure {
    ToolFailure::new(format!("The tool '{tool}' was not run: {cause}."))
}
