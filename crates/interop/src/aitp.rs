//! AITP: actors, capability messages and the life of requests (AITP-1, 3, 4, 5).
//!
//! * [`ThreadMetadata`], [`Actor`]: the participants, in every shape that AITP has had.
//! * [`ParticipantChange`], [`Participants`]: join, leave and declare as facts of the thread, and the
//!   credentials that may post as each actor.
//! * [`Message`], [`find`], [`Schemas`]: capability messages in a message's text, and their
//!   violations.
//! * [`Ledger`]: the thread's requests, their authors and answers, and the parties that may answer.
//! * [`RequestQuestion`]: a request for clients without AITP, and their answer as a capability
//!   message.
//! * [`AitpState`]: all of this as one state of a thread, for use by a server.
//!
//! `docs/reference/aitp.md` describes the behaviour where AITP leaves a choice.

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
