//! What a message does, or why it can't be.

use super::request::{RequestState, Settlement};
use super::{Key, MAX_ANSWERS, MAX_OPEN};
use crate::aitp::kind::Topic;
use crate::aitp::participants::Party;
use crate::aitp::violation::MessageViolation;
use jiff::Timestamp;

/// What a message does to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestEffect {
    /// It asks.
    Opens,
    /// It asks again, in place of an open request of the same id.
    Supersedes,
    /// It passes a request on that is open already.
    Forwards,
    /// It is the first answer.
    Answers,
    /// It takes the place of an earlier answer.
    Replaces,
    /// It says what came of a payment.
    Settles(Settlement),
    /// It says that there will be no answer.
    Declines,
    /// It says that there can be no answer.
    Fails,
    /// It takes the request back.
    Cancels,
    /// It says until when an answer counts.
    Limits(Timestamp),
}

/// What a message does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MessageVerdict {
    /// Nothing that is followed here: a notice, or a message of an unknown capability.
    Passes,
    /// Something to a request.
    Does {
        /// What.
        effect: RequestEffect,
        /// Which.
        request: Key,
    },
}

/// Why a message can't be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestRefusal {
    /// It has no payload that is known, or several.
    #[error("a capability message has exactly one member that says what it is")]
    NotOneMessage,
    /// It makes no sense, or does not fit its request.
    #[error("the message does not fit: {}", .0.first().map(ToString::to_string).unwrap_or_default())]
    Unfit(Vec<MessageViolation>),
    /// It names a request that was never asked here.
    #[error("nothing was asked under the id {0:?}")]
    Unknown(String),
    /// It names no request, and none is open that it could be meant for.
    #[error("no request for a {} is open", .0.name())]
    NothingOpen(Topic),
    /// It names no request, or not clearly, and could be meant for several: the first few.
    #[error("the message could be meant for several requests; it has to name one")]
    Ambiguous(Vec<Key>),
    /// The request is open no longer.
    #[error("the request {request} is {}", .state.name())]
    Late {
        /// Which.
        request: Key,
        /// How it stands.
        state: RequestState,
    },
    /// Nobody pays twice.
    #[error("the request {0} was answered, and what came of it is not known to have failed")]
    AnsweredBefore(Key),
    /// A payment is confirmed that nobody made.
    #[error("the request {0} was not answered")]
    NotAnswered(Key),
    /// Nobody answers their own request.
    #[error("the request {0} is answered by somebody else than the asker")]
    OwnRequest(Key),
    /// Only the asker may say this.
    #[error("only who asked the request {0} may say this of it")]
    NotTheAsker(Key),
    /// One who is no actor of the thread answers.
    #[error("{party} is no actor of the thread")]
    NotAnActor {
        /// Who.
        party: Party,
    },
    /// An actor answers that did not declare the capability.
    #[error("{party} did not declare the capability {capability}")]
    NotDeclared {
        /// Who.
        party: Party,
        /// Its URL.
        capability: String,
    },
    /// Somebody else asked under this id, whatever became of it.
    #[error("the id of the request {0} is somebody else's")]
    IdInUse(Key),
    /// Too much is open at once.
    #[error("nobody has more than {MAX_OPEN} open requests in a thread")]
    TooManyOpen,
    /// A request was answered too often.
    #[error("a request has at most {MAX_ANSWERS} answers")]
    TooManyAnswers,
}
