//! The position of a conversation at a remote agent.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use upp::{AssistantMessage, Metadata};
use uuid::Uuid;

/// The namespace of this system's entries in a message's metadata.
pub(super) const NAMESPACE: &str = "loomline";
/// The entry.
const ENTRY: &str = "remote";

/// The address of a remote agent. Its path and query may be secret. The record therefore holds only
/// the origin and a fingerprint of the whole URL, which distinguishes addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    url: String,
    shown: String,
}

impl Address {
    /// An address with its URL and its origin.
    pub fn new(url: &str, origin: &str) -> Self {
        let fingerprint = Uuid::new_v5(&Uuid::NAMESPACE_URL, url.as_bytes());
        let fingerprint: String = fingerprint.simple().to_string().chars().take(12).collect();
        Self {
            url: url.to_owned(),
            shown: format!("{origin}#{fingerprint}"),
        }
    }

    /// As the record has it.
    pub fn as_text(&self) -> &str {
        &self.shown
    }

    /// Whether a record's `at` is this address. Older records have the whole URL.
    pub fn is(&self, at: &str) -> bool {
        at == self.shown || at == self.url
    }
}

/// The position of a conversation at a remote agent. It is stored with the agent's last answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RemotePosition {
    /// The agent here, by name.
    pub agent: String,
    /// The agent's address, as [`Address`] shows it.
    pub at: String,
    /// The id of the local thread. A fork uses a remote conversation of its own.
    pub conversation: String,
    /// The remote conversation: a context of A2A, a thread of the Threads API. Responses has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// The remote task, run or response of the last answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// The open questions of the remote run. It continues when all of them are answered.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub asks: Vec<RemoteQuestion>,
    /// The remote names of the texts that the run has sent so far, if answers continue the run.
    /// They identify texts that the remote agent sends again.
    #[serde(rename = "said", skip_serializing_if = "Vec::is_empty")]
    pub texts: Vec<String>,
}

/// A question of a remote agent: a pending call in the local thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RemoteQuestion {
    /// The id of the call here.
    pub call: String,
    /// The remote id of the question, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The remote thread that made the call, if it is not the conversation's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread_key: Option<String>,
    /// The kind of answer that the question expects.
    pub kind: AskKind,
}

/// The kind of answer that a remote question expects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum AskKind {
    /// The result of a call.
    Result,
    /// Whether a call may run: `{"approved": true}` with optional `arguments`, or
    /// `{"approved": false}` with an optional `message`.
    Approval,
    /// A text, or any value.
    Words,
}

impl RemotePosition {
    /// Reads the position from a message's metadata; `None` if there is none.
    pub fn of(message: &AssistantMessage) -> Option<Self> {
        let entry = message.metadata.get(NAMESPACE)?.get(ENTRY)?;
        Self::deserialize(entry).ok()
    }

    /// As the metadata of a message.
    pub fn metadata(&self) -> Metadata {
        let place = serde_json::to_value(self).unwrap_or_default();
        let mut metadata = Metadata::new();
        put(&mut metadata, ENTRY, place);
        metadata
    }

    /// The remote question behind this local call.
    pub fn ask(&self, call: &str) -> Option<&RemoteQuestion> {
        self.asks.iter().find(|ask| ask.call == call)
    }
}

/// Adds an entry of this server to a message's metadata.
pub(super) fn put(metadata: &mut Metadata, entry: &str, value: Value) {
    let own = metadata.entry(NAMESPACE);
    let own = own.or_insert_with(|| Value::Object(Map::new()));
    if let Value::Object(entries) = own {
        entries.insert(entry.to_owned(), value);
    } else {
        *own = json!({ entry: value });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_told_from_others_and_shows_its_origin_only() {
        let at = |url| Address::new(url, "https://a.b");
        let own = at("https://a.b/hook/s3cret?key=s3cret");
        assert!(own.as_text().starts_with("https://a.b#"));
        assert!(!own.as_text().contains("s3cret"));
        assert!(own.is(own.as_text()) && own.is("https://a.b/hook/s3cret?key=s3cret"));
        assert!(!own.is(at("https://a.b/hook/other").as_text()));
    }
}
