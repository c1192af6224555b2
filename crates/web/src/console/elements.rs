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

/// The thread as it was after an event, and a fork there.
pub(super) fn travel(thread_key: &str, seq: u64, may_write: bool) -> Markup {
    html! {
        div class="buttons" {
            a class="button" href=(at_path(thread_key, seq)) { "The thread after event " (seq) }
            @if may_write {
                form method="post" action="/ui/fork" {
                    input type="hidden" name="thread" value=(thread_key);
                    input type="hidden" name="at" value=(seq);
                    button type="submit" { "Fork after event " (seq) }
                }
            }
            a class="quiet" href=(event_path(thread_key, seq)) { "In the log" }
        }
    }
}
