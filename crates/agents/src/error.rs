//! Why an agent can't be made, and why a run failed.

use crate::answers::AnswerError;
use crate::schema::SchemaError;
use crate::strategy::PlanError;
use std::num::NonZeroU32;
use upp::Code;

/// Why options make no agent (UAP §4.2, §8.5).
#[derive(Debug, thiserror::Error)]
pub enum OptionsError {
    /// Two tools have one name.
    #[error("two tools are named {name:?}")]
    DuplicateTool {
        /// The name.
        name: String,
    },
    /// A tool depends on a tool the agent does not have (UAP §8.5).
    #[error("the tool {tool:?} depends on {name:?}, which is no tool of the agent")]
    UnknownDependency {
        /// The tool that depends.
        tool: String,
        /// The name that was not found.
        name: String,
    },
    /// Tools wait for each other (UAP §8.5).
    #[error("the tools {tools:?} depend on each other")]
    DependencyCycle {
        /// The tools that could never run together.
        tools: Vec<String>,
    },
    /// A tool is reconcilable but has no `reconcile` function.
    #[error("the tool {tool:?} is reconcilable, but has no function that reconciles")]
    NoReconcile {
        /// The tool.
        tool: String,
    },
    /// A tool is external and requires an approval here. The client that executes it can require an
    /// approval itself.
    #[error("the tool {tool:?} is external, so it can't require an approval, too")]
    ExternalApproval {
        /// The tool.
        tool: String,
    },
    /// The parameters of a tool are no JSON Schema, or they refer to a schema outside of the
    /// document.
    #[error("the parameters of the tool {tool:?} are no usable JSON Schema")]
    InvalidSchema {
        /// The tool.
        tool: String,
        /// The error of the schema.
        #[source]
        source: SchemaError,
    },
    /// The model lacks a capability that the agent needs (UPP §3, §11).
    #[error("the model {model:?} can't {what}")]
    Unsupported {
        /// The model's id.
        model: String,
        /// The missing ability: to call tools, or to answer in a structure.
        what: &'static str,
    },
    /// The schema of the answer exceeds a limit.
    #[error("the schema of the answer is no usable JSON Schema")]
    InvalidStructure(#[source] upp::schema::RefusedSchema),
}

/// Why a run has no result (UAP §4.4).
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The model failed.
    #[error("the model call failed")]
    Model(#[source] upp::Error),
    /// A tool call ended the run: whether it may run could not be found out (UPP §10).
    #[error("a tool call ended the run")]
    Tool(#[source] upp::ExecuteError),
    /// The run was aborted, or its keeper refused to go on.
    #[error("the run was cancelled")]
    Cancelled,
    /// The model asks for more rounds of tools than were allowed (UPP §3, UAP §5.2).
    #[error("the limit of tool rounds is reached: {limit}")]
    MaxIterations {
        /// The requested limit.
        limit: NonZeroU32,
    },
    /// The conversation ends in tool calls, and the input does not answer them: no model would
    /// take such a conversation. Calls that wait are answered or denied with
    /// [`Agent::resume`](crate::Agent::resume).
    #[error(
        "the conversation ends in {n_calls} tool calls without results; answer or deny them first"
    )]
    OpenCalls {
        /// How many calls wait.
        n_calls: usize,
    },
    /// The answers do not fit the calls that wait; nothing has run.
    #[error("the answers can't be taken")]
    Answers(#[source] AnswerError),
    /// A sub-agent or a [query](crate::Agent::query) came to calls that wait for answers from
    /// outside, which nobody can give it: its state ends with it.
    #[error(
        "the run waits for answers to {n_calls} tool calls, which can't arrive: its state is not stored"
    )]
    Waiting {
        /// How many calls wait.
        n_calls: usize,
    },
    /// A strategy returned that the run waits, but no call waits for an answer, so the run could
    /// never continue.
    #[error("the strategy {strategy:?} waits for answers, but no tool call waits for one")]
    NothingWaits {
        /// The strategy's name.
        strategy: String,
    },
    /// A strategy ended a run in which no model spoke.
    #[error("the run ended without a response")]
    NoResponse,
    /// There is no plan, or it could not be carried out (UAP §5.4).
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The application's own code, such as a middleware, failed.
    #[error("{name} failed")]
    Extension {
        /// The name of the failed component, such as a middleware.
        name: String,
        /// Its own error.
        #[source]
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl AgentError {
    /// Wraps a failure of the application's own code.
    pub fn extension(
        name: impl Into<String>,
        cause: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self::Extension {
            name: name.into(),
            cause: cause.into(),
        }
    }

    /// The protocol's code, where it has one for this (UPP §14).
    pub fn code(&self) -> Option<Code> {
        match self {
            Self::Model(error) => Some(error.code),
            Self::Cancelled => Some(Code::Cancelled),
            Self::MaxIterations { .. }
            | Self::OpenCalls { .. }
            | Self::Answers(_)
            | Self::Plan(PlanError::Unsupported { .. } | PlanError::Schema(_)) => {
                Some(Code::InvalidRequest)
            }
            Self::NoResponse | Self::Plan(PlanError::Refused { .. }) => Some(Code::InvalidResponse),
            Self::Tool(_)
            | Self::Plan(PlanError::StepFailed { .. } | PlanError::NoProgress { .. })
            | Self::Waiting { .. }
            | Self::NothingWaits { .. }
            | Self::Extension { .. } => None,
        }
    }
}

impl From<AnswerError> for AgentError {
    fn from(error: AnswerError) -> Self {
        Self::Answers(error)
    }
}

impl From<upp::ExecuteError> for AgentError {
    fn from(error: upp::ExecuteError) -> Self {
        match error {
            upp::ExecuteError::Cancelled => Self::Cancelled,
            upp::ExecuteError::Approval { .. } => Self::Tool(error),
        }
    }
}

impl From<upp::Error> for AgentError {
    fn from(error: upp::Error) -> Self {
        if error.code == Code::Cancelled {
            Self::Cancelled
        } else {
            Self::Model(error)
        }
    }
}

/// An error with all its causes, on one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
