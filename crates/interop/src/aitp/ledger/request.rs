//! One request and its life.

use super::Key;
use crate::aitp::family::{Family, Version};
use crate::aitp::form::{Choices, instant};
use crate::aitp::kind::{Kind, Purpose, Topic};
use crate::aitp::meaning::quote_of;
use crate::aitp::message::Message;
use crate::aitp::roster::Party;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use timeline::{ItemId, Payload, Seq};

/// What is asked, as it was asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ask {
    /// What it is answered under.
    pub key: Key,
    /// The capability.
    pub family: Family,
    /// Its version.
    pub version: Version,
    /// The URL that the message had; an answer has it too.
    pub schema: String,
    /// The member that holds the payload: `request_decision`, `quote`, …
    pub message_type: String,
    /// The payload.
    pub payload: Payload,
    /// Who asks.
    pub by: Party,
}

impl Ask {
    /// What a message asks, if it asks for something and has an id.
    pub(super) fn of(message: &Message, by: Party) -> Option<Self> {
        let (kind, (family, version)) = message.kind.zip(message.capability)?;
        let Purpose::Ask(topic) = kind.purpose() else {
            return None;
        };
        let payload = message.payload()?;
        let id = id_of(kind, payload)?.to_owned();
        Some(Self {
            key: Key { topic, id },
            family,
            version,
            schema: message.schema.clone(),
            message_type: kind.key().to_owned(),
            payload: payload.clone().into(),
            by,
        })
    }

    /// The type of its message.
    pub fn kind(&self) -> Option<Kind> {
        Kind::find(self.family, &self.message_type)
    }

    /// Until when an answer counts, as the request itself says: a quote's `expiration` or
    /// `valid_until`, our `expires_at`, or the end of the last price of a choice.
    pub(super) fn expires_at(&self) -> Option<Timestamp> {
        let payload = self.payload.value();
        let of = |value: &Value, key: &str| value.get(key).and_then(instant);
        match self.key.topic {
            Topic::Payment => {
                let quote = quote_of(&payload);
                of(quote, "expiration").or_else(|| of(quote, "valid_until"))
            }
            Topic::Decision => {
                let prices = || Choices::of(&payload).valid_until();
                of(&payload, "expires_at").or_else(prices)
            }
            Topic::Data
            | Topic::TopUp
            | Topic::NearAccount
            | Topic::NearTransaction
            | Topic::NearSigning
            | Topic::EvmAddress
            | Topic::EvmTransaction
            | Topic::EvmSigning => of(&payload, "expires_at"),
        }
    }
}

/// The id that correlates a message with others.
pub(super) fn id_of(kind: Kind, payload: &Value) -> Option<&str> {
    let holder = if kind == Kind::WrappedQuote {
        quote_of(payload)
    } else {
        payload
    };
    let id = holder.get(kind.id_field())?.as_str()?;
    (!id.is_empty()).then_some(id)
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
pub enum Standing {
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
}

/// What a seller says of a payment.
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
pub struct Life {
    /// How it stands.
    pub standing: Standing,
    /// After this instant an answer is late.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// What the seller says of the payment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settlement: Option<Settlement>,
    /// How many answers there are.
    #[serde(default)]
    pub n_answers: usize,
}

/// How a request stands at some instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
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

impl State {
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

impl Life {
    /// How it stands at this instant.
    pub fn state(&self, now: Timestamp) -> State {
        match self.standing {
            Standing::Open if self.is_over(now) => State::Expired,
            Standing::Open => State::Open,
            Standing::Answered => State::Answered,
            Standing::Declined(_) => State::Declined,
            Standing::Cancelled(_) => State::Cancelled,
            Standing::Superseded => State::Superseded,
        }
    }

    /// Whether the time for answers is over.
    pub fn is_over(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|end| end < now)
    }
}

/// One answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Given {
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
    /// The payload.
    pub payload: Payload,
}

/// A request with what came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// What is asked.
    pub ask: Arc<Ask>,
    /// The item that asks.
    pub item_id: ItemId,
    /// The record that brought it.
    pub seq: Seq,
    /// When it was asked.
    pub at: Timestamp,
    /// How it stands.
    pub life: Life,
    /// All answers, in order; the last one counts.
    pub answers: Vec<Given>,
    /// Answers that came too late and don't count.
    pub late: Vec<Given>,
}

impl Request {
    /// How it stands at this instant.
    pub fn state(&self, now: Timestamp) -> State {
        self.life.state(now)
    }

    /// The answer that counts.
    pub fn answer(&self) -> Option<&Given> {
        self.answers.last()
    }
}
