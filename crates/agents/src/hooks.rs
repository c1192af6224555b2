//! The hooks of an agent (UAP §10).

use crate::agent::GenerateResult;
use crate::error::AgentError;
use crate::state::AgentState;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use upp::{ToolCall, ToolResult};

/// Hooks at the boundaries of steps (UAP §10.1). By default each one does nothing.
///
/// `generate` and `stream` call them in the order of this list. If a step is repeated after a
/// crash, its hooks are called again. A step that waits for answers from outside is not complete:
/// `on_step_end`, `stop_condition` and `on_complete` are called by the run that ends it. That run
/// also calls `on_step_start` again.
pub trait AgentStrategy: Send + Sync {
    /// A step starts; `state.step()` is `step`.
    fn on_step_start(&self, step: u64, state: &AgentState) {
        let _ = (step, state);
    }

    /// The model has reasoned, and acts next (UAP §5.3).
    fn on_reason(&self, step: u64, reasoning: &str) {
        let _ = (step, reasoning);
    }

    /// The model has called tools; none has started. Once for each response, unless a step is repeated
    /// after a crash.
    fn on_act(&self, step: u64, actions: &[ToolCall]) {
        let _ = (step, actions);
    }

    /// All calls of the response have results, in call order. A step with several tool rounds has
    /// one `on_act` and one `on_observe` for each round.
    fn on_observe(&self, step: u64, observations: &[ToolResult]) {
        let _ = (step, observations);
    }

    /// A step is complete. The turn is that of the step alone, with all its model calls. Its
    /// response is the last one of the state, or an empty one if there is none yet.
    fn on_step_end(&self, step: u64, result: &GenerateResult) {
        let _ = (step, result);
    }

    /// Whether the run ends here. Called after each step, the last one included (UAP §10.3).
    fn stop_condition<'a>(&'a self, state: &'a AgentState) -> BoxFuture<'a, bool> {
        let _ = state;
        ready(false).boxed()
    }

    /// The run is complete; the turn is that of the whole run, before any middleware's `after`.
    fn on_complete(&self, result: &GenerateResult) {
        let _ = result;
    }

    /// The run failed. `state` is the one after the last complete cycle, which is one model call
    /// with its tools. A returned result replaces the failure, except in a cancelled run, which
    /// stays cancelled.
    fn on_error(&self, error: &AgentError, state: &AgentState) -> Option<GenerateResult> {
        let _ = (error, state);
        None
    }
}

/// No hooks.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoHooks;

impl AgentStrategy for NoHooks {}
