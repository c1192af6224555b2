//! AITP: actors, capability messages and the life of requests (AITP-1, 3, 4, 5).
//!
//! * [`ThreadMetadata`], [`Actor`]: who takes part, in every shape that was ever written.
//! * [`ParticipantChange`], [`Participants`]: join, leave and declare as facts of the thread, and who may speak as whom.
//! * [`Message`], [`find`], [`Schemas`]: capability messages in what is said, and what is wrong with them.
//! * [`Ledger`]: what was asked in the thread, by whom, and what came of it; who may answer.
//! * [`RequestQuestion`]: a request for those who don't speak AITP, and their answer as a capability message.
//! * [`AitpState`]: all of it as one state of a thread, which is what a server asks.
//!
//! What AITP leaves open is answered in `docs/aitp.md`.

mod actors;
mod amount;
mod change;
mod choice;
mod family;
mod form;
mod kind;
mod ledger;
mod meaning;
mod message;
mod participants;
mod question;
#[cfg(test)]
mod samples;
mod schemas;
mod state;
mod violation;

pub use actors::{
    Actor, Capability, MAX_ACTORS, MAX_CAPABILITIES, MAX_ID, MAX_URL, ThreadMetadata, read_actors,
    read_capabilities, read_message_actor,
};
pub use amount::{Amount, is_same_amount};
pub use change::{
    ACTOR_DECLARE, ACTOR_JOIN, ACTOR_LEAVE, ChangeRefused, ParticipantChange, shown_metadata,
};
pub use choice::{Choice, ChoiceType, Choices};
pub use family::{Family, FamilyVersion, REQUESTS, capability_of};
pub use form::{Field, FieldOption, FieldType, MAX_FIELDS, RequestForm, read_form_document};
pub use kind::{Kind, Purpose, Topic};
pub use ledger::{
    Key, Ledger, MAX_ANSWERS, MAX_CLOSED, MAX_OPEN, MAX_REASON, MessageVerdict, Refusing, Request,
    RequestEffect, RequestProgress, RequestRefusal, RequestState, RequestStatus, RequestTerms,
    Settlement, SubmittedAnswer,
};
pub use meaning::{RequestedWork, check_answer, check_request};
pub use message::{MAX_MESSAGE, MAX_MESSAGES, Message, TooManyMessages, find, find_in_part};
pub use participants::{MayNotSpeak, Participant, Participants, Party, PartyBinding};
pub use question::RequestQuestion;
pub use schemas::{PayloadSchemaError, Schemas, Strictness, schema_text};
pub use state::{AcceptedChange, AcceptedMessage, AitpState, ChangeTurned, Judged, MessageRefusal};
pub use violation::MessageViolation;
