//! Payments: quotes and top-ups. The page shows the payment in a fixed layout, and a second step confirms it.

use super::{CapabilityRequest, amount_of, list_of, signing, text_of};
use crate::form_field::{Control, FilledForm, FormError, FormField, field_name, filled};
use crate::{ids, json};
use interop::aitp::{RequestState, Settlement, Topic};
use maud::{Markup, html};
use serde_json::{Map, Value};

/// The parts of an answer to a quote.
const WAY: &str = "payment_option";
const PLAN: &str = "plan_id";
const RESULT: &str = "result";

/// A way to pay a quote.
struct PaymentWay {
    /// The part of the answer that names it, and its value.
    part: &'static str,
    value: String,
    /// Amount and currency; none if the payer chooses the amount.
    price: Option<String>,
    /// Name and value of each further fact.
    facts: Vec<(&'static str, String)>,
}

/// The quote of a payload, wrapped or not.
fn quote(request: &CapabilityRequest) -> &Value {
    let payload = &request.payload;
    payload.get("original_quote").unwrap_or(payload)
}

fn is_plan(request: &CapabilityRequest) -> bool {
    quote(request).get("payment_plans").is_some()
}

fn price(value: &Value) -> Option<String> {
    let currency = json::visible(text_of(value, "currency").unwrap_or_default());
    let price = format!("{} {currency}", amount_of(value, "amount")?);
    Some(price.trim_end().to_owned())
}

/// The ways to pay, by the values that the schema of the answer has for them.
fn ways(request: &CapabilityRequest) -> Vec<PaymentWay> {
    let part = if is_plan(request) { PLAN } else { WAY };
    let offered = request
        .answer_schema
        .pointer(&format!("/properties/{part}/oneOf"));
    let offered = offered.and_then(Value::as_array).into_iter().flatten();
    let values = offered.filter_map(|it| text_of(it, "const"));
    let quote = quote(request);
    values
        .map(|value| {
            if part == PLAN {
                plan(quote, value)
            } else {
                method(quote, value)
            }
        })
        .collect()
}

fn fact(name: &'static str, value: Option<&str>) -> Option<(&'static str, String)> {
    Some((name, json::visible(value?).into_owned()))
}

fn plan(quote: &Value, id: &str) -> PaymentWay {
    let mut plans = list_of(quote, "payment_plans").iter();
    let plan = plans.find(|plan| text_of(plan, "plan_id") == Some(id));
    let kind = plan.and_then(|plan| text_of(plan, "plan_type"));
    PaymentWay {
        part: PLAN,
        value: id.to_owned(),
        price: plan.and_then(price),
        facts: [fact("Plan", Some(id)), fact("Kind", kind)]
            .into_iter()
            .flatten()
            .collect(),
    }
}

/// The way with this place: `0.1` is the second method of the first option.
fn method(quote: &Value, place: &str) -> PaymentWay {
    let (option, method) = place.split_once('.').unwrap_or((place, "0"));
    let at = |list: &str, index: &str| format!("/{list}/{index}");
    let option = quote.pointer(&at("payment_options", option));
    let method = option.and_then(|option| option.pointer(&at("payment_methods", method)));
    let text = |key: &str| method.and_then(|method| text_of(method, key));
    let facts = [
        fact("Way", text("type")),
        fact("Token", text("token")),
        fact("Recipient", text("recipient")),
    ];
    PaymentWay {
        part: WAY,
        value: place.to_owned(),
        price: option.and_then(price),
        facts: facts.into_iter().flatten().collect(),
    }
}

/// The amount and the payee, from the payload and never from the author's text.
pub(super) fn facts(request: &CapabilityRequest) -> Markup {
    let payload = quote(request);
    let mut rows: Vec<(&str, String)> = Vec::new();
    match request.topic {
        Topic::Payment => {
            rows.extend(fact("Payee", text_of(payload, "payee_id")));
            rows.extend(fact("Merchant", text_of(payload, "merchant_id")));
            rows.extend(fact("Quote", text_of(payload, "quote_id")));
            let end = text_of(payload, "expiration").or_else(|| text_of(payload, "valid_until"));
            for way in ways(request) {
                let facts = way
                    .facts
                    .iter()
                    .map(|(name, value)| format!("{name}: {value}"));
                let facts: Vec<String> = facts.collect();
                let price = way.price.unwrap_or_else(|| "any amount".to_owned());
                rows.push(("Amount", format!("{price} ({})", facts.join(", "))));
            }
            rows.extend(fact("Offer ends", end));
        }
        Topic::TopUp => {
            rows.extend(fact("Merchant", text_of(payload, "merchant_id")));
            rows.extend(fact("Channel", text_of(payload, "channel_id")));
            let price = price(payload).unwrap_or_else(|| {
                let currency = text_of(payload, "currency").unwrap_or_default();
                format!("any amount of {}", json::visible(currency))
            });
            rows.push(("Amount", price));
        }
        Topic::Decision
        | Topic::Data
        | Topic::NearAccount
        | Topic::NearTransaction
        | Topic::NearSigning
        | Topic::EvmAddress
        | Topic::EvmTransaction
        | Topic::EvmSigning => return html! {},
    }
    html! {
        dl class="facts" {
            @for (name, value) in rows { div { dt { (name) } dd dir="auto" { (value) } } }
        }
    }
}

/// How far a payment is.
pub(super) fn settlement(request: &CapabilityRequest) -> Markup {
    if request.topic != Topic::Payment || request.answer.is_none() {
        return html! {};
    }
    let (state, words) = match request.settlement {
        Some(Settlement::Success) => ("ok", "paid: the payee has confirmed the payment"),
        Some(Settlement::Failure) => ("error", "failed: the payment did not arrive"),
        Some(Settlement::Pending) => ("waits", "pending: the payee waits for the payment"),
        None => ("waits", "pending: the payee has not confirmed the payment"),
    };
    html! { p class="settlement" data-state=(state) { "Payment " b { (words) } } }
}

/// The form of a quote: one for each way to pay.
pub(super) fn quote_form(request: &CapabilityRequest, id: &str, filled: &FilledForm) -> Markup {
    let ways = ways(request);
    if ways.is_empty() {
        return signing::form(request, id, filled);
    }
    html! {
        @for (place, way) in ways.iter().enumerate() {
            (way_form(request, &ids::within(id, &place.to_string()), way, filled))
        }
        @if is_plan(request) && request.state == RequestState::Open { (failure_form(request, &ids::within(id, "no"))) }
    }
}

fn way_form(
    request: &CapabilityRequest,
    id: &str,
    way: &PaymentWay,
    filled: &FilledForm,
) -> Markup {
    let amount = way.price.as_deref().unwrap_or("an amount of your choice");
    let is_chosen = filled.has(way.part, &way.value);
    let empty = FilledForm::default();
    let filled = if is_chosen { filled } else { &empty };
    let element = |role: &str| ids::within(id, role);
    let fields = html! {
        input type="hidden" name=(field_name(way.part)) value=(way.value);
        @if way.part == PLAN {
            input type="hidden" name=(field_name(RESULT)) value="success";
            (FormField::line("account_id", "Account that paid").required().html(&element("account"), filled))
            (FormField::line("transaction_id", "Transaction").required().html(&element("transaction"), filled))
            (FormField::line("message", "Message").html(&element("message"), filled))
        } @else {
            @if way.price.is_none() {
                (FormField::line("amount", "Amount, as a decimal").required().html(&element("amount"), filled))
            }
            (FormField::line("channel_id", "Payment channel").required().html(&element("channel"), filled))
            (FormField::line("payer_id", "Payer").required().html(&element("payer"), filled))
            (FormField::line("payer_signature", "Signature of the payer").required().filled_by(Control::Area).html(&element("signature"), filled))
        }
        div class="buttons" { button class="primary" type="submit" { @if way.part == PLAN { "I have paid " } @else { "Pay " } (amount) } }
    };
    let facts: Vec<&str> = way.facts.iter().map(|(_, value)| value.as_str()).collect();
    html! {
        details class="pay" id=(element("d")) open[is_chosen] {
            summary { "Pay " b { (amount) } span class="quiet" { " " (facts.join(", ")) } " …" }
            p class="note" { "This server pays nothing by itself. Pay or sign with your wallet, then enter what it shows." }
            (request.form_element(id, &fields))
        }
    }
}

/// Reports that a payment failed, in the dialect with plans.
fn failure_form(request: &CapabilityRequest, id: &str) -> Markup {
    let fields = html! {
        input type="hidden" name=(field_name(RESULT)) value="failure";
        (FormField::line("message", "What went wrong").html(&ids::within(id, "message"), &FilledForm::default()))
        div class="buttons" { button type="submit" { "Report that the payment failed" } }
    };
    html! {
        details class="decline" id=(ids::within(id, "d")) {
            summary { "The payment failed" }
            (request.form_element(id, &fields))
        }
    }
}

/// The form of a top-up.
pub(super) fn top_up_form(request: &CapabilityRequest, id: &str, filled: &FilledForm) -> Markup {
    let price = price(&request.payload);
    let amount = price.as_deref().unwrap_or("an amount of your choice");
    let element = |role: &str| ids::within(id, role);
    let fields = html! {
        @if price.is_none() {
            (FormField::line("amount", "Amount, as a decimal").required().html(&element("amount"), filled))
        }
        (FormField::line("payer_id", "Payer").required().html(&element("payer"), filled))
        (FormField::line("payer_signature", "Signature of the payer").required().filled_by(Control::Area).html(&element("signature"), filled))
        (FormField::line("new_balance", "New balance, as a decimal").html(&element("balance"), filled))
        div class="buttons" { button class="primary" type="submit" { "Add " (amount) } }
    };
    html! {
        details class="pay" id=(element("d")) open[!filled.is_new()] {
            summary { "Add " b { (amount) } " …" }
            p class="note" { "This server pays nothing by itself. Sign with your wallet, then enter what it shows." }
            (request.form_element(id, &fields))
        }
    }
}

/// The value of an answer to a quote or a top-up.
pub(super) fn answer_value(
    request: &CapabilityRequest,
    fields: &[(String, String)],
) -> Result<Value, Vec<FormError>> {
    let is_quote = request.topic == Topic::Payment;
    if is_quote && ways(request).is_empty() {
        return signing::answer_value(request, fields);
    }
    let parts: &[&str] = if !is_quote {
        &["amount", "payer_id", "payer_signature", "new_balance"]
    } else if is_plan(request) {
        &[RESULT, PLAN, "account_id", "transaction_id", "message"]
    } else {
        &[WAY, "amount", "channel_id", "payer_id", "payer_signature"]
    };
    let mut answer = Map::new();
    for part in parts {
        if let Some(text) = filled(fields, part) {
            answer.insert((*part).to_owned(), text.trim().into());
        }
    }
    Ok(Value::Object(answer))
}
