//! Where a conversation stands elsewhere.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use upp::{AssistantMessage, Metadata};
use uuid::Uuid;

/// The namespace of this system's entries in a message's metadata.
pub(super) const NAMESPACE: &str = "loomline";
/// The entry.
const ENTRY: &str = "remote";

/// Where an agent elsewhere is asked. A path or a query may be a secret, so the record has only the origin, with a
/// fingerprint of all by which another address is told apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    url: String,
    shown: String,
}

impl Address {
    /// An address, and the origin of it.
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

    /// Whether this is what a record has; older ones have all of it.
    pub fn is(&self, at: &str) -> bool {
        at == self.shown || at == self.url
    }
}

/// Where a conversation stands elsewhere: kept with the last answer from there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RemotePosition {
    /// The agent here, by name.
    pub agent: String,
    /// The address it is asked at, as [`Address`] shows it.
    pub at: String,
    /// The thread here. A thread that was forked off goes on in a conversation of its own there.
    pub conversation: String,
    /// The conversation there: a context of A2A, a thread of the Threads API. Responses has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// What was answered there: a task, a run, a response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// What it asks; it goes on when all of that is answered.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub asks: Vec<RemoteQuestion>,
    /// What that has said by now, by the names there, where it goes on when it is answered: so that it is known again
    /// when it is told again.
    #[serde(rename = "said", skip_serializing_if = "Vec::is_empty")]
    pub texts: Vec<String>,
}

/// Something that an agent elsewhere asks: a call here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RemoteQuestion {
    /// The id of the call here.
    pub call: String,
    /// The id there, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The thread there whose call it is, where it is another's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread_key: Option<String>,
    /// What is asked.
    pub kind: AskKind,
}

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum AskKind {
    /// The result of a call.
    Result,
    /// Whether a call may run: `{"approved": true}`, perhaps with `arguments`, or `{"approved": false}`,
    /// perhaps with a `message`.
    Approval,
    /// Words, or anything.
    Words,
}

impl RemotePosition {
    /// What the message says of it, if anything.
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

    /// What this call is there.
    pub fn ask(&self, call: &str) -> Option<&RemoteQuestion> {
        self.asks.iter().find(|ask| ask.call == call)
    }
}

/// Puts an entry of this system into a message's metadata.
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
