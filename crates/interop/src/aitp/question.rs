//! Requests for clients without AITP: a title, a JSON Schema, and the answer as a capability message.
//! AG-UI interrupts, MCP elicitation, A2A's `input-required` and forms are built from it.

mod answer;
mod schema;
mod signed;

use super::family::REQUESTS;
use super::form::Field;
use super::kind::{Kind, Topic};
use super::ledger::{Key, Request, RequestTerms};
use super::meaning::{RequestedWork, quote_of};
use super::message::Message;
use super::schemas::Schemas;
use super::violation::MessageViolation;
use jiff::Timestamp;
use serde_json::{Map, Value};
use std::sync::Arc;

/// A request, in no protocol's words.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestQuestion {
    /// The terms of the request. [`Key::text`] of its key is the question's id.
    pub ask: Arc<RequestTerms>,
    /// A short title for people.
    pub title: Option<String>,
    /// The text that people need to answer: first everything that they sign, as
    /// [`RequestQuestion::signed`] has it, then the requester's description.
    pub description: Option<String>,
    /// Everything that an answer signs or sends, as JSON, for clients that show it in a better form.
    /// `None` if an answer signs nothing. The requester's description is no substitute.
    pub signed: Option<Value>,
    /// The JSON Schema (2020-12) of an answer: an object whose members are strings, numbers or lists
    /// of strings, as MCP elicitation requires.
    pub schema: Value,
    /// After this instant an answer is late.
    pub expires_at: Option<Timestamp>,
    asked: RequestedWork,
}

impl RequestQuestion {
    /// The question that a request is; nothing for one whose message has no type that is known.
    pub fn of(request: &Request) -> Option<Self> {
        Self::with_fields(request, None)
    }

    /// A request's question with the fields of the document at a form's `json_url`. Answers are
    /// checked against these fields. Without them the question takes any fields.
    pub fn with_fields(request: &Request, fetched: Option<Vec<Field>>) -> Option<Self> {
        let asked = match (request.ask.question()?.clone(), fetched) {
            (RequestedWork::Form(form), Some(fetched)) => {
                RequestedWork::Form(form.with_fetched(fetched))
            }
            (asked, _) => asked,
        };
        Self::asking(request, asked)
    }

    /// The question of a request whose content is `asked`.
    pub(super) fn asking(request: &Request, asked: RequestedWork) -> Option<Self> {
        let ask = Arc::clone(&request.ask);
        let payload = ask.payload.value();
        let schema = schema::of(&asked, answer_kind(&ask)?, &payload)?;
        let signed = signed::of(ask.key.topic, &payload);
        let said = request_text(ask.key.topic, &payload);
        Some(Self {
            title: text(&payload, "title"),
            description: match &signed {
                Some(signed) => Some(signed::signed_text(signed, said.as_deref())),
                None => said,
            },
            signed,
            schema: Value::Object(schema),
            expires_at: request.life.expires_at,
            asked,
            ask,
        })
    }

    /// The type of the message that answers it.
    pub fn answer_kind(&self) -> Option<Kind> {
        answer_kind(&self.ask)
    }

    /// The decoded content of the request, with the fetched fields of a form.
    pub fn work(&self) -> &RequestedWork {
        &self.asked
    }

    /// The requester's own description, without the data to sign.
    pub fn remark(&self) -> Option<String> {
        request_text(self.ask.key.topic, &self.ask.payload.value())
    }

    /// The data to sign as indented JSON. Characters that have no width or change the direction of
    /// text are escaped.
    pub fn signed_json(&self) -> Option<String> {
        self.signed.as_ref().map(signed::json_text)
    }

    /// Turns `value` into the capability message that answers this question. `now` is used where the
    /// message needs a time and the value has none. Pointers are relative to the value.
    pub fn answer(
        &self,
        schemas: &Schemas,
        value: &Value,
        now: Timestamp,
    ) -> Result<Message, Vec<MessageViolation>> {
        answer::message(self, schemas, value, now)
    }

    /// The message that declines the request.
    pub fn decline(&self, reason: Option<&str>) -> Message {
        self.control(Kind::Decline, &[("reason", reason)])
    }

    /// The question as one text. If an answer signs something, that replaces the requester's title.
    pub fn prompt(&self) -> String {
        let title = self.title.as_ref().filter(|_| self.signed.is_none());
        let texts = [title, self.description.as_ref()].into_iter().flatten();
        texts.map(String::as_str).collect::<Vec<_>>().join("\n\n")
    }

    /// The message that reports that the request can't be answered: `code` for programs, `message` for
    /// people.
    pub fn fail(&self, code: &str, message: &str) -> Message {
        self.control(
            Kind::Error,
            &[("code", Some(code)), ("message", Some(message))],
        )
    }

    /// The message with which the requester cancels the request.
    pub fn cancel(&self, reason: Option<&str>) -> Message {
        self.control(Kind::Cancel, &[("reason", reason)])
    }

    fn control(&self, kind: Kind, members: &[(&str, Option<&str>)]) -> Message {
        let mut payload = Map::new();
        let id = self.ask.key.id.as_str();
        payload.insert("request_id".to_owned(), id.into());
        let request_type = self.ask.message_type.as_str();
        payload.insert("request_type".to_owned(), request_type.into());
        let request_schema = self.ask.schema.as_str();
        payload.insert("request_schema".to_owned(), request_schema.into());
        for (key, value) in members {
            payload.extend(value.map(|value| ((*key).to_owned(), value.into())));
        }
        Message::new(REQUESTS, kind, Value::Object(payload))
    }
}

impl Key {
    /// The key as one text: `decision:42`.
    pub fn text(&self) -> String {
        format!("{}:{}", self.topic.name(), self.id)
    }

    /// Reads the key from such a text.
    pub fn read(text: &str) -> Option<Self> {
        let (name, id) = text.split_once(':')?;
        let topic = Topic::ALL.into_iter().find(|topic| topic.name() == name)?;
        let id = id.to_owned();
        Some(Self { topic, id })
    }
}

fn answer_kind(ask: &RequestTerms) -> Option<Kind> {
    let near = match ask.question()? {
        RequestedWork::Quote(quote) => quote.get("payment_plans").is_some(),
        RequestedWork::Choices(_) | RequestedWork::Form(_) | RequestedWork::Members(_) => false,
    };
    Some(match ask.key.topic {
        Topic::Decision => Kind::Decision,
        Topic::Data => Kind::Data,
        Topic::Payment if near => Kind::PaymentAuthorization,
        Topic::Payment => Kind::Payment,
        Topic::TopUp => Kind::TopUpResponse,
        Topic::NearAccount => Kind::AccountResponse,
        Topic::NearTransaction => Kind::NearTransactionResponse,
        Topic::NearSigning => Kind::NearSigningResponse,
        Topic::EvmAddress => Kind::AddressResponse,
        Topic::EvmTransaction => Kind::EvmTransactionResponse,
        Topic::EvmSigning => Kind::EvmSigningResponse,
    })
}

fn text(value: &Value, key: &str) -> Option<String> {
    value.get(key).and_then(Value::as_str).map(str::to_owned)
}

/// The requester's description of a request.
fn request_text(topic: Topic, payload: &Value) -> Option<String> {
    match topic {
        Topic::Payment => text(quote_of(payload), "description"),
        Topic::TopUp => text(payload, "reason"),
        Topic::Decision
        | Topic::Data
        | Topic::NearAccount
        | Topic::NearTransaction
        | Topic::NearSigning
        | Topic::EvmAddress
        | Topic::EvmTransaction
        | Topic::EvmSigning => text(payload, "description"),
    }
}

#[cfg(test)]
mod tests;
