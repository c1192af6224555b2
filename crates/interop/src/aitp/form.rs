//! Forms of data requests (AITP-03).

use super::violation::MessageViolation;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The most fields of one form, and the most options of one field.
pub const MAX_FIELDS: usize = 1000;
/// Maximum number of violations listed for one form or answer.
pub(super) const MAX_LISTED: usize = 20;

/// The type of a field's value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FieldType {
    /// A line.
    #[default]
    Text,
    /// A number, as text.
    Number,
    /// An address of e-mail.
    Email,
    /// Several lines.
    Textarea,
    /// One of the options.
    Select,
    /// One of the options, or another text.
    Combobox,
    /// A telephone number.
    Tel,
}

impl FieldType {
    /// The type of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "text" => Self::Text,
            "number" => Self::Number,
            "email" => Self::Email,
            "textarea" => Self::Textarea,
            "select" => Self::Select,
            "combobox" => Self::Combobox,
            "tel" => Self::Tel,
            _ => return None,
        })
    }
}

/// One value that a field offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldOption {
    /// The value that the answer contains.
    pub value: String,
    /// The label for people, if it differs from the value.
    pub label: Option<String>,
}

/// One field of a form (AITP-03).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Field {
    /// The id that the answer uses for the field.
    pub id: String,
    /// The label, for people.
    pub label: Option<String>,
    /// The description, for people.
    pub description: Option<String>,
    /// The initial value.
    pub default_value: Option<String>,
    /// The type of the value.
    pub field_type: FieldType,
    /// The choices of a select or a combobox.
    pub options: Vec<FieldOption>,
    /// Whether it has to be filled in.
    pub required: bool,
    /// The kind of data that a browser may fill in, as HTML's `autocomplete` names it.
    pub autocomplete: Option<String>,
}

impl Field {
    /// Reads one field; `at` is its JSON pointer.
    fn read(value: &Value, at: &str) -> Result<Self, MessageViolation> {
        let text = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
        let wrong =
            |key: &str, expected: &str| MessageViolation::new(format!("{at}/{key}"), expected);
        let field_type = match text("type") {
            Some(name) => FieldType::from_name(&name),
            None => Some(FieldType::default()),
        };
        let field = Self {
            id: text("id").ok_or_else(|| wrong("id", "the id of a field"))?,
            label: text("label"),
            description: text("description"),
            default_value: text("default_value"),
            field_type: field_type.ok_or_else(|| wrong("type", "a type of AITP-03"))?,
            options: options(value, at)?,
            required: value.get("required").and_then(Value::as_bool) == Some(true),
            autocomplete: text("autocomplete"),
        };
        if field.field_type == FieldType::Select && field.options.is_empty() {
            return Err(wrong("options", "what to select from"));
        }
        Ok(field)
    }
}

fn options(value: &Value, at: &str) -> Result<Vec<FieldOption>, MessageViolation> {
    let Some(list) = value.get("options").filter(|list| !list.is_null()) else {
        return Ok(Vec::new());
    };
    let at = format!("{at}/options");
    let read = |(place, value)| {
        let expected = "a text, or an object with a \"value\"";
        option(value).ok_or_else(|| MessageViolation::new(format!("{at}/{place}"), expected))
    };
    list_of(list, &at)?.iter().enumerate().map(read).collect()
}

/// A list of at most [`MAX_FIELDS`] elements. One that is longer is refused and never cut.
pub(super) fn list_of<'a>(value: &'a Value, at: &str) -> Result<&'a [Value], MessageViolation> {
    let list = value.as_array().filter(|list| list.len() <= MAX_FIELDS);
    let expected = || format!("a list of at most {MAX_FIELDS} elements");
    let list = list.ok_or_else(|| MessageViolation::new(at, expected()))?;
    Ok(list.as_slice())
}

fn option(value: &Value) -> Option<FieldOption> {
    let text = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    match value {
        Value::String(text) => Some(FieldOption {
            value: text.clone(),
            label: None,
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            Some(FieldOption {
                value: text("value")?,
                label: text("label"),
            })
        }
    }
}

/// Fields with ids of their own.
fn fields(value: &Value, at: &str) -> Result<Vec<Field>, Vec<MessageViolation>> {
    let list = list_of(value, at).map_err(|wrong| vec![wrong])?;
    let mut ids = BTreeSet::new();
    let mut fields = Vec::with_capacity(list.len());
    let mut found = Vec::new();
    for (place, value) in list.iter().enumerate() {
        let at = format!("{at}/{place}");
        let id = value.get("id").and_then(Value::as_str);
        if id.is_some_and(|id| !ids.insert(id)) {
            found.push(MessageViolation::new(
                format!("{at}/id"),
                "an id of its own",
            ));
        }
        match Field::read(value, &at) {
            Ok(field) => fields.push(field),
            Err(wrong) => found.push(wrong),
        }
        if found.len() >= MAX_LISTED {
            break;
        }
    }
    if found.is_empty() {
        Ok(fields)
    } else {
        Err(found)
    }
}

/// A form (AITP-03): fields by ids of their own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestForm {
    fields: Vec<Field>,
    places: BTreeMap<String, usize>,
    json_url: Option<String>,
}

impl RequestForm {
    fn new(fields: Vec<Field>, json_url: Option<String>) -> Self {
        let places = fields.iter().enumerate();
        let places = places.map(|(place, field)| (field.id.clone(), place));
        Self {
            places: places.collect(),
            fields,
            json_url,
        }
    }

    /// Reads the form in the payload of a `request_data`; `at` is the payload's JSON pointer.
    pub fn read(payload: &Value, at: &str) -> Result<Self, Vec<MessageViolation>> {
        let form = payload.get("form").unwrap_or(&Value::Null);
        let at = format!("{at}/form");
        let fields = match form.get("fields") {
            None | Some(Value::Null) => Vec::new(),
            Some(list) => fields(list, &format!("{at}/fields"))?,
        };
        let json_url = form.get("json_url").and_then(Value::as_str);
        if fields.is_empty() && json_url.is_none() {
            return Err(vec![MessageViolation::new(at, "fields or a json_url")]);
        }
        Ok(Self::new(fields, json_url.map(str::to_owned)))
    }

    /// The form with the fields of the document at its `json_url`, which come first. The request's own
    /// fields replace fetched ones of equal ids.
    #[must_use]
    pub fn with_fetched(self, mut fetched: Vec<Field>) -> Self {
        fetched.retain(|field| !self.places.contains_key(&field.id));
        fetched.extend(self.fields);
        Self::new(fetched, None)
    }

    /// The fields that are known, in order.
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// The field of this id.
    pub fn find(&self, id: &str) -> Option<&Field> {
        self.fields.get(*self.places.get(id)?)
    }

    /// The URL of a document with further fields. This crate never fetches it.
    pub fn json_url(&self) -> Option<&str> {
        self.json_url.as_deref()
    }

    /// Whether all its fields are known.
    pub fn is_whole(&self) -> bool {
        self.json_url.is_none()
    }
}

/// Reads a document with fields, as a `json_url` leads to: `{"fields": […]}`.
pub fn read_form_document(document: &Value) -> Result<Vec<Field>, Vec<MessageViolation>> {
    let list = document.get("fields").unwrap_or(&Value::Null);
    fields(list, "/fields")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pointers(form: &Value) -> Vec<String> {
        let found = RequestForm::read(&json!({"form": form}), "").unwrap_err();
        found.into_iter().map(|it| it.pointer).collect()
    }

    #[test]
    fn a_form_that_is_too_long_or_unreadable_is_refused_and_never_cut() {
        let many = |n: usize| -> Value { (0..n).map(|n| json!({"id": n.to_string()})).collect() };
        let form = RequestForm::read(&json!({"form": {"fields": many(MAX_FIELDS)}}), "").unwrap();
        assert_eq!(form.fields().len(), MAX_FIELDS);
        assert_eq!(
            pointers(&json!({"fields": many(MAX_FIELDS + 1)})),
            ["/form/fields"]
        );
        assert_eq!(
            pointers(&json!({"fields": [{"label": "x"}]})),
            ["/form/fields/0/id"]
        );
        let dated = json!({"fields": [{"id": "x"}, {"id": "y", "type": "date"}]});
        assert_eq!(pointers(&dated), ["/form/fields/1/type"]);
        let options: Vec<String> = (0..=MAX_FIELDS).map(|n| n.to_string()).collect();
        let offered = json!({"fields": [{"id": "x", "type": "combobox", "options": options}]});
        assert_eq!(pointers(&offered), ["/form/fields/0/options"]);
        let unnamed = json!({"fields": [{"id": "x", "options": [{"label": "A"}]}]});
        assert_eq!(pointers(&unnamed), ["/form/fields/0/options/0"]);
    }

    #[test]
    fn a_fetched_document_is_read_as_a_form_is() {
        let wrong = |document: Value| read_form_document(&document).unwrap_err().remove(0).pointer;
        let twice = json!({"fields": [{"id": "x"}, {"id": "x"}]});
        assert_eq!(wrong(twice), "/fields/1/id");
        let empty = json!({"fields": [{"id": "x", "type": "select"}]});
        assert_eq!(wrong(empty), "/fields/0/options");
        assert_eq!(wrong(json!([])), "/fields");
    }

    #[test]
    fn the_requests_own_field_counts_instead_of_a_fetched_one() {
        let own = json!({"form": {"json_url": "u", "fields": [{"id": "a", "required": true}]}});
        let fetched = read_form_document(&json!({"fields": [{"id": "a"}, {"id": "b"}]})).unwrap();
        let form = RequestForm::read(&own, "").unwrap().with_fetched(fetched);
        let ids: Vec<&str> = form
            .fields()
            .iter()
            .map(|field| field.id.as_str())
            .collect();
        assert_eq!(ids, ["b", "a"]);
        assert!(form.is_whole() && form.find("a").is_some_and(|field| field.required));
    }
}
