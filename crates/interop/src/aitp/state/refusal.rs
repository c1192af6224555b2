//! Why something is not taken.

use crate::aitp::change::ChangeRefused;
use crate::aitp::ledger::RequestRefusal;
use crate::aitp::message::TooManyMessages;
use crate::aitp::participants::MayNotSpeak;
use crate::aitp::schemas::PayloadSchemaError;
use crate::aitp::violation::MessageViolation;

/// Why a message may not be recorded. `place` is that of the part in the content that is at fault.
#[derive(Clone, Debug, thiserror::Error)]
pub enum MessageRefusal {
    /// It is an item of another type, which nobody says.
    #[error("only messages are said; joining and leaving are changes")]
    NotAMessage,
    /// Its metadata names its actor by something that is no id. Pointers begin at the metadata.
    #[error("the message's actor can't be read: {0}")]
    Actor(MessageViolation),
    /// The credential may not speak so.
    #[error(transparent)]
    PartyBinding(#[from] MayNotSpeak),
    /// It has too many capability messages.
    #[error(transparent)]
    TooManyMessages(#[from] TooManyMessages),
    /// A capability message does not satisfy its schema, or not the form that it answers. Pointers
    /// begin at the capability message.
    #[error("the capability message does not fit: {}", .wrong.first().map(ToString::to_string).unwrap_or_default())]
    Unfit {
        /// Where.
        place: usize,
        /// What is wrong.
        wrong: Vec<MessageViolation>,
    },
    /// A capability message can't be said here, now or by this speaker.
    #[error("{refusal}")]
    Refused {
        /// Where.
        place: usize,
        /// Why.
        refusal: RequestRefusal,
    },
    /// The schemas do not compile, which the crate's tests rule out.
    #[error(transparent)]
    Schemas(#[from] &'static PayloadSchemaError),
}

/// Why a change of who takes part may not be recorded.
#[derive(Debug, thiserror::Error)]
pub enum ChangeTurned {
    /// An actor would be bound to somebody else's credential.
    #[error("the actor {0:?} joins with another credential than it would be bound to")]
    OtherPrincipal(String),
    /// The credential may not speak as the actor.
    #[error(transparent)]
    PartyBinding(#[from] MayNotSpeak),
    /// The change can't be.
    #[error(transparent)]
    Refused(#[from] ChangeRefused),
    /// The change has no JSON.
    #[error(transparent)]
    Encoding(#[from] serde_json::Error),
}
