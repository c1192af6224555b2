//! The effect of a message on the ledger, and the reasons to refuse one.

use super::request::{RequestState, Settlement};
use super::{Key, MAX_ANSWERS, MAX_OPEN};
use crate::aitp::kind::Topic;
use crate::aitp::participants::Party;
use crate::aitp::violation::MessageViolation;
use jiff::Timestamp;

/// The effect of a message on a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestEffect {
    /// It makes a request.
    Opens,
    /// It replaces an open request with an equal id.
    Supersedes,
    /// It passes a request on that is open already.
    Forwards,
    /// It is the first answer.
    Answers,
    /// It replaces an earlier answer.
    Replaces,
    /// It reports the result of a payment.
    Settles(Settlement),
    /// It declines the request.
    Declines,
    /// It reports that the request can't be answered.
    Fails,
    /// It cancels the request.
    Cancels,
    /// It sets the last instant at which an answer counts.
    Limits(Timestamp),
}

/// The effect of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MessageVerdict {
    /// No effect: a notice, or a message of an unknown capability.
    Passes,
    /// Something to a request.
    Does {
        /// The effect.
        effect: RequestEffect,
        /// The request.
        request: Key,
    },
}

/// Why a message can't be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestRefusal {
    /// It has no payload that is known, or several.
    #[error("a capability message has exactly one member that says what it is")]
    NotOneMessage,
    /// It is inconsistent, or does not fit its request.
    #[error("the message does not fit: {}", .0.first().map(ToString::to_string).unwrap_or_default())]
    Unfit(Vec<MessageViolation>),
    /// It names a request that does not exist in this thread.
    #[error("there is no request with the id {0:?}")]
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
        /// The request.
        request: Key,
        /// The request's state.
        state: RequestState,
    },
    /// The payment was already made and has not been reported as failed.
    #[error("the request {0} was answered, and its payment is not known to have failed")]
    AnsweredBefore(Key),
    /// It reports the result of a payment that was not made.
    #[error("the request {0} was not answered")]
    NotAnswered(Key),
    /// The requester answers its own request.
    #[error("the request {0} is answered by somebody else than the asker")]
    OwnRequest(Key),
    /// Only the requester may post this message.
    #[error("only the author of the request {0} may post this about it")]
    NotTheAsker(Key),
    /// One who is no actor of the thread answers.
    #[error("{party} is no actor of the thread")]
    NotAnActor {
        /// The party that answered.
        party: Party,
    },
    /// An actor answers that did not declare the capability.
    #[error("{party} did not declare the capability {capability}")]
    NotDeclared {
        /// The actor that answered.
        party: Party,
        /// The capability's URL.
        capability: String,
    },
    /// Another party has used this id for a request, whatever its state.
    #[error("the id of the request {0} is somebody else's")]
    IdInUse(Key),
    /// The party has too many open requests.
    #[error("nobody has more than {MAX_OPEN} open requests in a thread")]
    TooManyOpen,
    /// A request was answered too often.
    #[error("a request has at most {MAX_ANSWERS} answers")]
    TooManyAnswers,
}
