//! The arguments of a call in pieces, as Vertex AI sends them with `streamFunctionCallArguments`. Each
//! piece is a value with the JSON path (RFC 9535) of its place; the pieces of one text are joined.

use serde_json::{Map, Value};

/// How deep a path may lead.
const DEEPEST: usize = 100;
/// How many elements of lists the paths of one call may pass over.
const MOST_SKIPPED: usize = 1_000;
/// How much of a path an error shows, in characters.
const SHOWN: usize = 200;

/// Why the pieces make no arguments.
#[derive(Debug, thiserror::Error)]
pub(super) enum PartialArgsError {
    #[error("'{0}' is no JSON path to an argument")]
    Path(String),
    #[error("the path '{0}' leads deeper than {DEEPEST} levels")]
    TooDeep(String),
    #[error("the paths up to '{0}' pass over more than {MOST_SKIPPED} elements")]
    Skipping(String),
    #[error("the value at '{0}' is not of the type that its field names")]
    Value(String),
    #[error("the value at '{0}' contradicts what came before it")]
    Contradiction(String),
}

/// The arguments so far.
#[derive(Debug)]
pub(super) struct PartialArgs {
    whole: Value,
    n_skipped: usize,
}

impl Default for PartialArgs {
    fn default() -> Self {
        Self {
            whole: Value::Object(Map::new()),
            n_skipped: 0,
        }
    }
}

/// One step of a path.
#[derive(Debug, PartialEq)]
enum Segment {
    Name(String),
    Index(usize),
}

impl PartialArgs {
    /// The arguments as JSON.
    pub(super) fn text(&self) -> String {
        self.whole.to_string()
    }

    /// Adds arguments that did not come in pieces.
    pub(super) fn take_whole(&mut self, arguments: &Value) {
        match (&mut self.whole, arguments) {
            (Value::Object(fields), Value::Object(more)) => fields.extend(more.clone()),
            (whole, arguments) => *whole = arguments.clone(),
        }
    }

    /// Adds a piece.
    pub(super) fn take(&mut self, piece: &Value) -> Result<(), PartialArgsError> {
        let path = piece.get("jsonPath").and_then(Value::as_str);
        let path = path.unwrap_or_default();
        let shown = || path.chars().take(SHOWN).collect::<String>();
        let segments = segments(path).ok_or_else(|| PartialArgsError::Path(shown()))?;
        if segments.len() > DEEPEST {
            return Err(PartialArgsError::TooDeep(shown()));
        }
        // A piece without a value announces that there will be one.
        let Some(value) = value(piece, &shown)? else {
            return Ok(());
        };
        match (self.place(&segments, &shown)?, value) {
            (Value::String(text), Value::String(more)) => text.push_str(&more),
            (place @ Value::Null, value) => *place = value,
            (place, value) if *place == value => {}
            (_, _) => return Err(PartialArgsError::Contradiction(shown())),
        }
        Ok(())
    }

    /// The value at a path; created as null if it does not exist.
    fn place(
        &mut self,
        path: &[Segment],
        shown: &impl Fn() -> String,
    ) -> Result<&mut Value, PartialArgsError> {
        let contradiction = || PartialArgsError::Contradiction(shown());
        let mut place = &mut self.whole;
        for segment in path {
            place = match segment {
                Segment::Name(name) => {
                    if place.is_null() {
                        *place = Value::Object(Map::new());
                    }
                    let fields = place.as_object_mut().ok_or_else(contradiction)?;
                    fields.entry(name).or_insert(Value::Null)
                }
                Segment::Index(at) => {
                    if place.is_null() {
                        *place = Value::Array(Vec::new());
                    }
                    let list = place.as_array_mut().ok_or_else(contradiction)?;
                    let skipped = at.saturating_sub(list.len());
                    self.n_skipped = self.n_skipped.saturating_add(skipped);
                    if self.n_skipped > MOST_SKIPPED {
                        return Err(PartialArgsError::Skipping(shown()));
                    }
                    if list.len() <= *at {
                        list.resize(at.saturating_add(1), Value::Null);
                    }
                    list.get_mut(*at).ok_or_else(contradiction)?
                }
            };
        }
        Ok(place)
    }
}

/// The value of a piece, if it has one.
fn value(piece: &Value, shown: &impl Fn() -> String) -> Result<Option<Value>, PartialArgsError> {
    let fields = [
        ("stringValue", Value::is_string as fn(&Value) -> bool),
        ("numberValue", Value::is_number),
        ("boolValue", Value::is_boolean),
    ];
    for (field, fits) in fields {
        if let Some(value) = piece.get(field) {
            if !fits(value) {
                return Err(PartialArgsError::Value(shown()));
            }
            return Ok(Some(value.clone()));
        }
    }
    Ok(piece.get("nullValue").map(|_| Value::Null))
}

/// The steps of a path such as `$.lines[0]['a b']`; `None` if it is invalid or empty.
fn segments(path: &str) -> Option<Vec<Segment>> {
    let mut rest = path.strip_prefix('$')?;
    let mut segments = Vec::new();
    while !rest.is_empty() {
        let (segment, after) = match rest.strip_prefix('.') {
            Some(name) => {
                let end = name.find(['.', '[']).unwrap_or(name.len());
                let (name, after) = name.split_at_checked(end)?;
                (Segment::Name(name.to_owned()), after)
            }
            None => bracketed(rest.strip_prefix('[')?)?,
        };
        if rest.starts_with('.') && segment == Segment::Name(String::new()) {
            return None;
        }
        segments.push(segment);
        rest = after;
    }
    (!segments.is_empty()).then_some(segments)
}

/// Reads a step in brackets after its opening bracket; returns the step and the rest of the text.
fn bracketed(text: &str) -> Option<(Segment, &str)> {
    let Some(quote) = text.chars().next().filter(|it| matches!(it, '\'' | '"')) else {
        let (index, after) = text.split_once(']')?;
        return Some((Segment::Index(index.parse().ok()?), after));
    };
    // The escapes are those of JSON, which has no single quotes.
    let mut json = String::from("\"");
    let mut chars = text.char_indices().skip(1);
    while let Some((at, char)) = chars.next() {
        match char {
            '\\' => match chars.next()?.1 {
                '\'' => json.push('\''),
                escaped => json.extend(['\\', escaped]),
            },
            char if char == quote => {
                json.push('"');
                let after = text.get(at..)?.strip_prefix(quote)?.strip_prefix(']')?;
                return Some((Segment::Name(serde_json::from_str(&json).ok()?), after));
            }
            '"' => json.push_str("\\\""),
            char => json.push(char),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn put_together(pieces: &[Value]) -> Result<Value, PartialArgsError> {
        let mut arguments = PartialArgs::default();
        for piece in pieces {
            arguments.take(piece)?;
        }
        Ok(serde_json::from_str(&arguments.text()).unwrap())
    }

    #[test]
    fn pieces_stand_where_their_paths_lead_and_texts_are_joined() {
        let pieces = [
            json!({"jsonPath": "$.a.list[0].x", "stringValue": "Bos", "willContinue": true}),
            json!({"jsonPath": "$.a.list[0].x", "stringValue": "ton"}),
            json!({"jsonPath": "$.a.list[2]", "numberValue": 0.5}),
            json!({"jsonPath": "$['it\\'s \"é\"'][\"b.c\"]", "boolValue": true}),
            json!({"jsonPath": "$.none", "nullValue": "NULL_VALUE"}),
            json!({"jsonPath": "$.later", "willContinue": true}),
        ];
        assert_eq!(
            put_together(&pieces).unwrap(),
            json!({
                "a": {"list": [{"x": "Boston"}, null, 0.5]},
                "it's \"é\"": {"b.c": true},
                "none": null,
            })
        );
    }

    #[test]
    fn a_path_that_leads_nowhere_is_an_error() {
        for path in [
            "", "$", "a", "$a", "$.", "$..a", "$.a[", "$.a[-1]", "$['a]", "$['a'", "$[*]",
        ] {
            let error = put_together(&[json!({"jsonPath": path, "stringValue": "x"})]);
            assert!(matches!(error, Err(PartialArgsError::Path(_))), "{path}");
        }
        let number = put_together(&[json!({"jsonPath": "$.a", "numberValue": "NaN"})]);
        assert!(matches!(number, Err(PartialArgsError::Value(_))));
    }

    #[test]
    fn pieces_that_contradict_each_other_are_an_error() {
        let text = json!({"jsonPath": "$.a", "stringValue": "x"});
        for other in [
            json!({"jsonPath": "$.a", "numberValue": 1}),
            json!({"jsonPath": "$.a.b", "numberValue": 1}),
            json!({"jsonPath": "$.a[0]", "numberValue": 1}),
        ] {
            let error = put_together(&[text.clone(), other]);
            assert!(matches!(error, Err(PartialArgsError::Contradiction(_))));
        }
    }

    #[test]
    fn paths_cost_no_more_than_their_length() {
        let far = json!({"jsonPath": "$.a[4000000000]", "numberValue": 1});
        let error = put_together(&[far]);
        assert!(matches!(error, Err(PartialArgsError::Skipping(_))));
        let steps: Vec<Value> = (1..60)
            .map(|n| json!({"jsonPath": format!("$.a[{}]", n * 20), "numberValue": 1}))
            .collect();
        let error = put_together(&steps);
        assert!(matches!(error, Err(PartialArgsError::Skipping(_))));
        let deep = format!("${}", ".a".repeat(100_000));
        let error = put_together(&[json!({"jsonPath": deep, "numberValue": 1})]);
        assert!(matches!(error, Err(PartialArgsError::TooDeep(_))));
    }
}
