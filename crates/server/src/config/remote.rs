//! The configuration of remote agents: their addresses and protocols.

use secrecy::SecretString;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::time::Duration;

/// A remote agent.
#[derive(Clone, Debug)]
pub struct RemoteConfig {
    /// Its protocol.
    pub protocol: RemoteProtocol,
    /// Its URL, without a slash at the end. For A2A the JSON-RPC endpoint, else the prefix of the paths,
    /// such as `https://agents.example.com/v1`.
    pub url: String,
    /// Its key; sent to this URL only.
    pub key: Option<SecretString>,
    /// Further headers.
    pub headers: BTreeMap<String, SecretString>,
    /// The remote agent's name: the model of Responses, the assistant of the Threads API. With A2A each
    /// URL has one agent.
    pub agent: Option<String>,
    /// Whether the remote server recognizes a repeated request, by its `Idempotency-Key` or its
    /// message's id.
    pub repeatable: bool,
    /// Whether responses run in the background, so that they continue when the connection breaks.
    pub background: bool,
    /// Time limit for a response's headers.
    pub headers_timeout: Duration,
    /// Maximum time without new bytes of a response.
    pub idle_timeout: Duration,
    /// Maximum size of a response, in bytes.
    pub max_bytes: usize,
}

/// Two configurations are equal if they send the same requests to the same URL; secrets are not
/// compared.
impl PartialEq for RemoteConfig {
    fn eq(&self, other: &Self) -> bool {
        let plain = |it: &Self| {
            (
                it.protocol,
                it.url.clone(),
                it.agent.clone(),
                it.repeatable,
                it.background,
            )
        };
        plain(self) == plain(other)
    }
}

/// The protocol of a remote agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RemoteProtocol {
    /// Open Responses.
    Responses,
    /// The Threads API (AITP-T01).
    Threads,
    /// A2A 1.0, by JSON-RPC.
    A2a,
}

impl RemoteProtocol {
    /// Its name in the file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Responses => "responses",
            Self::Threads => "threads",
            Self::A2a => "a2a",
        }
    }
}
