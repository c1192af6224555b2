//! The frame of the console's pages: its sections, and those of a thread.

use crate::json;
use crate::link::{chat_path, path_segment};
use crate::shell::Shell;
use maud::{Markup, html};

/// The section that a page of the console belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConsoleSection<'a> {
    /// The list of threads.
    Threads,
    /// The agents.
    Agents,
    /// The state of the server.
    Health,
    /// A thread.
    Thread {
        /// Its key.
        key: &'a str,
        /// Its title.
        title: Option<&'a str>,
        /// The part of it that the page shows.
        section: ThreadSection,
    },
}

/// A part of a thread in the console. Each has a page of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadSection {
    /// Its runs, in order.
    Timeline,
    /// Its log.
    Events,
    /// Its forks and sub-agents.
    Branches,
    /// Its document.
    Document,
    /// The actors that take part, and their requests.
    Requests,
    /// How to reach it through each protocol.
    Connect,
}

impl ThreadSection {
    /// All sections, in order.
    const ALL: [Self; 6] = [
        Self::Timeline,
        Self::Events,
        Self::Branches,
        Self::Document,
        Self::Requests,
        Self::Connect,
    ];

    fn label(self) -> &'static str {
        match self {
            Self::Timeline => "Timeline",
            Self::Events => "Events",
            Self::Branches => "Branches",
            Self::Document => "Document",
            Self::Requests => "Requests",
            Self::Connect => "Connect",
        }
    }

    /// The path of the page of this section.
    pub(crate) fn path(self, key: &str) -> String {
        let thread = format!("/console/t/{}", path_segment(key));
        match self {
            Self::Timeline => thread,
            Self::Events => thread + "/events",
            Self::Branches => thread + "/branches",
            Self::Document => thread + "/document",
            Self::Requests => thread + "/requests",
            Self::Connect => thread + "/connect",
        }
    }
}

/// The frame of a page of the console.
#[derive(Clone, Copy, Debug)]
pub struct ConsoleFrame<'a> {
    /// The frame of every page.
    pub shell: Shell<'a>,
    /// The section that the page belongs to.
    pub section: ConsoleSection<'a>,
    /// The route of the native API with the same data.
    pub api_path: Option<&'a str>,
}

impl ConsoleFrame<'_> {
    /// The page around its content.
    pub(crate) fn html(&self, content: &Markup) -> Markup {
        self.shell.html(&html! {
            header class="top console" {
                (self.title())
                span class="grow" {}
                @if let Some(path) = self.api_path { (self.shell.menu.json_link(path)) }
            }
            main id="content" class="console" tabindex="-1" {
                (self.sections())
                (content)
            }
        })
    }

    fn title(&self) -> Markup {
        match self.section {
            ConsoleSection::Thread { key, title, .. } => html! {
                h1 dir="auto" { (json::visible(title.unwrap_or(key))) }
                a class="quiet" href=(chat_path(key)) { "Open the chat" }
            },
            ConsoleSection::Threads | ConsoleSection::Agents | ConsoleSection::Health => {
                html! { h1 { "Console" } }
            }
        }
    }

    fn sections(&self) -> Markup {
        let link = |path: &str, label: &str, is_current: bool| {
            html! {
                li { a href=(path) aria-current=[is_current.then_some("page")] { (label) } }
            }
        };
        html! {
            nav class="tabs" aria-label="Console" {
                ul {
                    @if let ConsoleSection::Thread { key, section, .. } = self.section {
                        (link("/console", "All threads", false))
                        @for each in ThreadSection::ALL { (link(&each.path(key), each.label(), each == section)) }
                    } @else {
                        (link("/console", "Threads", self.section == ConsoleSection::Threads))
                        (link("/console/agents", "Agents", self.section == ConsoleSection::Agents))
                        @if self.shell.menu.has_health {
                            (link("/console/health", "Health", self.section == ConsoleSection::Health))
                        }
                    }
                }
            }
        }
    }
}
