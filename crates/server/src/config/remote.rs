//! Agents elsewhere: where they are and how they are asked.

use secrecy::SecretString;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::time::Duration;

/// An agent elsewhere.
#[derive(Clone, Debug)]
pub struct RemoteConfig {
    /// What it speaks.
    pub protocol: RemoteProtocol,
    /// Its address, without a slash at the end. For A2A the endpoint of JSON-RPC, else the prefix of the paths, such as
    /// `https://agents.example.com/v1`.
    pub url: String,
    /// The key; it goes to this address and nowhere else.
    pub key: Option<SecretString>,
    /// Further headers.
    pub headers: BTreeMap<String, SecretString>,
    /// Which agent there: the model of Responses, the assistant of the Threads API. A2A has one an address.
    pub agent: Option<String>,
    /// Whether the same request twice is one run there, by its `Idempotency-Key` or by the id of its message.
    pub repeatable: bool,
    /// Whether a response is made in the background, so that it goes on when the connection breaks.
    pub background: bool,
    /// How long the headers of an answer may take.
    pub headers_timeout: Duration,
    /// How long nothing may come of an answer.
    pub idle_timeout: Duration,
    /// How long one answer may be, in bytes.
    pub max_bytes: usize,
}

/// Two are equal where they ask the same of the same; secrets are not looked at.
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

/// What an agent elsewhere speaks.
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
    /// Its name, as the file has it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Responses => "responses",
            Self::Threads => "threads",
            Self::A2a => "a2a",
        }
    }
}
