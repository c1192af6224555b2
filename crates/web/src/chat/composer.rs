//! The form with which a person writes to the agents.

use crate::json;
use maud::{Markup, html};

/// An agent that a person can choose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentChoice {
    /// Its name.
    pub name: String,
    /// Whether it answers if the person chooses none.
    pub is_default: bool,
}

/// The data of the composer.
pub(crate) struct Composer<'a> {
    /// The key of the thread; none for a new one.
    pub(crate) thread_key: Option<&'a str>,
    pub(crate) agents: &'a [AgentChoice],
    /// The agent of the last run.
    pub(crate) agent: Option<&'a str>,
    /// Drawn into the form, so that a second click sends nothing.
    pub(crate) idempotency_key: &'a str,
    /// Why the person can't write, if so.
    pub(crate) closed: Option<&'a str>,
    /// Maximum size of all files of a message, in bytes.
    pub(crate) max_file_bytes: usize,
    /// Whether the field has the focus when the page opens. Within another site browsers refuse it.
    pub(crate) has_focus: bool,
}

impl Composer<'_> {
    pub(crate) fn html(&self) -> Markup {
        if let Some(reason) = self.closed {
            return html! { p class="composer closed" { (reason) } };
        }
        let chosen = self
            .agent
            .filter(|name| self.agents.iter().any(|agent| agent.name == *name));
        html! {
            form class="composer" id="composer" method="post" action="/ui/send" enctype="multipart/form-data" data-max-bytes=(self.max_file_bytes) {
                @if let Some(key) = self.thread_key { input type="hidden" name="thread" value=(key); }
                input type="hidden" name="idempotency_key" value=(self.idempotency_key);
                ul class="attached" id="attached" aria-label="Attached files" {}
                div class="row" {
                    label class="grow" { span class="hidden" { "Message" }
                        textarea id="message" name="text" rows="1" placeholder="Message" required autofocus[self.has_focus] dir="auto" {}
                    }
                    label class="button attach" title="Attach files" {
                        span { "Attach" }
                        input type="file" name="file" multiple id="files";
                    }
                    button class="primary" type="submit" { "Send" }
                }
                div class="row options" {
                    @if let [only] = self.agents { input type="hidden" name="agent" value=(only.name); }
                    @if self.agents.len() > 1 {
                        label { span class="quiet" { "Agent" }
                            select name="agent" {
                                @for agent in self.agents {
                                    @let is_chosen = chosen.map_or(agent.is_default, |name| name == agent.name);
                                    option value=(agent.name) selected[is_chosen] { (json::visible(&agent.name)) }
                                }
                            }
                        }
                    }
                    label class="policy" { span class="quiet" { "While an answer is written" }
                        select name="policy" {
                            option value="queue" { "wait for its end" }
                            option value="interrupt" { "stop it" }
                        }
                    }
                    span class="quiet keys" { "Enter sends · Shift+Enter: new line · Esc stops" }
                }
            }
        }
    }
}
