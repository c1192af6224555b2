//! Actors and requests in the form that clients see.

use crate::auth::Caller;
use interop::aitp::{
    Actor, AitpState, Key, Participant, Party, Request, RequestQuestion, RequestState,
    RequestStatus, Settlement, SubmittedAnswer, Topic,
};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;
use timeline::{ItemId, Payload};
use utoipa::ToSchema;

/// An actor of a thread.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ActorView {
    /// The actor in AITP's form: `id`, `client_id`, `capabilities` and further members.
    #[schema(value_type = Object)]
    actor: Actor,
    /// Whether it is the thread's initiator: its messages have the role `user`.
    is_initiator: bool,
    /// Whether it is bound to a key; only that key may speak as it.
    is_bound: bool,
    /// Whether it is bound to the caller's key.
    is_own: bool,
}

impl ActorView {
    pub(super) fn of(member: &Participant, desk: &AitpState, caller: &Caller) -> Self {
        let principal = member.principal.as_deref();
        Self {
            is_initiator: desk.participants().initiator() == Some(member.actor.id.as_str()),
            is_bound: principal.is_some(),
            is_own: principal == Some(caller.principal()),
            actor: member.actor.clone(),
        }
    }
}

/// The party that sent a message.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case", tag = "kind", content = "id")]
pub(crate) enum PartyView {
    /// The initiator of the thread.
    Initiator,
    /// An actor.
    Actor(String),
    /// An agent of this server.
    Agent(String),
    /// A party in the role `assistant` without an id.
    Assistant,
}

impl From<&Party> for PartyView {
    fn from(party: &Party) -> Self {
        match party {
            Party::Initiator => Self::Initiator,
            Party::Actor(id) => Self::Actor(id.clone()),
            Party::Agent(name) => Self::Agent(name.clone()),
            Party::Assistant => Self::Assistant,
        }
    }
}

/// An answer.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SubmittedAnswerView {
    /// The id of its message.
    item_id: ItemId,
    /// When it was stored.
    #[schema(value_type = String, format = DateTime)]
    at: Timestamp,
    /// The party that answered.
    by: PartyView,
    /// The member of the message that holds the payload: `decision`, `data`, …
    message_type: String,
    /// The payload.
    #[schema(value_type = Option<Object>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<Payload>,
}

impl From<&SubmittedAnswer> for SubmittedAnswerView {
    fn from(given: &SubmittedAnswer) -> Self {
        Self {
            item_id: given.item_id.clone(),
            at: given.at,
            by: (&given.by).into(),
            message_type: given.message_type.clone(),
            payload: given.payload.clone(),
        }
    }
}

/// A request, described for clients that don't speak AITP.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RequestView {
    /// The id to answer it under, such as `decision:seat`.
    id: String,
    /// `decision`, `data`, `payment`, `top_up`, or a topic of wallets.
    #[schema(value_type = String)]
    topic: Topic,
    /// `open`, `answered`, `declined`, `cancelled`, `expired` or `superseded`.
    #[schema(value_type = String)]
    state: RequestState,
    /// The `$schema` of the message.
    capability: String,
    /// The member of the message that holds the payload: `request_decision`, …
    message_type: String,
    /// The party that made the request.
    by: PartyView,
    /// The parties that may answer.
    answerers: Vec<PartyView>,
    /// The message with the request.
    item_id: ItemId,
    /// The event with the message.
    pub(super) seq: u64,
    /// When the request was made.
    #[schema(value_type = String, format = DateTime)]
    asked_at: Timestamp,
    /// The last instant at which an answer counts.
    #[schema(value_type = Option<String>, format = DateTime)]
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<Timestamp>,
    /// A short title for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    /// All that people must know to answer, first what they sign.
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    /// The data that the answerer signs or sends.
    #[schema(value_type = Option<Object>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    signed: Option<Value>,
    /// The JSON Schema of the `value` of an answer.
    #[schema(value_type = Option<Object>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    answer_schema: Option<Value>,
    /// The payload of the request, unchanged.
    #[schema(value_type = Object)]
    payload: Payload,
    /// Number of answers; the last one counts.
    n_answers: usize,
    /// The answer that counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<SubmittedAnswerView>,
    /// Number of answers that came too late.
    n_late: usize,
    /// The party that declined.
    #[serde(skip_serializing_if = "Option::is_none")]
    declined_by: Option<PartyView>,
    /// Why it was declined or cancelled, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// Why it can't be answered, for programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<String>,
    /// The result of a payment: `success`, `failure` or `pending`.
    #[schema(value_type = Option<String>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    settlement: Option<Settlement>,
}

impl RequestView {
    pub(super) fn of(desk: &AitpState, request: &Request, now: Timestamp) -> Self {
        let ask = &request.ask;
        let question = desk.question_about(request);
        let (title, description, signed, answer_schema) = match question {
            Some(RequestQuestion {
                title,
                description,
                signed,
                schema,
                ..
            }) => (title, description, signed, Some(schema)),
            None => (None, None, None, None),
        };
        let (declined_by, reason, code) = match &request.life.status {
            RequestStatus::Declined(refusing) => (
                Some((&refusing.by).into()),
                refusing.reason.clone(),
                refusing.code.clone(),
            ),
            RequestStatus::Cancelled(reason) => (None, reason.clone(), None),
            RequestStatus::Open
            | RequestStatus::Answered
            | RequestStatus::Superseded
            | RequestStatus::Expired => (None, None, None),
        };
        let answerers = desk.ledger().answerers(ask);
        Self {
            id: ask.key.text(),
            topic: ask.key.topic,
            state: request.state(now),
            capability: ask.schema.clone(),
            message_type: ask.message_type.clone(),
            by: (&ask.by).into(),
            answerers: answerers.iter().map(Into::into).collect(),
            item_id: request.item_id.clone(),
            seq: request.seq.0,
            asked_at: request.at,
            expires_at: request.life.expires_at,
            title,
            description,
            signed,
            answer_schema,
            payload: ask.payload.clone(),
            n_answers: request.answers.len(),
            answer: request.answer().map(Into::into),
            n_late: request.late.len(),
            declined_by,
            reason,
            code,
            settlement: request.life.settlement,
        }
    }

    /// The last request with this key.
    pub(super) fn find(desk: &AitpState, key: &Key, now: Timestamp) -> Option<Self> {
        let request = desk.ledger().request(key)?;
        Some(Self::of(desk, request, now))
    }
}
