//! Reasons for refusing messages and changes.

use crate::aitp::change::ChangeRefused;
use crate::aitp::ledger::RequestRefusal;
use crate::aitp::message::TooManyMessages;
use crate::aitp::participants::MayNotSpeak;
use crate::aitp::schemas::PayloadSchemaError;
use crate::aitp::violation::MessageViolation;

/// Why a message may not be recorded. `place` is that of the part in the content that is at fault.
#[derive(Clone, Debug, thiserror::Error)]
pub enum MessageRefusal {
    /// The item is not a message.
    #[error("only messages can be posted; joining and leaving are changes")]
    NotAMessage,
    /// The metadata names its actor by a value that is not an id. Pointers are relative to the
    /// metadata.
    #[error("the message's actor can't be read: {0}")]
    Actor(MessageViolation),
    /// The credential may not post as this party.
    #[error(transparent)]
    PartyBinding(#[from] MayNotSpeak),
    /// It has too many capability messages.
    #[error(transparent)]
    TooManyMessages(#[from] TooManyMessages),
    /// A capability message does not satisfy its schema, or the form that it answers. Pointers are
    /// relative to the capability message.
    #[error("the capability message does not fit: {}", .wrong.first().map(ToString::to_string).unwrap_or_default())]
    Unfit {
        /// The index of its part in the content.
        place: usize,
        /// The violations.
        wrong: Vec<MessageViolation>,
    },
    /// The ledger refuses the capability message from this party at this time.
    #[error("{refusal}")]
    Refused {
        /// The index of its part in the content.
        place: usize,
        /// The reason.
        refusal: RequestRefusal,
    },
    /// The schemas do not compile, which the crate's tests rule out.
    #[error(transparent)]
    Schemas(#[from] &'static PayloadSchemaError),
}

/// The reason for refusing a change of the participants.
#[derive(Debug, thiserror::Error)]
pub enum ChangeTurned {
    /// The change would bind an actor to another client's credential.
    #[error("the actor {0:?} joins with another credential than it would be bound to")]
    OtherPrincipal(String),
    /// The credential may not post as the actor.
    #[error(transparent)]
    PartyBinding(#[from] MayNotSpeak),
    /// The change can't be.
    #[error(transparent)]
    Refused(#[from] ChangeRefused),
    /// The change has no JSON.
    #[error(transparent)]
    Encoding(#[from] serde_json::Error),
}
