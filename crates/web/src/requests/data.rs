//! Data requests: forms with fields.

use super::{CapabilityRequest, text_of};
use crate::form_field::{Control, FilledForm, FormError, FormField, filled, pointer, value};
use crate::markdown::web_host;
use crate::{ids, json};
use interop::aitp::{Field, FieldType, RequestForm, RequestedWork};
use maud::{Markup, html};
use serde_json::{Map, Value};

/// The part of the answer with fields that the server does not know.
const FURTHER: &str = "*";

fn form_of(request: &CapabilityRequest) -> Option<&RequestForm> {
    match &request.work {
        Some(RequestedWork::Form(form)) => Some(form),
        Some(RequestedWork::Choices(_) | RequestedWork::Quote(_) | RequestedWork::Members(_))
        | None => None,
    }
}

/// The form of a data request.
pub(super) fn form(request: &CapabilityRequest, id: &str, filled: &FilledForm) -> Markup {
    let known = form_of(request);
    let fields = known.map(RequestForm::fields).unwrap_or_default();
    let label = text_of(&request.payload, "fillButtonLabel");
    request.form_element(
        id,
        &html! {
            @for (place, field) in fields.iter().enumerate() {
                (field_html(&ids::within(id, &place.to_string()), field, filled))
            }
            @if let Some(url) = known.and_then(RequestForm::json_url) { (further(id, url, filled)) }
            div class="buttons" {
                button class="primary" type="submit" { "Send the answers" }
                @if let Some(label) = label { span class="quiet" dir="auto" { "Their name for this: “" (json::visible(label)) "”" } }
            }
        },
    )
}

fn field_html(id: &str, field: &Field, form: &FilledForm) -> Markup {
    let control = match field.field_type {
        FieldType::Text => Control::Line("text"),
        FieldType::Number => Control::Line("number"),
        FieldType::Email => Control::Line("email"),
        FieldType::Tel => Control::Line("tel"),
        FieldType::Textarea => Control::Area,
        FieldType::Select => Control::Select,
        FieldType::Combobox => Control::Combobox,
    };
    let options = field.options.iter().map(|option| {
        let label = option.label.as_ref().unwrap_or(&option.value);
        (option.value.clone(), label.clone())
    });
    let shown = FormField {
        part: &field.id,
        control,
        label: field.label.as_deref().unwrap_or(&field.id),
        description: field.description.as_deref(),
        default: field.default_value.as_deref(),
        options: options.collect(),
        is_required: field.required,
        autocomplete: field.autocomplete.as_deref(),
    };
    shown.html(id, form)
}

/// Fields of a document that the server has not fetched.
fn further(id: &str, url: &str, form: &FilledForm) -> Markup {
    let field = FormField::line(FURTHER, "Further answers, as a JSON object of texts");
    html! {
        p class="note" {
            "The form has further fields, at "
            @match web_host(url) {
                Some(host) => a href=(url) target="_blank" rel="noopener noreferrer nofollow" data-ask { (json::visible(host)) },
                None => code { (json::visible(url)) },
            }
            ". This server has not fetched them."
        }
        (field.filled_by(Control::Area).html(&ids::within(id, "further"), form))
    }
}

/// The value of an answer. Empty fields are left out, unless all are empty.
pub(super) fn answer_value(
    request: &CapabilityRequest,
    fields: &[(String, String)],
) -> Result<Value, Vec<FormError>> {
    let mut answer = Map::new();
    let known = form_of(request)
        .map(RequestForm::fields)
        .unwrap_or_default();
    for field in known {
        if let Some(text) = filled(fields, &field.id) {
            answer.insert(field.id.clone(), text.into());
        }
    }
    if let Some(text) = filled(fields, FURTHER) {
        let expected = "a JSON object";
        let further: Map<String, Value> = serde_json::from_str(text)
            .map_err(|_| vec![FormError::new(pointer(FURTHER), expected)])?;
        answer.extend(further);
    }
    if answer.is_empty() {
        let empty = known.iter().filter(|field| !field.required);
        let empty = empty.filter(|field| value(fields, &field.id).is_some());
        answer.extend(empty.map(|field| (field.id.clone(), "".into())));
    }
    Ok(Value::Object(answer))
}
