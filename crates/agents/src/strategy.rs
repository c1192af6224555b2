//! Strategies: how an agent runs, one cycle at a time (UAP §5).

mod context;
mod loop_;
mod plan;
pub(crate) mod prompt;
mod react;
pub(crate) mod rounds;

pub use context::StepContext;
pub use loop_::Loop;
pub use plan::{Plan, PlanError};
pub use prompt::PromptMark;
pub use react::React;

use crate::agent::Agent;
use crate::error::AgentError;
use crate::state::AgentState;
use futures_util::future::BoxFuture;
use serde_json::{Map, Value};
use std::any::Any;
use std::num::NonZeroU32;

/// An agent's way to run (UAP §5.1), as a step function over state.
///
/// The specification's `execute` and `stream` call this function until the run is done. The agent
/// does so in memory, and the runtime does so durably: [`Agent::generate`], [`Agent::stream`] and
/// [`Agent::run_step`]. So a stream and a result can't differ.
///
/// A strategy has no state of its own: it reads a run's progress from the [`AgentState`]. It has
/// three duties. If a state ends in open calls, it continues with the tools. It takes stored
/// results from the context. It does not repeat parts that the state already has, such as its own
/// prompt ([`StepContext::prompt`] ensures that) or the model's answer to it. If calls are still
/// open after the tools, the run waits for answers ([`Next::Wait`]).
///
/// # A custom strategy (UAP §5.5)
///
/// This strategy lets the model answer, prompts it once to check its answer, and uses the second
/// answer. Both answers are one step, so there is a phase in between.
///
/// ```
/// use futures_util::FutureExt;
/// use futures_util::future::BoxFuture;
/// use loomline_agents::{
///     Agent, AgentError, AgentOptions, AgentState, ExecutionStrategy, Next, StepContext, StepOutcome,
/// };
/// use std::sync::Arc;
///
/// struct Checked;
///
/// impl ExecutionStrategy for Checked {
///     fn name(&self) -> &'static str {
///         "checked"
///     }
///
///     fn step<'a>(
///         &'a self,
///         state: AgentState,
///         context: &'a StepContext<'a>,
///     ) -> BoxFuture<'a, Result<StepOutcome, AgentError>> {
///         async move {
///             let checks = state.phase().is_some();
///             let state = match checks {
///                 true => context.prompt(&state, "check", "Check your answer.").await?,
///                 false => state,
///             };
///             // Tools that the model calls would be run by `context.act(&state)`.
///             let response = context.ask(context.request(&state)).await?;
///             let state = state.with_response(response);
///             Ok(match checks {
///                 true => StepOutcome { state: state.with_phase(None), next: Next::Done },
///                 false => StepOutcome {
///                     state: state.with_phase(Some("check".into())),
///                     next: Next::Continue,
///                 },
///             })
///         }
///         .boxed()
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut options = AgentOptions::new("careful", Arc::new(upp::Scripted::new()));
/// options.execution = Arc::new(Checked);
/// let result = Agent::new(options)?.generate("Hello", AgentState::initial()).await?;
/// assert_eq!(result.turn.response.joined_text(), "You said: Check your answer.");
/// assert_eq!((result.turn.cycles, result.state.step()), (2, 1));
/// # Ok(())
/// # }
/// ```
pub trait ExecutionStrategy: Any + Send + Sync {
    /// The strategy's name (UAP §5.1).
    fn name(&self) -> &'static str;

    /// Runs one cycle, which is one model call with its tools, from the progress in `state`.
    /// `state.step()` is already the number of the cycle's step.
    ///
    /// A step is over if its outcome has no [phase](AgentState::phase), or is the last of the run.
    fn step<'a>(
        &'a self,
        state: AgentState,
        context: &'a StepContext<'a>,
    ) -> BoxFuture<'a, Result<StepOutcome, AgentError>>;

    /// Checks the step that is about to start at `state`, and returns the data of its `step_start`
    /// (UAP §11.2). An error ends the run, and no step starts.
    fn begin_step(
        &self,
        state: &AgentState,
        agent: &Agent,
    ) -> Result<Map<String, Value>, AgentError> {
        let _ = (state, agent);
        Ok(Map::new())
    }

    /// Returns the data of the `step_end` event (UAP §11.2), from the states before and after the
    /// step's last cycle.
    fn end_step(&self, before: &AgentState, after: &AgentState) -> Map<String, Value> {
        let _ = (before, after);
        Map::new()
    }
}

/// The result of a cycle.
#[derive(Clone, Debug, PartialEq)]
pub struct StepOutcome {
    /// The state after the cycle.
    pub state: AgentState,
    /// Whether there is another cycle.
    pub next: Next,
}

/// Whether a run continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Another cycle follows.
    Continue,
    /// Calls at the end of the state wait for outside answers, so the step is not complete. With
    /// answers, it runs again from this state. A strategy need not return this: if the open calls
    /// can only wait, the run waits in any case. If no call waits, it is an error
    /// ([`AgentError::NothingWaits`]).
    Wait,
    /// The run is complete.
    Done,
}

/// A limit on rounds or steps. Default: no limit (UAP §2.4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Limit {
    /// No limit.
    #[default]
    Unbounded,
    /// This maximum.
    AtMost(NonZeroU32),
}

impl Limit {
    /// Whether `n` exceeds the limit.
    pub(crate) fn is_below(self, n: usize) -> bool {
        match self {
            Self::Unbounded => false,
            Self::AtMost(limit) => usize::try_from(limit.get()).is_ok_and(|limit| n > limit),
        }
    }
}
