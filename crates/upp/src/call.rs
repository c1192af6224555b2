//! A single call of an endpoint, as the codecs of embeddings and images write it.

use bytes::Bytes;
use serde_json::{Map, Value};

/// A request to send. Pure data: a codec writes it, an endpoint sends it.
#[derive(Clone, Debug, PartialEq)]
pub struct EndpointCall {
    /// The address of the endpoint below the base URL, such as `/images/edits`.
    pub path: String,
    /// The body that is sent.
    pub body: CallBody,
}

impl EndpointCall {
    /// A call with a JSON body.
    pub fn json(path: impl Into<String>, body: Map<String, Value>) -> Self {
        Self {
            path: path.into(),
            body: CallBody::Json(Value::Object(body).to_string().into()),
        }
    }

    /// A call with a form.
    pub fn form(path: impl Into<String>, fields: Vec<FormField>) -> Self {
        Self {
            path: path.into(),
            body: CallBody::Form(fields),
        }
    }
}

/// The body of a call.
#[derive(Clone, Debug, PartialEq)]
pub enum CallBody {
    /// JSON text.
    Json(Bytes),
    /// The fields of a `multipart/form-data` body, in order.
    Form(Vec<FormField>),
}

/// A field of a form.
#[derive(Clone, Debug, PartialEq)]
pub struct FormField {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: FormValue,
}

/// The value of a form's field.
#[derive(Clone, Debug, PartialEq)]
pub enum FormValue {
    /// A text.
    Text(String),
    /// A file.
    File {
        /// Its name.
        file_name: String,
        /// Its MIME type.
        mime_type: String,
        /// Its bytes.
        data: Bytes,
    },
}

impl FormField {
    /// A text.
    pub fn text(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            value: FormValue::Text(text.into()),
        }
    }

    /// The form fields of a JSON value: one for a scalar, one for each element of a list (`name[]`),
    /// JSON text for an object, and none for null.
    pub fn of_value(name: &str, value: &Value) -> Vec<Self> {
        match value {
            Value::Null => Vec::new(),
            Value::String(text) => vec![Self::text(name, text)],
            Value::Array(items) => {
                let name = format!("{name}[]");
                let fields = items.iter().map(|item| match item {
                    Value::String(text) => Self::text(&name, text),
                    Value::Null
                    | Value::Bool(_)
                    | Value::Number(_)
                    | Value::Array(_)
                    | Value::Object(_) => Self::text(&name, item.to_string()),
                });
                fields.collect()
            }
            Value::Bool(_) | Value::Number(_) | Value::Object(_) => {
                vec![Self::text(name, value.to_string())]
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_json_value_becomes_the_fields_that_say_the_same() {
        let of = |value| FormField::of_value("n", &value);
        assert_eq!(of(json!("a")), [FormField::text("n", "a")]);
        assert_eq!(of(json!(2)), [FormField::text("n", "2")]);
        assert_eq!(of(json!(true)), [FormField::text("n", "true")]);
        assert_eq!(of(json!({"a": 1})), [FormField::text("n", "{\"a\":1}")]);
        assert_eq!(
            of(json!(["a", 1])),
            [FormField::text("n[]", "a"), FormField::text("n[]", "1")]
        );
        assert_eq!(of(json!(null)), []);
    }
}
