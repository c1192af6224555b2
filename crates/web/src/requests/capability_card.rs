//! The capability messages of a conversation as cards: readable words, with the JSON behind them.

use super::{amount_of, list_of, text_of, topic_words};
use crate::json;
use interop::aitp::{Kind, Message, Purpose};
use maud::{Markup, html};
use serde_json::Value;

/// The card of a text that is a capability message.
pub(crate) fn capability_card(text: &str) -> Option<Markup> {
    let message = Message::read(text)?;
    let (words, body) = match message.kind.zip(message.payload()) {
        Some((kind, payload)) => known(kind, payload),
        None => (
            "Message of a capability that this server does not know".to_owned(),
            unknown(&message),
        ),
    };
    Some(html! {
        div class="capability" {
            p { (words) }
            (body)
            details class="data" {
                summary { "JSON" }
                pre tabindex="0" { code { (json::pretty(text)) } }
            }
        }
    })
}

fn unknown(message: &Message) -> Markup {
    let payloads = || message.value.values().filter(|value| value.is_object());
    let title = payloads().find_map(|payload| text_of(payload, "title"));
    html! {
        @if let Some(title) = title { p dir="auto" { b { (json::visible(title)) } } }
        p class="quiet" { code { (json::visible(&message.schema)) } }
    }
}

/// The words of a message, and what it contains.
fn known(kind: Kind, payload: &Value) -> (String, Markup) {
    match kind.purpose() {
        Purpose::Ask(topic) => (
            format!("Request for {}", topic_words(topic)),
            title(payload),
        ),
        Purpose::Answer(topic) => (
            format!("Answer to a request for {}", topic_words(topic)),
            payload_html(kind.key(), payload),
        ),
        Purpose::Outcome(_) => (
            "Result of a payment".to_owned(),
            payload_html(kind.key(), payload),
        ),
        Purpose::Control => (control(kind).to_owned(), control_html(payload)),
        Purpose::Notice => (notice(kind).to_owned(), members(payload)),
    }
}

fn title(payload: &Value) -> Markup {
    html! {
        @if let Some(title) = text_of(payload, "title") { p dir="auto" { b { (json::visible(title)) } } }
    }
}

fn control(kind: Kind) -> &'static str {
    match kind.key() {
        "decline" => "Declines a request",
        "cancel" => "Cancels a request",
        "error" => "Reports that a request can't be answered",
        "expire" => "Sets the end of a request",
        _ => "Message about a request",
    }
}

fn notice(kind: Kind) -> &'static str {
    if kind == Kind::ChainNotification {
        "Names a chain"
    } else {
        "Names a token"
    }
}

fn control_html(payload: &Value) -> Markup {
    let id = text_of(payload, "request_id");
    let words = ["reason", "message", "expires_at"]
        .iter()
        .find_map(|key| text_of(payload, key));
    html! {
        p {
            @if let Some(id) = id { code { (json::visible(id)) } }
            @if let Some(code) = text_of(payload, "code") { " " code { (json::visible(code)) } }
            @if let Some(words) = words { " " span class="plain" dir="auto" { (json::visible(words)) } }
        }
    }
}

/// The payload of an answer or a result, for people.
pub(crate) fn payload_html(message_type: &str, payload: &Value) -> Markup {
    match message_type {
        "decision" => chosen(payload),
        "data" => entered(payload),
        "payment" => payment(payload),
        "payment_authorization" | "payment_confirmation" | "payment_result" => result(payload),
        _ => members(payload),
    }
}

fn chosen(payload: &Value) -> Markup {
    html! {
        ul class="chosen" {
            @for option in list_of(payload, "options") {
                li dir="auto" {
                    (json::visible(text_of(option, "name").or_else(|| text_of(option, "id")).unwrap_or_default()))
                    @if let Some(n) = amount_of(option, "quantity") { " × " (n) }
                }
            }
        }
    }
}

fn entered(payload: &Value) -> Markup {
    let fields = list_of(payload, "fields").iter().map(|field| {
        let label = text_of(field, "label").or_else(|| text_of(field, "id"));
        (
            label.unwrap_or_default(),
            text_of(field, "value").unwrap_or_default().to_owned(),
        )
    });
    facts(fields)
}

fn payment(payload: &Value) -> Markup {
    let method = payload.get("payment_method").unwrap_or(&Value::Null);
    let amount = amount_of(method, "amount");
    let currency = text_of(method, "currency").unwrap_or_default();
    let price = amount.map(|amount| ("Amount", format!("{amount} {currency}")));
    let text = |name: &'static str, value: &Value, key: &str| {
        Some((name, text_of(value, key)?.to_owned()))
    };
    let rows = [
        price,
        text("Way", method, "type"),
        text("Token", method, "token"),
        text("Channel", method, "channel_id"),
        text("Payer", payload, "payer_id"),
    ];
    facts(rows.into_iter().flatten())
}

fn result(payload: &Value) -> Markup {
    let words = match text_of(payload, "result") {
        Some("success") => "success",
        Some("failure") => "failure",
        Some("pending") => "pending",
        Some(_) | None => "unknown",
    };
    let details = list_of(payload, "details").iter().map(|detail| {
        let named = text_of(detail, "label").zip(amount_of(detail, "value"));
        named.unwrap_or_else(|| ("Detail", detail.to_string()))
    });
    html! {
        p { b { (words) } @if let Some(text) = text_of(payload, "message") { ": " span dir="auto" { (json::visible(text)) } } }
        (facts(details))
    }
}

/// The members of any other payload.
fn members(payload: &Value) -> Markup {
    let members = payload.as_object().into_iter().flatten();
    let rows = members.map(|(name, value)| {
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::Array(_)
            | Value::Object(_) => value.to_string(),
        };
        (name.as_str(), text)
    });
    facts(rows)
}

fn facts<'a>(rows: impl Iterator<Item = (&'a str, String)>) -> Markup {
    let rows: Vec<(&str, String)> = rows.collect();
    html! {
        @if !rows.is_empty() {
            dl class="facts" {
                @for (name, value) in rows {
                    div { dt dir="auto" { (json::visible(name)) } dd class="plain" dir="auto" { (json::visible(&value)) } }
                }
            }
        }
    }
}
