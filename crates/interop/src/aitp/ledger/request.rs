//! One request and its life.

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

/// What is asked, as it was asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RequestTerms {
    /// What it is answered under.
    pub key: Key,
    /// The capability.
    pub family: Family,
    /// Its version.
    pub version: FamilyVersion,
    /// The URL that the message had; an answer has it too.
    pub schema: String,
    /// The member that holds the payload: `request_decision`, `quote`, …
    pub message_type: String,
    /// The payload.
    pub payload: Payload,
    /// Who asks.
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
    /// What a message asks; nothing for one that does not ask.
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

    /// What is asked, read once; nothing for a request that was never one.
    pub fn question(&self) -> Option<&RequestedWork> {
        let read = || RequestedWork::read(self.kind()?, &self.payload.value()).ok();
        self.read.0.get_or_init(read).as_ref()
    }

    /// Until when an answer counts, as the request itself says: a quote's `expiration` or
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

    /// Whether another request is this one, passed on: the same, or a quote with a wrapping.
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

/// Somebody's refusal to answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusing {
    /// Who.
    pub by: Party,
    /// Why, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Why, for programs, where it is an error and no choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
}

/// How a request stands, whatever the time is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestStatus {
    /// Nobody has answered.
    #[default]
    Open,
    /// Somebody has; the last answer counts.
    Answered,
    /// Somebody will not, or can't.
    Declined(Refusing),
    /// The asker needs no answer any more, for this reason.
    Cancelled(Option<String>),
    /// The asker asked again under the same id.
    Superseded,
    /// Nobody answered in time, which a later record has made sure of.
    Expired,
}

/// What came of a payment, as the seller says, or the payer whose payment failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Settlement {
    /// It came.
    Success,
    /// It did not; the quote can be paid again.
    Failure,
    /// It is on its way.
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

/// What of a request changes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestProgress {
    /// How it stands.
    #[serde(rename = "standing")]
    pub status: RequestStatus,
    /// After this instant an answer is late.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// What came of the payment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settlement: Option<Settlement>,
    /// How many answers there are.
    #[serde(default)]
    pub n_answers: usize,
}

/// How a request stands at some instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestState {
    /// It waits for an answer.
    Open,
    /// It has one.
    Answered,
    /// Somebody will not answer, or can't.
    Declined,
    /// The asker took it back.
    Cancelled,
    /// Nobody answered in time.
    Expired,
    /// The asker asked again under the same id.
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
    /// How it stands at this instant.
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
    /// The item it stands in.
    pub item_id: ItemId,
    /// The record that brought it.
    pub seq: Seq,
    /// When it came.
    pub at: Timestamp,
    /// Who gave it.
    pub by: Party,
    /// The member that holds the payload: `decision`, `data`, …
    pub message_type: String,
    /// The payload, of the answer that counts. The log has it of the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<Payload>,
}

/// A request with what came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// What is asked.
    pub ask: Arc<RequestTerms>,
    /// The item that asks.
    pub item_id: ItemId,
    /// The step that asks, where an agent does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step_id: Option<StepId>,
    /// The record that brought it.
    pub seq: Seq,
    /// When it was asked.
    pub at: Timestamp,
    /// How it stands.
    pub life: RequestProgress,
    /// Which of the ledger's changes was its last: what was closed first is forgotten first.
    pub(super) turn: u64,
    /// All answers, in order; the last one counts.
    pub answers: Vec<SubmittedAnswer>,
    /// Answers that came too late and don't count, without their payloads.
    pub late: Vec<SubmittedAnswer>,
}

impl Request {
    /// How it stands at this instant.
    pub fn state(&self, now: Timestamp) -> RequestState {
        self.life.state(now)
    }

    /// The answer that counts.
    pub fn answer(&self) -> Option<&SubmittedAnswer> {
        self.answers.last()
    }
}
