//! Strategies: how an agent runs, one step at a time (UAP §5).

mod context;
mod loop_;

pub use context::StepContext;
pub use loop_::Loop;

use crate::error::AgentError;
use crate::state::AgentState;
use futures_util::future::BoxFuture;
use std::num::NonZeroU32;

/// How an agent runs (UAP §5.1), as a step function over state.
///
/// The specification's `execute` and `stream` are this function called until it is done, by the
/// agent in memory or by the runtime durably. So a strategy keeps nothing in itself: where a run
/// stands is read from the state. It must leave a state that ends in calls without results to be
/// continued with the tools, take results already recorded from the context, and not repeat
/// what the state already has. When calls are still open after the tools, the run waits for
/// answers ([`Next::Wait`]).
pub trait ExecutionStrategy: Send + Sync {
    /// The strategy's name (UAP §5.1).
    fn name(&self) -> &'static str;

    /// Runs one step, which is one request/response cycle with its tools, from where `state`
    /// stands. `state.step()` is already the number of this step.
    fn step<'a>(
        &'a self,
        state: AgentState,
        context: &'a StepContext<'a>,
    ) -> BoxFuture<'a, Result<StepOutcome, AgentError>>;
}

/// Where a step left the run.
#[derive(Clone, Debug, PartialEq)]
pub struct StepOutcome {
    /// The state after the step.
    pub state: AgentState,
    /// Whether there is another step.
    pub next: Next,
}

/// Whether a run goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Another step follows.
    Continue,
    /// Calls at the end of the state wait for answers from outside, so the step is not complete:
    /// with answers, it is run again from the state as it is. A strategy need not say it: when the
    /// open calls can do nothing but wait, the run waits whatever the strategy says.
    Wait,
    /// The run is complete.
    Done,
}

/// A limit on rounds or steps: none unless it is asked for (UAP §2.4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Limit {
    /// No limit.
    #[default]
    Unbounded,
    /// At most so many.
    AtMost(NonZeroU32),
}
