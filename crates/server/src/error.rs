//! The errors that clients receive. Only this module maps errors to HTTP statuses and stable codes.

pub(crate) mod a2a;
pub(crate) mod aitp;
pub(crate) mod causes;
mod conversions;
mod exchange;
mod format;
pub(crate) mod langgraph;
pub(crate) mod mcp;
mod not_ready;
pub(crate) mod openai;
mod pointer;
mod retry_after;
mod store;

pub use causes::render_error;
pub use exchange::ExchangeError;
pub(crate) use format::ErrorFormat;
pub(crate) use not_ready::NotReady;

use crate::aitp::refused::Refused;
use crate::auth::{Scope, TenantUnclear, TokenRefused};
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use interop::aitp::MessageViolation;
use pointer::content_pointer;
use retry_after::retry_after;
use runtime::{LimitKind, LimitReached, RuntimeError, ViewRefused};
use serde::Serialize;
use serde_json::{Value, json};
use std::time::Duration;
use store::of_store;
use timeline::{ANSWER, ContentError, Rejected, Removed, Seq};
use utoipa::ToSchema;

/// The errors of requests.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ApiError {
    #[error("a key is needed: send the header \"authorization: Bearer llk_…\" with a valid one")]
    Unauthorized,
    #[error("you are not logged in; log in and try again")]
    NotLoggedIn,
    #[error("the key has expired; use its successor, or ask the operator of this server for one")]
    KeyExpired,
    #[error(transparent)]
    Token(#[from] TokenRefused),
    #[error("the key was taken away, or may do something else than before")]
    KeyRevoked,
    #[error("this key may not do that; a key with the scope \"{}\" may", .needed.name())]
    MissingScope { needed: Scope },
    #[error("this key has made too many requests; the next one is taken in {} s", .wait.as_secs() + 1)]
    RateLimited { wait: Duration },
    #[error("this key may not touch this thread")]
    ForbiddenThread,
    #[error("this key is for some threads only, and this belongs to none")]
    ForbiddenSidecar,
    #[error("this token may not answer pending calls; the site must create it with mayAnswer")]
    #[cfg_attr(not(feature = "web"), expect(dead_code, reason = "only pages make it"))]
    ForbiddenAnswer,
    #[error("this key may not speak as {actor:?}")]
    ForbiddenActor { actor: String, pointer: String },
    #[error("this server serves this machine only; the host {host:?} is not this machine")]
    ForeignHost { host: String },
    #[error("pages of {origin:?} may not call this server; list the origin in server.cors_origins")]
    ForeignOrigin { origin: String },
    #[error("pages of other origins may not send forms to this server")]
    ForeignForm,
    #[error("there is no such session with this key; begin one with initialize")]
    SessionNotFound,
    #[error("this is not a request of MCP over HTTP: {reason}")]
    McpTransport { status: StatusCode, reason: String },
    #[error("this is not a message of JSON-RPC 2.0: {what}")]
    InvalidMessage { what: String },
    #[error("there is nothing at this path")]
    UnknownRoute,
    #[error("this path has no such method")]
    UnknownMethod,
    #[error("the content type must be application/json")]
    NotJson,
    #[error("the body is longer than {limit} bytes")]
    BodyTooLarge { limit: usize },
    #[error("the thread's last event is {found}, expected {expected}")]
    ThreadChanged { expected: Seq, found: Seq },
    #[error("the value has {bytes} bytes, and {max} are allowed")]
    ObjectTooLarge { bytes: usize, max: usize },
    #[error("the body did not arrive in time")]
    BodyTimeout,
    #[error("the body broke off")]
    BodyBroken,
    #[error("the body is not JSON: {what} at line {line}, column {column}")]
    MalformedJson {
        what: String,
        line: usize,
        column: usize,
    },
    #[error("the body nests deeper than {limit} levels")]
    TooDeep { pointer: String, limit: usize },
    #[error("the body has more than {limit} values")]
    TooManyValues { limit: usize },
    #[error("{what}")]
    InvalidField { pointer: String, what: String },
    #[error(transparent)]
    Tenant(TenantUnclear),
    #[error("the query is malformed: {what}")]
    InvalidQuery { what: String },
    #[error("the path is malformed: {what}")]
    InvalidPath { what: String },
    #[error("the header {name} is malformed, expected {expected}")]
    InvalidHeader {
        name: &'static str,
        expected: &'static str,
    },
    #[error(
        "the event id is of another thread that had this key before: it was deleted and made again; begin without an id"
    )]
    ForeignEventId,
    #[error("this lease of the step has ended; lease another step")]
    LeaseEnded,
    #[error("the run of the step was cancelled; lease another step")]
    StepCancelled,
    #[error("there is no such execution on this thread")]
    RunNotFound,
    #[error("{what}; the server owns the history: load the messages again")]
    HistoryDiffers { pointer: String, what: String },
    #[error("the file can't be imported: {what}")]
    InvalidDocument {
        pointer: Option<String>,
        what: String,
    },
    #[error(transparent)]
    Worded(Box<openai::Worded>),
    #[error(transparent)]
    A2a(Box<interop::a2a::RequestError>),
    #[error(transparent)]
    LangGraph(Box<interop::langgraph::RequestError>),
    #[error("the server is not ready: {}", .0.advice())]
    NotReady(NotReady),
    #[error("the data of the tenant {tenant:?} moves to another database; try again later")]
    TenantPaused { tenant: String },
    #[error("the server has no connection left; close some or try again later")]
    NoConnectionLeft,
    #[error("the server failed")]
    Panicked,
    #[error("there is no such request in this thread")]
    RequestNotFound,
    #[error("the value does not answer the request: {}", .wrong.first().map(ToString::to_string).unwrap_or_default())]
    InvalidRequestAnswer {
        pointer: String,
        wrong: Vec<MessageViolation>,
    },
    #[error(transparent)]
    Refused(Box<Refused>),
    #[error(transparent)]
    Runtime(RuntimeError),
    #[error("the server failed")]
    Export(#[source] ExchangeError),
}

/// The body of every error response.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct ErrorBody {
    /// The error.
    pub(crate) error: Failure,
}

/// A refusal or a failure.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Failure {
    /// Stable, for programs.
    pub(crate) code: &'static str,
    /// The error's text for people; it may change between versions.
    pub(crate) message: String,
    /// The JSON pointer of the error in the request's body.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pointer: Option<String>,
    /// Details that the code does not state.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub(crate) details: Option<Value>,
    /// The request's id, also in the server's log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) request_id: Option<String>,
    /// The error in the form of an OpenAI API.
    #[serde(skip)]
    pub(crate) worded: Option<Box<openai::Worded>>,
    /// The error in A2A's form.
    #[serde(skip)]
    pub(crate) a2a: Option<Box<interop::a2a::RequestError>>,
}

/// The status, the code and the body of an error.
struct Verdict {
    status: StatusCode,
    code: &'static str,
    message: Option<String>,
    pointer: Option<String>,
    details: Option<Value>,
}

impl Verdict {
    fn new(status: StatusCode, code: &'static str) -> Self {
        Self {
            status,
            code,
            message: None,
            pointer: None,
            details: None,
        }
    }

    /// Hides details from clients that only the operator should read.
    fn hidden(status: StatusCode, code: &'static str, message: &str) -> Self {
        Self {
            message: Some(message.to_owned()),
            ..Self::new(status, code)
        }
    }

    fn at(self, pointer: impl Into<String>) -> Self {
        Self {
            pointer: Some(pointer.into()),
            ..self
        }
    }

    fn with(self, details: Value) -> Self {
        Self {
            details: Some(details),
            ..self
        }
    }
}

impl ApiError {
    /// An invalid field of the body.
    pub(crate) fn field(pointer: impl Into<String>, what: impl Into<String>) -> Self {
        Self::InvalidField {
            pointer: pointer.into(),
            what: what.into(),
        }
    }

    /// The error of content that is not a valid list of parts; `base` is the JSON pointer of the
    /// content.
    pub(crate) fn content(base: &str, error: &ContentError) -> Self {
        let place = content_pointer(error);
        let pointer = format!("{base}{place}");
        let told = error.to_string();
        // What the type of its part is, is ours.
        if let ContentError::Reinterpreted { kind, expected, .. } = error
            && kind == ANSWER
        {
            return Self::field(pointer, format!("an answer needs {expected} here"));
        }
        // Its place is told with the error, from the body's beginning.
        let what = told.strip_prefix(&format!("{place}: ")).unwrap_or(&told);
        Self::field(pointer, what)
    }

    /// Whether it is a fault of the server that concerns the operator.
    pub(crate) fn is_fault(&self) -> bool {
        is_fault(self.verdict().status)
    }

    /// Logs a fault of the server. The store logs its own faults.
    fn log(&self, verdict: &Verdict) {
        let (status, code) = (verdict.status, verdict.code);
        if !status.is_server_error() || status == StatusCode::INSUFFICIENT_STORAGE {
            return;
        }
        if self.is_logged() {
            tracing::debug!(error = render_error(self), code, "a request failed");
        } else {
            tracing::error!(error = render_error(self), code, "a request failed");
        }
    }

    /// Whether it needs no log line of its own: the store has logged it, a probe repeats, or metrics
    /// count it.
    pub(crate) fn is_logged(&self) -> bool {
        if let Self::Runtime(error) = self {
            return error.is_logged();
        }
        matches!(
            self,
            Self::NotReady(_) | Self::NoConnectionLeft | Self::TenantPaused { .. }
        )
    }

    /// The error as clients see it.
    pub(crate) fn failure(&self) -> Failure {
        self.failure_of(self.verdict())
    }

    fn failure_of(&self, verdict: Verdict) -> Failure {
        Failure {
            code: verdict.code,
            message: verdict.message.unwrap_or_else(|| self.to_string()),
            pointer: verdict.pointer,
            details: verdict.details,
            request_id: None,
            worded: if let Self::Worded(worded) = self {
                Some(worded.clone())
            } else {
                None
            },
            a2a: if let Self::A2a(refusal) = self {
                Some(refusal.clone())
            } else {
                None
            },
        }
    }

    fn verdict(&self) -> Verdict {
        use StatusCode as S;
        match self {
            Self::Unauthorized => Verdict::new(S::UNAUTHORIZED, "unauthorized"),
            Self::NotLoggedIn => Verdict::new(S::UNAUTHORIZED, "not_logged_in"),
            Self::KeyExpired => Verdict::new(S::UNAUTHORIZED, "key_expired"),
            Self::KeyRevoked => Verdict::new(S::UNAUTHORIZED, "key_revoked"),
            Self::Token(TokenRefused::NoKeys) => {
                Verdict::new(S::SERVICE_UNAVAILABLE, "issuer_unavailable")
            }
            Self::Token(refused) => Verdict::new(S::UNAUTHORIZED, "invalid_token")
                .with(json!({ "reason": refused.reason() })),
            Self::MissingScope { needed } => {
                Verdict::new(S::FORBIDDEN, "missing_scope").with(json!({ "scope": needed.name() }))
            }
            Self::RateLimited { wait } => Verdict::new(S::TOO_MANY_REQUESTS, "rate_limited")
                .with(json!({ "retryAfterS": wait.as_secs() + 1 })),
            Self::ForbiddenThread | Self::ForbiddenSidecar => {
                Verdict::new(S::FORBIDDEN, "forbidden_thread")
            }
            Self::ForbiddenAnswer => Verdict::new(S::FORBIDDEN, "forbidden_answer"),
            Self::ForbiddenActor { pointer, .. } => {
                Verdict::new(S::FORBIDDEN, "forbidden_actor").at(pointer)
            }
            Self::ForeignHost { .. } => Verdict::new(S::FORBIDDEN, "foreign_host"),
            Self::ForeignOrigin { .. } | Self::ForeignForm => {
                Verdict::new(S::FORBIDDEN, "foreign_origin")
            }
            Self::SessionNotFound => Verdict::new(S::NOT_FOUND, "session_not_found"),
            Self::McpTransport { status, .. } => Verdict {
                status: *status,
                ..Verdict::new(S::BAD_REQUEST, "mcp_transport")
            },
            Self::InvalidMessage { .. } => Verdict::new(S::BAD_REQUEST, "invalid_message"),
            Self::UnknownRoute => Verdict::new(S::NOT_FOUND, "route_not_found"),
            Self::UnknownMethod => Verdict::new(S::METHOD_NOT_ALLOWED, "method_not_allowed"),
            Self::NotJson => Verdict::new(S::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type"),
            Self::BodyTooLarge { limit } => {
                Verdict::new(S::PAYLOAD_TOO_LARGE, "body_too_large").with(json!({ "limit": limit }))
            }
            Self::ThreadChanged { found, .. } => {
                Verdict::new(S::CONFLICT, "conflict").with(json!({ "seq": found }))
            }
            Self::ObjectTooLarge { bytes, max } => {
                Verdict::new(S::PAYLOAD_TOO_LARGE, "object_too_large")
                    .at("/value")
                    .with(json!({ "bytes": bytes, "max": max }))
            }
            Self::BodyTimeout => Verdict::new(S::REQUEST_TIMEOUT, "body_timeout"),
            Self::BodyBroken => Verdict::new(S::BAD_REQUEST, "body_broken"),
            Self::MalformedJson { line, column, .. } => {
                Verdict::new(S::BAD_REQUEST, "malformed_json")
                    .with(json!({ "line": line, "column": column }))
            }
            Self::TooDeep { pointer, limit } => Verdict::new(S::BAD_REQUEST, "too_deep")
                .at(pointer)
                .with(json!({ "limit": limit })),
            Self::TooManyValues { limit } => Verdict::new(S::PAYLOAD_TOO_LARGE, "too_many_values")
                .with(json!({ "limit": limit })),
            Self::InvalidField { pointer, .. } => {
                Verdict::new(S::UNPROCESSABLE_ENTITY, "invalid_field").at(pointer)
            }
            Self::Tenant(_) => Verdict::new(S::BAD_REQUEST, "unclear_tenant"),
            Self::InvalidQuery { .. } => Verdict::new(S::BAD_REQUEST, "invalid_query"),
            Self::InvalidPath { .. } => Verdict::new(S::BAD_REQUEST, "invalid_path"),
            Self::InvalidHeader { .. } => Verdict::new(S::BAD_REQUEST, "invalid_header"),
            Self::ForeignEventId => Verdict::new(S::CONFLICT, "foreign_event_id"),
            Self::LeaseEnded => Verdict::new(S::CONFLICT, "lease_ended"),
            Self::StepCancelled => Verdict::new(S::CONFLICT, "step_cancelled"),
            Self::RunNotFound => Verdict::new(S::NOT_FOUND, "run_not_found"),
            Self::HistoryDiffers { pointer, .. } => {
                Verdict::new(S::CONFLICT, "history_differs").at(pointer)
            }
            Self::InvalidDocument { pointer, .. } => {
                let verdict = Verdict::new(S::UNPROCESSABLE_ENTITY, "invalid_document");
                Verdict {
                    pointer: pointer.clone(),
                    ..verdict
                }
            }
            Self::RequestNotFound => Verdict::new(S::NOT_FOUND, "request_not_found"),
            Self::InvalidRequestAnswer { pointer, wrong } => {
                let within = wrong.first().map_or("", |first| &first.pointer);
                Verdict::new(S::UNPROCESSABLE_ENTITY, "invalid_request_answer")
                    .at(format!("{pointer}{within}"))
                    .with(json!({ "violations": aitp::violations(wrong) }))
            }
            Self::Refused(refused) => aitp::verdict(refused),
            Self::Worded(worded) => Verdict::new(worded.status, worded.code.unwrap_or(worded.kind)),
            Self::A2a(refusal) => Verdict::new(a2a::status(refusal.kind), "a2a"),
            Self::LangGraph(refusal) => Verdict {
                pointer: refusal.pointer.clone(),
                ..Verdict::new(langgraph::status(refusal.kind), refusal.kind.code())
            },
            Self::NotReady(reason) => Verdict::new(S::SERVICE_UNAVAILABLE, "not_ready")
                .with(json!({ "reason": reason.code() })),
            Self::TenantPaused { .. } => Verdict::new(S::SERVICE_UNAVAILABLE, "tenant_paused"),
            Self::NoConnectionLeft => Verdict::new(S::SERVICE_UNAVAILABLE, "too_many_connections"),
            Self::Panicked | Self::Export(_) => Verdict::new(S::INTERNAL_SERVER_ERROR, "internal"),
            Self::Runtime(error) => of_runtime(error),
        }
    }
}

fn of_runtime(error: &RuntimeError) -> Verdict {
    use StatusCode as S;
    match error {
        RuntimeError::Rejected(error) => of_rejected(error),
        RuntimeError::Store(error) => of_store(error),
        RuntimeError::Busy(execution) => {
            Verdict::new(S::CONFLICT, "thread_busy").with(json!({ "executionId": execution }))
        }
        RuntimeError::Followed(seq) => {
            Verdict::new(S::CONFLICT, "illegal_state").with(json!({ "seq": seq }))
        }
        RuntimeError::QueueFull { limit } => {
            Verdict::new(S::TOO_MANY_REQUESTS, "queue_full").with(json!({ "limit": limit }))
        }
        RuntimeError::NotRunning(execution) => {
            Verdict::new(S::CONFLICT, "not_running").with(json!({ "executionId": execution }))
        }
        RuntimeError::UnknownExecution(_) => Verdict::new(S::NOT_FOUND, "run_not_found"),
        RuntimeError::Answer(refusal) => Verdict::new(S::UNPROCESSABLE_ENTITY, "invalid_answer")
            .with(json!({ "toolCallId": refusal.call })),
        RuntimeError::UnknownAgent(_) => {
            Verdict::new(S::UNPROCESSABLE_ENTITY, "unknown_agent").at("/agent")
        }
        RuntimeError::NotAtRest(seq) => {
            Verdict::new(S::CONFLICT, "not_at_rest").with(json!({ "seq": seq }))
        }
        RuntimeError::Cut(refused) => {
            let next = refused.next.as_ref();
            let next =
                next.map(|next| json!({"executionId": next.execution_id, "event": next.seq}));
            Verdict::new(S::CONFLICT, "illegal_cut").with(json!({ "next": next }))
        }
        RuntimeError::BeyondEnd { .. } => {
            Verdict::new(S::UNPROCESSABLE_ENTITY, "invalid_field").at("/at")
        }
        RuntimeError::TokenReused => {
            Verdict::new(S::UNPROCESSABLE_ENTITY, "idempotency_key_reused")
        }
        RuntimeError::NotEmpty => Verdict::new(S::CONFLICT, "not_empty"),
        RuntimeError::Json(_) => {
            Verdict::hidden(S::INTERNAL_SERVER_ERROR, "internal", "the server failed")
        }
        RuntimeError::BrokenOff | RuntimeError::TurnedAway(_) => {
            Verdict::new(S::INTERNAL_SERVER_ERROR, "internal")
        }
        RuntimeError::LimitReached(reached) | RuntimeError::View(ViewRefused::Busy(reached)) => {
            of_limit(reached)
        }
        RuntimeError::View(ViewRefused::TooLarge { .. }) => {
            Verdict::new(S::UNPROCESSABLE_ENTITY, "thread_too_large")
        }
        RuntimeError::MessageTooLarge { bytes, max } => {
            Verdict::new(S::PAYLOAD_TOO_LARGE, "message_too_large")
                .at("/content")
                .with(json!({ "bytes": bytes, "max": max }))
        }
        RuntimeError::ShuttingDown => Verdict::new(S::SERVICE_UNAVAILABLE, "shutting_down"),
    }
}

fn of_limit(reached: &LimitReached) -> Verdict {
    use StatusCode as S;
    let verdict = match reached.kind {
        LimitKind::Rate { .. } | LimitKind::Concurrency => {
            Verdict::new(S::TOO_MANY_REQUESTS, "limit_reached")
        }
        LimitKind::Storage => Verdict::new(S::INSUFFICIENT_STORAGE, "storage_limit_reached"),
    };
    verdict.with(json!({ "limit": reached.name, "max": reached.max }))
}

fn of_rejected(error: &Rejected) -> Verdict {
    use StatusCode as S;
    match error {
        Rejected::Transition(illegal) => {
            let details =
                json!({ "entity": illegal.entity, "from": illegal.from, "to": illegal.to });
            Verdict::new(S::CONFLICT, "illegal_transition").with(details)
        }
        Rejected::Content(error) => Verdict::new(S::UNPROCESSABLE_ENTITY, "invalid_field")
            .at(format!("/content{}", content_pointer(error))),
        Rejected::NoThread => Verdict::new(S::NOT_FOUND, "thread_not_found"),
        Rejected::Busy(execution) => {
            Verdict::new(S::CONFLICT, "thread_busy").with(json!({ "executionId": execution }))
        }
        Rejected::NotOpen(call) => {
            Verdict::new(S::NOT_FOUND, "unknown_call").with(json!({ "toolCallId": call }))
        }
        Rejected::WrongAnswer { call, kind } => Verdict::new(S::CONFLICT, "wrong_answer")
            .with(json!({ "toolCallId": call, "expected": kind })),
        Rejected::AnsweredAlready(call) => {
            Verdict::new(S::CONFLICT, "answered_already").with(json!({ "toolCallId": call }))
        }
        Rejected::Unanswered(call) => {
            Verdict::new(S::CONFLICT, "unanswered").with(json!({ "toolCallId": call }))
        }
        Rejected::Superseded(call) => {
            Verdict::new(S::CONFLICT, "superseded").with(json!({ "toolCallId": call }))
        }
        Rejected::NotThere(Removed::Compaction(_))
        | Rejected::RemovedAlready(Removed::Compaction(_)) => {
            Verdict::new(S::NOT_FOUND, "compaction_not_found")
        }
        Rejected::NotThere(_) | Rejected::RemovedAlready(_) => {
            Verdict::new(S::NOT_FOUND, "item_not_found")
        }
        Rejected::StillNeeded(_) | Rejected::Written(_) | Rejected::LeftOpen(_) => {
            Verdict::new(S::CONFLICT, "not_removable")
        }
        Rejected::Role => Verdict::new(S::UNPROCESSABLE_ENTITY, "invalid_field").at("/role"),
        Rejected::ThreadExists
        | Rejected::NotRunning
        | Rejected::Closed
        | Rejected::NoStep(_)
        | Rejected::StepRunning(_)
        | Rejected::AlreadyResponded(_)
        | Rejected::NotResponded(_)
        | Rejected::CallRunning { .. }
        | Rejected::CallWaits(_)
        | Rejected::UnknownCall { .. }
        | Rejected::PartGap { .. }
        | Rejected::Reserved(_)
        | Rejected::NothingWaits => Verdict::new(S::CONFLICT, "illegal_state"),
    }
}

/// Whether a status is a fault of the server: all of 5xx except a tenant's full storage.
fn is_fault(status: StatusCode) -> bool {
    status.is_server_error() && status != StatusCode::INSUFFICIENT_STORAGE
}

impl IntoResponse for ApiError {
    /// The status and the error; the outermost layer writes the body, because it knows the request's id.
    fn into_response(self) -> Response {
        let verdict = self.verdict();
        let status = verdict.status;
        self.log(&verdict);
        let mut response = status.into_response();
        let headers = response.headers_mut();
        if status == StatusCode::UNAUTHORIZED {
            let challenge = if let Self::Token(_) = &self {
                "Bearer realm=\"loomline\", error=\"invalid_token\""
            } else {
                "Bearer realm=\"loomline\""
            };
            headers.insert(
                header::WWW_AUTHENTICATE,
                HeaderValue::from_static(challenge),
            );
        }
        if matches!(
            status,
            StatusCode::TOO_MANY_REQUESTS
                | StatusCode::SERVICE_UNAVAILABLE
                | StatusCode::INSUFFICIENT_STORAGE
        ) {
            headers.insert(header::RETRY_AFTER, retry_after(&self).as_secs().into());
        }
        response.extensions_mut().insert(self.failure_of(verdict));
        response
    }
}

#[cfg(test)]
mod tests;
