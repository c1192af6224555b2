//! Maps the errors of an agent's step to the runtime's.

use crate::error::render_error;
use crate::reactor::ReactorError;
use agents::AgentError;
use upp::Code;

/// Why a cycle has no outcome.
pub(super) enum CycleError {
    /// The agent's run failed.
    Run(AgentError),
    /// The step can't be run.
    Step(ReactorError),
}

impl From<AgentError> for CycleError {
    fn from(error: AgentError) -> Self {
        Self::Run(error)
    }
}

impl From<ReactorError> for CycleError {
    fn from(error: ReactorError) -> Self {
        Self::Step(error)
    }
}

impl From<crate::writer::WriterStopped> for CycleError {
    fn from(stopped: crate::writer::WriterStopped) -> Self {
        Self::Step(stopped.into())
    }
}

pub(super) fn failed(error: &AgentError) -> ReactorError {
    let reason = match error {
        AgentError::Cancelled => return ReactorError::Stopped,
        AgentError::Model(cause) => match cause.code {
            Code::ContentFiltered => "safety_halt",
            Code::Timeout => "timeout",
            Code::NetworkError => "network_failure",
            Code::RateLimited => "rate_limited",
            Code::QuotaExceeded => "quota_exceeded",
            Code::AuthenticationFailed
            | Code::ContextLengthExceeded
            | Code::ModelNotFound
            | Code::InvalidRequest
            | Code::InvalidResponse
            | Code::ProviderError
            | Code::Cancelled => "error",
        },
        AgentError::MaxIterations { .. } => "max_steps",
        AgentError::Tool(_)
        | AgentError::Plan(_)
        | AgentError::OpenCalls { .. }
        | AgentError::Answers(_)
        | AgentError::Waiting { .. }
        | AgentError::NothingWaits { .. }
        | AgentError::NoResponse
        | AgentError::Extension { .. } => "error",
    };
    ReactorError::Failed {
        reason: reason.to_owned(),
        detail: render_error(error),
    }
}

pub(super) fn unwritable(error: &serde_json::Error) -> ReactorError {
    ReactorError::failed(format!("a part has no JSON form: {error}"))
}
