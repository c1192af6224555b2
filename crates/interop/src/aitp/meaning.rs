//! What schemas can't say: whether a request makes sense, and whether an answer fits its request.

use super::amount::{Amount, is_same_amount, text_of};
use super::form::{ChoiceType, Choices, Field, FieldType, Form};
use super::kind::{Kind, Topic};
use super::message::Message;
use super::violation::Violation;
use jiff::Timestamp;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The largest quantity of one product.
const MAX_QUANTITY: u64 = 1_000_000;

/// What makes no sense in a request, beside its schema. Pointers begin at the message.
pub fn check_request(message: &Message) -> Vec<Violation> {
    let mut found = Vec::new();
    let Some((kind, payload)) = message.kind.zip(message.payload()) else {
        return found;
    };
    if kind == Kind::RequestDecision {
        let mut ids = BTreeSet::new();
        let choices = Choices::of(payload).choices;
        if !choices.into_iter().all(|choice| ids.insert(choice.id)) {
            let expected = "ids that no two options or variants share";
            found.push(Violation::new("/request_decision/options", expected));
        }
    } else if kind == Kind::RequestData {
        found.extend(check_form(&Form::of(payload)));
    }
    found
}

fn check_form(form: &Form) -> Vec<Violation> {
    let mut found = Vec::new();
    if form.fields.is_empty() && form.json_url.is_none() {
        found.push(Violation::new("/request_data/form", "fields or a json_url"));
    }
    let mut ids = BTreeSet::new();
    for (place, field) in form.fields.iter().enumerate() {
        let at = format!("/request_data/form/fields/{place}");
        if !ids.insert(field.id.as_str()) {
            found.push(Violation::new(format!("{at}/id"), "an id of its own"));
        }
        if field.field_type == FieldType::Select && field.options.is_empty() {
            let expected = "what to select from";
            found.push(Violation::new(format!("{at}/options"), expected));
        }
    }
    found
}

/// What of an answer does not fit its request at this instant. Pointers begin at the message.
pub fn check_answer(
    topic: Topic,
    asked: &Value,
    answer: &Message,
    now: Timestamp,
) -> Vec<Violation> {
    let Some((kind, payload)) = answer.kind.zip(answer.payload()) else {
        return vec![Violation::new("", "one message of a known type")];
    };
    let at = format!("/{}", kind.key());
    match topic {
        Topic::Decision => decision(&Choices::of(asked), payload, &at, now),
        Topic::Data => data(&Form::of(asked), payload, &at),
        Topic::Payment => payment(kind, asked, payload, &at),
        Topic::TopUp => top_up(asked, payload, &at),
        Topic::EvmSigning => evm_signing(asked, payload, &at),
        Topic::NearAccount
        | Topic::NearTransaction
        | Topic::NearSigning
        | Topic::EvmAddress
        | Topic::EvmTransaction => Vec::new(),
    }
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    let list = value.get(key).and_then(Value::as_array);
    list.map(Vec::as_slice).unwrap_or_default()
}

fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key).and_then(Value::as_str)
}

fn decision(asked: &Choices, payload: &Value, at: &str, now: Timestamp) -> Vec<Violation> {
    let mut found = Vec::new();
    let chosen = list(payload, "options");
    let single = matches!(
        asked.choice_type,
        ChoiceType::Radio | ChoiceType::Confirmation
    );
    if chosen.is_empty() || (single && chosen.len() != 1) {
        let expected = if single {
            "exactly one option"
        } else {
            "one option or more"
        };
        found.push(Violation::new(format!("{at}/options"), expected));
    }
    let offered: BTreeMap<&str, _> = asked
        .choices
        .iter()
        .map(|choice| (choice.id.as_str(), choice))
        .collect();
    let mut ids = BTreeSet::new();
    for (place, option) in chosen.iter().enumerate() {
        let at = format!("{at}/options/{place}");
        let id = text(option, "id").unwrap_or_default();
        match offered.get(id) {
            None => found.push(Violation::new(
                format!("{at}/id"),
                "an option that was offered",
            )),
            Some(choice) if choice.valid_until.is_some_and(|end| end < now) => {
                let expected = "an option whose price still holds";
                found.push(Violation::new(format!("{at}/id"), expected));
            }
            Some(_) => {}
        }
        if !ids.insert(id) {
            found.push(Violation::new(format!("{at}/id"), "each option once"));
        }
        let quantity = option.get("quantity").map(whole);
        let expected = if asked.choice_type == ChoiceType::Products {
            let fits = |n: &u64| (1..=MAX_QUANTITY).contains(n);
            let wrong = quantity.is_some_and(|n| !n.as_ref().is_some_and(fits));
            wrong.then(|| format!("a whole number from 1 to {MAX_QUANTITY}"))
        } else {
            let wrong = quantity.is_some_and(|n| n != Some(1));
            wrong.then(|| "1, for only products have quantities".to_owned())
        };
        found.extend(expected.map(|it| Violation::new(format!("{at}/quantity"), it)));
    }
    found
}

/// A whole number, `2` or `2.0`.
fn whole(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| text_of(value)?.parse().ok())
}

fn data(form: &Form, payload: &Value, at: &str) -> Vec<Violation> {
    let mut found = Vec::new();
    let asked: BTreeMap<&str, &Field> = form
        .fields
        .iter()
        .map(|field| (field.id.as_str(), field))
        .collect();
    let mut filled: BTreeSet<&str> = BTreeSet::new();
    let mut named: BTreeSet<&str> = BTreeSet::new();
    for (place, given) in list(payload, "fields").iter().enumerate() {
        let at = format!("{at}/fields/{place}");
        let id = text(given, "id").unwrap_or_default();
        let value = text(given, "value").unwrap_or_default();
        if !named.insert(id) {
            found.push(Violation::new(format!("{at}/id"), "each field once"));
        }
        if !value.trim().is_empty() {
            filled.insert(id);
        }
        match asked.get(id) {
            Some(field) => {
                let wrong = wrong_value(field, value);
                found.extend(wrong.map(|expected| Violation::new(format!("{at}/value"), expected)));
            }
            None if form.is_whole() => {
                found.push(Violation::new(format!("{at}/id"), "a field of the form"));
            }
            None => {}
        }
    }
    let required = form.fields.iter().filter(|field| field.required);
    for field in required.filter(|field| !filled.contains(field.id.as_str())) {
        let expected = format!("the field {:?}, which is required", field.id);
        found.push(Violation::new(format!("{at}/fields"), expected));
    }
    found
}

/// What was expected of a value that does not fit its field. An empty one fits every field.
fn wrong_value(field: &Field, value: &str) -> Option<&'static str> {
    if value.is_empty() {
        return None;
    }
    let (fits, expected) = match field.field_type {
        FieldType::Text | FieldType::Textarea | FieldType::Combobox => return None,
        FieldType::Number => (is_number(value), "a number"),
        FieldType::Email => (is_email(value), "an address of e-mail"),
        FieldType::Tel => (is_telephone(value), "a telephone number"),
        FieldType::Select => {
            let offered = field.options.iter().any(|option| option.value == value);
            (offered, "one of the options")
        }
    };
    (!fits).then_some(expected)
}

fn is_number(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_digit() || b"+-.eE".contains(&byte);
    text.bytes().all(plain) && text.parse::<f64>().is_ok_and(f64::is_finite)
}

fn is_email(text: &str) -> bool {
    let plain = |text: &str| !text.is_empty() && !text.contains(char::is_whitespace);
    let label = |label: &str| !label.is_empty() && !label.starts_with('-') && !label.ends_with('-');
    text.split_once('@').is_some_and(|(local, domain)| {
        plain(local) && plain(domain) && !domain.contains('@') && domain.split('.').all(label)
    })
}

fn is_telephone(text: &str) -> bool {
    let n_digits = text.bytes().filter(u8::is_ascii_digit).count();
    let plain = |it: char| it.is_ascii_digit() || " +-()./#*x".contains(it);
    (3..=20).contains(&n_digits) && text.chars().all(plain)
}

/// The quote of a payload, wrapped or not.
pub(super) fn quote_of(asked: &Value) -> &Value {
    asked.get("original_quote").unwrap_or(asked)
}

fn payment(kind: Kind, asked: &Value, payload: &Value, at: &str) -> Vec<Violation> {
    let quote = quote_of(asked);
    if kind == Kind::PaymentAuthorization {
        return authorization(quote, payload, at);
    }
    let method = payload.get("payment_method").unwrap_or(&Value::Null);
    let at = format!("{at}/payment_method");
    let same = |offered: &Value, key: &str| text(offered, key) == text(method, key);
    let options = list(quote, "payment_options").iter();
    let in_currency: Vec<&Value> = options.filter(|option| same(option, "currency")).collect();
    let offers = |option: &&&Value| {
        let mut methods = list(option, "payment_methods").iter();
        methods.any(|offered| same(offered, "type") && same(offered, "token"))
    };
    let offered: Vec<&&Value> = in_currency.iter().filter(offers).collect();
    if in_currency.is_empty() {
        return vec![Violation::new(
            format!("{at}/currency"),
            "a currency of the quote",
        )];
    }
    if offered.is_empty() {
        return vec![Violation::new(at, "a way to pay that the quote offers")];
    }
    let Some(paid) = text(method, "amount") else {
        return Vec::new();
    };
    let mut prices = offered.iter().map(|option| text(option, "amount"));
    if prices.any(|price| price.is_none_or(|price| is_same_amount(price, paid))) {
        return Vec::new();
    }
    vec![Violation::new(
        format!("{at}/amount"),
        "the amount of the quote",
    )]
}

fn authorization(quote: &Value, payload: &Value, at: &str) -> Vec<Violation> {
    if text(payload, "result") != Some("success") {
        return Vec::new();
    }
    let plans = list(quote, "payment_plans").iter();
    let prices: Vec<String> = plans
        .filter_map(|plan| text_of(plan.get("amount")?))
        .collect();
    let details = list(payload, "details").iter().enumerate();
    let wrong = details.filter(|(_, detail)| {
        let paid = detail.get("amount").and_then(text_of);
        paid.is_some_and(|paid| !prices.iter().any(|price| is_same_amount(price, &paid)))
    });
    wrong
        .map(|(place, _)| {
            let pointer = format!("{at}/details/{place}/amount");
            Violation::new(pointer, "the amount of the quote")
        })
        .collect()
}

fn top_up(asked: &Value, payload: &Value, at: &str) -> Vec<Violation> {
    let mut found = Vec::new();
    if text(asked, "currency") != text(payload, "currency") {
        found.push(Violation::new(
            format!("{at}/currency"),
            "the currency that was asked for",
        ));
    }
    let paid = text(payload, "amount").unwrap_or_default();
    let wrong = if let Some(wanted) = text(asked, "amount") {
        (!is_same_amount(wanted, paid)).then_some("the amount that was asked for")
    } else {
        let nothing = Amount::read(paid).is_none_or(Amount::is_zero);
        nothing.then_some("more than nothing")
    };
    found.extend(wrong.map(|expected| Violation::new(format!("{at}/amount"), expected)));
    found
}

fn evm_signing(asked: &Value, payload: &Value, at: &str) -> Vec<Violation> {
    let asked = text(asked, "address");
    let signed = text(payload, "address").unwrap_or_default();
    if asked.is_none_or(|asked| asked.eq_ignore_ascii_case(signed)) {
        return Vec::new();
    }
    vec![Violation::new(
        format!("{at}/address"),
        "the address that was asked to sign",
    )]
}

#[cfg(test)]
mod tests;
