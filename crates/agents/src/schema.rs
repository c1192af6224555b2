//! JSON Schemas of tools: checked against limits, compiled once, and used within a budget.

mod apart;
mod metered;

use jsonschema::{PatternOptions, ValidationError, Validator};
use metered::{Budget, Metered, Node, within};
use serde_json::Value;
use std::fmt::Write as _;
use std::sync::Arc;

/// Maximum number of mismatches that are reported at once.
const MAX_MISMATCHES: usize = 8;
/// Maximum size of a schema that is compiled in place, in JSON values.
const SMALL_VALUES: usize = 1_000;
/// Maximum depth of a schema that is compiled in place, in subschemas.
const SMALL_DEPTH: usize = 16;
/// Maximum number of steps back of a regular expression that needs them.
const BACKTRACKS: usize = 100_000;
/// Maximum size of a compiled regular expression, in bytes.
const PATTERN_BYTES: usize = 1 << 20;

const NO_PLACE: &str = "\n- they are too large or too complex to say where";
const TOO_COSTLY: &str = "\n- they are too large or too complex to be compared with it";

/// Why a schema can't be used.
#[derive(Debug, thiserror::Error)]
pub enum SchemaError {
    /// It exceeds a limit.
    #[error(transparent)]
    Refused(#[from] upp::schema::RefusedSchema),
    /// It is no JSON Schema, or it refers to a schema outside of itself.
    #[error(transparent)]
    Invalid(#[from] Box<ValidationError<'static>>),
    /// It could not be compiled within the time.
    #[error("the JSON Schema is too complex to be compiled in time")]
    TooCostly,
}

/// A compiled schema.
#[derive(Clone)]
pub(crate) struct Schema {
    validator: Arc<Validator<Metered>>,
}

impl Schema {
    /// Checks and compiles a schema. A large one is compiled on a thread of its own, while the
    /// caller's worker is free for other tasks.
    pub(crate) fn compile(schema: &Value) -> Result<Self, SchemaError> {
        let cost = upp::schema::check(schema)?;
        let validator = if cost.values <= SMALL_VALUES && cost.depth <= SMALL_DEPTH {
            build(schema)
        } else {
            let schema = schema.clone();
            apart::run(move || build(&schema)).ok_or(SchemaError::TooCostly)?
        };
        let validator = Arc::new(validator.map_err(Box::new)?);
        Ok(Self { validator })
    }

    /// The mismatches of a value, one for each line; none if it matches. A value that can't be
    /// compared within the budget counts as a mismatch.
    pub(crate) fn mismatches(&self, value: &Value) -> Option<String> {
        match within(Budget::small(), || self.validator.is_valid(Node(value))) {
            Some(true) => None,
            Some(false) => {
                let all = within(Budget::locations(), || self.all(value));
                Some(all.unwrap_or_else(|| NO_PLACE.to_owned()))
            }
            None => self.apart(value),
        }
    }

    fn all(&self, value: &Value) -> String {
        let mut text = String::new();
        let errors = self.validator.iter_errors(Node(value));
        for error in errors.take(MAX_MISMATCHES) {
            write_line(&mut text, &error);
        }
        text
    }

    /// Compares on a thread of its own, without finding the places: a list of them could be long.
    fn apart(&self, value: &Value) -> Option<String> {
        let (validator, value) = (Arc::clone(&self.validator), value.clone());
        let compared =
            apart::run(move || within(Budget::large(), || validator.is_valid(Node(&value))));
        match compared.flatten() {
            Some(true) => None,
            Some(false) => Some(NO_PLACE.to_owned()),
            None => Some(TOO_COSTLY.to_owned()),
        }
    }
}

/// Checks a schema that is passed on and never compared with a value.
pub(crate) fn check(schema: &Value) -> Result<(), SchemaError> {
    upp::schema::check(schema)?;
    let valid = |schema: &Value, budget| {
        within(budget, || {
            let checked = jsonschema::meta::validate_for::<Metered>(Node(schema));
            checked.map_err(ValidationError::to_owned)
        })
    };
    let checked = valid(schema, Budget::small()).or_else(|| {
        let schema = schema.clone();
        apart::run(move || valid(&schema, Budget::large())).flatten()
    });
    let checked = checked.ok_or(SchemaError::TooCostly)?;
    Ok(checked.map_err(Box::new)?)
}

/// Compiles a schema. References to other documents are refused, never fetched.
fn build(schema: &Value) -> Result<Validator<Metered>, ValidationError<'static>> {
    let patterns = PatternOptions::fancy_regex()
        .backtrack_limit(BACKTRACKS)
        .size_limit(PATTERN_BYTES)
        .dfa_size_limit(PATTERN_BYTES);
    jsonschema::options_for::<Metered>()
        .offline()
        .with_pattern_options(patterns)
        .build(schema)
}

fn write_line(text: &mut String, error: &ValidationError<'_>) {
    let pointer = error.instance_path().as_str();
    let _ = write!(text, "\n- at \"{pointer}\": {}", error.masked());
}

#[cfg(test)]
mod tests;
