//! Logs the beginning and the end of requests (UAP §9.3).

use super::{Middleware, MiddlewareContext};
use crate::agent::GenerateResult;
use crate::error::AgentError;
use crate::id;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use serde_json::Value;
use std::error::Error;
use std::sync::Arc;
use std::time::Instant;

/// The level of a line (UAP §9.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// Details.
    Debug,
    /// Normal events.
    #[default]
    Info,
    /// Possible problems.
    Warn,
    /// Failures.
    Error,
}

/// Receives the lines. It is called within the run, so it must be fast.
pub type Logger = Arc<dyn Fn(LogLevel, &str) + Send + Sync>;

/// The contents and the destination of the log (UAP §9.3).
#[derive(Clone)]
pub struct LoggingOptions {
    /// The lowest logged level. Default: [`LogLevel::Info`].
    pub level: LogLevel,
    /// Receives the lines. Default: `tracing`, with the target `loomline_agents`.
    pub logger: Option<Logger>,
    /// Whether the input, the answer and the causes of errors are logged in full. Default: false,
    /// as they may be confidential.
    pub include_messages: bool,
    /// Whether the time a request took is logged, in milliseconds; it is by default.
    pub include_timing: bool,
}

impl Default for LoggingOptions {
    fn default() -> Self {
        Self {
            level: LogLevel::default(),
            logger: None,
            include_messages: false,
            include_timing: true,
        }
    }
}

impl std::fmt::Debug for LoggingOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LoggingOptions")
            .field("level", &self.level)
            .field("include_messages", &self.include_messages)
            .field("include_timing", &self.include_timing)
            .finish_non_exhaustive()
    }
}

/// Logs each request when it starts and when it ends, successful or not (`logging()`, UAP §9.3).
///
/// The start, the end, and a run's wait for answers are [`LogLevel::Info`]. A failure is
/// [`LogLevel::Error`], an aborted request [`LogLevel::Warn`]. A line has ids and counts.
/// Parameters, metadata and keys are never logged; messages only if
/// [`LoggingOptions::include_messages`] is set.
#[derive(Debug)]
pub struct Logging {
    options: LoggingOptions,
    /// The key of this layer's start time in a request's metadata; unique for each layer.
    key: String,
    base: Instant,
}

/// The logging middleware with these options (UAP §9.3).
pub fn logging(options: LoggingOptions) -> Logging {
    Logging {
        options,
        key: format!("logging:{}", id::random()),
        base: Instant::now(),
    }
}

impl Logging {
    fn log(&self, level: LogLevel, line: &str) {
        if level < self.options.level {
            return;
        }
        match (&self.options.logger, level) {
            (Some(logger), _) => logger(level, line),
            (None, LogLevel::Debug) => tracing::debug!("{line}"),
            (None, LogLevel::Info) => tracing::info!("{line}"),
            (None, LogLevel::Warn) => tracing::warn!("{line}"),
            (None, LogLevel::Error) => tracing::error!("{line}"),
        }
    }

    /// Logs a message in full, if that is enabled.
    fn log_message(&self, what: &str, message: &impl serde::Serialize) {
        if self.options.include_messages
            && let Ok(message) = serde_json::to_string(message)
        {
            self.log(LogLevel::Info, &format!("{what}: {message}"));
        }
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.base.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// ` after n ms`, if timing is enabled.
    fn timing(&self, context: &MiddlewareContext) -> String {
        let start = context.metadata.get(&self.key).and_then(Value::as_u64);
        match start {
            Some(start) if self.options.include_timing => {
                format!(" after {} ms", self.now_ms().saturating_sub(start))
            }
            Some(_) | None => String::new(),
        }
    }

    fn causes(&self, error: &AgentError) -> String {
        if !self.options.include_messages {
            return String::new();
        }
        let mut causes = String::new();
        let mut next = error.source();
        while let Some(cause) = next {
            causes.push_str(": ");
            causes.push_str(&cause.to_string());
            next = cause.source();
        }
        causes
    }
}

impl Middleware for Logging {
    fn name(&self) -> &'static str {
        "logging"
    }

    fn before<'a>(
        &'a self,
        context: &'a mut MiddlewareContext,
    ) -> BoxFuture<'a, Result<(), AgentError>> {
        let now = self.now_ms().into();
        context.metadata.insert(self.key.clone(), now);
        let (agent, state) = (context.agent.id(), &context.state);
        let (n_messages, step) = (state.messages().len(), state.step());
        let line = format!("run started: agent={agent} step={step} messages={n_messages}");
        self.log(LogLevel::Info, &line);
        self.log_message("input", &context.input);
        ready(Ok(())).boxed()
    }

    fn after<'a>(
        &'a self,
        context: &'a mut MiddlewareContext,
        result: GenerateResult,
    ) -> BoxFuture<'a, Result<GenerateResult, AgentError>> {
        let (agent, turn) = (context.agent.id(), &result.turn);
        let (timing, n_calls) = (self.timing(context), turn.tool_executions.len());
        let (cycles, usage) = (turn.cycles, &turn.usage);
        let tokens = usage.total_tokens;
        let end = if result.pending.is_empty() {
            "completed"
        } else {
            "waits"
        };
        let line = format!(
            "run {end}{timing}: agent={agent} cycles={cycles} tool_calls={n_calls} tokens={tokens}"
        );
        self.log(LogLevel::Info, &line);
        self.log_message("response", &turn.response);
        ready(Ok(result)).boxed()
    }

    fn on_error<'a>(
        &'a self,
        context: &'a mut MiddlewareContext,
        error: &'a AgentError,
    ) -> BoxFuture<'a, Option<GenerateResult>> {
        let (agent, timing) = (context.agent.id(), self.timing(context));
        let level = match error {
            AgentError::Cancelled => LogLevel::Warn,
            AgentError::Model(_)
            | AgentError::Tool(_)
            | AgentError::MaxIterations { .. }
            | AgentError::OpenCalls { .. }
            | AgentError::Answers(_)
            | AgentError::Waiting { .. }
            | AgentError::Plan(_)
            | AgentError::NothingWaits { .. }
            | AgentError::NoResponse
            | AgentError::Extension { .. } => LogLevel::Error,
        };
        let code = error.code().map(|code| format!(" ({code:?})"));
        let (code, causes) = (code.unwrap_or_default(), self.causes(error));
        let line = format!("run failed{timing}: agent={agent}: {error}{code}{causes}");
        self.log(level, &line);
        ready(None).boxed()
    }
}
