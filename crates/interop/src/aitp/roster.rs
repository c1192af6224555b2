//! Who takes part in a thread, and who may speak as whom: a fold over the thread's records.

use super::actors::{Actor, MAX_ACTORS, ThreadMetadata};
use super::change::{Change, ChangeRefused};
use super::family::{Family, Version};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use timeline::{Event, Payload, Record, Role};

/// One who takes part, or took.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// The actor, with what it declares now.
    pub actor: Actor,
    /// Whether it takes part.
    pub is_present: bool,
    /// The credential that may speak as it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
}

/// Whether a credential may speak as an actor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MaySpeak {
    /// It may.
    Yes,
    /// The actor is bound to no credential; who may speak for those is for the server to say.
    Unbound,
    /// The actor is bound to another credential.
    NotBoundToIt,
    /// The actor has left.
    Left,
    /// There is no such actor.
    Unknown,
}

/// Who speaks, as far as the thread knows them apart.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Party {
    /// The one who began the thread, under whatever id.
    Initiator,
    /// An actor by its id.
    Actor(String),
    /// Somebody who answers and has no id.
    Assistant,
}

impl std::fmt::Display for Party {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Initiator => f.write_str("the one who began the thread"),
            Self::Actor(id) => write!(f, "{id:?}"),
            Self::Assistant => f.write_str("an assistant without an id"),
        }
    }
}

/// Who takes part in a thread. It is as large as the actors there ever were.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Roster {
    members: BTreeMap<String, Member>,
    initiator: Option<String>,
}

impl Roster {
    /// Whether a change can be.
    pub fn check(&self, change: &Change) -> Result<(), ChangeRefused> {
        match change {
            Change::Join {
                actor,
                principal,
                initiator,
            } => {
                let other = self.initiator.as_ref().filter(|id| **id != actor.id);
                if let Some(other) = other.filter(|_| *initiator) {
                    return Err(ChangeRefused::OtherInitiator(other.clone()));
                }
                match self.members.get(&actor.id) {
                    None if self.members.len() >= MAX_ACTORS => Err(ChangeRefused::TooMany),
                    None => Ok(()),
                    Some(member) => may_join(member, principal.as_deref()),
                }
            }
            Change::Leave { actor_id } | Change::Declare { actor_id, .. } => {
                match self.member(actor_id) {
                    Some(_) => Ok(()),
                    None => Err(ChangeRefused::Absent(actor_id.clone())),
                }
            }
        }
    }

    /// Folds one record in. A change that can't be changes nothing.
    pub fn apply(&mut self, record: &Record) {
        if let Event::ThreadCreated { thread } = &record.event {
            let metadata = thread.metadata.as_ref().map(Payload::value);
            let read = metadata
                .as_ref()
                .and_then(Value::as_object)
                .and_then(|metadata| ThreadMetadata::read(metadata).ok());
            for actor in read.into_iter().flat_map(|metadata| metadata.actors) {
                self.change(Change::Join {
                    actor,
                    principal: None,
                    initiator: false,
                });
            }
        } else if let Event::ItemCreated { item } = &record.event {
            if let Some(change) = Change::of_item(item) {
                self.change(change);
            } else if item.role == Some(Role::User)
                && self.initiator.is_none()
                && !self.members.is_empty()
            {
                // The first who speaks in the role `user` under a name is the one that has it.
                let named = item.metadata.as_ref().and_then(|it| it.str_field("actor"));
                self.initiator = named.filter(|id| self.members.contains_key(id));
            }
        }
    }

    fn change(&mut self, change: Change) {
        if self.check(&change).is_err() {
            return;
        }
        match change {
            Change::Join {
                actor,
                principal,
                initiator,
            } => {
                if initiator {
                    self.initiator = Some(actor.id.clone());
                }
                let known = self.members.remove(&actor.id);
                let principal = principal.or(known.and_then(|known| known.principal));
                let id = actor.id.clone();
                let member = Member {
                    actor,
                    is_present: true,
                    principal,
                };
                self.members.insert(id, member);
            }
            Change::Leave { actor_id } => {
                if let Some(member) = self.members.get_mut(&actor_id) {
                    member.is_present = false;
                }
            }
            Change::Declare {
                actor_id,
                capabilities,
            } => {
                if let Some(member) = self.members.get_mut(&actor_id) {
                    member.actor.capabilities = capabilities;
                }
            }
        }
    }

    /// Whether this credential may speak as this actor.
    pub fn may_speak(&self, principal: &str, actor_id: &str) -> MaySpeak {
        match self.members.get(actor_id) {
            None => MaySpeak::Unknown,
            Some(member) if !member.is_present => MaySpeak::Left,
            Some(member) => match &member.principal {
                None => MaySpeak::Unbound,
                Some(bound) if bound == principal => MaySpeak::Yes,
                Some(_) => MaySpeak::NotBoundToIt,
            },
        }
    }

    /// The actor of this id, if it takes part.
    pub fn member(&self, id: &str) -> Option<&Member> {
        self.members.get(id).filter(|member| member.is_present)
    }

    /// Those who take part, by id.
    pub fn present(&self) -> impl Iterator<Item = &Member> {
        self.members.values().filter(|member| member.is_present)
    }

    /// Whether nobody ever was an actor here.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// The one who began the thread, where it has an id.
    pub fn initiator(&self) -> Option<&str> {
        self.initiator.as_deref()
    }

    /// The role of what this actor says (AITP: `user` is the one who began the thread).
    pub fn role(&self, actor_id: &str) -> Role {
        if self.initiator() == Some(actor_id) {
            Role::User
        } else {
            Role::Assistant
        }
    }

    /// Who somebody is that speaks under this id and in this role.
    pub fn party(&self, actor_id: Option<&str>, role: Option<Role>) -> Party {
        match actor_id {
            Some(id) if self.initiator() == Some(id) => Party::Initiator,
            Some(id) => Party::Actor(id.to_owned()),
            None => match role {
                Some(Role::User) | None => Party::Initiator,
                Some(Role::Assistant | Role::System | Role::Developer) => Party::Assistant,
            },
        }
    }

    /// The actors who declared that they read messages of this capability and version.
    pub fn readers(&self, family: Family, version: Version) -> impl Iterator<Item = &Member> {
        self.present()
            .filter(move |member| member.actor.reads(family, version))
    }

    /// The thread's metadata as it stands now, in the structural form.
    pub fn metadata(&self, thread: &timeline::Thread) -> Map<String, Value> {
        let kept = thread.metadata.as_ref().map(Payload::value);
        let kept = kept.as_ref().and_then(Value::as_object);
        let read = kept.and_then(|metadata| ThreadMetadata::read(metadata).ok());
        let mut metadata = read.unwrap_or_default();
        if let Some(fork) = &thread.fork {
            metadata.parent_id = Some(fork.thread_id.to_string());
        }
        metadata.actors = self.present().map(|member| member.actor.clone()).collect();
        metadata.write()
    }
}

fn may_join(member: &Member, principal: Option<&str>) -> Result<(), ChangeRefused> {
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
