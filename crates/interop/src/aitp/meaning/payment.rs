//! Quotes and what is paid.

use super::{list, text};
use crate::aitp::amount::{Amount, is_same_amount, text_of};
use crate::aitp::kind::Kind;
use crate::aitp::violation::MessageViolation;
use serde_json::Value;

/// The quote of a payload, wrapped or not.
pub(in crate::aitp) fn quote_of(asked: &Value) -> &Value {
    asked.get("original_quote").unwrap_or(asked)
}

/// One way to pay a quote: its place, the option and the method.
pub(in crate::aitp) type Way<'a> = (String, &'a Value, &'a Value);

/// The ways to pay a quote, each with its place: `"0.1"` is the second method of the first option.
pub(in crate::aitp) fn ways(quote: &Value) -> impl Iterator<Item = Way<'_>> {
    let options = list(quote, "payment_options").iter().enumerate();
    options.flat_map(|(place, option)| {
        let methods = list(option, "payment_methods").iter().enumerate();
        methods.map(move |(inner, method)| (format!("{place}.{inner}"), option, method))
    })
}

/// Whether a quote can be paid at all.
pub(super) fn check_quote(payload: &Value, at: &str) -> Result<(), MessageViolation> {
    let quote = quote_of(payload);
    let at = if payload.get("original_quote").is_some() {
        format!("{at}/original_quote")
    } else {
        at.to_owned()
    };
    let (key, can_be_paid) = if quote.get("payment_plans").is_some() {
        let mut plans = list(quote, "payment_plans").iter();
        let can = plans.any(|plan| plan.get("amount").and_then(text_of).is_some());
        ("payment_plans", can)
    } else {
        ("payment_options", ways(quote).next().is_some())
    };
    if can_be_paid {
        return Ok(());
    }
    let expected = "one way to pay or more";
    Err(MessageViolation::new(format!("{at}/{key}"), expected))
}

pub(super) fn payment(
    kind: Kind,
    quote: &Value,
    payload: &Value,
    at: &str,
) -> Vec<MessageViolation> {
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
        return vec![MessageViolation::new(
            format!("{at}/currency"),
            "a currency of the quote",
        )];
    }
    if offered.is_empty() {
        return vec![MessageViolation::new(
            at,
            "a way to pay that the quote offers",
        )];
    }
    let Some(paid) = text(method, "amount") else {
        return Vec::new();
    };
    let mut prices = offered.iter().map(|option| text(option, "amount"));
    if prices.any(|price| price.is_none_or(|price| is_same_amount(price, paid))) {
        return Vec::new();
    }
    vec![MessageViolation::new(
        format!("{at}/amount"),
        "the amount of the quote",
    )]
}

fn authorization(quote: &Value, payload: &Value, at: &str) -> Vec<MessageViolation> {
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
            MessageViolation::new(pointer, "the amount of the quote")
        })
        .collect()
}

pub(super) fn top_up(asked: &Value, payload: &Value, at: &str) -> Vec<MessageViolation> {
    let mut found = Vec::new();
    if text(asked, "currency") != text(payload, "currency") {
        found.push(MessageViolation::new(
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
    found.extend(wrong.map(|expected| MessageViolation::new(format!("{at}/amount"), expected)));
    found
}
