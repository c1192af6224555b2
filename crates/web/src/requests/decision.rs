//! Decisions: options as cards, as buttons, or as products.

use super::{CapabilityRequest, amount_of, list_of, text_of};
use crate::form_field::{FilledForm, FormError, field_name, filled, pointer, value, values};
use crate::markdown::web_host;
use crate::{ids, json};
use interop::aitp::{ChoiceType, RequestedWork};
use maud::{Markup, html};
use serde_json::{Map, Value};

/// The part of the answer with one option, and with several.
const OPTION: &str = "option";
const OPTIONS: &str = "options";
/// The greatest quantity that the form offers.
const MAX_QUANTITY: u8 = 10;

fn choice_type(request: &CapabilityRequest) -> ChoiceType {
    match &request.work {
        Some(RequestedWork::Choices(choices)) => choices.choice_type(),
        Some(RequestedWork::Form(_) | RequestedWork::Quote(_) | RequestedWork::Members(_))
        | None => ChoiceType::Radio,
    }
}

/// The form of a decision.
pub(super) fn form(request: &CapabilityRequest, id: &str, form: &FilledForm) -> Markup {
    let options = list_of(&request.payload, "options");
    match choice_type(request) {
        ChoiceType::Radio => request.form_element(
            id,
            &html! {
                (cards(options, "radio", OPTION, form))
                div class="buttons" { button class="primary" type="submit" { "Choose" } }
            },
        ),
        ChoiceType::Checkbox => request.form_element(
            id,
            &html! {
                (cards(options, "checkbox", OPTIONS, form))
                div class="buttons" { button class="primary" type="submit" { "Choose" } }
            },
        ),
        ChoiceType::Confirmation => request.form_element(id, &buttons(options)),
        ChoiceType::Products => request.form_element(id, &products(id, options, form)),
    }
}

/// The options and, behind each, its variants: each with the option whose members it inherits.
fn flat(options: &[Value]) -> impl Iterator<Item = (&Value, Option<&Value>)> {
    options.iter().flat_map(|option| {
        let variants = list_of(option, "variants").iter();
        std::iter::once((option, None)).chain(variants.map(move |it| (it, Some(option))))
    })
}

fn name(option: &Value, base: Option<&Value>) -> String {
    let own = text_of(option, "name").map(str::to_owned);
    let named = own.or_else(|| {
        let short = text_of(option, "short_variant_name");
        let base = base.and_then(|base| text_of(base, "name"));
        match (base, short) {
            (Some(base), Some(short)) => Some(format!("{base} – {short}")),
            (base, short) => base.or(short).map(str::to_owned),
        }
    });
    let named = named.or_else(|| text_of(option, "id").map(str::to_owned));
    json::visible(&named.unwrap_or_default()).into_owned()
}

/// The prices of an option.
fn prices(option: &Value) -> Option<String> {
    let quote = option.get("quote")?;
    let plans = list_of(quote, "payment_plans").iter().filter_map(|plan| {
        let amount = amount_of(plan, "amount")?;
        let currency = text_of(plan, "currency").unwrap_or_default();
        Some(format!("{amount} {}", json::visible(currency)))
    });
    let plans: Vec<String> = plans.collect();
    (!plans.is_empty()).then(|| plans.join(" or "))
}

/// Price, rating, image and address of an option. Nothing of it is loaded.
fn details(option: &Value) -> Markup {
    let until = option
        .get("quote")
        .and_then(|quote| text_of(quote, "valid_until"));
    let rating = amount_of(option, "five_star_rating");
    let reviews = amount_of(option, "reviews_count");
    let image = text_of(option, "image_url").and_then(|url| Some((url, web_host(url)?)));
    let link = text_of(option, "url").and_then(|url| Some((url, web_host(url)?)));
    html! {
        @if let Some(price) = prices(option) {
            p { b { (price) } @if let Some(until) = until { span class="quiet" { " valid until " (json::visible(until)) } } }
        }
        @if rating.is_some() || reviews.is_some() {
            p class="quiet" {
                @if let Some(rating) = &rating { (rating) " of 5 stars" }
                @if rating.is_some() && reviews.is_some() { ", " }
                @if let Some(reviews) = &reviews { (reviews) " reviews" }
            }
        }
        @if image.is_some() || link.is_some() {
            div class="buttons" {
                @if let Some((url, host)) = image {
                    button type="button" class="image" data-src=(url) { "Image at " (json::visible(host)) }
                }
                @if let Some((url, host)) = link {
                    a href=(url) target="_blank" rel="noopener noreferrer nofollow" data-ask { "Page at " (json::visible(host)) }
                }
            }
        }
    }
}

fn description(option: &Value) -> Markup {
    html! {
        @if let Some(text) = text_of(option, "description") {
            span class="plain quiet" dir="auto" { (json::visible(text)) }
        }
    }
}

fn cards(options: &[Value], kind: &str, part: &str, form: &FilledForm) -> Markup {
    html! {
        fieldset class="choices" data-at=(pointer(part)) {
            legend class="hidden" { "Options" }
            @for (option, base) in flat(options) {
                @let id = text_of(option, "id").unwrap_or_default();
                div class="option" {
                    label class="choice" {
                        input type=(kind) name=(field_name(part)) value=(id) checked[form.has(part, id)] required[kind == "radio"];
                        span { b dir="auto" { (name(option, base)) } " " (description(option)) }
                    }
                    (details(option))
                }
            }
        }
    }
}

/// A button for each option. Nothing is chosen before a button is pressed.
fn buttons(options: &[Value]) -> Markup {
    html! {
        div class="buttons" data-at=(pointer(OPTION)) role="group" aria-label="Options" {
            @for (option, base) in flat(options) {
                button type="submit" name=(field_name(OPTION)) value=(text_of(option, "id").unwrap_or_default()) dir="auto" { (name(option, base)) }
            }
        }
        @for (option, base) in flat(options).filter(|(option, _)| text_of(option, "description").is_some() || prices(option).is_some()) {
            div class="option" { p { b dir="auto" { (name(option, base)) } " " (description(option)) } (details(option)) }
        }
    }
}

/// The parts of the answer about the product at an index: whether it is chosen, which variant, how many.
fn parts(place: usize) -> [String; 3] {
    ["take", "variant", "n"].map(|part| format!("{part}.{place}"))
}

fn products(id: &str, options: &[Value], form: &FilledForm) -> Markup {
    html! {
        fieldset class="choices" {
            legend class="hidden" { "Products" }
            @for (place, option) in options.iter().enumerate() { (product(id, place, option, form)) }
        }
        div class="buttons" { button class="primary" type="submit" { "Choose these" } }
    }
}

fn product(id: &str, place: usize, option: &Value, form: &FilledForm) -> Markup {
    let [take, variant, n] = parts(place);
    let own = text_of(option, "id").unwrap_or_default();
    let variants = list_of(option, "variants");
    let quantity = form.value(&n).and_then(|n| n.parse::<u8>().ok());
    let element = |role: &str| ids::within(id, &format!("{role}{place}"));
    html! {
        div class="option" data-at=(pointer(own)) {
            label class="choice" {
                input type="checkbox" name=(field_name(&take)) value=(own) checked[form.has(&take, own)];
                span { b dir="auto" { (name(option, None)) } " " (description(option)) }
            }
            (details(option))
            div class="buttons" {
                @if variants.is_empty() {
                    input type="hidden" name=(field_name(&variant)) value=(own);
                } @else {
                    label for=(element("v")) { "Variant" }
                    select id=(element("v")) name=(field_name(&variant)) {
                        @for (choice, base) in std::iter::once((option, None)).chain(variants.iter().map(|it| (it, Some(option)))) {
                            @let id = text_of(choice, "id").unwrap_or_default();
                            option value=(id) selected[form.has(&variant, id)] {
                                (variant_name(choice, base))
                                @if let Some(price) = prices(choice) { ", " (price) }
                            }
                        }
                    }
                }
                label for=(element("n")) { "Quantity" }
                select id=(element("n")) name=(field_name(&n)) {
                    @for count in 1..=MAX_QUANTITY { option value=(count) selected[quantity == Some(count)] { (count) } }
                }
            }
        }
    }
}

fn variant_name(choice: &Value, base: Option<&Value>) -> String {
    match (text_of(choice, "short_variant_name"), base) {
        (Some(short), _) => json::visible(short).into_owned(),
        (None, _) => name(choice, base),
    }
}

/// The value of an answer.
pub(super) fn answer_value(
    request: &CapabilityRequest,
    fields: &[(String, String)],
) -> Result<Value, Vec<FormError>> {
    let mut answer = Map::new();
    match choice_type(request) {
        ChoiceType::Radio | ChoiceType::Confirmation => {
            if let Some(option) = value(fields, OPTION) {
                answer.insert(OPTION.to_owned(), option.into());
            }
        }
        ChoiceType::Checkbox => {
            let options = values(fields, OPTIONS).collect();
            answer.insert(OPTIONS.to_owned(), options);
        }
        ChoiceType::Products => {
            for place in 0..list_of(&request.payload, "options").len() {
                let [take, variant, n] = parts(place);
                let Some(own) = value(fields, &take) else {
                    continue;
                };
                let id = filled(fields, &variant).unwrap_or(own);
                let count = filled(fields, &n).unwrap_or("1").parse::<u64>();
                let count =
                    count.map_err(|_| vec![FormError::new(pointer(id), "a whole number")])?;
                answer.insert(id.to_owned(), count.into());
            }
        }
    }
    Ok(Value::Object(answer))
}
