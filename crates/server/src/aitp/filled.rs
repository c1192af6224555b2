//! Form values as answers to AITP requests.

use super::refused::Refused;
use crate::error::ApiError;
use crate::state::Api;
use interop::aitp::{
    Message, MessageRefusal, Party, RequestQuestion, RequestRefusal, RequestState, Schemas,
};
use jiff::Timestamp;
use serde_json::Value;

/// Makes the capability message that answers a question with a value. `pointer` is the value's JSON
/// pointer.
///
/// # Errors
///
/// The violation in the value. If the request is closed, `over` is its state, and the error says that
/// the answer is late.
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

/// The state of a request that can't be answered any more; none if it can.
pub(crate) fn over(state: RequestState) -> Option<RequestState> {
    match state {
        RequestState::Open | RequestState::Answered => None,
        RequestState::Declined
        | RequestState::Cancelled
        | RequestState::Expired
        | RequestState::Superseded => Some(state),
    }
}

/// The agent of this server that made the request, if one did.
pub(crate) fn asking(api: &Api, question: &RequestQuestion) -> Option<String> {
    match &question.ask.by {
        Party::Agent(name) if api.app().has_agent(name) => Some(name.clone()),
        Party::Agent(_) | Party::Initiator | Party::Actor(_) | Party::Assistant => None,
    }
}
