//! A request and its state.

use super::Key;
use crate::aitp::choice::instant;
use crate::aitp::family::{Family, FamilyVersion};
use crate::aitp::kind::{Kind, Purpose};
use crate::aitp::meaning::{RequestedWork, read_request};
use crate::aitp::message::Message;
use crate::aitp::participants::Party;
use crate::aitp::violation::MessageViolation;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::{Arc, OnceLock};
use timeline::{ItemId, Payload, Seq, StepId};

/// The terms of a request, as its message states them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RequestTerms {
    /// The key that an answer refers to.
    pub key: Key,
    /// The capability.
    pub family: Family,
    /// Its version.
    pub version: FamilyVersion,
    /// The schema's URL in the message; an answer has the same one.
    pub schema: String,
    /// The member that holds the payload: `request_decision`, `quote`, …
    pub message_type: String,
    /// The payload.
    pub payload: Payload,
    /// The party that made the request.
    pub by: Party,
    #[serde(skip)]
    read: Read,
}

/// The payload, read when it is first needed: what follows from another field makes no difference.
#[derive(Clone, Debug, Default)]
struct Read(OnceLock<Option<RequestedWork>>);

impl PartialEq for Read {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl RequestTerms {
    /// The request in `message`; `None` if the message requests nothing.
    pub(super) fn of(message: &Message, by: Party) -> Result<Option<Self>, Vec<MessageViolation>> {
        let Some((kind, (family, version))) = message.kind.zip(message.capability) else {
            return Ok(None);
        };
        let (Purpose::Ask(topic), Some(payload)) = (kind.purpose(), message.payload()) else {
            return Ok(None);
        };
        let (id, asked) = read_request(kind, payload)?;
        Ok(Some(Self {
            key: Key {
                topic,
                id: id.to_owned(),
            },
            family,
            version,
            schema: message.schema.clone(),
            message_type: kind.key().to_owned(),
            payload: payload.clone().into(),
            by,
            read: Read(OnceLock::from(Some(asked))),
        }))
    }

    /// The type of its message.
    pub fn kind(&self) -> Option<Kind> {
        Kind::find(self.family, &self.message_type)
    }

    /// The decoded payload. It is decoded once; `None` if it is not a valid request.
    pub fn question(&self) -> Option<&RequestedWork> {
        let read = || RequestedWork::read(self.kind()?, &self.payload.value()).ok();
        self.read.0.get_or_init(read).as_ref()
    }

    /// The last instant at which an answer counts, from the request: a quote's `expiration` or
    /// `valid_until`, our `expires_at`, or the end of the last price of a choice.
    pub(super) fn expires_at(&self, payload: &Value) -> Option<Timestamp> {
        let of = |value: &Value, key: &str| value.get(key).and_then(instant);
        match self.question()? {
            RequestedWork::Quote(quote) => {
                of(quote, "expiration").or_else(|| of(quote, "valid_until"))
            }
            RequestedWork::Choices(choices) => {
                of(payload, "expires_at").or_else(|| choices.valid_until())
            }
            RequestedWork::Form(_) | RequestedWork::Members(_) => of(payload, "expires_at"),
        }
    }

    /// Whether another request forwards this one: an equal one, or the same quote in a wrapping.
    pub(super) fn is_passed_on_as(&self, other: &Self) -> bool {
        if self.family != other.family {
            return false;
        }
        if let (Some(RequestedWork::Quote(own)), Some(RequestedWork::Quote(others))) =
            (self.question(), other.question())
        {
            return own == others;
        }
        // The same value has a text of the same length, whatever the order of its members.
        let (own, others) = (&self.payload, &other.payload);
        own.text().len() == others.text().len() && (own == others || own.value() == others.value())
    }
}

/// A party's refusal to answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusing {
    /// The party that refused.
    pub by: Party,
    /// The reason, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Why, for programs, where it is an error and no choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
}

/// The recorded state of a request, without regard to the current time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestStatus {
    /// No party has answered.
    #[default]
    Open,
    /// A party has answered; the last answer counts.
    Answered,
    /// A party will not answer, or can't.
    Declined(Refusing),
    /// The requester cancelled it, for this reason.
    Cancelled(Option<String>),
    /// The requester sent another request with this id.
    Superseded,
    /// No party answered in time, as a later record shows.
    Expired,
}

/// The result of a payment, as reported by the seller, or by the payer of a failed payment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Settlement {
    /// The payment arrived.
    Success,
    /// It did not; the quote can be paid again.
    Failure,
    /// The payment is in progress.
    Pending,
}

impl Settlement {
    pub(super) fn of(payload: &Value) -> Option<Self> {
        Some(match payload.get("result")?.as_str()? {
            "success" => Self::Success,
            "failure" => Self::Failure,
            "pending" => Self::Pending,
            _ => return None,
        })
    }
}

/// The part of a request that changes over time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestProgress {
    /// The recorded state.
    #[serde(rename = "standing")]
    pub status: RequestStatus,
    /// After this instant an answer is late.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// The result of the payment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settlement: Option<Settlement>,
    /// How many answers there are.
    #[serde(default)]
    pub n_answers: usize,
}

/// The state of a request at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestState {
    /// It has no answer yet.
    Open,
    /// It has one.
    Answered,
    /// A party will not answer, or can't.
    Declined,
    /// The requester cancelled it.
    Cancelled,
    /// No party answered in time.
    Expired,
    /// The requester sent another request with this id.
    Superseded,
}

impl RequestState {
    /// The name, as it is serialised.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Answered => "answered",
            Self::Declined => "declined",
            Self::Cancelled => "cancelled",
            Self::Expired => "expired",
            Self::Superseded => "superseded",
        }
    }
}

impl RequestProgress {
    /// The state at `now`. An open request is expired if `expires_at` is before `now`.
    pub fn state(&self, now: Timestamp) -> RequestState {
        match self.status {
            RequestStatus::Open if self.is_over(now) => RequestState::Expired,
            RequestStatus::Open => RequestState::Open,
            RequestStatus::Answered => RequestState::Answered,
            RequestStatus::Declined(_) => RequestState::Declined,
            RequestStatus::Cancelled(_) => RequestState::Cancelled,
            RequestStatus::Superseded => RequestState::Superseded,
            RequestStatus::Expired => RequestState::Expired,
        }
    }

    /// The last instant at which an answer counts.
    pub(super) fn end(&self) -> Timestamp {
        self.expires_at.unwrap_or(Timestamp::MAX)
    }

    /// Whether the time for answers is over.
    pub fn is_over(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|end| end < now)
    }
}

/// One answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SubmittedAnswer {
    /// The item that contains it.
    pub item_id: ItemId,
    /// The record that brought it.
    pub seq: Seq,
    /// When it was posted.
    pub at: Timestamp,
    /// The party that answered.
    pub by: Party,
    /// The member that holds the payload: `decision`, `data`, …
    pub message_type: String,
    /// The payload, for the answer that counts. The payloads of other answers are only in the log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<Payload>,
}

/// A request with its answers and its state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// The terms of the request.
    pub ask: Arc<RequestTerms>,
    /// The item that contains the request.
    pub item_id: ItemId,
    /// The step that contains it, if an agent made the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step_id: Option<StepId>,
    /// The record that brought it.
    pub seq: Seq,
    /// When the request was posted.
    pub at: Timestamp,
    /// The state of the request.
    pub life: RequestProgress,
    /// The number of the ledger change that last changed it. Requests that were closed first are
    /// dropped first.
    pub(super) turn: u64,
    /// All answers, in order; the last one counts.
    pub answers: Vec<SubmittedAnswer>,
    /// Answers that were late and don't count, without their payloads.
    pub late: Vec<SubmittedAnswer>,
}

impl Request {
    /// The state at `now`.
    pub fn state(&self, now: Timestamp) -> RequestState {
        self.life.state(now)
    }

    /// The answer that counts.
    pub fn answer(&self) -> Option<&SubmittedAnswer> {
        self.answers.last()
    }
}
