//! Elements that several pages have.

use crate::json;
use crate::link::{at_path, event_path};
use maud::{Markup, html};

/// Maximum size of a text of the details, in bytes.
const SHORT: usize = 4 << 10;

/// The beginning of a text, or of JSON with indentation.
pub(crate) fn short_text(text: &str) -> String {
    json::pretty_within(text, SHORT)
}

/// A fact with its name.
pub(crate) fn fact(name: &str, value: &Markup) -> Markup {
    html! { div { dt { (name) } dd { (value) } } }
}

/// A state as a badge: a word for the style sheet and one for people.
pub(crate) fn badge((state, words): (&str, &str)) -> Markup {
    html! { span class="badge" data-state=(state) { (words) } }
}

/// The links to other pages of a list; nothing if there are none.
pub(crate) fn paging(links: &Markup) -> Markup {
    html! { @if !links.0.is_empty() { nav class="paging" aria-label="Pages" { (links) } } }
}

/// The links to the thread as it was after an event, and to the event in the log.
pub(crate) fn travel(thread_key: &str, seq: u64) -> Markup {
    html! {
        a class="button" href=(at_path(thread_key, seq)) { "The thread after event " (seq) }
        a class="button" href=(event_path(thread_key, seq)) { "Event " (seq) " in the log" }
    }
}
