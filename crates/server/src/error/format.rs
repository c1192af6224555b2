//! The forms of error bodies: each protocol has its own.

use super::{ErrorBody, Failure, a2a, langgraph, mcp, openai};
use axum::Json;
use axum::response::{IntoResponse as _, Response};
use http::StatusCode;

/// The form of an error's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ErrorFormat {
    /// This server's own.
    Own,
    /// `OpenAI`'s, with Open Responses.
    OpenAi,
    /// A2A's form over HTTP and JSON: `google.rpc.Status`.
    A2a,
    /// A2A's over JSON-RPC.
    A2aRpc,
    /// The Model Context Protocol's form: JSON-RPC's error object.
    Mcp,
    /// `LangGraph`'s, with the Agent Protocol.
    LangGraph,
}

impl ErrorFormat {
    /// The name of its schema in the `OpenAPI` document.
    pub(crate) fn schema(self) -> &'static str {
        match self {
            Self::Own => "ErrorBody",
            Self::OpenAi => "OpenAiErrorBody",
            Self::A2a | Self::A2aRpc => "A2aErrorBody",
            Self::Mcp => "McpErrorBody",
            Self::LangGraph => "LangGraphErrorBody",
        }
    }

    /// A response that is only the body of an error.
    pub(crate) fn body(
        self,
        status: StatusCode,
        failure: Failure,
        request_id: Option<String>,
    ) -> Response {
        match self {
            Self::Own => {
                let error = Failure {
                    request_id,
                    ..failure
                };
                Json(ErrorBody { error }).into_response()
            }
            Self::OpenAi => Json(openai::body(status, &failure)).into_response(),
            Self::A2a => Json(a2a::rest(status, &failure)).into_response(),
            Self::A2aRpc => Json(a2a::rpc_body(status, &failure)).into_response(),
            Self::Mcp => Json(mcp::body(status, &failure)).into_response(),
            Self::LangGraph => Json(langgraph::body(&failure)).into_response(),
        }
    }
}
