//! The agent (UAP §4).

mod builder;
mod options;
mod record;
mod resume;
mod run;
mod session;

pub use builder::AgentBuilder;
pub use options::AgentOptions;
pub(crate) use run::{Start, request};

use crate::answers::PendingCall;

use crate::checkpoint::Checkpoints;
use crate::error::{AgentError, OptionsError};
use crate::id;
use crate::state::AgentState;
use crate::strategy::{StepContext, StepOutcome};
use crate::stream::AgentStream;
use crate::tools::Toolbox;
use record::Progress;
use std::num::NonZeroU32;
use std::sync::Arc;
use upp::{Message, Model, Tool, Turn};

/// The result of a run: the turn and the state after it (UAP §4.4).
#[derive(Clone, Debug, PartialEq)]
pub struct GenerateResult {
    /// All messages and tool executions of the run, from the input on.
    pub turn: Turn,
    /// The state from which the run continues.
    pub state: AgentState,
    /// The calls that wait for an answer from outside; empty if the run is complete. To continue
    /// the run, call [`Agent::resume`].
    pub pending: Vec<PendingCall>,
}

/// A model with tools, a prompt and a strategy (UAP §4.3). Clones share it.
///
/// It has no state between calls: the state is an argument and a result.
#[derive(Clone)]
pub struct Agent {
    inner: Arc<Inner>,
    checkpoints: Option<Checkpoints>,
}

struct Inner {
    id: Arc<str>,
    /// A generated session id, if there are checkpoints and no configured session.
    session_id: Option<Arc<str>>,
    options: AgentOptions,
    toolbox: Toolbox,
}

impl Agent {
    /// Makes an agent (`agent()`, UAP §4.1). Checks the tools once, and whether the model supports
    /// the options.
    pub fn new(options: AgentOptions) -> Result<Self, OptionsError> {
        Self::made(options, None)
    }

    /// Makes an agent with other options. Schemas of tools that this agent has are not compiled
    /// again.
    pub fn with_options(&self, options: AgentOptions) -> Result<Self, OptionsError> {
        Self::made(options, Some(&self.inner.toolbox))
    }

    fn made(options: AgentOptions, known: Option<&Toolbox>) -> Result<Self, OptionsError> {
        let toolbox = Toolbox::new(&options.tools, known)?;
        if let Some(structure) = &options.structure {
            upp::schema::check(structure).map_err(OptionsError::InvalidStructure)?;
        }
        let can = options.model.capabilities();
        if let Some(what) = can.lacks(&options.tools, options.structure.as_deref()) {
            let model = options.model.model_id().to_owned();
            return Err(OptionsError::Unsupported { model, what });
        }
        let id = options.id.clone().unwrap_or_else(id::random);
        let needs_session = options.checkpoints.is_some() && options.session_id.is_none();
        Ok(Self {
            checkpoints: options.checkpoints.clone(),
            inner: Arc::new(Inner {
                id,
                session_id: needs_session.then(id::random),
                options,
                toolbox,
            }),
        })
    }

    /// Runs the agent on an input (UAP §4.4).
    pub async fn generate(
        &self,
        input: impl Into<Message>,
        state: AgentState,
    ) -> Result<GenerateResult, AgentError> {
        self.stream(input, state).result().await
    }

    /// Runs the agent on an input, and streams its events (UAP §4.5). The run advances only while
    /// the stream or its result is polled.
    pub fn stream(&self, input: impl Into<Message>, state: AgentState) -> AgentStream {
        AgentStream::new(self.clone(), Start::Input(input.into()), state)
    }

    /// Continues a conversation (UAP §4.6). The strategy adds input and answers to the state, so
    /// this is the same as `generate`.
    pub async fn ask(
        &self,
        input: impl Into<Message>,
        state: AgentState,
    ) -> Result<GenerateResult, AgentError> {
        self.generate(input, state).await
    }

    /// Answers one input without a history and without storing a state (UAP §4.7). It saves no
    /// checkpoint, which would replace the session's. A run that waits for outside answers fails
    /// with [`AgentError::Waiting`], as there is no state to continue from.
    pub async fn query(&self, input: impl Into<Message>) -> Result<Turn, AgentError> {
        let ephemeral = self.without_checkpoints();
        let result = ephemeral.generate(input, AgentState::initial()).await?;
        if result.pending.is_empty() {
            return Ok(result.turn);
        }
        let n_calls = result.state.open_calls().len();
        Err(AgentError::Waiting { n_calls })
    }

    /// Runs one cycle of the strategy, with the events, hooks and stop condition of its step.
    ///
    /// `generate` and `stream` call this until the run is done. The runtime calls it itself and
    /// commits in between. The state must already include the input.
    ///
    /// If the state has no [phase](AgentState::phase), a new step starts, numbered one after the
    /// state's. So a step that is repeated after a crash has the same number. A step that continues
    /// with outside answers also starts again under its number. If the outcome has no phase, the
    /// step ends. In that case `on_step_end` receives only the last cycle; in `generate` and
    /// `stream` it receives all cycles of the step.
    pub async fn run_step(
        &self,
        state: AgentState,
        context: &StepContext<'_>,
    ) -> Result<StepOutcome, AgentError> {
        run::step(self, &state, context, &mut Progress::default()).await
    }

    /// The agent's id: the configured one, else a random UUID (v4; UAP §3.4).
    pub fn id(&self) -> &str {
        &self.inner.id
    }

    /// The agent's name.
    pub fn name(&self) -> &str {
        &self.inner.options.name
    }

    /// The session id for states without one: the configured one. Without it, a random UUID (v4;
    /// UAP §3.4) if there are checkpoints.
    pub fn session_id(&self) -> Option<&str> {
        let given = self.inner.options.session_id.as_deref();
        given.or(self.inner.session_id.as_deref())
    }

    /// The model (UAP §4.3).
    pub fn model(&self) -> &Arc<dyn Model> {
        &self.inner.options.model
    }

    /// The tools (UAP §4.3).
    pub fn tools(&self) -> &[Tool] {
        self.inner.toolbox.tools()
    }

    /// The tool of this name.
    pub fn tool(&self, name: &str) -> Option<&Tool> {
        self.inner.toolbox.get(name)
    }

    /// Whether the agent has this tool and runs it itself; false for external tools.
    pub fn runs(&self, tool: &str) -> bool {
        self.tool(tool).is_some_and(|tool| !tool.external)
    }

    /// The system prompt (UAP §4.3).
    pub fn system(&self) -> Option<&str> {
        self.inner.options.system.as_deref()
    }

    /// The options of the agent. A changed clone makes another agent (UAP §2.3).
    pub fn options(&self) -> &AgentOptions {
        &self.inner.options
    }

    /// A copy of the agent that saves no checkpoints.
    pub(crate) fn without_checkpoints(&self) -> Self {
        Self {
            checkpoints: None,
            ..self.clone()
        }
    }

    pub(crate) fn shared_id(&self) -> Arc<str> {
        Arc::clone(&self.inner.id)
    }

    pub(crate) fn shared_tools(&self) -> Arc<[Tool]> {
        Arc::clone(self.inner.toolbox.tools())
    }

    pub(crate) fn toolbox(&self) -> &Toolbox {
        &self.inner.toolbox
    }

    /// The tool strategy's own limit; none by default (UAP §4.2).
    pub(crate) fn tool_rounds(&self) -> Option<u32> {
        self.inner.options.tool_strategy.max_iterations
    }

    pub(crate) fn on_max_iterations(&self, limit: NonZeroU32) {
        if let Some(hook) = &self.inner.options.tool_strategy.on_max_iterations {
            hook(limit.get());
        }
    }
}

impl std::fmt::Debug for Agent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Agent")
            .field("id", &self.inner.id)
            .field("options", &self.inner.options)
            .finish_non_exhaustive()
    }
}
