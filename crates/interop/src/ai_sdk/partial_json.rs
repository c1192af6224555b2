//! Incomplete JSON, as the AI SDK's client reads it. Open strings, lists and objects are closed; an
//! incomplete rest is dropped.

mod read;
mod scan;
mod surrogates;

pub use read::PartialJsonError;
pub(super) use read::read;
pub(super) use surrogates::{ESCAPE, lone_surrogates};

use super::chunk::Major;
use thread::Json;

/// How a text was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartialState {
    /// There was no text.
    Undefined,
    /// The text is whole.
    Successful,
    /// The text was cut off, and could be closed.
    Repaired,
    /// The text is not JSON, nor the beginning of it that has a value.
    Failed,
}

/// Reads the beginning of a JSON text as clients of `ai` 7 do. Linear in its length.
///
/// ```
/// use loomline_interop::ai_sdk::{PartialState, parse_partial_json};
///
/// let (value, state) = parse_partial_json(r#"{"city":"Łó"#);
/// assert_eq!(value.map(|value| value.to_text()).as_deref(), Some(r#"{"city":"Łó"}"#));
/// assert_eq!(state, PartialState::Repaired);
/// ```
#[must_use]
pub fn parse_partial_json(text: &str) -> (Option<Json>, PartialState) {
    parse_as(text, Major::NEWEST)
}

fn parse_as(text: &str, major: Major) -> (Option<Json>, PartialState) {
    if let Ok(value) = read(text) {
        return (Some(value), PartialState::Successful);
    }
    match read(&scan::repaired(text, major)) {
        Ok(value) => (Some(value), PartialState::Repaired),
        Err(_) => (None, PartialState::Failed),
    }
}

/// A JSON text that arrives in parts. It is decoded only on request, so that pushing all parts takes
/// linear time.
#[derive(Clone, Debug)]
pub struct PartialJson {
    major: Major,
    text: Option<String>,
}

impl PartialJson {
    /// No text, to be read as clients of `major` do.
    #[must_use]
    pub fn new(major: Major) -> Self {
        Self { major, text: None }
    }

    /// Appends text.
    pub fn push(&mut self, piece: &str) {
        self.text.get_or_insert_default().push_str(piece);
    }

    /// The text so far.
    #[must_use]
    pub fn text(&self) -> &str {
        self.text.as_deref().unwrap_or_default()
    }

    /// The value so far. Linear in the length of the text.
    #[must_use]
    pub fn value(&self) -> (Option<Json>, PartialState) {
        match &self.text {
            Some(text) => parse_as(text, self.major),
            None => (None, PartialState::Undefined),
        }
    }
}
