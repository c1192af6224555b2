//! Actors and what they declare, in every shape that was ever written.

use super::family::{Family, FamilyVersion, capability_of};
use super::violation::MessageViolation;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use timeline::Payload;

/// The most actors of one thread.
pub const MAX_ACTORS: usize = 256;
/// The most capabilities of one actor.
pub const MAX_CAPABILITIES: usize = 64;
/// The longest id of an actor, in bytes.
pub const MAX_ID: usize = 256;
/// The longest URL of a capability, in bytes.
pub const MAX_URL: usize = 2048;

/// One capability that an actor declares: the URL of its schema.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Capability {
    /// The URL, unchanged.
    pub schema: String,
}

impl Capability {
    /// The capability of this family, in this version.
    pub fn of(family: Family, version: FamilyVersion) -> Self {
        Self {
            schema: family.url(version),
        }
    }

    /// The capability and its version, if known here.
    pub fn known(&self) -> Option<(Family, FamilyVersion)> {
        capability_of(&self.schema)
    }

    fn read(value: &Value, at: &str) -> Result<Self, MessageViolation> {
        let url = |value: &Value, at: String| {
            let text = value.as_str().filter(|text| !text.is_empty());
            match text {
                Some(text) if text.len() <= MAX_URL => Ok(Self {
                    schema: text.to_owned(),
                }),
                Some(_) => Err(MessageViolation::new(
                    at,
                    format!("at most {MAX_URL} bytes"),
                )),
                None => Err(MessageViolation::new(at, "the URL of a schema")),
            }
        };
        if value.is_string() {
            return url(value, at.to_owned());
        }
        for key in ["schema", "$schema"] {
            if let Some(schema) = value.get(key) {
                return url(schema, format!("{at}/{key}"));
            }
        }
        let text = |key: &str| value.get(key).and_then(Value::as_str);
        let family = text("family").and_then(Family::from_name);
        let version = text("version").map_or(Some(FamilyVersion::V1), FamilyVersion::read);
        let known = family.zip(version);
        known
            .map(|(family, version)| Self::of(family, version))
            .ok_or_else(|| {
                MessageViolation::new(
                    at,
                    "a schema's URL, {\"schema\"}, {\"$schema\"} or {\"family\", \"version\"}",
                )
            })
    }
}

/// The members of an actor that have fields here; others go to `extra`.
const KNOWN: [&str; 3] = ["id", "client_id", "capabilities"];

/// A participant of a thread (AITP "Thread Specification"). It is serialised with [`Actor::write`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "Value", try_from = "Value")]
pub struct Actor {
    /// Unique in the thread, and only there.
    pub id: String,
    /// The application that it uses.
    pub client_id: Option<String>,
    /// The capabilities that it can read and act on.
    pub capabilities: Vec<Capability>,
    /// Other members, unchanged. A member named like one of the fields above is not written.
    pub extra: Map<String, Value>,
}

impl From<Actor> for Value {
    fn from(actor: Actor) -> Self {
        actor.write()
    }
}

impl TryFrom<Value> for Actor {
    type Error = MessageViolation;

    fn try_from(value: Value) -> Result<Self, MessageViolation> {
        Self::read(&value, "")
    }
}

impl Actor {
    /// An actor that declares these schemas.
    pub fn new<'a>(id: &str, schemas: impl IntoIterator<Item = &'a str>) -> Self {
        let capability = |schema: &str| Capability {
            schema: schema.to_owned(),
        };
        Self {
            id: id.to_owned(),
            capabilities: schemas.into_iter().map(capability).collect(),
            ..Self::default()
        }
    }

    /// Reads one actor, in any shape; `at` is its JSON pointer.
    pub fn read(value: &Value, at: &str) -> Result<Self, MessageViolation> {
        let object = value
            .as_object()
            .ok_or_else(|| MessageViolation::new(at, "an object with an \"id\""))?;
        let id = read_id(object.get("id"), &format!("{at}/id"))?;
        let client_id = match object.get("client_id") {
            None | Some(Value::Null) => None,
            Some(id) => Some(read_id(Some(id), &format!("{at}/client_id"))?),
        };
        let capabilities = match object.get("capabilities") {
            None | Some(Value::Null) => Vec::new(),
            Some(list) => read_capabilities(list, &format!("{at}/capabilities"))?,
        };
        let extra = object.iter();
        let extra = extra.filter(|(key, _)| !KNOWN.contains(&key.as_str()));
        Ok(Self {
            id,
            client_id,
            capabilities,
            extra: extra
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect(),
        })
    }

    /// The structural form: `{"id", "client_id"?, "capabilities": [{"schema"}], …}`.
    pub fn write(&self) -> Value {
        let mut object = Map::new();
        object.insert("id".to_owned(), self.id.as_str().into());
        if let Some(client) = &self.client_id {
            object.insert("client_id".to_owned(), client.as_str().into());
        }
        object.insert("capabilities".to_owned(), json!(self.capabilities));
        let extra = self.extra.iter();
        let extra = extra.filter(|(key, _)| !KNOWN.contains(&key.as_str()));
        object.extend(extra.map(|(key, value)| (key.clone(), value.clone())));
        Value::Object(object)
    }

    /// Whether it declared that it reads messages of this capability and version.
    pub fn reads(&self, family: Family, version: FamilyVersion) -> bool {
        let mut known = self.capabilities.iter().filter_map(Capability::known);
        known.any(|(own, declared)| own == family && declared.reads(version))
    }
}

pub(super) fn read_id(value: Option<&Value>, at: &str) -> Result<String, MessageViolation> {
    let text = value.and_then(Value::as_str);
    let text = text.filter(|text| (1..=MAX_ID).contains(&text.len()));
    text.map(str::to_owned)
        .ok_or_else(|| MessageViolation::new(at, format!("a string of 1 to {MAX_ID} bytes")))
}

/// Reads a list of capabilities. Duplicates count once.
pub fn read_capabilities(value: &Value, at: &str) -> Result<Vec<Capability>, MessageViolation> {
    let list = value
        .as_array()
        .ok_or_else(|| MessageViolation::new(at, "a list of capabilities"))?;
    if list.len() > MAX_CAPABILITIES {
        let expected = format!("at most {MAX_CAPABILITIES} capabilities");
        return Err(MessageViolation::new(at, expected));
    }
    let mut known = BTreeSet::new();
    let mut read = Vec::with_capacity(list.len());
    for (place, value) in list.iter().enumerate() {
        let capability = Capability::read(value, &format!("{at}/{place}"))?;
        if known.insert(capability.clone()) {
            read.push(capability);
        }
    }
    Ok(read)
}

/// Reads `metadata.actors`: a list of objects, or the text of one.
pub fn read_actors(value: &Value, at: &str) -> Result<Vec<Actor>, MessageViolation> {
    let parsed: Value;
    let list = match value {
        Value::String(text) => {
            parsed = serde_json::from_str(text)
                .map_err(|_| MessageViolation::new(at, "the JSON of a list of actors"))?;
            parsed.as_array()
        }
        Value::Array(list) => Some(list),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    };
    let list = list.ok_or_else(|| MessageViolation::new(at, "a list of actors, or its JSON"))?;
    if list.len() > MAX_ACTORS {
        return Err(MessageViolation::new(
            at,
            format!("at most {MAX_ACTORS} actors"),
        ));
    }
    let mut ids = BTreeSet::new();
    let mut actors = Vec::with_capacity(list.len());
    for (place, value) in list.iter().enumerate() {
        let at = format!("{at}/{place}");
        let actor = Actor::read(value, &at)?;
        if !ids.insert(actor.id.clone()) {
            let expected = "an id that no other actor of the thread has";
            return Err(MessageViolation::new(format!("{at}/id"), expected));
        }
        actors.push(actor);
    }
    Ok(actors)
}

/// AITP's members of a thread's metadata.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ThreadMetadata {
    /// The thread it was forked off.
    pub parent_id: Option<String>,
    /// Those who take part from the start.
    pub actors: Vec<Actor>,
    /// The rest, which the limits of the Threads API hold for.
    pub rest: Map<String, Value>,
}

impl ThreadMetadata {
    /// The parent of the thread with this metadata. Pointers are relative to the metadata.
    pub fn read_parent(metadata: &Map<String, Value>) -> Result<Option<String>, MessageViolation> {
        match metadata.get("parent_id") {
            None | Some(Value::Null) => Ok(None),
            id => read_id(id, "/parent_id").map(Some),
        }
    }

    /// Reads the metadata of a thread. Pointers are relative to the metadata.
    pub fn read(metadata: &Map<String, Value>) -> Result<Self, MessageViolation> {
        let parent_id = Self::read_parent(metadata)?;
        let actors = match metadata.get("actors") {
            None | Some(Value::Null) => Vec::new(),
            Some(actors) => read_actors(actors, "/actors")?,
        };
        let rest = metadata.iter();
        let rest = rest.filter(|(key, _)| !matches!(key.as_str(), "parent_id" | "actors"));
        Ok(Self {
            parent_id,
            actors,
            rest: rest
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect(),
        })
    }

    /// The metadata in the structural form. `actors` is absent where there are none.
    pub fn write(&self) -> Map<String, Value> {
        let mut metadata = self.rest.clone();
        if let Some(parent) = &self.parent_id {
            metadata.insert("parent_id".to_owned(), parent.as_str().into());
        }
        if !self.actors.is_empty() {
            let actors = self.actors.iter().map(Actor::write).collect();
            metadata.insert("actors".to_owned(), Value::Array(actors));
        }
        metadata
    }
}

/// The actor that a message's metadata names. Pointers are relative to the metadata.
pub fn read_message_actor(
    metadata: &Map<String, Value>,
) -> Result<Option<String>, MessageViolation> {
    match metadata.get("actor") {
        None | Some(Value::Null) => Ok(None),
        id => read_id(id, "/actor").map(Some),
    }
}

/// The actor that an item's metadata names.
pub(super) fn named_actor(metadata: Option<&Payload>) -> Result<Option<String>, MessageViolation> {
    match metadata.map(Payload::value) {
        Some(Value::Object(metadata)) => read_message_actor(&metadata),
        Some(
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_),
        )
        | None => Ok(None),
    }
}

#[cfg(test)]
mod tests;
