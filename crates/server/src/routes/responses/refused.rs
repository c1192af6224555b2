//! The runtime's refusals as the protocol's errors.

use crate::error::ApiError;
use interop::responses::RequestError;
use runtime::{OptionsRefused, RuntimeError, StoreError};
use timeline::{Entity, Rejected};

/// The error for a request that was to continue `continued_id`.
pub(super) fn refused(error: RuntimeError, continued_id: &str) -> ApiError {
    refused_at(error, continued_id, "/input")
}

/// The refusal of a request that has its input at `input_at`, a JSON pointer.
pub(super) fn refused_at(error: RuntimeError, continued_id: &str, input_at: &str) -> ApiError {
    let at = |error: RequestError| RequestError {
        pointer: Some(input_at.to_owned()),
        ..error
    };
    let what = match &error {
        RuntimeError::Busy(_)
        | RuntimeError::Followed(_)
        | RuntimeError::NotAtRest(_)
        | RuntimeError::BeyondEnd { .. }
        | RuntimeError::Rejected(Rejected::Busy(_)) => {
            RequestError::conversation_locked(continued_id)
        }
        RuntimeError::Store(StoreError::HasForks { .. }) => RequestError::has_forks(continued_id),
        RuntimeError::Rejected(Rejected::Closed) => RequestError::conversation_closed(continued_id),
        RuntimeError::Rejected(Rejected::Transition(moved)) if moved.entity == Entity::Thread => {
            RequestError::conversation_closed(continued_id)
        }
        RuntimeError::Rejected(Rejected::NotOpen(call)) => at(RequestError::no_such_call(call)),
        RuntimeError::Rejected(Rejected::Unanswered(call)) => at(RequestError::unanswered(call)),
        RuntimeError::Rejected(
            Rejected::AnsweredAlready(_)
            | Rejected::Superseded(_)
            | Rejected::WrongAnswer { .. }
            | Rejected::NothingWaits
            | Rejected::Content(_),
        )
        | RuntimeError::Answer(_) => RequestError::at(input_at, "invalid_value", error.to_string()),
        RuntimeError::MessageTooLarge { .. } => {
            RequestError::at(input_at, "message_too_large", error.to_string())
        }
        RuntimeError::Rejected(_)
        | RuntimeError::Store(_)
        | RuntimeError::QueueFull { .. }
        | RuntimeError::NotRunning(_)
        | RuntimeError::UnknownAgent(_)
        | RuntimeError::UnknownExecution(_)
        | RuntimeError::NotEmpty
        | RuntimeError::Cut(_)
        | RuntimeError::TokenReused
        | RuntimeError::Json(_)
        | RuntimeError::BrokenOff
        | RuntimeError::TurnedAway(_)
        | RuntimeError::LimitReached(_)
        | RuntimeError::View(_)
        | RuntimeError::ShuttingDown => return error.into(),
    };
    what.into()
}

/// The error for an item that can't be deleted.
pub(super) fn not_removed(error: RuntimeError, conversation: &str, item: &str) -> ApiError {
    let why = match &error {
        RuntimeError::Rejected(Rejected::NotThere(_) | Rejected::RemovedAlready(_)) => {
            return RequestError::item_not_found(item, "").into();
        }
        RuntimeError::Rejected(Rejected::StillNeeded(_)) => {
            "a response that answers it or has it waits or is being made"
        }
        RuntimeError::Rejected(Rejected::Written(_)) => "it is what a response has come to",
        RuntimeError::Rejected(Rejected::LeftOpen(_)) => {
            "its answer has calls that were left to be answered by somebody"
        }
        RuntimeError::Rejected(_)
        | RuntimeError::Busy(_)
        | RuntimeError::Followed(_)
        | RuntimeError::Answer(_)
        | RuntimeError::Store(_)
        | RuntimeError::QueueFull { .. }
        | RuntimeError::NotRunning(_)
        | RuntimeError::UnknownAgent(_)
        | RuntimeError::UnknownExecution(_)
        | RuntimeError::NotAtRest(_)
        | RuntimeError::BeyondEnd { .. }
        | RuntimeError::NotEmpty
        | RuntimeError::Cut(_)
        | RuntimeError::TokenReused
        | RuntimeError::Json(_)
        | RuntimeError::BrokenOff
        | RuntimeError::TurnedAway(_)
        | RuntimeError::LimitReached(_)
        | RuntimeError::View(_)
        | RuntimeError::MessageTooLarge { .. }
        | RuntimeError::ShuttingDown => return refused(error, conversation),
    };
    RequestError::not_removable(item, why).into()
}

/// The error for a run that no agent can execute.
pub(super) fn impossible(refused: &OptionsRefused) -> ApiError {
    let at = |pointer: &str| RequestError::at(pointer, "invalid_value", refused.to_string());
    let error = match refused {
        OptionsRefused::UnknownModel(model) => RequestError::model_not_found(model),
        OptionsRefused::Tool(_) => at("/tools"),
        OptionsRefused::UnknownTool(_) => at("/tool_choice"),
        OptionsRefused::Unreadable(_) | OptionsRefused::Unsupported(_) => at(""),
    };
    error.into()
}
