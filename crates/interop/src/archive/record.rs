//! One record with its original text.

use std::ops::Range;
use std::sync::Arc;
use thread::{DecodeError, Json, Limits};

/// A JSON value as its source spelled it, white space and escapes included.
///
/// Records of one source share its text, so keeping them costs a reference each.
#[derive(Clone)]
pub struct SourceText {
    source: Arc<String>,
    span: Range<usize>,
}

impl SourceText {
    /// A record from text, if it is one JSON value within the limits.
    pub fn parse(text: &str, limits: &Limits) -> Result<Self, DecodeError> {
        let mut scanner = thread::json::Scanner::new(text, limits)?;
        let span = scanner.skip()?;
        scanner.finish()?;
        Ok(Self::checked(&Arc::new(text.to_owned()), span))
    }

    /// The part of a source in which a scanner found a value.
    pub(crate) fn checked(source: &Arc<String>, span: Range<usize>) -> Self {
        Self {
            source: Arc::clone(source),
            span,
        }
    }

    /// The text, which is one JSON value.
    #[must_use]
    pub fn text(&self) -> &str {
        self.source.get(self.span.clone()).unwrap_or("null")
    }

    /// The parsed value. The cost is linear in the text, so store the value if you need it twice.
    #[must_use]
    pub fn json(&self) -> Json {
        let limits = Limits {
            max_depth: Limits::DEEPEST,
            max_bytes: usize::MAX,
            max_nodes: usize::MAX,
        };
        let parsed = Json::parse_with(self.text(), &limits);
        debug_assert!(parsed.is_ok(), "a record was checked when it was made");
        parsed.unwrap_or_default()
    }

    /// Writes records as an array.
    pub(crate) fn write_list<'a>(records: impl IntoIterator<Item = &'a Self>, text: &mut String) {
        text.push('[');
        for (place, record) in records.into_iter().enumerate() {
            if place > 0 {
                text.push(',');
            }
            text.push_str(record.text());
        }
        text.push(']');
    }
}

impl From<&Json> for SourceText {
    fn from(json: &Json) -> Self {
        let text = json.to_text();
        let span = 0..text.len();
        Self {
            source: Arc::new(text),
            span,
        }
    }
}

/// Two records are equal when they are spelled alike.
impl PartialEq for SourceText {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}

impl Eq for SourceText {}

impl std::fmt::Debug for SourceText {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.text())
    }
}
