//! Hooks by which the application observes and decides tool calls (UPP §10).

use crate::tool::{Tool, ToolFailure};
use futures_util::future::BoxFuture;
use serde_json::Value;
use std::sync::Arc;

/// The decision on a call before it runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum BeforeCall {
    /// It runs.
    #[default]
    Proceed,
    /// It does not run; the model reads "Tool execution skipped".
    Skip,
    /// It runs with other arguments.
    Transform(Value),
}

/// Sees a call before any decision.
pub type OnToolCall = Arc<dyn Fn(&Tool, &Value) + Send + Sync>;
/// Decides what becomes of a call; a failure is the call's error result.
pub type OnBeforeCall =
    Arc<dyn Fn(&Tool, &Value) -> BoxFuture<'static, Result<BeforeCall, ToolFailure>> + Send + Sync>;
/// Sees tool, arguments and result of a call that succeeded; may give another result.
pub type OnAfterCall = Arc<
    dyn Fn(&Tool, &Value, &Value) -> BoxFuture<'static, Result<Option<Value>, ToolFailure>>
        + Send
        + Sync,
>;
/// Sees a hook or a tool that failed.
pub type OnError = Arc<dyn Fn(&Tool, &Value, &ToolFailure) + Send + Sync>;
/// Called when the limit is reached, before the error is raised.
pub type OnMaxIterations = Arc<dyn Fn(u32) + Send + Sync>;

/// Hooks around tool calls, and how many rounds of them there may be.
///
/// A hook that panics is treated like a tool that fails.
#[derive(Clone)]
pub struct ToolUseStrategy {
    /// Tool rounds at most. `Some(0)` runs no tool and returns the turn with its calls; `None` is
    /// without limit.
    pub max_iterations: Option<u32>,
    /// Sees each call.
    pub on_tool_call: Option<OnToolCall>,
    /// Allows a call, skips it, or changes its arguments.
    pub on_before_call: Option<OnBeforeCall>,
    /// Sees or replaces a result.
    pub on_after_call: Option<OnAfterCall>,
    /// Sees a failure.
    pub on_error: Option<OnError>,
    /// Called when the limit is reached.
    pub on_max_iterations: Option<OnMaxIterations>,
}

impl Default for ToolUseStrategy {
    fn default() -> Self {
        Self {
            max_iterations: Some(10),
            on_tool_call: None,
            on_before_call: None,
            on_after_call: None,
            on_error: None,
            on_max_iterations: None,
        }
    }
}

impl ToolUseStrategy {
    /// No hooks and no limit, as agents have it (UAP §2.4).
    pub fn unlimited() -> Self {
        Self::default().with_max_iterations(None)
    }

    /// Sets the limit.
    #[must_use]
    pub fn with_max_iterations(mut self, limit: Option<u32>) -> Self {
        self.max_iterations = limit;
        self
    }

    /// Sets the hook that sees each call.
    #[must_use]
    pub fn with_on_tool_call(
        mut self,
        hook: impl Fn(&Tool, &Value) + Send + Sync + 'static,
    ) -> Self {
        self.on_tool_call = Some(Arc::new(hook));
        self
    }

    /// Sets the hook that decides about a call.
    #[must_use]
    pub fn with_on_before_call(
        mut self,
        hook: impl Fn(&Tool, &Value) -> BoxFuture<'static, Result<BeforeCall, ToolFailure>>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        self.on_before_call = Some(Arc::new(hook));
        self
    }

    /// Sets the hook that sees or replaces a result.
    #[must_use]
    pub fn with_on_after_call(
        mut self,
        hook: impl Fn(&Tool, &Value, &Value) -> BoxFuture<'static, Result<Option<Value>, ToolFailure>>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        self.on_after_call = Some(Arc::new(hook));
        self
    }

    /// Sets the hook that sees failures.
    #[must_use]
    pub fn with_on_error(
        mut self,
        hook: impl Fn(&Tool, &Value, &ToolFailure) + Send + Sync + 'static,
    ) -> Self {
        self.on_error = Some(Arc::new(hook));
        self
    }

    /// Sets the hook that is called when the limit is reached.
    #[must_use]
    pub fn with_on_max_iterations(mut self, hook: impl Fn(u32) + Send + Sync + 'static) -> Self {
        self.on_max_iterations = Some(Arc::new(hook));
        self
    }
}

impl std::fmt::Debug for ToolUseStrategy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ToolUseStrategy")
            .field("max_iterations", &self.max_iterations)
            .finish_non_exhaustive()
    }
}
