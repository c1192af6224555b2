//! Elements that several pages of the console have.

use crate::json;
use crate::link::{at_path, event_path};
use maud::{Markup, html};

/// Maximum size of a text of the details, in bytes.
const SHORT: usize = 4 << 10;

/// The beginning of a text, or of JSON with indentation.
pub(super) fn short_text(text: &str) -> String {
    json::pretty_within(text, SHORT)
}

/// A fact with its name.
pub(super) fn fact(name: &str, value: &Markup) -> Markup {
    html! { div { dt { (name) } dd { (value) } } }
}

/// The links to the thread as it was after an event, and to the event in the log.
pub(super) fn travel(thread_key: &str, seq: u64) -> Markup {
    html! {
        a class="button" href=(at_path(thread_key, seq)) { "The thread after event " (seq) }
        a class="button" href=(event_path(thread_key, seq)) { "Event " (seq) " in the log" }
    }
}
