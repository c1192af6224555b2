//! The page of the inbox.

use super::entry::InboxEntry;
use super::filter::InboxFilter;
use super::opened::OpenedEntry;
use crate::elements::paging;
use crate::ids;
use crate::patch::Patch;
use crate::shell::Shell;
use maud::{Markup, html};

/// The keys of the page, and what each does.
const KEYS: [(&str, &str); 7] = [
    ("j, ↓", "next entry"),
    ("k, ↑", "previous entry"),
    ("o", "open or close the entry"),
    ("a", "go to the step that allows or answers"),
    ("e", "go to the step that edits the arguments"),
    ("d", "go to the step that denies or declines"),
    ("?", "show this list"),
];

/// The inbox.
#[derive(Debug)]
pub struct InboxPage<'a> {
    /// The frame of the page.
    pub shell: Shell<'a>,
    /// The entries.
    pub entries: &'a [InboxEntry],
    /// The filter that they pass.
    pub filter: &'a InboxFilter,
    /// The agents to choose from.
    pub agents: &'a [String],
    /// The opened entry.
    pub opened: Option<&'a OpenedEntry>,
    /// Whether this is not the beginning of the list.
    pub is_later: bool,
    /// The cursor of the next page.
    pub next: Option<&'a str>,
}

impl InboxPage<'_> {
    /// The page as HTML.
    pub fn html(&self) -> Markup {
        let n = self.entries.len();
        // A later page does not change by itself: new entries belong to the end of the list.
        let is_live = !self.is_later && self.next.is_none();
        self.shell.html(&html! {
            header class="top" { h1 { "Inbox" } span class="grow" {} (self.shell.menu.json_link(&self.api_path())) }
            main id="content" class="console inbox" tabindex="-1" {
                (self.filter.form(self.agents))
                (state(n, self.filter, self.is_later))
                ol id="inbox" class="entries" data-inbox[is_live] {
                    @for entry in self.entries {
                        (entry.html(self.filter, self.opened.filter(|opened| opened.id == entry.id)))
                    }
                    li id=(ids::INBOX_END) hidden {}
                }
                (paging(&html! {
                    @if self.is_later { a class="button" href=(self.filter.path()) { "First page" } }
                    @if let Some(next) = self.next { a class="button" href=(self.filter.path_with(&[("cursor", next)])) rel="next" { "Next page" } }
                }))
                (keys())
            }
        })
    }

    /// The native route with the same data, without the age: that is an instant there.
    fn api_path(&self) -> String {
        let filter = InboxFilter {
            age: None,
            ..self.filter.clone()
        };
        filter.path().replacen("/inbox", "/api/v1/waiting", 1)
    }
}

/// How much waits, or what belongs here.
fn state(n: usize, filter: &InboxFilter, is_later: bool) -> Markup {
    html! {
        div id=(ids::INBOX_STATE) class="inbox-state" {
            @if n > 0 {
                p class="quiet" { @if n == 1 { "One entry." } @else { (n) " entries, the thread that has waited longest first." } }
            } @else if is_later {
                p { "No more entries." }
            } @else if filter.is_set() {
                p dir="auto" { "No entry matches the filter: " (filter.words()) "." }
                p { a href="/inbox" { "Show all entries" } }
            } @else {
                p { "No entries. Calls that need your approval and requests of agents appear here." }
                p { a href="/chat" { "Start a chat" } }
            }
        }
    }
}

/// Updates how much waits on an open page.
pub fn inbox_state(n: usize, filter: &InboxFilter) -> Patch {
    Patch::Put {
        id: ids::INBOX_STATE.to_owned(),
        html: state(n, filter, false).into_string(),
    }
}

/// The list of keys, for pages with a script.
fn keys() -> Markup {
    html! {
        div id="keys-bar" class="keys" hidden {
            label { input type="checkbox" id="single-keys" checked; " Single keys" }
            button type="button" id="show-keys" { "Show the keys" }
        }
        dialog id="keys" aria-labelledby="keys-title" {
            form method="dialog" {
                h2 id="keys-title" { "Keys" }
                dl class="facts" {
                    @for (key, action) in KEYS { div { dt { kbd { (key) } } dd { (action) } } }
                }
                p class="quiet" { "Keys never send an answer. They move to the step." }
                div class="buttons" { button value="close" { "Close" } }
            }
        }
    }
}
