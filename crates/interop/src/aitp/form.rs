//! Forms and choices as they are asked for.

use super::violation::Violation;
use jiff::Timestamp;
use serde_json::Value;

/// The most fields of one form, and the most options of one choice.
pub const MAX_FIELDS: usize = 1000;

/// What may stand in a field.
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
    /// What stands in the answer.
    pub value: String,
    /// For people, where that is something else.
    pub label: Option<String>,
}

/// One field of a form (AITP-03).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Field {
    /// What the answer names it by.
    pub id: String,
    /// For people.
    pub label: Option<String>,
    /// More, for people.
    pub description: Option<String>,
    /// What stands in it at first.
    pub default_value: Option<String>,
    /// What may stand in it.
    pub field_type: FieldType,
    /// What a select or a combobox offers.
    pub options: Vec<FieldOption>,
    /// Whether it has to be filled in.
    pub required: bool,
    /// What a browser may fill in.
    pub autocomplete: Option<String>,
}

impl Field {
    fn read(value: &Value) -> Option<Self> {
        let text = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
        let options = value.get("options").and_then(Value::as_array);
        let kind = text("type");
        Some(Self {
            id: text("id")?,
            label: text("label"),
            description: text("description"),
            default_value: text("default_value"),
            field_type: match kind {
                Some(name) => FieldType::from_name(&name)?,
                None => FieldType::default(),
            },
            options: options.into_iter().flatten().filter_map(option).collect(),
            required: value.get("required").and_then(Value::as_bool) == Some(true),
            autocomplete: text("autocomplete"),
        })
    }
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

/// The form of a `request_data`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Form {
    /// The fields that stand in the request.
    pub fields: Vec<Field>,
    /// Where a document with further fields is. It is never fetched here.
    pub json_url: Option<String>,
}

impl Form {
    /// The form in the payload of a `request_data`.
    pub fn of(payload: &Value) -> Self {
        let form = payload.get("form");
        let fields = form.and_then(|form| form.get("fields")?.as_array());
        let fields = fields.into_iter().flatten().take(MAX_FIELDS);
        let url = form.and_then(|form| form.get("json_url")?.as_str());
        Self {
            fields: fields.filter_map(Field::read).collect(),
            json_url: url.map(str::to_owned),
        }
    }

    /// The form with the fields of the document at its `json_url`, which come first.
    #[must_use]
    pub fn with_fetched(mut self, mut fetched: Vec<Field>) -> Self {
        fetched.append(&mut self.fields);
        Self {
            fields: fetched,
            json_url: None,
        }
    }

    /// Whether all its fields are known.
    pub fn is_whole(&self) -> bool {
        self.json_url.is_none()
    }
}

/// Reads a document with fields, as a `json_url` leads to: `{"fields": […]}`.
pub fn read_form_document(document: &Value) -> Result<Vec<Field>, Violation> {
    let fields = document.get("fields").and_then(Value::as_array);
    let fields = fields.ok_or_else(|| Violation::new("/fields", "a list of fields"))?;
    if fields.len() > MAX_FIELDS {
        let expected = format!("at most {MAX_FIELDS} fields");
        return Err(Violation::new("/fields", expected));
    }
    let field = |(place, value)| {
        let expected = "a field with an \"id\" and a type of AITP-03";
        Field::read(value).ok_or_else(|| Violation::new(format!("/fields/{place}"), expected))
    };
    fields.iter().enumerate().map(field).collect()
}

/// How many options an answer has (AITP-02).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChoiceType {
    /// One of a list.
    #[default]
    Radio,
    /// One of a row of buttons.
    Confirmation,
    /// One or more.
    Checkbox,
    /// One or more, each with a quantity.
    Products,
}

/// One option that can be chosen: an option of the request or a variant of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// What the answer names it by.
    pub id: String,
    /// For people.
    pub name: Option<String>,
    /// More, for people.
    pub description: Option<String>,
    /// Until when its price holds.
    pub valid_until: Option<Timestamp>,
}

/// The choices of a `request_decision`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choices {
    /// How many are chosen.
    pub choice_type: ChoiceType,
    /// Options and their variants, in order.
    pub choices: Vec<Choice>,
}

impl Choices {
    /// The choices in the payload of a `request_decision`.
    pub fn of(payload: &Value) -> Self {
        let name = payload.get("type").and_then(Value::as_str);
        let choice_type = match name {
            Some("confirmation") => ChoiceType::Confirmation,
            Some("checkbox") => ChoiceType::Checkbox,
            Some("products") => ChoiceType::Products,
            Some(_) | None => ChoiceType::Radio,
        };
        let list = |value: &Value, key: &str| -> Vec<Value> {
            let list = value.get(key).and_then(Value::as_array);
            list.map(Vec::as_slice).unwrap_or_default().to_vec()
        };
        let mut choices = Vec::new();
        for option in list(payload, "options") {
            let base = choice(&option, None);
            let variants = list(&option, "variants");
            let of_base = |variant: &Value| choice(variant, base.as_ref());
            let variants: Vec<Choice> = variants.iter().filter_map(of_base).collect();
            choices.extend(base);
            choices.extend(variants);
        }
        choices.truncate(MAX_FIELDS);
        Self {
            choice_type,
            choices,
        }
    }

    /// The choice of this id.
    pub fn find(&self, id: &str) -> Option<&Choice> {
        self.choices.iter().find(|choice| choice.id == id)
    }

    /// When the last price has ended, if every choice has a price that ends.
    pub fn valid_until(&self) -> Option<Timestamp> {
        let ends: Option<Vec<Timestamp>> = self
            .choices
            .iter()
            .map(|choice| choice.valid_until)
            .collect();
        ends?.into_iter().max()
    }
}

/// A variant has of its option what it does not say itself.
fn choice(value: &Value, base: Option<&Choice>) -> Option<Choice> {
    let text = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    let own = |key: &str, inherited: Option<&String>| text(key).or_else(|| inherited.cloned());
    let valid_until = value.pointer("/quote/valid_until").and_then(instant);
    Some(Choice {
        id: text("id")?,
        name: own("name", base.and_then(|base| base.name.as_ref()))
            .or_else(|| text("short_variant_name")),
        description: own(
            "description",
            base.and_then(|base| base.description.as_ref()),
        ),
        valid_until: valid_until.or_else(|| base?.valid_until),
    })
}

/// An instant in RFC 3339.
pub(super) fn instant(value: &Value) -> Option<Timestamp> {
    value.as_str()?.parse().ok()
}
