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
    /// A page.
    #[cfg(feature = "web")]
    Page,
}

impl ErrorFormat {
    /// The form for a page's script, which asks for JSON.
    #[cfg(feature = "web")]
    pub(crate) fn for_script(self, wants_json: bool) -> Self {
        if self == Self::Page && wants_json {
            Self::Own
        } else {
            self
        }
    }

    /// The name of its schema in the `OpenAPI` document.
    pub(crate) fn schema(self) -> &'static str {
        match self {
            Self::Own => "ErrorBody",
            #[cfg(feature = "web")]
            Self::Page => "ErrorBody",
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
            #[cfg(feature = "web")]
            Self::Page => crate::routes::web::error_page(status, &failure, request_id.as_deref()),
        }
    }
}
