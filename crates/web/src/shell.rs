//! The frame of every page: its head, the list of threads, the status line.

use crate::assets::{Assets, MODULES};
use crate::link::chat_path;
use crate::patch::Patch;
use crate::{ids, json};
use maud::{DOCTYPE, Markup, html};

/// The largest number of waiting calls and requests that is shown as it is.
const MAX_COUNT: usize = 99;

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

/// The part of the interface that a page belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Area {
    /// The conversations.
    #[default]
    Chat,
    /// All that waits for a person.
    Inbox,
    /// The runs of agents, their logs and their results.
    Console,
}

/// The parts of the interface that the reader may open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Menu {
    /// Number of calls and requests that wait for a person.
    pub waiting: usize,
    /// Whether the reader may open the console.
    pub has_console: bool,
    /// Whether the reader may see the state of the server in the console.
    pub has_health: bool,
    /// Whether the reader has logged in, and so can log out.
    pub has_session: bool,
}

impl Menu {
    /// The link to the same data as JSON. A session opens pages only, and the native API needs a key:
    /// then it is the path as text.
    pub(crate) fn json_link(&self, path: &str) -> Markup {
        html! {
            @if self.has_session { code class="quiet" { (path) } }
            @else { a class="quiet" href=(path) { "JSON" } }
        }
    }
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
    /// The part of the interface that the page belongs to.
    pub area: Area,
    /// The parts that the reader may open.
    pub menu: Menu,
    /// Whether the reader may change nothing: forms are not shown.
    pub is_read_only: bool,
}

impl Shell<'_> {
    pub(crate) fn html(&self, content: &Markup) -> Markup {
        html! {
            (DOCTYPE)
            html lang="en" {
                (self.head())
                body class=[self.is_read_only.then_some("read-only")] {
                    a class="skip" href=(self.content_link()) { "Skip to the content" }
                    (self.rail())
                    div class="page" { (content) }
                    (overlays())
                }
            }
        }
    }

    fn head(&self) -> Markup {
        let head = PageHead {
            styles: match self.area {
                Area::Chat => &["style.css"],
                Area::Inbox | Area::Console => &["style.css", "console.css"],
            },
            preloaded: &[],
            scripts: match self.area {
                Area::Chat | Area::Inbox => &["page.js"],
                Area::Console => &["page.js", "console.js"],
            },
        };
        let title = format!("{} · {}", json::visible(self.title), self.name);
        head.html(self.assets, &title)
    }

    fn content_link(&self) -> &'static str {
        match self.area {
            Area::Chat => "#log",
            Area::Inbox | Area::Console => "#content",
        }
    }

    fn rail(&self) -> Markup {
        let is_new = self.area == Area::Chat && self.current.is_none();
        let in_chat = self.current.filter(|_| self.area == Area::Chat);
        html! {
            nav class="rail" aria-label="Threads" data-list[self.area != Area::Console] {
                a class="brand" href="/" { (self.name) }
                a class="new" href="/chat" aria-current=[is_new.then_some("page")] { "New chat" }
                a href="/inbox" aria-current=[(self.area == Area::Inbox).then_some("page")] { "Inbox" (inbox_count(self.menu.waiting)) }
                @if self.menu.has_console {
                    a href="/console" aria-current=[(self.area == Area::Console).then_some("page")] { "Console" }
                }
                details class="threads" open {
                    summary { "Threads" }
                    (thread_list(self.threads, in_chat))
                }
                button type="button" id="theme" class="quiet" hidden { "Light or dark" }
                @if self.menu.has_session {
                    form method="post" action="/logout" { button type="submit" class="quiet" { "Log out" } }
                }
            }
        }
    }
}

/// The list of threads; `current` is the key of the thread that the page shows.
fn thread_list(threads: &[RailThread], current: Option<&str>) -> Markup {
    html! {
        div id=(ids::RAIL_THREADS) {
            @if threads.is_empty() { p class="quiet" { "Conversations appear here." } }
            ul {
                @for thread in threads {
                    li {
                        a href=(chat_path(&thread.key)) aria-current=[(current == Some(thread.key.as_str())).then_some("page")] {
                            @if thread.is_fork { (fork_icon()) }
                            span class="name" dir="auto" { (json::visible(thread.title.as_deref().unwrap_or(&thread.key))) }
                            @if thread.is_running { span class="dot running" title="working" aria-label="working" {} }
                        }
                    }
                }
            }
        }
    }
}

/// Updates the list of threads on an open page of the chat or the inbox. `current` is the key of the thread
/// that a page of the chat shows.
pub fn rail_patch(threads: &[RailThread], current: Option<&str>) -> Patch {
    Patch::Put {
        id: ids::RAIL_THREADS.to_owned(),
        html: thread_list(threads, current).into_string(),
    }
}

/// A number of calls and requests as text; a large one is not exact.
pub fn count_text(waiting: usize) -> String {
    if waiting > MAX_COUNT {
        return format!("{MAX_COUNT}+");
    }
    waiting.to_string()
}

/// The number of calls and requests that wait for a person.
fn inbox_count(waiting: usize) -> Markup {
    html! {
        span id=(ids::INBOX_COUNT) class="count" data-count=(waiting) {
            @if waiting > 0 {
                (count_text(waiting))
                span class="hidden" { " waiting" }
            }
        }
    }
}

/// Updates the number of calls and requests that wait on an open page.
pub fn waiting_patch(waiting: usize) -> Patch {
    Patch::Put {
        id: ids::INBOX_COUNT.to_owned(),
        html: inbox_count(waiting).into_string(),
    }
}

/// The sign of a fork.
pub(crate) fn fork_icon() -> Markup {
    html! {
        svg class="icon" viewBox="0 0 16 16" width="14" height="14" role="img" aria-label="Fork" {
            path d="M5 2v12M5 10c0-3 6-2 6-6M11 4V2" fill="none" stroke="currentColor" stroke-width="1.6" stroke-linecap="round" {}
        }
    }
}

/// The lines and the dialog that scripts show above a page.
pub(crate) fn overlays() -> Markup {
    html! {
        div id="offline" class="banner" role="status" hidden {}
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

/// The head of a page: the names of the files that it loads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PageHead {
    pub(crate) styles: &'static [&'static str],
    /// Modules that its scripts load later, besides those of every page.
    pub(crate) preloaded: &'static [&'static str],
    pub(crate) scripts: &'static [&'static str],
}

impl PageHead {
    /// The head of a page without the list of threads.
    pub(crate) const PLAIN: Self = Self {
        styles: &["style.css"],
        preloaded: &[],
        scripts: &["page.js"],
    };

    pub(crate) fn html(self, assets: &Assets, title: &str) -> Markup {
        html! {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1, interactive-widget=resizes-content";
                meta name="color-scheme" content="light dark";
                title { (title) }
                link rel="icon" href=(assets.path("icon.svg"));
                @for style in self.styles { link rel="stylesheet" href=(assets.path(style)); }
                @for module in MODULES.iter().chain(self.preloaded) { link rel="modulepreload" href=(assets.path(module)); }
                @for script in self.scripts { script type="module" src=(assets.path(script)) {} }
            }
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
        let title = match self.status {
            404 => "Not found",
            _ => "The request failed",
        };
        html! {
            (DOCTYPE)
            html lang="en" {
                (PageHead::PLAIN.html(self.assets, title))
                body class="plain" {
                    main class="error" {
                        h1 { (title) }
                        p dir="auto" { (json::visible(self.message)) }
                        p class="quiet" {
                            "Code " code { (self.code) }
                            @if let Some(id) = self.request_id { ", request " code { (json::visible(id)) } }
                        }
                        p { a href="/" { "To the start" } }
                        @if self.code == "missing_scope" {
                            form method="post" action="/logout" { button type="submit" { "Log out" } }
                        }
                    }
                }
            }
        }
    }
}
