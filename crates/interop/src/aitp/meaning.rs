//! Checks that schemas can't express: whether a request makes sense, and whether an answer fits its
//! request.

mod payment;
mod plausible;

use super::actors::MAX_ID;
use super::amount::text_of;
use super::choice::{ChoiceType, Choices};
use super::form::{MAX_LISTED, RequestForm};
use super::kind::{Kind, Purpose, Topic};
use super::message::Message;
use super::violation::{MessageViolation, member};
use jiff::Timestamp;
use payment::{payment, top_up};
pub(super) use payment::{quote_of, ways};
use plausible::wrong_value;
use serde_json::Value;
use std::collections::BTreeSet;

/// The largest quantity of one product.
const MAX_QUANTITY: u64 = 1_000_000;

/// The decoded content of a request. Answers are compared with it.
#[derive(Clone, Debug, PartialEq)]
pub enum RequestedWork {
    /// A choice.
    Choices(Choices),
    /// A form.
    Form(RequestForm),
    /// A quote, without its wrapping.
    Quote(Value),
    /// A payload whose answer is described by the message's schema alone.
    Members(Value),
}

impl RequestedWork {
    /// Reads the payload of a request of this type. Pointers are relative to the message.
    pub(super) fn read(kind: Kind, payload: &Value) -> Result<Self, Vec<MessageViolation>> {
        let one = |wrong: MessageViolation| vec![wrong];
        let at = format!("/{}", kind.key());
        match kind.purpose() {
            Purpose::Ask(Topic::Decision) => {
                Choices::read(payload, &at).map(Self::Choices).map_err(one)
            }
            Purpose::Ask(Topic::Data) => RequestForm::read(payload, &at).map(Self::Form),
            Purpose::Ask(Topic::Payment) => {
                payment::check_quote(payload, &at).map_err(one)?;
                Ok(Self::Quote(quote_of(payload).clone()))
            }
            Purpose::Ask(Topic::TopUp | Topic::NearAccount | Topic::EvmAddress) => {
                Ok(Self::Members(payload.clone()))
            }
            Purpose::Ask(
                Topic::NearTransaction
                | Topic::NearSigning
                | Topic::EvmTransaction
                | Topic::EvmSigning,
            ) => {
                check_digits(payload, &at).map_err(one)?;
                Ok(Self::Members(payload.clone()))
            }
            Purpose::Answer(_) | Purpose::Outcome(_) | Purpose::Control | Purpose::Notice => {
                Err(one(MessageViolation::new(at, "a request")))
            }
        }
    }
}

/// The violations of a request other than those of its schema. Pointers are relative to the message.
pub fn check_request(message: &Message) -> Vec<MessageViolation> {
    match message.kind.zip(message.payload()) {
        Some((kind, payload)) if matches!(kind.purpose(), Purpose::Ask(_)) => {
            read_request(kind, payload).err().unwrap_or_default()
        }
        Some(_) | None => Vec::new(),
    }
}

/// The id that an answer refers to, and the decoded request.
pub(super) fn read_request(
    kind: Kind,
    payload: &Value,
) -> Result<(&str, RequestedWork), Vec<MessageViolation>> {
    let id = id_of(kind, payload).ok_or_else(|| vec![no_id(kind)])?;
    Ok((id, RequestedWork::read(kind, payload)?))
}

/// The id that correlates a message with others.
pub(super) fn id_of(kind: Kind, payload: &Value) -> Option<&str> {
    let holder = if kind == Kind::WrappedQuote {
        quote_of(payload)
    } else {
        payload
    };
    let id = text(holder, kind.id_field())?;
    (1..=MAX_ID).contains(&id.len()).then_some(id)
}

pub(super) fn no_id(kind: Kind) -> MessageViolation {
    let pointer = format!("/{}/{}", kind.key(), kind.id_field());
    MessageViolation::new(pointer, format!("an id of 1 to {MAX_ID} bytes"))
}

/// Checks that every number to be signed is exact: whole numbers of at most 64 bits are.
fn check_digits(value: &Value, at: &str) -> Result<(), MessageViolation> {
    match value {
        Value::Number(number) if number.is_f64() => {
            let expected = "a whole number of at most 64 bits, or text: every digit is signed";
            Err(MessageViolation::new(at, expected))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
        Value::Array(list) => {
            let mut list = list.iter().enumerate();
            list.try_for_each(|(place, value)| check_digits(value, &format!("{at}/{place}")))
        }
        Value::Object(members) => {
            let mut members = members.iter();
            members.try_for_each(|(key, value)| check_digits(value, &member(at, key)))
        }
    }
}

/// The violations of an answer against its request at `now`. Pointers are relative to the message.
pub fn check_answer(
    asked: &RequestedWork,
    answer: &Message,
    now: Timestamp,
) -> Vec<MessageViolation> {
    let Some((kind, payload)) = answer.kind.zip(answer.payload()) else {
        return vec![MessageViolation::new("", "one message of a known type")];
    };
    let at = format!("/{}", kind.key());
    let mut found = match asked {
        RequestedWork::Choices(choices) => decision(choices, payload, &at, now),
        RequestedWork::Form(form) => data(form, payload, &at),
        RequestedWork::Quote(quote) => payment(kind, quote, payload, &at),
        RequestedWork::Members(asked) if kind == Kind::TopUpResponse => top_up(asked, payload, &at),
        RequestedWork::Members(asked) if kind == Kind::EvmSigningResponse => {
            evm_signing(asked, payload, &at)
        }
        RequestedWork::Members(_) => Vec::new(),
    };
    found.truncate(MAX_LISTED);
    found
}

pub(super) fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    let list = value.get(key).and_then(Value::as_array);
    list.map(Vec::as_slice).unwrap_or_default()
}

pub(super) fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key).and_then(Value::as_str)
}

fn decision(asked: &Choices, payload: &Value, at: &str, now: Timestamp) -> Vec<MessageViolation> {
    let mut found = Vec::new();
    let chosen = list(payload, "options");
    let single = matches!(
        asked.choice_type(),
        ChoiceType::Radio | ChoiceType::Confirmation
    );
    if chosen.is_empty() || (single && chosen.len() != 1) {
        let expected = if single {
            "exactly one option"
        } else {
            "one option or more"
        };
        found.push(MessageViolation::new(format!("{at}/options"), expected));
    }
    let mut ids = BTreeSet::new();
    for (place, option) in chosen.iter().enumerate() {
        if found.len() >= MAX_LISTED {
            break;
        }
        let at = format!("{at}/options/{place}");
        let id = text(option, "id").unwrap_or_default();
        match asked.find(id) {
            None => found.push(MessageViolation::new(
                format!("{at}/id"),
                "an option that was offered",
            )),
            Some(choice) if choice.valid_until.is_some_and(|end| end < now) => {
                let expected = "an option whose price still holds";
                found.push(MessageViolation::new(format!("{at}/id"), expected));
            }
            Some(_) => {}
        }
        if !ids.insert(id) {
            found.push(MessageViolation::new(
                format!("{at}/id"),
                "each option once",
            ));
        }
        let quantity = option.get("quantity").map(whole);
        let expected = if asked.choice_type() == ChoiceType::Products {
            let fits = |n: &u64| (1..=MAX_QUANTITY).contains(n);
            let wrong = quantity.is_some_and(|n| !n.as_ref().is_some_and(fits));
            wrong.then(|| format!("a whole number from 1 to {MAX_QUANTITY}"))
        } else {
            let wrong = quantity.is_some_and(|n| n != Some(1));
            wrong.then(|| "1, for only products have quantities".to_owned())
        };
        found.extend(expected.map(|it| MessageViolation::new(format!("{at}/quantity"), it)));
    }
    found
}

/// A whole number, `2` or `2.0`.
fn whole(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| text_of(value)?.parse().ok())
}

fn data(form: &RequestForm, payload: &Value, at: &str) -> Vec<MessageViolation> {
    let mut found = Vec::new();
    let mut filled: BTreeSet<&str> = BTreeSet::new();
    let mut named: BTreeSet<&str> = BTreeSet::new();
    for (place, given) in list(payload, "fields").iter().enumerate() {
        if found.len() >= MAX_LISTED {
            break;
        }
        let at = format!("{at}/fields/{place}");
        let id = text(given, "id").unwrap_or_default();
        let value = text(given, "value").unwrap_or_default();
        if !named.insert(id) {
            found.push(MessageViolation::new(format!("{at}/id"), "each field once"));
        }
        if !value.trim().is_empty() {
            filled.insert(id);
        }
        match form.find(id) {
            Some(field) => {
                let wrong = wrong_value(field, value);
                found.extend(
                    wrong.map(|expected| MessageViolation::new(format!("{at}/value"), expected)),
                );
            }
            None if form.is_whole() => {
                found.push(MessageViolation::new(
                    format!("{at}/id"),
                    "a field of the form",
                ));
            }
            None => {}
        }
    }
    let required = form.fields().iter().filter(|field| field.required);
    for field in required.filter(|field| !filled.contains(field.id.as_str())) {
        let expected = format!("the field {:?}, which is required", field.id);
        found.push(MessageViolation::new(format!("{at}/fields"), expected));
    }
    found
}

fn evm_signing(asked: &Value, payload: &Value, at: &str) -> Vec<MessageViolation> {
    let asked = text(asked, "address");
    let signed = text(payload, "address").unwrap_or_default();
    if asked.is_none_or(|asked| asked.eq_ignore_ascii_case(signed)) {
        return Vec::new();
    }
    vec![MessageViolation::new(
        format!("{at}/address"),
        "the address that was asked to sign",
    )]
}

#[cfg(test)]
mod tests;
