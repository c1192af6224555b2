//! A request for those who don't speak AITP: a title, a JSON Schema, and the answer as a capability
//! message. AG-UI interrupts, MCP elicitation, A2A's `input-required` and forms are made of it.

mod answer;
mod schema;

use super::family::REQUESTS;
use super::form::{Choices, Field, Form};
use super::kind::{Kind, Topic};
use super::ledger::{Ask, Key, Request};
use super::message::Message;
use super::schemas::Schemas;
use super::violation::Violation;
use jiff::Timestamp;
use serde_json::{Map, Value};
use std::sync::Arc;

/// A request, in no protocol's words.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// What is asked. [`Key::text`] of its key is the question's id.
    pub ask: Arc<Ask>,
    /// A few words for people.
    pub title: Option<String>,
    /// What they have to know to answer.
    pub description: Option<String>,
    /// The JSON Schema (2020-12) of an answer: an object whose members are texts, numbers or lists of
    /// texts, as MCP elicitation asks for.
    pub schema: Value,
    /// After this instant an answer is late.
    pub expires_at: Option<Timestamp>,
    content: Content,
}

/// What a question is made from.
#[derive(Clone, Debug, PartialEq)]
enum Content {
    Choices(Choices),
    Form(Form),
    Quote(Value),
    /// The answer is what the schema of its message says, without the id.
    Members,
}

impl Question {
    /// The question that a request is; nothing for one whose message has no type that is known.
    pub fn of(request: &Request) -> Option<Self> {
        Self::with_fields(request, None)
    }

    /// The same, with the fields of the document that a form's `json_url` leads to. Without them such
    /// a question takes any fields.
    pub fn with_fields(request: &Request, fetched: Option<Vec<Field>>) -> Option<Self> {
        let ask = Arc::clone(&request.ask);
        let payload = ask.payload.value();
        let content = match ask.key.topic {
            Topic::Decision => Content::Choices(Choices::of(&payload)),
            Topic::Data => {
                let form = Form::of(&payload);
                Content::Form(match fetched {
                    Some(fetched) => form.with_fetched(fetched),
                    None => form,
                })
            }
            Topic::Payment => Content::Quote(super::meaning::quote_of(&payload).clone()),
            Topic::TopUp
            | Topic::NearAccount
            | Topic::NearTransaction
            | Topic::NearSigning
            | Topic::EvmAddress
            | Topic::EvmTransaction
            | Topic::EvmSigning => Content::Members,
        };
        let answer_kind = answer_kind(&ask)?;
        let schema = schema::of(&content, answer_kind, &payload)?;
        Some(Self {
            title: text(&payload, "title"),
            description: description(ask.key.topic, &payload),
            schema: Value::Object(schema),
            expires_at: request.life.expires_at,
            content,
            ask,
        })
    }

    /// The type of the message that answers it.
    pub fn answer_kind(&self) -> Option<Kind> {
        answer_kind(&self.ask)
    }

    /// The capability message that this value is as an answer. `now` stands where a message has to
    /// say when it was made and the value does not. Pointers begin at the value.
    pub fn answer(
        &self,
        schemas: &Schemas,
        value: &Value,
        now: Timestamp,
    ) -> Result<Message, Vec<Violation>> {
        answer::message(self, schemas, value, now)
    }

    /// The message that says that nobody will answer.
    pub fn decline(&self, reason: Option<&str>) -> Message {
        self.control(Kind::Decline, &[("reason", reason)])
    }

    /// The message that says that it can't be answered: `code` for programs, `message` for people.
    pub fn fail(&self, code: &str, message: &str) -> Message {
        self.control(
            Kind::Error,
            &[("code", Some(code)), ("message", Some(message))],
        )
    }

    /// The message by which the asker takes it back.
    pub fn cancel(&self, reason: Option<&str>) -> Message {
        self.control(Kind::Cancel, &[("reason", reason)])
    }

    fn control(&self, kind: Kind, members: &[(&str, Option<&str>)]) -> Message {
        let mut payload = Map::new();
        let id = self.ask.key.id.as_str();
        payload.insert("request_id".to_owned(), id.into());
        let request_type = self.ask.message_type.as_str();
        payload.insert("request_type".to_owned(), request_type.into());
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

    /// The key behind such a text.
    pub fn read(text: &str) -> Option<Self> {
        let (name, id) = text.split_once(':')?;
        let topic = Topic::ALL.into_iter().find(|topic| topic.name() == name)?;
        let id = id.to_owned();
        Some(Self { topic, id })
    }
}

fn answer_kind(ask: &Ask) -> Option<Kind> {
    let near = ask.key.topic == Topic::Payment && {
        let payload = ask.payload.value();
        payload.get("payment_plans").is_some()
    };
    ask.kind()?;
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

/// Nobody signs what they were not shown, so a message to sign is part of what people are told.
fn description(topic: Topic, payload: &Value) -> Option<String> {
    let said = match topic {
        Topic::Payment => text(super::meaning::quote_of(payload), "description"),
        Topic::TopUp => text(payload, "reason"),
        Topic::Decision
        | Topic::Data
        | Topic::NearAccount
        | Topic::NearTransaction
        | Topic::NearSigning
        | Topic::EvmAddress
        | Topic::EvmTransaction
        | Topic::EvmSigning => text(payload, "description"),
    };
    let shown = match topic {
        Topic::NearSigning => payload.get("message").and_then(|it| text(it, "message")),
        Topic::EvmSigning => {
            text(payload, "message").or_else(|| payload.get("typed_data").map(Value::to_string))
        }
        Topic::NearTransaction | Topic::EvmTransaction => {
            payload.get("transaction").map(Value::to_string)
        }
        Topic::Decision
        | Topic::Data
        | Topic::Payment
        | Topic::TopUp
        | Topic::NearAccount
        | Topic::EvmAddress => None,
    };
    match (said, shown) {
        (Some(said), Some(shown)) => Some(format!("{said}\n\n{shown}")),
        (said, shown) => said.or(shown),
    }
}

#[cfg(test)]
mod tests;
