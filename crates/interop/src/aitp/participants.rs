//! The participants of a thread and the credentials that may post as them, folded from the thread's
//! records.

mod speaker;

use super::actors::{Actor, MAX_ACTORS, named_actor, read_actors};
use super::change::{ChangeRefused, ParticipantChange};
use super::family::{Family, FamilyVersion};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
pub use speaker::{MayNotSpeak, Party, PartyBinding};
use std::collections::BTreeMap;
use timeline::{Event, Item, ItemType, Payload, Record, Role};

/// A present or former participant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Participant {
    /// The actor, with what it declares now.
    pub actor: Actor,
    /// Whether it is present.
    pub is_present: bool,
    /// The credential that may post as the actor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
}

/// The initiator of a thread: the first author in the role `user`, or the actor that joined as
/// initiator.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Began {
    /// No message in the role `user` yet.
    #[default]
    Nobody,
    /// An author without an id.
    Unnamed,
    /// An actor.
    Actor(String),
}

/// The participants of a thread. The size grows with the number of actors that ever joined.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Participants {
    members: BTreeMap<String, Participant>,
    began: Began,
}

impl Participants {
    /// Whether a change can be.
    pub fn check(&self, change: &ParticipantChange) -> Result<(), ChangeRefused> {
        change.check()?;
        match change {
            ParticipantChange::Join {
                actor,
                principal,
                initiator,
            } => {
                if *initiator {
                    self.may_have_begun(&actor.id)?;
                }
                match self.members.get(&actor.id) {
                    None if self.members.len() >= MAX_ACTORS => Err(ChangeRefused::TooMany),
                    None => Ok(()),
                    Some(member) => may_join(member, principal.as_deref()),
                }
            }
            ParticipantChange::Leave { actor_id } | ParticipantChange::Declare { actor_id, .. } => {
                match self.member(actor_id) {
                    Some(_) => Ok(()),
                    None => Err(ChangeRefused::Absent(actor_id.clone())),
                }
            }
        }
    }

    fn may_have_begun(&self, actor_id: &str) -> Result<(), ChangeRefused> {
        match &self.began {
            Began::Nobody => Ok(()),
            Began::Unnamed => Err(ChangeRefused::UnnamedInitiator),
            Began::Actor(id) if id == actor_id => Ok(()),
            Began::Actor(id) => Err(ChangeRefused::OtherInitiator(id.clone())),
        }
    }

    /// Folds one record in. A change that can't be changes nothing.
    pub fn apply(&mut self, record: &Record) {
        if let Event::ThreadCreated { thread } = &record.event {
            let metadata = thread.metadata.as_ref().map(Payload::value);
            let actors = metadata.as_ref().and_then(|it| it.get("actors"));
            let actors = actors.and_then(|actors| read_actors(actors, "/actors").ok());
            for actor in actors.into_iter().flatten() {
                self.change(ParticipantChange::Join {
                    actor,
                    principal: None,
                    initiator: false,
                });
            }
        } else if let Event::ItemCreated { item } = &record.event {
            if let Some(change) = ParticipantChange::of_item(item) {
                self.change(change);
            } else {
                self.record_message(item);
            }
        }
    }

    /// The author of the first message in the role `user` becomes the initiator.
    fn record_message(&mut self, item: &Item) {
        let is_users = item.item_type == ItemType::Message && item.role == Some(Role::User);
        if self.began != Began::Nobody || !is_users {
            return;
        }
        match named_actor(item.metadata.as_ref()) {
            Ok(None) => self.began = Began::Unnamed,
            Ok(Some(id)) if self.member(&id).is_some() => self.began = Began::Actor(id),
            Ok(Some(_)) | Err(_) => {}
        }
    }

    fn change(&mut self, change: ParticipantChange) {
        if self.check(&change).is_err() {
            return;
        }
        match change {
            ParticipantChange::Join {
                actor,
                principal,
                initiator,
            } => {
                if initiator {
                    self.began = Began::Actor(actor.id.clone());
                }
                let known = self.members.remove(&actor.id);
                let principal = principal.or(known.and_then(|known| known.principal));
                let id = actor.id.clone();
                let member = Participant {
                    actor,
                    is_present: true,
                    principal,
                };
                self.members.insert(id, member);
            }
            ParticipantChange::Leave { actor_id } => {
                if let Some(member) = self.members.get_mut(&actor_id) {
                    member.is_present = false;
                }
            }
            ParticipantChange::Declare {
                actor_id,
                capabilities,
            } => {
                if let Some(member) = self.members.get_mut(&actor_id) {
                    member.actor.capabilities = capabilities;
                }
            }
        }
    }

    /// The actor of this id, if it is present.
    pub fn member(&self, id: &str) -> Option<&Participant> {
        self.members.get(id).filter(|member| member.is_present)
    }

    /// Those who take part, by id.
    pub fn present(&self) -> impl Iterator<Item = &Participant> {
        self.members.values().filter(|member| member.is_present)
    }

    /// Whether the thread never had an actor.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// The initiator's id, if it has one.
    pub fn initiator(&self) -> Option<&str> {
        match &self.began {
            Began::Nobody | Began::Unnamed => None,
            Began::Actor(id) => Some(id),
        }
    }

    /// The role of this actor's messages: `user` for the initiator (AITP), else `assistant`.
    pub fn role(&self, actor_id: &str) -> Role {
        if self.initiator() == Some(actor_id) {
            Role::User
        } else {
            Role::Assistant
        }
    }

    /// The actors who declared that they read messages of this capability and version.
    pub fn readers(
        &self,
        family: Family,
        version: FamilyVersion,
    ) -> impl Iterator<Item = &Participant> {
        self.present()
            .filter(move |member| member.actor.reads(family, version))
    }

    /// The thread's current metadata. Actors are in the structural form. Other members are unchanged,
    /// and so are unreadable actors while nobody has joined.
    pub fn metadata(&self, thread: &timeline::Thread) -> Map<String, Value> {
        let mut metadata = match thread.metadata.as_ref().map(Payload::value) {
            Some(Value::Object(kept)) => kept,
            Some(
                Value::Null
                | Value::Bool(_)
                | Value::Number(_)
                | Value::String(_)
                | Value::Array(_),
            )
            | None => Map::new(),
        };
        if let Some(fork) = &thread.fork {
            metadata.insert("parent_id".to_owned(), fork.thread_id.as_str().into());
        }
        if !self.is_empty() {
            let actors = self.present().map(|member| member.actor.write());
            metadata.insert("actors".to_owned(), actors.collect());
        }
        metadata
    }
}

fn may_join(member: &Participant, principal: Option<&str>) -> Result<(), ChangeRefused> {
    let bound = member.principal.as_deref();
    let id = || member.actor.id.clone();
    if member.is_present {
        let binds = bound.is_none() && principal.is_some();
        return if binds {
            Ok(())
        } else {
            Err(ChangeRefused::Present(id()))
        };
    }
    if bound.is_none() || bound == principal {
        Ok(())
    } else {
        Err(ChangeRefused::Taken(id()))
    }
}

#[cfg(test)]
mod tests;
