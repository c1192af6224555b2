//! Why a message is refused, and the place in the request that causes it.

use super::past::pointer_to;
use crate::auth::Caller;
use crate::outbound::OutboundError;
use interop::aitp::{ChangeTurned, MessageRefusal};
use runtime::RuntimeError;

/// The JSON pointers of a message in a request's body.
#[derive(Clone, Debug, Default)]
pub(crate) struct BodyPointers {
    /// Its content.
    content: String,
    parts: Parts,
    /// The pointer of its actor's name.
    actor: String,
}

/// The pointers of a message's parts.
#[derive(Clone, Debug, Default)]
enum Parts {
    /// Where its content does.
    #[default]
    Content,
    /// At their index in the content.
    List,
    /// In the body, each part at its own pointer.
    At(Vec<String>),
}

impl BodyPointers {
    /// A message whose content is a list of parts.
    pub(crate) fn parts(content: impl Into<String>) -> Self {
        Self {
            content: content.into(),
            parts: Parts::List,
            actor: String::new(),
        }
    }

    /// A message whose parts are at these pointers.
    pub(crate) fn each(content: impl Into<String>, parts: Vec<String>) -> Self {
        Self {
            parts: Parts::At(parts),
            ..Self::parts(content)
        }
    }

    /// A message whose content is a text, or whose parts are not in the body.
    pub(crate) fn text(content: impl Into<String>) -> Self {
        Self {
            parts: Parts::Content,
            ..Self::parts(content)
        }
    }

    /// Sets the pointer to the actor.
    pub(crate) fn by(self, actor: impl Into<String>) -> Self {
        Self {
            actor: actor.into(),
            ..self
        }
    }

    fn part(&self, place: usize) -> String {
        match &self.parts {
            Parts::Content => self.content.clone(),
            Parts::List => format!("{}/{place}", self.content),
            Parts::At(parts) => parts.get(place).unwrap_or(&self.content).clone(),
        }
    }
}

/// Why a message is refused.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Why {
    /// A message.
    #[error(transparent)]
    Message(#[from] MessageRefusal),
    /// A change of participants.
    #[error(transparent)]
    Change(#[from] ChangeTurned),
    /// A part with a file at a URL that is not allowed.
    #[error("{}", .0.error)]
    Link(Box<Link>),
    /// The key may not speak as this actor.
    #[error("this key may not speak as {0:?}")]
    Actor(String),
}

/// A file at a URL that is not allowed.
#[derive(Debug)]
pub(crate) struct Link {
    /// The part's index in the content.
    pub(super) index: usize,
    /// The address.
    pub(super) url: String,
    /// Why it is not allowed.
    pub(super) error: OutboundError,
}

/// A refused message, and the reason.
#[derive(Debug, thiserror::Error)]
#[error("{why}")]
pub(crate) struct Refused {
    /// Why.
    pub(crate) why: Why,
    /// The index of the message in the request.
    pub(super) item: usize,
    /// Where in the body.
    pub(crate) pointer: String,
}

impl Refused {
    /// Refuses the message at this index of the request.
    pub(super) fn new(why: impl Into<Why>, item: usize) -> Self {
        Self {
            why: why.into(),
            item,
            pointer: String::new(),
        }
    }

    /// Refuses the value at this JSON pointer of the body.
    pub(crate) fn at(why: impl Into<Why>, pointer: &str) -> Self {
        Self {
            pointer: pointer.to_owned(),
            ..Self::new(why, 0)
        }
    }

    /// Sets the pointer from the position of the refused message.
    fn placed(mut self, place: impl Fn(usize) -> BodyPointers) -> Self {
        let place = place(self.item);
        self.pointer = match &self.why {
            Why::Message(
                MessageRefusal::Unfit { place: part, .. }
                | MessageRefusal::Refused { place: part, .. },
            ) => place.part(*part),
            Why::Link(link) => place.part(link.index),
            Why::Message(MessageRefusal::PartyBinding(_) | MessageRefusal::Actor(_))
            | Why::Actor(_) => place.actor,
            Why::Message(
                MessageRefusal::NotAMessage
                | MessageRefusal::TooManyMessages(_)
                | MessageRefusal::Schemas(_),
            )
            | Why::Change(_) => place.content,
        };
        self
    }
}

impl From<Refused> for RuntimeError {
    fn from(refused: Refused) -> Self {
        Self::TurnedAway(Box::new(refused))
    }
}

/// Adds the JSON pointer in the body to a refusal.
pub(super) fn placed(error: RuntimeError, place: impl Fn(usize) -> BodyPointers) -> RuntimeError {
    mapped(error, |refused| refused.placed(place))
}

/// Adds the JSON pointer in a document to a refusal.
pub(super) fn found_in(error: RuntimeError, json: &str) -> RuntimeError {
    mapped(error, |refused| {
        let pointer = match &refused.why {
            Why::Link(link) => pointer_to(json, &link.url),
            Why::Actor(actor) => pointer_to(json, actor),
            Why::Message(_) | Why::Change(_) => refused.pointer.clone(),
        };
        Refused { pointer, ..refused }
    })
}

fn mapped(error: RuntimeError, change: impl FnOnce(Refused) -> Refused) -> RuntimeError {
    let RuntimeError::TurnedAway(refused) = error else {
        return error;
    };
    match refused.downcast::<Refused>() {
        Ok(refused) => change(*refused).into(),
        Err(other) => RuntimeError::TurnedAway(other),
    }
}

/// Refuses an actor that the caller's key may not speak as.
pub(super) fn check_rights(caller: &Caller, actor: &str) -> Result<(), Why> {
    if caller.rights.may_speak_as(actor) {
        return Ok(());
    }
    Err(Why::Actor(actor.to_owned()))
}
