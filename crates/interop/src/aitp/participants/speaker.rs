//! The author of a message, and whether a credential may post as that author.

use super::{Began, Participants};
use serde::{Deserialize, Serialize};
use timeline::Role;

/// The author of a message. Ids of actors and names of agents are separate: an actor with an agent's
/// name is a different party.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Party {
    /// The thread's initiator, under any id.
    Initiator,
    /// An actor, by its id.
    Actor(String),
    /// An agent of this server that is not an actor, by its name.
    Agent(String),
    /// An author in the role `assistant` without an id.
    Assistant,
}

impl std::fmt::Display for Party {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Initiator => f.write_str("the one who began the thread"),
            Self::Actor(id) => write!(f, "the actor {id:?}"),
            Self::Agent(name) => write!(f, "the agent {name:?}"),
            Self::Assistant => f.write_str("an assistant without an id"),
        }
    }
}

/// The party that a credential posts as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartyBinding {
    /// The party.
    pub party: Party,
    /// Whether this party is an actor bound to the credential. For unbound actors, the server decides
    /// who may post as them.
    pub is_bound: bool,
}

/// The reason why a credential may not post as a party.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MayNotSpeak {
    /// There is no such actor.
    #[error("no actor {0:?} takes part in the thread")]
    Unknown(String),
    /// The actor has left.
    #[error("the actor {0:?} has left the thread")]
    Left(String),
    /// The actor is bound to another credential.
    #[error("the actor {0:?} is bound to another credential")]
    NotBoundToIt(String),
    /// The credential is an actor's, and the message names none.
    #[error("the credential is bound to the actor {0:?}: the message has to name its actor")]
    Unnamed(String),
    /// The message is in a role that the actor does not have.
    #[error("the messages of {id:?} have the role {}", if *.has == Role::User { "user" } else { "assistant" })]
    OtherRole {
        /// The actor's id.
        id: String,
        /// The role it has.
        has: Role,
    },
    /// The message has neither an actor nor a role.
    #[error("the message has neither an actor nor a role")]
    Nobody,
}

impl Participants {
    /// The party that a message has under this credential, from its actor's id, if any, and its role.
    /// Nothing else decides who may post. A missing actor or role never extends the author's rights.
    pub fn may_speak(
        &self,
        principal: &str,
        actor_id: Option<&str>,
        role: Option<Role>,
    ) -> Result<PartyBinding, MayNotSpeak> {
        if let Some(id) = actor_id {
            return self.may_speak_as(principal, id, role);
        }
        let role = role.ok_or(MayNotSpeak::Nobody)?;
        let initiator = self.initiator().filter(|_| role == Role::User);
        let is_own = |id: &str| {
            let member = self.members.get(id);
            member.is_some_and(|member| member.principal.as_deref() == Some(principal))
        };
        if !initiator.is_some_and(is_own)
            && let Some(own) = self.members.keys().find(|id| is_own(id))
        {
            return Err(MayNotSpeak::Unnamed(own.clone()));
        }
        match initiator {
            Some(id) => self.may_speak_as(principal, id, Some(role)),
            None => Ok(PartyBinding {
                party: unnamed(role),
                is_bound: false,
            }),
        }
    }

    fn may_speak_as(
        &self,
        principal: &str,
        id: &str,
        role: Option<Role>,
    ) -> Result<PartyBinding, MayNotSpeak> {
        let member = self.members.get(id);
        let member = member.ok_or_else(|| MayNotSpeak::Unknown(id.to_owned()))?;
        if !member.is_present {
            return Err(MayNotSpeak::Left(id.to_owned()));
        }
        let bound = member.principal.as_deref();
        if bound.is_some_and(|bound| bound != principal) {
            return Err(MayNotSpeak::NotBoundToIt(id.to_owned()));
        }
        let begins = self.began == Began::Nobody && role == Some(Role::User);
        let has = if begins { Role::User } else { self.role(id) };
        if role.is_some_and(|role| role != has) {
            let id = id.to_owned();
            return Err(MayNotSpeak::OtherRole { id, has });
        }
        Ok(PartyBinding {
            party: if begins {
                Party::Initiator
            } else {
                self.named(id)
            },
            is_bound: bound.is_some(),
        })
    }

    /// The author of an item that was recorded with this actor id and role; `None` if there is none.
    /// While the actor is a participant, its id takes precedence over the role.
    pub fn party(&self, actor_id: Option<&str>, role: Option<Role>) -> Option<Party> {
        match actor_id {
            Some(id) => self.member(id).map(|_| self.named(id)),
            None => role.map(unnamed),
        }
    }

    /// The actor of this id.
    pub(in crate::aitp) fn named(&self, id: &str) -> Party {
        if self.initiator() == Some(id) {
            Party::Initiator
        } else {
            Party::Actor(id.to_owned())
        }
    }

    /// The party under its current name. The actor that created the thread is the initiator.
    pub fn known(&self, party: &Party) -> Party {
        match party {
            Party::Actor(id) => self.named(id),
            Party::Initiator | Party::Agent(_) | Party::Assistant => party.clone(),
        }
    }
}

fn unnamed(role: Role) -> Party {
    match role {
        Role::User => Party::Initiator,
        Role::Assistant | Role::System | Role::Developer => Party::Assistant,
    }
}
