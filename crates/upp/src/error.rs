//! The one error of the protocol (UPP §14).

mod json;

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The error codes of the protocol (UPP §14).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Code {
    /// The key is missing or refused.
    AuthenticationFailed,
    /// Too many requests.
    RateLimited,
    /// The input is longer than the model accepts.
    ContextLengthExceeded,
    /// The provider knows no such model.
    ModelNotFound,
    /// The provider or the model does not support the request.
    InvalidRequest,
    /// The provider answered with something that is not its own format.
    InvalidResponse,
    /// The provider's policy stopped the answer.
    ContentFiltered,
    /// The account's credit is used up.
    QuotaExceeded,
    /// The provider failed.
    ProviderError,
    /// The provider was not reached, or the connection broke.
    NetworkError,
    /// The provider took too long.
    Timeout,
    /// The caller cancelled.
    Cancelled,
}

impl Code {
    /// All codes.
    pub const ALL: [Self; 12] = [
        Self::AuthenticationFailed,
        Self::RateLimited,
        Self::ContextLengthExceeded,
        Self::ModelNotFound,
        Self::InvalidRequest,
        Self::InvalidResponse,
        Self::ContentFiltered,
        Self::QuotaExceeded,
        Self::ProviderError,
        Self::NetworkError,
        Self::Timeout,
        Self::Cancelled,
    ];

    /// The protocol's spelling, such as `RATE_LIMITED`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AuthenticationFailed => "AUTHENTICATION_FAILED",
            Self::RateLimited => "RATE_LIMITED",
            Self::ContextLengthExceeded => "CONTEXT_LENGTH_EXCEEDED",
            Self::ModelNotFound => "MODEL_NOT_FOUND",
            Self::InvalidRequest => "INVALID_REQUEST",
            Self::InvalidResponse => "INVALID_RESPONSE",
            Self::ContentFiltered => "CONTENT_FILTERED",
            Self::QuotaExceeded => "QUOTA_EXCEEDED",
            Self::ProviderError => "PROVIDER_ERROR",
            Self::NetworkError => "NETWORK_ERROR",
            Self::Timeout => "TIMEOUT",
            Self::Cancelled => "CANCELLED",
        }
    }
}

/// The kind of model that failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Modality {
    /// A language model.
    #[default]
    Llm,
    /// An embedding model.
    Embedding,
    /// An image model.
    Image,
    /// An audio model.
    Audio,
    /// A video model.
    Video,
}

impl Modality {
    /// The protocol's spelling, such as `llm`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Llm => "llm",
            Self::Embedding => "embedding",
            Self::Image => "image",
            Self::Audio => "audio",
            Self::Video => "video",
        }
    }
}

/// A failure of a model call (`UPPError`, UPP §14). The message never contains a key.
///
/// As JSON: `{name, message, code, provider, modality, statusCode?, cause?}`, where `cause` is the
/// cause's text. An error that was read from JSON has that text as its cause.
#[derive(Debug, thiserror::Error)]
#[error("{message} ({provider}, {code:?})")]
pub struct Error {
    /// The protocol's code.
    pub code: Code,
    /// A message for people.
    pub message: String,
    /// The provider's name, such as `openai`.
    pub provider: String,
    /// The kind of model.
    pub modality: Modality,
    /// The HTTP status, if there was one.
    pub status: Option<u16>,
    /// The wait before the next attempt that the provider requests.
    pub retry_after: Option<Duration>,
    /// The underlying error.
    #[source]
    pub cause: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    /// Makes an error without a status or cause.
    pub fn new(code: Code, provider: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            provider: provider.into(),
            modality: Modality::Llm,
            status: None,
            retry_after: None,
            cause: None,
        }
    }

    /// Adds the cause.
    #[must_use]
    pub fn caused_by(mut self, cause: impl std::error::Error + Send + Sync + 'static) -> Self {
        self.cause = Some(Box::new(cause));
        self
    }

    /// Sets the kind of model; it is a language model otherwise.
    #[must_use]
    pub fn with_modality(mut self, modality: Modality) -> Self {
        self.modality = modality;
        self
    }

    /// Whether the same request may succeed when it is sent again.
    pub fn is_retryable(&self) -> bool {
        matches!(
            self.code,
            Code::RateLimited | Code::ProviderError | Code::NetworkError | Code::Timeout
        )
    }

    /// The protocol's one-line form: `UPPError [CODE]: message (provider: …, modality: …)`, with the
    /// status if there is one.
    pub fn line(&self) -> String {
        let status = self
            .status
            .map(|status| format!(", status: {status}"))
            .unwrap_or_default();
        format!(
            "UPPError [{}]: {} (provider: {}, modality: {}{status})",
            self.code.as_str(),
            self.message,
            self.provider,
            self.modality.as_str(),
        )
    }
}

#[cfg(test)]
mod tests;
