//! How a provider is reached (UPP §13).

use crate::http::Timeouts;
use crate::keys::KeyStrategy;
use crate::model::Capabilities;
use crate::retry::RetryStrategy;
use secrecy::SecretString;
use std::sync::Arc;
use std::time::Duration;

/// How a provider is reached; everything has a usual value.
#[derive(Clone)]
pub struct ProviderConfig {
    /// The key. This crate reads nothing from the environment; that is the application's task.
    pub api_key: Option<SecretString>,
    /// Chooses the API key if `api_key` is absent. Called once per call, whatever the number of
    /// attempts.
    pub keys: Option<Arc<dyn KeyStrategy>>,
    /// Decides whether and when a failed request is sent again; never if absent. A stream is started
    /// again only while it has not produced anything.
    pub retry: Option<Arc<dyn RetryStrategy>>,
    /// The prefix of the endpoint's address instead of the provider's own, such as
    /// `https://gateway.example/v1`.
    pub base_url: Option<String>,
    /// Further headers, by name; they win over ours. Their values are treated as secrets.
    pub headers: Vec<(String, String)>,
    /// How long to wait.
    pub timeouts: Timeouts,
    /// The model's capabilities, if they differ from those usual for its provider.
    pub capabilities: Option<Capabilities>,
    /// The longest accepted `Retry-After`.
    pub retry_after_max: Duration,
    /// Longest event of a stream, in bytes.
    pub max_event_bytes: usize,
    /// Longest stream in all, in bytes: events, what is between them, and partial images. An answer
    /// that is longer ends with [`Code::InvalidResponse`](crate::Code).
    pub max_stream_bytes: usize,
    /// Maximum length of a response body that is not a stream, in bytes.
    pub max_body_bytes: usize,
    /// The client to send with; one of [`http_client_builder`](crate::http_client_builder) when
    /// absent.
    pub client: Option<reqwest::Client>,
}

impl Default for ProviderConfig {
    fn default() -> Self {
        Self {
            api_key: None,
            keys: None,
            retry: None,
            base_url: None,
            headers: Vec::new(),
            timeouts: Timeouts::default(),
            capabilities: None,
            retry_after_max: Duration::from_hours(1),
            max_event_bytes: 8 << 20,
            max_stream_bytes: 256 << 20,
            max_body_bytes: 64 << 20,
            client: None,
        }
    }
}

impl ProviderConfig {
    /// Sets the key.
    #[must_use]
    pub fn with_api_key(mut self, key: SecretString) -> Self {
        self.api_key = Some(key);
        self
    }

    /// Sets the key strategy.
    #[must_use]
    pub fn with_keys(mut self, keys: Arc<dyn KeyStrategy>) -> Self {
        self.keys = Some(keys);
        self
    }

    /// Sets what is sent again.
    #[must_use]
    pub fn with_retry(mut self, retry: Arc<dyn RetryStrategy>) -> Self {
        self.retry = Some(retry);
        self
    }

    /// Sets the prefix of the endpoint's address.
    #[must_use]
    pub fn with_base_url(mut self, url: impl Into<String>) -> Self {
        self.base_url = Some(url.into());
        self
    }

    /// Adds a header.
    #[must_use]
    pub fn with_header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }
}

impl std::fmt::Debug for ProviderConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("ProviderConfig")
            .field("timeouts", &self.timeouts)
            .field("headers", &names)
            .finish_non_exhaustive()
    }
}
