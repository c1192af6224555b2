//! Forms from flat JSON Schemas.
//!
//! An object whose members are texts, numbers, booleans, choices or lists of choices becomes fields. Any
//! other member becomes a field for JSON, and any other schema one such field.

use crate::form_field::{Control, FilledForm, FormError, FormField, filled, pointer, values};
use crate::ids;
use maud::{Markup, html};
use serde_json::{Map, Number, Value};

/// The part of the answer for a value of any other schema.
const WHOLE: &str = "*";
/// Maximum number of members that become fields of their own.
const MAX_MEMBERS: usize = 200;

/// A form from a JSON Schema.
#[derive(Clone, Debug)]
pub struct SchemaForm<'a> {
    members: Option<Vec<Member<'a>>>,
}

#[derive(Clone, Debug)]
struct Member<'a> {
    name: &'a str,
    schema: &'a Value,
    kind: MemberKind,
    is_required: bool,
}

/// How a member is filled in, and read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MemberKind {
    Line(&'static str),
    Number,
    Boolean,
    OneOf,
    SomeOf,
    /// A list of texts, one a line.
    Lines,
    Json,
}

impl<'a> SchemaForm<'a> {
    /// The form of a schema.
    pub fn of(schema: &'a Value) -> Self {
        Self {
            members: members(schema),
        }
    }

    /// The fields as HTML. `id` is the id of the form.
    pub fn html(&self, id: &str, form: &FilledForm) -> Markup {
        let Some(members) = &self.members else {
            let field = FormField::line(WHOLE, "Value, as JSON").required();
            return field
                .filled_by(Control::Area)
                .html(&ids::within(id, "json"), form);
        };
        html! {
            @for (place, member) in members.iter().enumerate() {
                (member.html(&ids::within(id, &place.to_string()), form))
            }
        }
    }

    /// The value that a person filled in. Fields that are empty are left out.
    ///
    /// # Errors
    ///
    /// The texts that are no JSON or no number.
    pub fn value(&self, fields: &[(String, String)]) -> Result<Value, Vec<FormError>> {
        let Some(members) = &self.members else {
            let text = filled(fields, WHOLE).unwrap_or_default();
            return read_json(text).map_err(|expected| vec![FormError::new("", expected)]);
        };
        let mut value = Map::new();
        let mut errors = Vec::new();
        for member in members {
            match member.value(fields) {
                Ok(Some(found)) => drop(value.insert(member.name.to_owned(), found)),
                Ok(None) => {}
                Err(expected) => errors.push(FormError::new(pointer(member.name), expected)),
            }
        }
        if errors.is_empty() {
            Ok(Value::Object(value))
        } else {
            Err(errors)
        }
    }
}

fn members(schema: &Value) -> Option<Vec<Member<'_>>> {
    if schema.get("type").and_then(Value::as_str) != Some("object") {
        return None;
    }
    let properties = schema.get("properties")?.as_object()?;
    if properties.is_empty() || properties.len() > MAX_MEMBERS {
        return None;
    }
    let required: Vec<&str> = match schema.get("required").and_then(Value::as_array) {
        Some(required) => required.iter().filter_map(Value::as_str).collect(),
        None => Vec::new(),
    };
    let members = properties.iter().map(|(name, schema)| Member {
        name,
        schema,
        kind: kind_of(schema),
        is_required: required.contains(&name.as_str()),
    });
    Some(members.collect())
}

fn kind_of(schema: &Value) -> MemberKind {
    if !options(schema).is_empty() {
        return MemberKind::OneOf;
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("string") => MemberKind::Line(match schema.get("format").and_then(Value::as_str) {
            Some("date") => "date",
            Some("email") => "email",
            Some("uri") => "url",
            Some(_) | None => "text",
        }),
        Some("number" | "integer") => MemberKind::Number,
        Some("boolean") => MemberKind::Boolean,
        Some("array") => {
            let items = schema.get("items").unwrap_or(&Value::Null);
            if !options(items).is_empty() {
                MemberKind::SomeOf
            } else if items.get("type").and_then(Value::as_str) == Some("string") {
                MemberKind::Lines
            } else {
                MemberKind::Json
            }
        }
        Some(_) | None => MemberKind::Json,
    }
}

/// The texts that a schema offers, each with its label.
fn options(schema: &Value) -> Vec<(String, String)> {
    if let Some(Value::Array(values)) = schema.get("enum") {
        let texts = values.iter().map(|value| {
            let value = value.as_str()?;
            Some((value.to_owned(), value.to_owned()))
        });
        return texts.collect::<Option<_>>().unwrap_or_default();
    }
    let titled = ["oneOf", "anyOf"].iter().find_map(|key| schema.get(*key));
    let titled = titled.and_then(Value::as_array).into_iter().flatten();
    let titled = titled.map(|option| {
        let value = option.get("const")?.as_str()?;
        let title = option.get("title").and_then(Value::as_str);
        Some((value.to_owned(), title.unwrap_or(value).to_owned()))
    });
    titled.collect::<Option<_>>().unwrap_or_default()
}

fn read_json(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| format!("a JSON value: {error}"))
}

impl Member<'_> {
    fn text(&self, key: &str) -> Option<&str> {
        self.schema.get(key).and_then(Value::as_str)
    }

    fn html(&self, id: &str, form: &FilledForm) -> Markup {
        let default = match self.schema.get("default") {
            Some(Value::String(text)) => Some(text.clone()),
            Some(value) => Some(value.to_string()),
            None => None,
        };
        let (control, options) = match self.kind {
            MemberKind::Line(kind) => (Control::Line(kind), Vec::new()),
            MemberKind::Number => (Control::Line("number"), Vec::new()),
            MemberKind::Boolean => {
                let choices = [("true", "yes"), ("false", "no")];
                let choices = choices.map(|(value, label)| (value.to_owned(), label.to_owned()));
                (Control::Select, choices.into())
            }
            MemberKind::OneOf => (Control::Select, options(self.schema)),
            MemberKind::SomeOf => {
                let items = self.schema.get("items").unwrap_or(&Value::Null);
                (Control::Choices, options(items))
            }
            MemberKind::Lines | MemberKind::Json => (Control::Area, Vec::new()),
        };
        let title = self.text("title");
        let label = match self.kind {
            MemberKind::Lines => format!("{}, one a line", title.unwrap_or(self.name)),
            MemberKind::Json => format!("{}, as JSON", title.unwrap_or(self.name)),
            MemberKind::Line(_)
            | MemberKind::Number
            | MemberKind::Boolean
            | MemberKind::OneOf
            | MemberKind::SomeOf => title.unwrap_or(self.name).to_owned(),
        };
        let field = FormField {
            part: self.name,
            control,
            label: &label,
            description: self.text("description"),
            default: default.as_deref(),
            options,
            is_required: self.is_required,
            autocomplete: None,
        };
        field.html(id, form)
    }

    /// The value that was filled in, or what was expected.
    fn value(&self, fields: &[(String, String)]) -> Result<Option<Value>, String> {
        let Some(text) = filled(fields, self.name) else {
            return Ok(None);
        };
        let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty());
        match self.kind {
            MemberKind::Line(_) | MemberKind::OneOf => Ok(Some(text.into())),
            MemberKind::Number => {
                let number = text.trim().parse::<Number>();
                let number = number.map_err(|_| "a number".to_owned())?;
                Ok(Some(Value::Number(number)))
            }
            MemberKind::Boolean => match text {
                "true" => Ok(Some(true.into())),
                "false" => Ok(Some(false.into())),
                _ => Err("yes or no".to_owned()),
            },
            MemberKind::SomeOf => Ok(Some(values(fields, self.name).collect())),
            MemberKind::Lines => Ok(Some(lines().collect())),
            MemberKind::Json => read_json(text).map(Some),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schema() -> Value {
        json!({"type": "object", "required": ["name"], "properties": {
            "name": {"type": "string", "title": "Name", "description": "Who <i>you</i> are", "default": "Ada"},
            "born": {"type": "string", "format": "date"},
            "mail": {"type": "string", "format": "email"},
            "n": {"type": "integer"},
            "yes": {"type": "boolean"},
            "colour": {"type": "string", "enum": ["red", "blue"]},
            "size": {"type": "string", "oneOf": [{"const": "s", "title": "Small"}]},
            "tags": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}},
            "lines": {"type": "array", "items": {"type": "string"}},
            "deep": {"type": "object"},
        }})
    }

    fn fields(list: &[(&str, &str)]) -> Vec<(String, String)> {
        let named = list.iter();
        named
            .map(|(name, value)| (format!("f.{name}"), (*value).to_owned()))
            .collect()
    }

    #[test]
    fn a_flat_schema_becomes_a_field_for_each_member() {
        let schema = schema();
        let html = SchemaForm::of(&schema).html("x", &FilledForm::default());
        let html = html.into_string();
        for part in [
            r#"type="date""#,
            r#"type="email""#,
            r#"type="number""#,
            r#"value="Ada""#,
            ">Small</option>",
            r#"type="checkbox" name="f.tags" value="b""#,
            "Who &lt;i&gt;you",
            "deep, as JSON",
        ] {
            assert!(html.contains(part), "{part}: {html}");
        }
        assert_eq!(html.matches(" required").count(), 1);
    }

    #[test]
    fn a_filled_form_becomes_the_value() {
        let schema = schema();
        let filled = fields(&[
            ("name", "Ada"),
            ("n", "3"),
            ("yes", "false"),
            ("colour", ""),
            ("tags", "a"),
            ("tags", "b"),
            ("lines", "one\n\n two \n"),
            ("deep", r#"{"a":1}"#),
        ]);
        let value = SchemaForm::of(&schema).value(&filled).unwrap();
        let expected = json!({"name": "Ada", "n": 3, "yes": false, "tags": ["a", "b"], "lines": ["one", "two"], "deep": {"a": 1}});
        assert_eq!(value, expected);
        let wrong = fields(&[("n", "three"), ("deep", "{"), ("yes", "maybe")]);
        let errors = SchemaForm::of(&schema).value(&wrong).unwrap_err();
        let pointers: Vec<&str> = errors.iter().map(|it| it.pointer.as_str()).collect();
        assert_eq!(pointers, ["/n", "/yes", "/deep"]);
    }

    #[test]
    fn any_other_schema_is_one_field_for_json() {
        for schema in [json!({}), json!(true), json!({"type": "string"})] {
            let form = SchemaForm::of(&schema);
            let html = form.html("x", &FilledForm::default()).into_string();
            assert!(html.contains("<textarea"), "{html}");
            assert_eq!(form.value(&fields(&[("*", "[1]")])), Ok(json!([1])));
            assert!(form.value(&fields(&[("*", "[")])).is_err());
        }
    }
}
