//! The status of a thread as a badge.

use maud::{Markup, html};
use timeline::ThreadStatus;

/// The status of a thread in a word, with a colour.
pub(crate) fn thread_badge(status: ThreadStatus) -> Markup {
    let (state, word) = match status {
        ThreadStatus::Open => ("open", "open"),
        ThreadStatus::Streaming => ("running", "working"),
        ThreadStatus::Closed => ("closed", "closed"),
        ThreadStatus::Failed => ("error", "failed"),
    };
    html! { span class="badge" data-state=(state) { (word) } }
}
