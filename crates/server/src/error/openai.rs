//! Errors in the form of `OpenAI`'s API, which Open Responses shares: `{"error": {"message", "type",
//! "param", "code"}}`.

use super::{ApiError, Failure};
use http::StatusCode;
use interop::{responses, threads};
use serde_json::{Value, json};

/// An error with a text, type and code of its protocol.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Worded {
    pub(crate) status: StatusCode,
    pub(crate) kind: &'static str,
    pub(crate) code: Option<&'static str>,
    pub(crate) param: Option<String>,
    pub(crate) message: String,
}

impl Worded {
    /// An invalid request.
    pub(crate) fn invalid(
        param: Option<&str>,
        code: Option<&'static str>,
        message: impl Into<String>,
    ) -> Self {
        Self {
            status: StatusCode::BAD_REQUEST,
            kind: INVALID,
            code,
            param: param.map(str::to_owned),
            message: message.into(),
        }
    }

    /// A conflict with other requests; the request may be repeated.
    pub(crate) fn conflict(code: &'static str, message: impl Into<String>) -> Self {
        Self {
            status: StatusCode::CONFLICT,
            ..Self::invalid(None, Some(code), message)
        }
    }
}

impl From<Worded> for ApiError {
    fn from(worded: Worded) -> Self {
        Self::Worded(Box::new(worded))
    }
}

impl From<responses::RequestError> for Worded {
    fn from(error: responses::RequestError) -> Self {
        use responses::ErrorKind as K;
        let status = match error.kind {
            // A client of this API takes a conflict for something to be tried again at once.
            K::InvalidRequest | K::Conflict => StatusCode::BAD_REQUEST,
            K::NotFound => StatusCode::NOT_FOUND,
            K::TooManyRequests => StatusCode::TOO_MANY_REQUESTS,
            K::ModelError | K::ServerError => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self {
            status,
            kind: error.kind.name(),
            code: Some(error.code),
            param: error.param(),
            message: error.message,
        }
    }
}

impl From<threads::RequestError> for Worded {
    fn from(error: threads::RequestError) -> Self {
        let status = match error.kind() {
            threads::ErrorKind::InvalidRequest => StatusCode::BAD_REQUEST,
            threads::ErrorKind::NotFound => StatusCode::NOT_FOUND,
        };
        Self {
            status,
            kind: INVALID,
            code: error.code(),
            param: error.pointer().and_then(param),
            message: error.to_string(),
        }
    }
}

impl From<responses::RequestError> for ApiError {
    fn from(error: responses::RequestError) -> Self {
        Self::Worded(Box::new(error.into()))
    }
}

impl From<threads::RequestError> for ApiError {
    fn from(error: threads::RequestError) -> Self {
        Self::Worded(Box::new(error.into()))
    }
}

const INVALID: &str = "invalid_request_error";

/// The body of an error. If the protocol's view has no own text, the type follows from the status.
pub(crate) fn body(status: StatusCode, failure: &Failure) -> Value {
    let param = failure.pointer.as_deref().and_then(param);
    let error = match &failure.worded {
        Some(worded) => json!({
            "message": failure.message, "type": worded.kind,
            "param": worded.param, "code": worded.code,
        }),
        None => json!({
            "message": failure.message, "type": kind(status), "param": param, "code": failure.code,
        }),
    };
    json!({ "error": error })
}

/// The status of an error, and its object, for clients that receive it outside of a response.
pub(crate) fn error_body(error: &ApiError) -> (StatusCode, Value) {
    let status = error.verdict().status;
    let mut body = body(status, &error.failure());
    (status, body["error"].take())
}

/// The error type of a status.
fn kind(status: StatusCode) -> &'static str {
    match status {
        StatusCode::UNAUTHORIZED => "authentication_error",
        StatusCode::FORBIDDEN => "permission_error",
        StatusCode::TOO_MANY_REQUESTS => "too_many_requests",
        status if status.is_server_error() => "server_error",
        _ => INVALID,
    }
}

/// A JSON pointer in this API's notation; none for the whole body.
fn param(pointer: &str) -> Option<String> {
    Some(interop::param(pointer)).filter(|param| !param.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_view_says_itself_is_said_in_its_words() {
        let error = ApiError::from(responses::RequestError::previous_response_not_found(
            "resp_1",
        ));
        let told = body(StatusCode::BAD_REQUEST, &error.failure());
        assert_eq!(told["error"]["code"], "previous_response_not_found");
        assert_eq!(told["error"]["param"], "previous_response_id");
        assert_eq!(told["error"]["type"], "invalid_request_error");
    }

    #[test]
    fn what_every_route_may_answer_has_a_type_and_a_place() {
        let error = ApiError::field("/messages/0/content", "expected a string");
        let told = body(StatusCode::UNPROCESSABLE_ENTITY, &error.failure());
        assert_eq!(
            told["error"],
            json!({
                "message": "expected a string", "type": "invalid_request_error",
                "param": "messages[0].content", "code": "invalid_field",
            })
        );
        let told = body(StatusCode::UNAUTHORIZED, &ApiError::Unauthorized.failure());
        assert_eq!(told["error"]["type"], "authentication_error");
    }
}
