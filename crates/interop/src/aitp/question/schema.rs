//! The JSON Schema of an answer.

use crate::aitp::amount::text_of;
use crate::aitp::choice::{Choice, ChoiceType, Choices};
use crate::aitp::form::{Field, FieldType, RequestForm};
use crate::aitp::kind::Kind;
use crate::aitp::meaning::{RequestedWork, ways};
use crate::aitp::schemas::payload_schema;
use serde_json::{Map, Value, json};

/// Members that an answer may omit, because they are filled in from the request or the clock.
pub(super) const FILLED_IN: [&str; 3] = ["timestamp", "amount", "currency"];

pub(super) fn of(
    asked: &RequestedWork,
    answer: Kind,
    payload: &Value,
) -> Option<Map<String, Value>> {
    Some(match asked {
        RequestedWork::Choices(choices) => of_choices(choices),
        RequestedWork::Form(form) => of_form(form),
        RequestedWork::Quote(quote) if answer == Kind::PaymentAuthorization => of_near_quote(quote),
        RequestedWork::Quote(quote) => of_quote(quote),
        RequestedWork::Members(_) => {
            let mut schema = payload_schema(answer.family(), answer.key(), answer.id_field())?;
            if let Some(Value::Array(required)) = schema.get_mut("required") {
                let known = |key: &str| key == "timestamp" || payload.get(key).is_some();
                required.retain(|key| {
                    let key = key.as_str().unwrap_or_default();
                    !(FILLED_IN.contains(&key) && known(key))
                });
            }
            schema
        }
    })
}

fn object(members: Map<String, Value>, required: Vec<&str>) -> Map<String, Value> {
    let mut schema = Map::new();
    schema.insert("type".to_owned(), "object".into());
    schema.insert("properties".to_owned(), Value::Object(members));
    schema.insert("required".to_owned(), required.into());
    schema.insert("additionalProperties".to_owned(), false.into());
    schema
}

/// One of these texts; any text where there are none, for no schema has an empty `oneOf`.
fn one_of(offered: impl Iterator<Item = Value>) -> Value {
    let offered: Vec<Value> = offered.collect();
    if offered.is_empty() {
        json!({"type": "string"})
    } else {
        json!({"type": "string", "oneOf": offered})
    }
}

fn titled(choice: &Choice) -> Value {
    match &choice.name {
        Some(name) => json!({"const": choice.id, "title": name}),
        None => json!({"const": choice.id}),
    }
}

fn of_choices(choices: &Choices) -> Map<String, Value> {
    let offered = choices.choices().iter().map(titled);
    let mut members = Map::new();
    match choices.choice_type() {
        ChoiceType::Radio | ChoiceType::Confirmation => {
            members.insert("option".to_owned(), one_of(offered));
            object(members, vec!["option"])
        }
        ChoiceType::Checkbox => {
            let offered: Vec<Value> = offered.collect();
            let options = json!({"type": "array", "minItems": 1, "uniqueItems": true, "items": {"anyOf": offered}});
            members.insert("options".to_owned(), options);
            object(members, vec!["options"])
        }
        // One number for each product keeps the answer flat, and several can be bought at once.
        ChoiceType::Products => {
            for choice in choices.choices() {
                let mut member = json!({"type": "integer", "minimum": 0});
                annotate(
                    &mut member,
                    choice.name.as_deref(),
                    choice.description.as_deref(),
                );
                members.insert(choice.id.clone(), member);
            }
            let mut schema = object(members, Vec::new());
            schema.insert("minProperties".to_owned(), 1.into());
            schema
        }
    }
}

fn annotate(member: &mut Value, title: Option<&str>, description: Option<&str>) {
    if let Value::Object(member) = member {
        member.extend(title.map(|it| ("title".to_owned(), it.into())));
        member.extend(description.map(|it| ("description".to_owned(), it.into())));
    }
}

fn of_form(form: &RequestForm) -> Map<String, Value> {
    let members = form.fields().iter();
    let members = members.map(|field| (field.id.clone(), of_field(field)));
    let required = form.fields().iter().filter(|field| field.required);
    let required = required.map(|field| field.id.as_str()).collect();
    let mut schema = object(members.collect(), required);
    if !form.is_whole() {
        let others = json!({"type": "string"});
        schema.insert("additionalProperties".to_owned(), others);
    }
    schema
}

fn of_field(field: &Field) -> Value {
    let values = field.options.iter().map(|option| option.value.as_str());
    let mut member = match field.field_type {
        FieldType::Text | FieldType::Textarea | FieldType::Tel => json!({"type": "string"}),
        FieldType::Number => json!({"type": "number"}),
        FieldType::Email => json!({"type": "string", "format": "email"}),
        FieldType::Combobox => {
            let values: Vec<&str> = values.collect();
            json!({"type": "string", "examples": values})
        }
        FieldType::Select => {
            let offered = field.options.iter().map(|option| match &option.label {
                Some(label) => json!({"const": option.value, "title": label}),
                None => json!({"const": option.value}),
            });
            one_of(offered)
        }
    };
    annotate(
        &mut member,
        field.label.as_deref(),
        field.description.as_deref(),
    );
    if let (Value::Object(member), Some(default)) = (&mut member, &field.default_value) {
        let as_number = || {
            default
                .parse::<serde_json::Number>()
                .ok()
                .map(Value::Number)
        };
        let value = match field.field_type {
            FieldType::Number => as_number(),
            FieldType::Text
            | FieldType::Email
            | FieldType::Textarea
            | FieldType::Select
            | FieldType::Combobox
            | FieldType::Tel => Some(default.as_str().into()),
        };
        member.extend(value.map(|value| ("default".to_owned(), value)));
    }
    member
}

fn of_quote(quote: &Value) -> Map<String, Value> {
    let said = |value: &Value, key: &str| -> String {
        value.get(key).and_then(text_of).unwrap_or_default()
    };
    let offered = ways(quote).map(|(place, option, method)| {
        let price = format!("{} {}", said(option, "amount"), said(option, "currency"));
        let way = format!("{}, {}", said(method, "token"), said(method, "type"));
        json!({"const": place, "title": format!("{} ({way})", price.trim_start())})
    });
    let members = json!({
        "payment_option": one_of(offered),
        "channel_id": {"type": "string"},
        "payer_id": {"type": "string"},
        "payer_signature": {"type": "string"},
        "amount": {"type": "string", "pattern": "^\\d+(\\.\\d+)?$"},
        "timestamp": {"type": "string", "format": "date-time"}
    });
    let required = vec![
        "payment_option",
        "channel_id",
        "payer_id",
        "payer_signature",
    ];
    object(members.as_object().cloned().unwrap_or_default(), required)
}

fn of_near_quote(quote: &Value) -> Map<String, Value> {
    let plans = quote.get("payment_plans").and_then(Value::as_array);
    let offered = plans.into_iter().flatten().filter_map(|plan| {
        let price = text_of(plan.get("amount")?)?;
        let currency = plan.get("currency")?.as_str()?;
        Some(json!({"const": plan.get("plan_id")?, "title": format!("{price} {currency}")}))
    });
    let members = json!({
        "result": {"type": "string", "enum": ["success", "failure"]},
        "plan_id": one_of(offered),
        "account_id": {"type": "string"},
        "transaction_id": {"type": "string"},
        "message": {"type": "string"},
        "timestamp": {"type": "string", "format": "date-time"}
    });
    let members = members.as_object().cloned().unwrap_or_default();
    object(members, vec!["result"])
}
