//! The opened entry: the messages that led to it, and its form.

use crate::json;
use maud::{Markup, html};

/// The opened entry.
#[derive(Debug)]
pub struct OpenedEntry {
    /// The id of the entry.
    pub id: String,
    /// The last messages before it.
    pub led: Vec<LeadingMessage>,
    /// The form of the answer, as in the chat.
    pub form: Markup,
}

/// A message that led to an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeadingMessage {
    /// The name of the author; `None` for the person.
    pub agent: Option<String>,
    /// The beginning of the text.
    pub text: String,
}

impl OpenedEntry {
    pub(super) fn html(&self) -> Markup {
        html! {
            div class="opened" {
                @if !self.led.is_empty() {
                    h3 { "Previous messages" }
                    @for message in &self.led {
                        blockquote class="theirs" {
                            p class="label" { (message.agent.as_deref().map_or("You".into(), json::visible)) }
                            p class="plain" dir="auto" { (json::visible(&message.text)) }
                        }
                    }
                }
                (self.form)
            }
        }
    }
}
