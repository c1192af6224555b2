//! Errors in A2A's form: JSON-RPC's error objects, and the bodies of the HTTP+JSON binding
//! (`google.rpc.Status`).

use super::{ApiError, Failure, is_fault};
use http::StatusCode;
use interop::a2a::{ErrorKind, RequestError, failure as rpc_failure};
use serde_json::{Map, Value, json};

impl From<RequestError> for ApiError {
    fn from(error: RequestError) -> Self {
        Self::A2a(Box::new(error))
    }
}

/// The status of an error kind.
pub(super) fn status(kind: ErrorKind) -> StatusCode {
    match kind {
        ErrorKind::TaskNotFound | ErrorKind::MethodNotFound => StatusCode::NOT_FOUND,
        ErrorKind::TaskNotCancelable
        | ErrorKind::PushNotificationNotSupported
        | ErrorKind::UnsupportedOperation
        | ErrorKind::ContentTypeNotSupported
        | ErrorKind::ExtendedAgentCardNotConfigured
        | ErrorKind::ExtensionSupportRequired
        | ErrorKind::VersionNotSupported
        | ErrorKind::Parse
        | ErrorKind::InvalidRequest
        | ErrorKind::InvalidParams => StatusCode::BAD_REQUEST,
        ErrorKind::InvalidAgentResponse | ErrorKind::Internal => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// The body for a request that is not a valid call: its id is unknown.
pub(super) fn rpc_body(status: StatusCode, failure: &Failure) -> Value {
    rpc_failure(&Value::Null, &rpc(status, failure))
}

/// The JSON-RPC error object of a failed call. Errors of the server are logged, as for responses with a
/// status.
pub(crate) fn rpc_error(error: &ApiError) -> Value {
    let verdict = error.verdict();
    let status = verdict.status;
    error.log(&verdict);
    rpc(status, &error.failure_of(verdict))
}

/// An error object of the HTTP+JSON binding within a stream, which can't send a status.
pub(crate) fn rest_error(error: &ApiError) -> Value {
    let verdict = error.verdict();
    rest(verdict.status, &error.failure_of(verdict))
}

fn rpc(status: StatusCode, failure: &Failure) -> Value {
    if let Some(refusal) = &failure.a2a {
        return refusal.to_rpc();
    }
    let kind = match failure.code {
        "malformed_json" => ErrorKind::Parse,
        "invalid_field" | "invalid_answer" | "invalid_request_answer" => ErrorKind::InvalidParams,
        _ if is_fault(status) => ErrorKind::Internal,
        _ => ErrorKind::InvalidRequest,
    };
    json!({"code": kind.code(), "message": failure.message, "data": [info(failure)]})
}

/// `google.rpc.Status`.
pub(super) fn rest(status: StatusCode, failure: &Failure) -> Value {
    if let Some(refusal) = &failure.a2a {
        return refusal.to_rest(status.as_u16());
    }
    let word = match status {
        StatusCode::UNAUTHORIZED => "UNAUTHENTICATED",
        StatusCode::FORBIDDEN => "PERMISSION_DENIED",
        StatusCode::NOT_FOUND => "NOT_FOUND",
        StatusCode::METHOD_NOT_ALLOWED => "UNIMPLEMENTED",
        StatusCode::CONFLICT => "FAILED_PRECONDITION",
        StatusCode::TOO_MANY_REQUESTS | StatusCode::INSUFFICIENT_STORAGE => "RESOURCE_EXHAUSTED",
        StatusCode::SERVICE_UNAVAILABLE => "UNAVAILABLE",
        status if status.is_server_error() => "INTERNAL",
        _ => "INVALID_ARGUMENT",
    };
    json!({"error": {
        "code": status.as_u16(), "status": word,
        "message": failure.message, "details": [info(failure)],
    }})
}

/// The `ErrorInfo` with the server's own code and details, because the protocol has no code for these
/// errors.
fn info(failure: &Failure) -> Value {
    // Its values are texts.
    let details = failure.details.as_ref().and_then(Value::as_object);
    let details = details.into_iter().flatten();
    let mut metadata: Map<String, Value> = details
        .filter(|(_, value)| value.is_string())
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    if let Some(pointer) = &failure.pointer {
        metadata.insert("pointer".to_owned(), pointer.as_str().into());
    }
    json!({
        "@type": "type.googleapis.com/google.rpc.ErrorInfo", "domain": "loomline",
        "reason": failure.code.to_ascii_uppercase(), "metadata": metadata,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_written_as_each_binding_reads_it() {
        let failure = ApiError::Unauthorized.failure();
        let rpc = rpc_body(StatusCode::UNAUTHORIZED, &failure);
        assert_eq!(rpc["error"]["code"], -32600);
        assert_eq!((&rpc["jsonrpc"], &rpc["id"]), (&json!("2.0"), &Value::Null));
        let rest = rest(StatusCode::UNAUTHORIZED, &failure);
        assert_eq!(rest["error"]["status"], "UNAUTHENTICATED");
        assert_eq!(rest["error"]["details"][0]["reason"], "UNAUTHORIZED");
    }

    #[test]
    fn the_protocols_own_errors_keep_their_kind_in_both_bindings() {
        for kind in ErrorKind::ALL {
            let error = ApiError::from(RequestError::new(kind, "no"));
            assert_eq!(rpc_error(&error)["code"], kind.code());
            let told = rest_error(&error);
            assert_eq!(told["error"]["details"][0]["reason"], kind.reason());
            assert_eq!(told["error"]["code"], status(kind).as_u16());
        }
    }
}
