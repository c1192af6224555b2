//! Full text search in a thread (TP-17).
//!
//! [`searchable_text`] lists all searchable strings with their positions, so that a store can index
//! them. [`search`] finds a phrase in them, in time linear in the length of the thread.

mod passage;
mod phrase;

pub use passage::{Passage, Source, searchable_text};

use crate::document::Thread;
use phrase::Phrase;
use std::ops::Range;

/// Options for a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SearchOptions {
    /// Whether to search models' reasoning.
    pub thinking: bool,
    /// Whether a match must begin and end at word boundaries. Do not set it for scripts without
    /// spaces between words.
    pub whole_words: bool,
    /// Maximum number of characters of context on each side of a match.
    pub context_chars: usize,
}

impl Default for SearchOptions {
    /// Matches within words, no reasoning, 40 characters of context on each side.
    fn default() -> Self {
        Self {
            thinking: false,
            whole_words: false,
            context_chars: 40,
        }
    }
}

/// A match of a phrase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hit {
    /// The JSON Pointer of the string.
    pub pointer: String,
    /// The source of the string.
    pub source: Source,
    /// The bytes of the string that match.
    pub range: Range<usize>,
    /// The match with the text around it; `…` marks where the text is cut.
    pub excerpt: String,
}

/// Finds a word or a phrase, with the default options.
///
/// The search ignores letter case (Unicode lower case), and white space matches any other white
/// space. Matches do not overlap; they come in document order. An empty query finds nothing.
///
/// ```
/// use loomline_thread::{Thread, search::search};
///
/// let thread = Thread::decode(r#"{"title":"Weather in  TOKYO"}"#)?;
/// let hits = search(&thread, "in tokyo");
/// assert_eq!((hits[0].pointer.as_str(), hits[0].range.clone()), ("/title", 8..17));
/// # Ok::<(), loomline_thread::DecodeError>(())
/// ```
#[must_use]
pub fn search(thread: &Thread, query: &str) -> Vec<Hit> {
    search_with(thread, query, &SearchOptions::default())
}

/// Finds a word or a phrase; see [`search`].
#[must_use]
pub fn search_with(thread: &Thread, query: &str, options: &SearchOptions) -> Vec<Hit> {
    let Some(phrase) = Phrase::new(query) else {
        return Vec::new();
    };
    let mut hits = Vec::new();
    for passage in searchable_text(thread) {
        if passage.source == Source::Thinking && !options.thinking {
            continue;
        }
        phrase.find(&passage.text, options.whole_words, |range| {
            hits.push(Hit {
                pointer: passage.pointer.clone(),
                source: passage.source,
                excerpt: excerpt(&passage.text, &range, options.context_chars),
                range,
            });
        });
    }
    hits
}

fn excerpt(text: &str, range: &Range<usize>, context_chars: usize) -> String {
    let before = text.get(..range.start).unwrap_or_default();
    let after = text.get(range.end..).unwrap_or_default();
    let first = before.char_indices().rev().take(context_chars).last();
    let from = first.map_or(range.start, |(at, _)| at);
    let beyond = after.char_indices().nth(context_chars);
    let to = beyond.map_or(text.len(), |(at, _)| range.end + at);
    let shown = text.get(from..to).unwrap_or_default();
    let head = if from > 0 { "…" } else { "" };
    let tail = if to < text.len() { "…" } else { "" };
    format!("{head}{shown}{tail}")
}
