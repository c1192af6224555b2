//! Changes of the participants, as facts of the thread.

use super::actors::{Actor, Capability, MAX_ACTORS, read_capabilities, read_id};
use super::violation::MessageViolation;
use crate::parts::ThreadEvent;
use serde_json::{Map, Value, json};
use timeline::{Item, ItemType, NewItem, Payload};

/// The type of the event that records that an actor joined.
pub const ACTOR_JOIN: &str = "data-app-actor_join";
/// The type of the event that records that an actor left.
pub const ACTOR_LEAVE: &str = "data-app-actor_leave";
/// The type of the event that records an actor's new capabilities.
pub const ACTOR_DECLARE: &str = "data-app-actor_declare";

/// The member of the item's metadata that names the credential to which an actor is bound.
const PRINCIPAL: &str = "principal";

/// A change of the participants, recorded as an item of the thread.
#[derive(Clone, Debug, PartialEq)]
pub enum ParticipantChange {
    /// An actor joins. A present actor without a credential is bound to the one named here.
    Join {
        /// The actor, with its declared capabilities.
        actor: Actor,
        /// The credential that may post as the actor: a text that only the server interprets.
        principal: Option<String>,
        /// Whether it is the thread's initiator, whose messages have the role `user`.
        initiator: bool,
    },
    /// An actor leaves.
    Leave {
        /// The actor's id.
        actor_id: String,
    },
    /// An actor declares other capabilities than before.
    Declare {
        /// The actor's id.
        actor_id: String,
        /// All that it declares now.
        capabilities: Vec<Capability>,
    },
}

/// Why a change can't be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChangeRefused {
    /// An actor of this id is already a participant.
    #[error("an actor {0:?} takes part in the thread already")]
    Present(String),
    /// Another actor had this id before.
    #[error("{0:?} was the id of somebody else in this thread")]
    Taken(String),
    /// No participant has this id.
    #[error("no actor {0:?} takes part in the thread")]
    Absent(String),
    /// Another actor is the thread's initiator.
    #[error("{0:?} began the thread, and nobody else did")]
    OtherInitiator(String),
    /// The thread's initiator has no id.
    #[error("somebody without an id began the thread, and nobody else did")]
    UnnamedInitiator,
    /// The change could not be read back from the log. Pointers are relative to the event's data.
    #[error("the change does not fit: {0}")]
    Unfit(#[from] MessageViolation),
    /// The thread has as many actors as it may have.
    #[error("a thread has at most {MAX_ACTORS} actors, those that left among them")]
    TooMany,
}

impl ParticipantChange {
    /// The item that records the change (`Command::Record`). Its metadata contains the credential, so
    /// the credential is in the log and in no document.
    pub fn into_item(self, id: &str) -> Result<NewItem, serde_json::Error> {
        let (part_type, data, principal) = match self {
            Self::Join {
                actor,
                principal,
                initiator,
            } => {
                let mut data = Map::new();
                data.insert("actor".to_owned(), actor.write());
                if initiator {
                    data.insert("initiator".to_owned(), true.into());
                }
                (ACTOR_JOIN, Value::Object(data), principal)
            }
            Self::Leave { actor_id } => (ACTOR_LEAVE, json!({"actor_id": actor_id}), None),
            Self::Declare {
                actor_id,
                capabilities,
            } => {
                let data = json!({"actor_id": actor_id, "capabilities": capabilities});
                (ACTOR_DECLARE, data, None)
            }
        };
        let event = ThreadEvent {
            part_type: part_type.to_owned(),
            id: id.to_owned(),
            data: data.into(),
        };
        event.into_item(principal.map(|principal| json!({PRINCIPAL: principal}).into()))
    }

    /// Whether [`ParticipantChange::of_item`] could read it back: ids and lists are within their limits.
    pub fn check(&self) -> Result<(), MessageViolation> {
        match self {
            Self::Join { actor, .. } => Actor::read(&actor.write(), "/actor").map(drop),
            Self::Leave { actor_id } => read_id(Some(&json!(actor_id)), "/actor_id").map(drop),
            Self::Declare {
                actor_id,
                capabilities,
            } => {
                read_id(Some(&json!(actor_id)), "/actor_id")?;
                read_capabilities(&json!(capabilities), "/capabilities").map(drop)
            }
        }
    }

    /// The change that an item records, if it is one.
    pub fn of_item(item: &Item) -> Option<Self> {
        let event = ThreadEvent::of_item(item)?;
        let data = event.data.value();
        let actor_id = || read_id(data.get("actor_id"), "/actor_id").ok();
        match event.part_type.as_str() {
            ACTOR_JOIN => Some(Self::Join {
                actor: Actor::read(data.get("actor")?, "/actor").ok()?,
                principal: item
                    .metadata
                    .as_ref()
                    .and_then(|it| it.str_field(PRINCIPAL)),
                initiator: data.get("initiator").and_then(Value::as_bool) == Some(true),
            }),
            ACTOR_LEAVE => Some(Self::Leave {
                actor_id: actor_id()?,
            }),
            ACTOR_DECLARE => Some(Self::Declare {
                actor_id: actor_id()?,
                capabilities: read_capabilities(data.get("capabilities")?, "").ok()?,
            }),
            _ => None,
        }
    }
}

/// The metadata of an item that clients may see: all but the credential that an actor is bound to. In
/// a message, a member of that name is the client's own and stays.
pub fn shown_metadata(item: &Item) -> Option<Payload> {
    let metadata = item.metadata.as_ref()?;
    if item.item_type != ItemType::ItemReference {
        return Some(metadata.clone());
    }
    let Value::Object(mut members) = metadata.value() else {
        return Some(metadata.clone());
    };
    if members.shift_remove(PRINCIPAL).is_none() {
        return Some(metadata.clone());
    }
    (!members.is_empty()).then(|| Value::Object(members).into())
}
