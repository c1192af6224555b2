//! The frame of every page: its head, the list of threads, the status line.

use crate::assets::Assets;
use crate::json;
use crate::link::path_segment;
use maud::{DOCTYPE, Markup, html};

/// A thread in the list at the side of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RailThread {
    /// Its key.
    pub key: String,
    /// Its title.
    pub title: Option<String>,
    /// Whether an agent is at work.
    pub is_running: bool,
    /// Whether it is a fork.
    pub is_fork: bool,
}

/// The frame of a page.
#[derive(Clone, Copy, Debug)]
pub struct Shell<'a> {
    /// The assets of the page.
    pub assets: &'a Assets,
    /// The name of the server, in titles.
    pub name: &'a str,
    /// The title of the page.
    pub title: &'a str,
    /// The last threads.
    pub threads: &'a [RailThread],
    /// The key of the thread that the page shows.
    pub current: Option<&'a str>,
}

impl Shell<'_> {
    pub(crate) fn html(&self, content: &Markup) -> Markup {
        html! {
            (DOCTYPE)
            html lang="en" {
                (head(self.assets, &format!("{} · {}", json::visible(self.title), self.name)))
                body {
                    a class="skip" href="#log" { "Skip to the conversation" }
                    div id="offline" class="banner" role="status" hidden {}
                    (self.rail())
                    div class="page" { (content) }
                    p id="say" class="hidden" role="status" aria-live="polite" {}
                    dialog id="ask" aria-labelledby="ask-title" {
                        form method="dialog" {
                            h2 id="ask-title" { "Open this address?" }
                            p class="address" id="ask-address" {}
                            div class="buttons" {
                                button value="open" { "Open in a new tab" }
                                button value="cancel" { "Cancel" }
                            }
                        }
                    }
                }
            }
        }
    }

    fn rail(&self) -> Markup {
        html! {
            nav class="rail" aria-label="Threads" {
                a class="brand" href="/" { (self.name) }
                a class="new" href="/chat" aria-current=[self.current.is_none().then_some("page")] { "New chat" }
                details class="threads" open {
                    summary { "Threads" }
                    @if self.threads.is_empty() { p class="quiet" { "Conversations appear here." } }
                    ul {
                        @for thread in self.threads {
                            li {
                                a href={ "/chat/" (path_segment(&thread.key)) } aria-current=[(self.current == Some(thread.key.as_str())).then_some("page")] {
                                    @if thread.is_fork { (fork_icon()) }
                                    span class="name" dir="auto" { (json::visible(thread.title.as_deref().unwrap_or(&thread.key))) }
                                    @if thread.is_running { span class="dot running" title="working" aria-label="working" {} }
                                }
                            }
                        }
                    }
                }
                button type="button" id="theme" class="quiet" hidden { "Light or dark" }
            }
        }
    }
}

/// The sign of a fork.
fn fork_icon() -> Markup {
    html! {
        svg class="icon" viewBox="0 0 16 16" width="14" height="14" role="img" aria-label="Fork" {
            path d="M5 2v12M5 10c0-3 6-2 6-6M11 4V2" fill="none" stroke="currentColor" stroke-width="1.6" stroke-linecap="round" {}
        }
    }
}

/// The head of a page.
pub(crate) fn head(assets: &Assets, title: &str) -> Markup {
    html! {
        head {
            meta charset="utf-8";
            meta name="viewport" content="width=device-width, initial-scale=1, interactive-widget=resizes-content";
            meta name="color-scheme" content="light dark";
            title { (title) }
            link rel="icon" href=(assets.path("icon.svg"));
            link rel="stylesheet" href=(assets.path("style.css"));
            script type="module" src=(assets.path("page.js")) {}
        }
    }
}

/// The page of an error.
#[derive(Debug)]
pub struct ErrorPage<'a> {
    /// The assets of the page.
    pub assets: &'a Assets,
    /// The HTTP status.
    pub status: u16,
    /// The code of the error.
    pub code: &'a str,
    /// The message.
    pub message: &'a str,
    /// The id of the request, for the operator.
    pub request_id: Option<&'a str>,
}

impl ErrorPage<'_> {
    /// The page as HTML.
    pub fn html(&self) -> Markup {
        html! {
            (DOCTYPE)
            html lang="en" {
                (head(self.assets, "Loomline"))
                body class="plain" {
                    main class="error" {
                        h1 { @if self.status == 404 { "There is nothing here" } @else { "That did not work" } }
                        p dir="auto" { (json::visible(self.message)) }
                        p class="quiet" {
                            "Code " code { (self.code) }
                            @if let Some(id) = self.request_id { ", request " code { (json::visible(id)) } }
                        }
                        p { a href="/" { "To the start" } }
                    }
                }
            }
        }
    }
}
