//! What somebody has filled in as the answer to a request.

use super::refused::Refused;
use crate::error::ApiError;
use crate::state::Api;
use interop::aitp::{
    Message, MessageRefusal, Party, RequestQuestion, RequestRefusal, RequestState, Schemas,
};
use jiff::Timestamp;
use serde_json::Value;

/// The message that a value is as the answer to a question. `pointer` is where the value stands.
///
/// # Errors
///
/// What is wrong with the value; or that it comes too late, where `over` says what became of the
/// request: then no value is right.
pub(crate) fn filled(
    question: &RequestQuestion,
    over: Option<RequestState>,
    value: &Value,
    pointer: &str,
) -> Result<Message, ApiError> {
    let refused =
        |turned: MessageRefusal| ApiError::Refused(Box::new(Refused::at(turned, pointer)));
    let schemas = Schemas::shared().map_err(|error| refused(MessageRefusal::Schemas(error)))?;
    let message = question.answer(schemas, value, Timestamp::now());
    message.map_err(|wrong| match over {
        Some(state) => {
            let request = question.ask.key.clone();
            let refusal = RequestRefusal::Late { request, state };
            refused(MessageRefusal::Refused { place: 0, refusal })
        }
        None => ApiError::InvalidRequestAnswer {
            pointer: pointer.to_owned(),
            wrong,
        },
    })
}

/// What became of a request that can't be answered any more.
pub(crate) fn over(state: RequestState) -> Option<RequestState> {
    match state {
        RequestState::Open | RequestState::Answered => None,
        RequestState::Declined
        | RequestState::Cancelled
        | RequestState::Expired
        | RequestState::Superseded => Some(state),
    }
}

/// The agent of this server that has asked.
pub(crate) fn asking(api: &Api, question: &RequestQuestion) -> Option<String> {
    match &question.ask.by {
        Party::Agent(name) if api.app().has_agent(name) => Some(name.clone()),
        Party::Agent(_) | Party::Initiator | Party::Actor(_) | Party::Assistant => None,
    }
}
