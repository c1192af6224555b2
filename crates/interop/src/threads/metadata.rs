//! The metadata that clients set on objects, including AITP's members.

use super::error::RequestError;
use super::fields::{Fields, wrong};
use crate::Losses;
#[cfg(feature = "aitp")]
use crate::aitp::{Actor, read_actors};
use crate::fields::check_length;
use crate::metadata::{EXPECTED, is_aitp, is_own};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use timeline::Payload;

/// The member of a thread's or item's metadata that holds this view's own data.
pub(super) const NAMESPACE: &str = "threads";

/// AITP's member of a thread's metadata that lists the participants.
const ACTORS: &str = "actors";
/// AITP's member of a message's metadata that names the author.
pub(super) const ACTOR: &str = "actor";

const MAX_PAIRS: usize = 16;
const MAX_KEY: usize = 64;
const MAX_VALUE: usize = 512;
/// The most bytes that AITP's members may have as JSON.
const MAX_AITP_BYTES: usize = 1 << 18;

/// The kind of object that has the metadata. Threads and messages may have AITP members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Carrier {
    Thread,
    Message,
    Other,
}

impl Carrier {
    /// The members whose value is any JSON, and which no limit of the pairs binds.
    fn is_aitp(self, key: &str) -> bool {
        match self {
            Self::Thread => is_aitp(key),
            Self::Message => key == ACTOR,
            Self::Other => false,
        }
    }
}

/// Up to 16 pairs of strings (keys of 64 characters, values of 512), and AITP's members unchanged:
/// `actors` (never as a string) and `parent_id` of a thread, `actor` of a message.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Metadata(pub(super) Map<String, Value>);

impl Metadata {
    /// The members.
    pub fn map(&self) -> &Map<String, Value> {
        &self.0
    }

    /// The members, for AITP's code to change.
    pub fn map_mut(&mut self) -> &mut Map<String, Value> {
        &mut self.0
    }

    /// Whether it has no members.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Reads the member `metadata` of a request; `None` if it is absent or null.
    pub(super) fn read(
        fields: &Fields<'_>,
        carrier: Carrier,
    ) -> Result<Option<Self>, RequestError> {
        let Some(object) = fields.object("metadata")? else {
            return Ok(None);
        };
        let is_pair = |(key, _): &(&String, &Value)| !carrier.is_aitp(key);
        let len = object.map().iter().filter(is_pair).count();
        if len > MAX_PAIRS {
            let pointer = fields.at("metadata");
            let max = MAX_PAIRS;
            return Err(RequestError::TooMany { pointer, max, len });
        }
        let mut members = Map::new();
        for (key, value) in object.map() {
            let pointer = object.at(key);
            if carrier == Carrier::Thread && key == ACTORS {
                check_size(&pointer, value)?;
                members.insert(key.clone(), actors(pointer, value)?);
                continue;
            }
            if carrier.is_aitp(key) {
                check_size(&pointer, value)?;
            } else {
                check_pair(&pointer, key, value)?;
                if carrier == Carrier::Thread && is_own(key) {
                    let expected = EXPECTED;
                    return Err(RequestError::Outside { pointer, expected });
                }
            }
            members.insert(key.clone(), value.clone());
        }
        Ok(Some(Self(members)))
    }

    /// Reads the member `metadata` of a request that changes metadata; null removes all members.
    pub(super) fn change(
        fields: &Fields<'_>,
        carrier: Carrier,
    ) -> Result<Option<Self>, RequestError> {
        let read = Self::read(fields, carrier)?;
        Ok(read.or_else(|| fields.present("metadata").map(|_| Self::default())))
    }

    /// The part of an object's stored metadata that this API can show. Other members are listed as
    /// losses.
    pub(super) fn view(
        kept: Option<&Payload>,
        carrier: Carrier,
        at: &str,
        losses: &mut Losses,
    ) -> Self {
        let Some(Value::Object(kept)) = kept.map(Payload::value) else {
            return Self::default();
        };
        let mut members = Map::new();
        for (key, value) in kept {
            if carrier == Carrier::Thread && is_own(&key) {
                continue;
            }
            if value.is_string() || carrier.is_aitp(&key) {
                members.insert(key, value);
            } else {
                losses.push(format!("{at}/metadata/{key}"), "metadata that is no string");
            }
        }
        Self(members)
    }
}

/// Reads AITP's list of participants. A string that contains the list as JSON is stored as a list. A
/// list is stored and returned unchanged.
fn actors(pointer: String, value: &Value) -> Result<Value, RequestError> {
    if !value.is_string() {
        return Ok(value.clone());
    }
    listed(&pointer, value).ok_or(RequestError::Outside {
        pointer,
        expected: "a list of actors, or its JSON",
    })
}

#[cfg(feature = "aitp")]
fn listed(pointer: &str, text: &Value) -> Option<Value> {
    let actors = read_actors(text, pointer).ok()?;
    Some(actors.iter().map(Actor::write).collect())
}

/// Without the feature nothing more is known of actors than that they are a list.
#[cfg(not(feature = "aitp"))]
fn listed(_pointer: &str, text: &Value) -> Option<Value> {
    let list: Value = serde_json::from_str(text.as_str()?).ok()?;
    Some(list).filter(Value::is_array)
}

fn check_pair(pointer: &str, key: &str, value: &Value) -> Result<(), RequestError> {
    check_length(pointer, key, MAX_KEY)?;
    let Value::String(text) = value else {
        return Err(wrong(pointer.to_owned(), "a string", value));
    };
    check_length(pointer, text, MAX_VALUE)
}

fn check_size(pointer: &str, value: &Value) -> Result<(), RequestError> {
    let len = value.to_string().len();
    if len <= MAX_AITP_BYTES {
        return Ok(());
    }
    let pointer = pointer.to_owned();
    let max = MAX_AITP_BYTES;
    Err(RequestError::TooLong { pointer, max, len })
}

/// This view's own data in an object's metadata.
pub(super) fn own(kept: Option<&Payload>) -> Map<String, Value> {
    match kept.map(Payload::value) {
        Some(Value::Object(mut kept)) => match kept.remove(NAMESPACE) {
            Some(Value::Object(own)) => own,
            _ => Map::new(),
        },
        Some(
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_),
        )
        | None => Map::new(),
    }
}
