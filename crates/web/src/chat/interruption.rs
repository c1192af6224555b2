//! The reason of a run that ended early.

use crate::json;
use maud::{Markup, html};
use timeline::Interruption;

/// The reason in words.
pub(crate) fn interruption_words(interruption: &Interruption) -> &'static str {
    match interruption.reason.as_str() {
        Interruption::USER_CANCELLED => "Stopped. The text so far is kept.",
        Interruption::POISONED => {
            "Ended, because the server stopped several times during this step."
        }
        Interruption::ERROR => "Ended with an error.",
        "timeout" => "Stopped at the time limit.",
        _ => "Ended early.",
    }
}

/// The note below the message of the run.
pub(super) fn stopped(interruption: &Interruption) -> Markup {
    html! {
        p class="note stopped" {
            (interruption_words(interruption))
            @if let Some(detail) = &interruption.detail { " (" span dir="auto" { (json::visible(detail)) } ")" }
        }
    }
}
