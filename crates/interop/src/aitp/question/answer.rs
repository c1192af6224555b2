//! An answer's value as a capability message.

use super::RequestQuestion;
use super::schema::FILLED_IN;
use crate::aitp::amount::text_of;
use crate::aitp::choice::{ChoiceType, Choices};
use crate::aitp::form::RequestForm;
use crate::aitp::kind::Kind;
use crate::aitp::meaning::{RequestedWork, check_answer, ways};
use crate::aitp::message::Message;
use crate::aitp::schemas::{Schemas, Strictness};
use crate::aitp::violation::{MessageViolation, member};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

/// A payload, and the place of each list element in the value.
struct Draft {
    payload: Map<String, Value>,
    list: &'static str,
    sources: Vec<String>,
}

impl Draft {
    fn plain(payload: Map<String, Value>) -> Self {
        Self {
            payload,
            list: "",
            sources: Vec::new(),
        }
    }
}

pub(super) fn message(
    question: &RequestQuestion,
    schemas: &Schemas,
    value: &Value,
    now: Timestamp,
) -> Result<Message, Vec<MessageViolation>> {
    let wrong = |it: MessageViolation| vec![it];
    let kind = question
        .answer_kind()
        .ok_or_else(|| wrong(MessageViolation::new("", "a request of a known type")))?;
    let object = value
        .as_object()
        .ok_or_else(|| wrong(MessageViolation::new("", "an object")))?;
    let mut draft = match &question.asked {
        RequestedWork::Choices(choices) => decision(choices, object).map_err(wrong)?,
        RequestedWork::Form(form) => data(form, object).map_err(wrong)?,
        RequestedWork::Quote(quote) if kind == Kind::PaymentAuthorization => {
            authorization(quote, object, now).map_err(wrong)?
        }
        RequestedWork::Quote(quote) => payment(quote, object, now).map_err(wrong)?,
        RequestedWork::Members(asked) => members(asked, kind, object, now),
    };
    let id = question.ask.key.id.as_str();
    let mut payload = Map::new();
    payload.insert(kind.id_field().to_owned(), id.into());
    payload.append(&mut draft.payload);
    let message = Message::new(&question.ask.schema, kind, Value::Object(payload));
    let mut found = schemas.violations(&message, Strictness::Lenient);
    if found.is_empty() {
        found = check_answer(&question.asked, &message, now);
    }
    if found.is_empty() {
        return Ok(message);
    }
    for violation in &mut found {
        violation.pointer = back(&violation.pointer, kind, &draft);
    }
    Err(found)
}

/// Where in the value something stood that is wrong in the message.
fn back(pointer: &str, kind: Kind, draft: &Draft) -> String {
    let prefix = format!("/{}", kind.key());
    let rest = pointer.strip_prefix(&prefix).unwrap_or(pointer);
    let Some(element) = rest
        .strip_prefix('/')
        .and_then(|rest| rest.strip_prefix(draft.list))
        .filter(|_| !draft.list.is_empty())
    else {
        return rest.to_owned();
    };
    let place = element.split('/').nth(1).and_then(|it| it.parse().ok());
    let source = place.and_then(|place: usize| draft.sources.get(place));
    source.cloned().unwrap_or_default()
}

fn decision(choices: &Choices, value: &Map<String, Value>) -> Result<Draft, MessageViolation> {
    let named = |id: &str, quantity: Option<&Value>| {
        let mut option = Map::new();
        option.insert("id".to_owned(), id.into());
        let name = choices.find(id).and_then(|choice| choice.name.clone());
        option.extend(name.map(|name| ("name".to_owned(), name.into())));
        option.extend(quantity.map(|n| ("quantity".to_owned(), n.clone())));
        Value::Object(option)
    };
    let mut options = Vec::new();
    let mut sources = Vec::new();
    match choices.choice_type() {
        ChoiceType::Radio | ChoiceType::Confirmation => {
            let id = value.get("option").and_then(Value::as_str);
            let id = id.ok_or_else(|| MessageViolation::new("/option", "the id of an option"))?;
            options.push(named(id, None));
            sources.push("/option".to_owned());
        }
        ChoiceType::Checkbox => {
            let ids = value.get("options").and_then(Value::as_array);
            let ids =
                ids.ok_or_else(|| MessageViolation::new("/options", "a list of ids of options"))?;
            for (place, id) in ids.iter().enumerate() {
                let at = format!("/options/{place}");
                let id = id.as_str();
                let id =
                    id.ok_or_else(|| MessageViolation::new(at.as_str(), "the id of an option"))?;
                options.push(named(id, None));
                sources.push(at);
            }
        }
        ChoiceType::Products => {
            let bought = value
                .iter()
                .filter(|(_, n)| !n.is_null() && n.as_f64() != Some(0.0));
            for (id, quantity) in bought {
                let at = member("", id);
                if !quantity.is_number() {
                    return Err(MessageViolation::new(at, "a whole number"));
                }
                options.push(named(id, Some(quantity)));
                sources.push(at);
            }
        }
    }
    let mut payload = Map::new();
    payload.insert("options".to_owned(), Value::Array(options));
    Ok(Draft {
        payload,
        list: "options",
        sources,
    })
}

fn data(form: &RequestForm, value: &Map<String, Value>) -> Result<Draft, MessageViolation> {
    let mut fields = Vec::new();
    let mut sources = Vec::new();
    for (id, value) in value.iter().filter(|(_, value)| !value.is_null()) {
        let at = member("", id);
        let text = match value {
            Value::Bool(yes) => Some(yes.to_string()),
            Value::Null
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_)
            | Value::Object(_) => text_of(value),
        };
        let text = text.ok_or_else(|| MessageViolation::new(at.as_str(), "a text or a number"))?;
        let label = form.find(id).and_then(|field| field.label.as_deref());
        let mut given = Map::new();
        given.insert("id".to_owned(), id.as_str().into());
        given.extend(label.map(|label| ("label".to_owned(), label.into())));
        given.insert("value".to_owned(), text.into());
        fields.push(Value::Object(given));
        sources.push(at);
    }
    let mut payload = Map::new();
    payload.insert("fields".to_owned(), Value::Array(fields));
    Ok(Draft {
        payload,
        list: "fields",
        sources,
    })
}

fn text_member<'a>(value: &'a Map<String, Value>, key: &str) -> Result<&'a str, MessageViolation> {
    let text = value.get(key).and_then(Value::as_str);
    text.ok_or_else(|| MessageViolation::new(format!("/{key}"), "a text"))
}

fn made_at(value: &Map<String, Value>, now: Timestamp) -> Value {
    let told = value.get("timestamp").cloned();
    told.unwrap_or_else(|| now.to_string().into())
}

fn payment(
    quote: &Value,
    value: &Map<String, Value>,
    now: Timestamp,
) -> Result<Draft, MessageViolation> {
    let chosen = text_member(value, "payment_option")?;
    let way = ways(quote).find(|(place, ..)| place == chosen);
    let (_, option, method) =
        way.ok_or_else(|| MessageViolation::new("/payment_option", "one of the ways to pay"))?;
    let mut paid = Map::new();
    for (key, from) in [("type", method), ("token", method)] {
        paid.insert(key.to_owned(), from.get(key).cloned().unwrap_or_default());
    }
    paid.insert(
        "channel_id".to_owned(),
        text_member(value, "channel_id")?.into(),
    );
    let amount = value.get("amount").or_else(|| option.get("amount"));
    paid.extend(amount.map(|amount| ("amount".to_owned(), amount.clone())));
    let currency = option.get("currency").cloned().unwrap_or_default();
    paid.insert("currency".to_owned(), currency);
    let payload = json!({
        "payment_method": paid,
        "payer_id": text_member(value, "payer_id")?,
        "timestamp": made_at(value, now),
        "payer_signature": text_member(value, "payer_signature")?
    });
    Ok(Draft::plain(
        payload.as_object().cloned().unwrap_or_default(),
    ))
}

fn authorization(
    quote: &Value,
    value: &Map<String, Value>,
    now: Timestamp,
) -> Result<Draft, MessageViolation> {
    let mut payload = Map::new();
    payload.insert("result".to_owned(), text_member(value, "result")?.into());
    payload.insert("timestamp".to_owned(), made_at(value, now));
    if value.contains_key("transaction_id") {
        let plans = quote.get("payment_plans").and_then(Value::as_array);
        let mut plans = plans.into_iter().flatten();
        let plan = match value.get("plan_id") {
            None => plans.next(),
            Some(id) => plans.find(|plan| plan.get("plan_id") == Some(id)),
        };
        let plan = plan.ok_or_else(|| MessageViolation::new("/plan_id", "a plan of the quote"))?;
        let detail = json!({
            "network": "NEAR",
            "token_type": "USDC",
            "amount": plan.get("amount"),
            "account_id": text_member(value, "account_id")?,
            "transaction_id": text_member(value, "transaction_id")?
        });
        payload.insert("details".to_owned(), Value::Array(vec![detail]));
    }
    let message = value.get("message").cloned();
    payload.extend(message.map(|message| ("message".to_owned(), message)));
    Ok(Draft::plain(payload))
}

/// The value's own members, with those that are filled in from the request or the clock.
fn members(asked: &Value, kind: Kind, value: &Map<String, Value>, now: Timestamp) -> Draft {
    let mut payload = value.clone();
    payload.remove(kind.id_field());
    if kind == Kind::TopUpResponse {
        for key in FILLED_IN {
            if payload.contains_key(key) {
                continue;
            }
            let told = if key == "timestamp" {
                Some(made_at(value, now))
            } else {
                asked.get(key).cloned()
            };
            payload.extend(told.map(|told| (key.to_owned(), told)));
        }
    }
    Draft::plain(payload)
}
