//! Changes of a page that is open in a browser.

use serde::Serialize;

/// A change of an open page. Its `id` is the id of an element of the page. A browser may apply a patch
/// twice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "op", rename_all = "lowercase")]
pub enum Patch {
    /// Replaces the element, or does nothing if the page does not have it.
    Put {
        /// The element.
        id: String,
        /// The new element, as HTML.
        html: String,
    },
    /// Adds an element before this one. If the page has an element with its id, that is replaced instead.
    Before {
        /// The element that follows the new one.
        id: String,
        /// The new element, as HTML.
        html: String,
    },
    /// Adds an element as the last child of this one. If the page has another element with its id, that
    /// is removed.
    Append {
        /// The parent.
        id: String,
        /// The new element, as HTML.
        html: String,
    },
    /// Adds text at the end of the element.
    Text {
        /// The element.
        id: String,
        /// The text, not HTML.
        text: String,
    },
    /// Removes the element.
    Drop {
        /// The element.
        id: String,
    },
    /// Sets an attribute `data-NAME` of the element.
    Mark {
        /// The element.
        id: String,
        /// The name, without `data-`.
        name: &'static str,
        /// The value.
        value: String,
    },
    /// Shows a sentence in the status line, which screen readers read out.
    Status {
        /// The sentence.
        words: String,
    },
    /// The page loads again: more has changed than patches can bring up to date.
    Reload,
}

/// The patches as one JSON array: the data of an event of the stream.
pub fn write_patches(patches: &[Patch]) -> String {
    // A list of strings can always be written.
    serde_json::to_string(patches).unwrap_or_default()
}
