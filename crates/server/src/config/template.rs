//! The message for a sub-agent: a template that is filled with the call's arguments.

use serde_json::{Map, Value};
use std::fmt::Write as _;

/// A text with placeholders `{name}` for arguments; `{{` and `}}` are braces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptTemplate(Vec<TemplatePart>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum TemplatePart {
    Text(String),
    Argument(String),
}

/// Why a text is not a valid template.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// A brace has no partner.
    #[error("a brace is not closed or not opened; write {{{{ and }}}} for braces that are text")]
    Brace,
    /// A placeholder names no property.
    #[error("{{{name}}} is no property of parameters, expected one of: {known}")]
    Unknown {
        /// The unknown name.
        name: String,
        /// The known names.
        known: String,
    },
    /// The text is empty.
    #[error("the prompt is empty, expected the task, such as \"Find: {{query}}\"")]
    Empty,
}

impl PromptTemplate {
    /// Parses a template whose placeholders must be properties of this schema.
    pub fn parse(text: &str, schema: &Value) -> Result<Self, TemplateError> {
        let none = Map::new();
        let properties = schema.get("properties").and_then(Value::as_object);
        let properties = properties.unwrap_or(&none);
        let mut pieces = Vec::new();
        let mut literal = String::new();
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            match c {
                '{' | '}' if chars.next_if_eq(&c).is_some() => literal.push(c),
                '}' => return Err(TemplateError::Brace),
                '{' => {
                    let mut name = String::new();
                    loop {
                        match chars.next() {
                            None | Some('{') => return Err(TemplateError::Brace),
                            Some('}') => break,
                            Some(c) => name.push(c),
                        }
                    }
                    if !properties.contains_key(&name) {
                        let known: Vec<&str> = properties.keys().map(String::as_str).collect();
                        let known = known.join(", ");
                        return Err(TemplateError::Unknown { name, known });
                    }
                    if !literal.is_empty() {
                        pieces.push(TemplatePart::Text(std::mem::take(&mut literal)));
                    }
                    pieces.push(TemplatePart::Argument(name));
                }
                c => literal.push(c),
            }
        }
        if !literal.is_empty() {
            pieces.push(TemplatePart::Text(literal));
        }
        if pieces.is_empty() {
            return Err(TemplateError::Empty);
        }
        Ok(Self(pieces))
    }

    /// The text with these arguments inserted: strings unchanged, other values as JSON, and nothing for
    /// absent ones. Arguments are not parsed as templates.
    pub fn render(&self, arguments: &Value) -> String {
        let mut text = String::new();
        for piece in &self.0 {
            match piece {
                TemplatePart::Text(literal) => text.push_str(literal),
                TemplatePart::Argument(name) => match arguments.get(name) {
                    None | Some(Value::Null) => {}
                    Some(Value::String(value)) => text.push_str(value),
                    Some(value) => {
                        // Writing to a string can't fail.
                        let _ = write!(text, "{value}");
                    }
                },
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn parse(text: &str) -> Result<PromptTemplate, TemplateError> {
        PromptTemplate::parse(text, &json!({"properties": {"query": {}, "n": {}}}))
    }

    #[test]
    fn arguments_stand_where_their_names_are() {
        let template = parse("Find {n}: {query} in {{braces}}.").unwrap();
        let text = template.render(&json!({"query": "{n} \"x\"", "n": [1, "a"]}));
        assert_eq!(text, "Find [1,\"a\"]: {n} \"x\" in {braces}.");
        assert_eq!(template.render(&json!({})), "Find :  in {braces}.");
        assert_eq!(
            parse("{query}").unwrap().render(&json!({"query": null})),
            ""
        );
    }

    #[test]
    fn a_text_that_is_no_template_is_refused() {
        assert_eq!(
            parse("{other}").unwrap_err().to_string(),
            "{other} is no property of parameters, expected one of: query, n"
        );
        for text in ["{query", "query}", "{que{ry}", "{}}"] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert_eq!(
            parse("").unwrap_err().to_string(),
            "the prompt is empty, expected the task, such as \"Find: {query}\""
        );
        assert_eq!(
            parse("}").unwrap_err().to_string(),
            "a brace is not closed or not opened; write {{ and }} for braces that are text"
        );
    }
}
