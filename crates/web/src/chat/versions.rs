//! The versions of a message or an answer.

use crate::json;
use crate::link::chat_path;
use crate::shell::Shell;
use crate::time;
use jiff::Timestamp;
use maud::{Markup, html};

/// A version of a message or an answer.
#[derive(Clone, Debug)]
pub struct VersionEntry {
    /// When it was created.
    pub created_at: Timestamp,
    /// The agent, if it is an answer.
    pub agent: Option<String>,
    /// The text, if it is a message.
    pub text: Option<String>,
    /// The last event at which the conversation had it; `None` for the current version.
    pub last_seq: Option<u64>,
}

/// The page of the versions.
#[derive(Debug)]
pub struct VersionsPage<'a> {
    /// The frame of the page.
    pub shell: Shell<'a>,
    /// The key of the thread.
    pub thread_key: &'a str,
    /// The versions, oldest first.
    pub versions: &'a [VersionEntry],
}

impl VersionsPage<'_> {
    /// The page as HTML.
    pub fn html(&self) -> Markup {
        let chat = chat_path(self.thread_key);
        self.shell.html(&html! {
            header class="top" { h1 { "Versions" } span class="grow" {} a href=(chat) { "Back to the thread" } }
            main id="log" class="log" tabindex="0" {
                @if self.versions.len() < 2 { p class="quiet" { "There is one version." } }
                ol class="versions" {
                    @for version in self.versions { li { (self.version(version, &chat)) } }
                }
            }
        })
    }

    fn version(&self, version: &VersionEntry, chat: &str) -> Markup {
        html! {
            article class="card" {
                h2 {
                    @match &version.agent {
                        Some(agent) => { "Answer of " (json::visible(agent)) },
                        None => { "Message" },
                    }
                }
                span class="quiet" { (time::instant(version.created_at)) }
                @if let Some(text) = &version.text { p class="plain" dir="auto" { (json::visible(text)) } }
                @match version.last_seq {
                    None => { p { b { "Current version" } " · " a href=(chat) { "Open" } } },
                    Some(seq) => { div class="buttons" {
                        a class="button" href={ (chat) "?at=" (seq) } { "Open the thread as it was" }
                        form method="post" action="/ui/fork" {
                            input type="hidden" name="thread" value=(self.thread_key);
                            input type="hidden" name="at" value=(seq);
                            button type="submit" { "Continue from this one (fork)" }
                        }
                    } },
                }
            }
        }
    }
}
