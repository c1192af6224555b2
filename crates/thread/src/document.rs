//! The document and typed views of its contents.
//!
//! Views borrow and interpret only tags. A member of the wrong type reads as absent, and an unknown
//! kind is passed on unchanged. `validate` reports the errors.

mod agent;
mod message;
mod part;
mod turn;
mod version;

pub use agent::AgentConfig;
pub use message::{Message, Request, Response, System, Tier};
pub use part::{Part, PartKind};
pub use turn::{AgentTurn, CompletionStatus, Interruption, Turn, UserTurn};
pub use version::Version;

use crate::json::{DecodeError, Json, JsonFault, Limits, Object};

/// A conversation thread in ThreadProtocol's form (2.0.0 "Thread (Root Object)").
///
/// A thread wraps its JSON. So unknown members, explicit nulls, the order of keys and the spelling
/// of numbers survive reading, changing and writing, at every level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    root: Object,
}

/// A member of the root has a type that can't be added to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{member}` is no {expected}")]
pub struct WrongShape {
    /// The member.
    pub member: &'static str,
    /// The type it should have.
    pub expected: &'static str,
}

impl Thread {
    /// Reads a document under the default limits; refuses only what is not a JSON object.
    pub fn decode(text: &str) -> Result<Self, DecodeError> {
        Self::decode_with(text, &Limits::default())
    }

    /// Reads a document under these limits; refuses only what is not a JSON object.
    pub fn decode_with(text: &str, limits: &Limits) -> Result<Self, DecodeError> {
        let json = Json::parse_with(text, limits)?;
        let found = json.type_name();
        let root = json.into_object().ok_or_else(|| DecodeError {
            fault: JsonFault::NotAnObject { found },
            pointer: String::new(),
            line: 1,
            column: 1,
        })?;
        Ok(Self { root })
    }

    /// Writes the document compactly and in its original order.
    #[must_use]
    pub fn encode(&self) -> String {
        let mut text = String::new();
        crate::json::write_object(&self.root, &mut text);
        text
    }

    /// An empty thread of the newest version.
    #[must_use]
    pub fn new(thread_id: &str, created_at: &str) -> Self {
        let root = Object::new()
            .with("version", Version::NEWEST.as_str())
            .with("thread_id", thread_id)
            .with("created_at", created_at)
            .with("updated_at", created_at)
            .with("agents", Object::new())
            .with("turns", Json::Array(Vec::new()));
        Self { root }
    }

    /// Makes a thread from an object without checking it.
    #[must_use]
    pub fn from_root(root: Object) -> Self {
        Self { root }
    }

    /// The root object.
    #[must_use]
    pub fn root(&self) -> &Object {
        &self.root
    }

    /// The root object, mutable.
    #[must_use]
    pub fn root_mut(&mut self) -> &mut Object {
        &mut self.root
    }

    /// Converts the document to its root object.
    #[must_use]
    pub fn into_root(self) -> Object {
        self.root
    }

    /// The protocol version; without one, [`Version::Other`] with the empty string.
    #[must_use]
    pub fn version(&self) -> Version {
        Version::from(self.root.get_str("version").unwrap_or_default())
    }

    /// The thread's id.
    #[must_use]
    pub fn thread_id(&self) -> Option<&str> {
        self.root.get_str("thread_id")
    }

    /// When the thread was created.
    #[must_use]
    pub fn created_at(&self) -> Option<&str> {
        self.root.get_str("created_at")
    }

    /// When the thread was last changed.
    #[must_use]
    pub fn updated_at(&self) -> Option<&str> {
        self.root.get_str("updated_at")
    }

    /// The thread's title.
    #[must_use]
    pub fn title(&self) -> Option<&str> {
        self.root.get_str("title")
    }

    /// The agent registry in document order: key and configuration.
    pub fn agents(&self) -> impl Iterator<Item = (&str, AgentConfig<'_>)> {
        let agents = self.root.get("agents").and_then(Json::as_object);
        let members = agents.into_iter().flatten();
        members.filter_map(|(id, config)| Some((id, AgentConfig::new(config.as_object()?))))
    }

    /// The configuration of one agent.
    #[must_use]
    pub fn agent(&self, agent_id: &str) -> Option<AgentConfig<'_>> {
        let config = self.root.get("agents")?.get(agent_id)?;
        Some(AgentConfig::new(config.as_object()?))
    }

    /// The turns in document order, which is their order in time.
    pub fn turns(&self) -> impl DoubleEndedIterator<Item = Turn<'_>> + ExactSizeIterator {
        items(&self.root, "turns").iter().map(Turn::new)
    }

    /// Adds a turn at the end; a missing `turns` is created.
    pub fn push_turn(&mut self, turn: impl Into<Json>) -> Result<(), WrongShape> {
        let empty = || Json::Array(Vec::new());
        let turns = member(&mut self.root, "turns", empty).and_then(Json::as_array_mut);
        turns
            .ok_or(WrongShape {
                member: "turns",
                expected: "array",
            })?
            .push(turn.into());
        Ok(())
    }

    /// Sets the configuration of an agent; an existing entry is replaced at its position.
    pub fn put_agent(&mut self, agent_id: &str, config: impl Into<Json>) -> Result<(), WrongShape> {
        let empty = || Json::Object(Object::new());
        let agents = member(&mut self.root, "agents", empty).and_then(Json::as_object_mut);
        agents
            .ok_or(WrongShape {
                member: "agents",
                expected: "object",
            })?
            .insert(agent_id, config);
        Ok(())
    }

    /// Sets when the thread was last changed.
    pub fn set_updated_at(&mut self, updated_at: &str) {
        self.root.insert("updated_at", updated_at);
    }

    /// Sets the title.
    pub fn set_title(&mut self, title: &str) {
        self.root.insert("title", title);
    }
}

impl std::str::FromStr for Thread {
    type Err = DecodeError;

    fn from_str(text: &str) -> Result<Self, DecodeError> {
        Self::decode(text)
    }
}

/// A member to change, made if it is not there.
fn member<'a>(
    object: &'a mut Object,
    key: &'static str,
    make: impl FnOnce() -> Json,
) -> Option<&'a mut Json> {
    if !object.contains_key(key) {
        object.insert(key, make());
    }
    object.get_mut(key)
}

/// The elements of an array member; empty if it is not an array.
pub(crate) fn items<'a>(object: &'a Object, key: &str) -> &'a [Json] {
    object.get(key).and_then(Json::as_array).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_thread_is_written_in_the_newest_version() {
        let mut thread = Thread::new("t", "2026-01-05T08:00:00Z");
        thread
            .push_turn(Object::new().with("turn_type", "user"))
            .unwrap();
        thread
            .put_agent("a", Object::new().with("agent_name", "Ada"))
            .unwrap();
        assert_eq!(thread.version(), Version::V0_0_4);
        assert_eq!(
            thread.agent("a").and_then(AgentConfig::agent_name),
            Some("Ada")
        );
        assert!(matches!(thread.turns().next(), Some(Turn::User(_))));
    }

    #[test]
    fn only_an_object_is_a_document() {
        let error = Thread::decode("[1]").unwrap_err();
        assert_eq!(error.fault, JsonFault::NotAnObject { found: "array" });
        assert!(Thread::decode("{\"turns\":7}").is_ok());
    }

    #[test]
    fn a_change_leaves_everything_else_in_place() {
        let text = r#"{"x":null,"updated_at":"a","y":1.0,"turns":7}"#;
        let mut thread = Thread::decode(text).unwrap();
        thread.set_updated_at("b");
        assert_eq!(thread.encode(), text.replace("\"a\"", "\"b\""));
        let refused = WrongShape {
            member: "turns",
            expected: "array",
        };
        assert_eq!(thread.push_turn(Object::new()), Err(refused));
    }
}
