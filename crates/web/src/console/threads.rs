//! The list of threads: search, filters, pages.

use super::frame::{ConsoleFrame, ThreadSection};
use crate::elements::{badge, paging};
use crate::json;
use crate::link::path_segment;
use crate::shell::fork_icon;
use crate::time;
use crate::words::status_words;
use jiff::Timestamp;
use maud::{Markup, html};
use std::fmt::Write as _;
use std::ops::Range;
use timeline::ThreadStatus;

/// Maximum length of a thread's last text, in characters.
const LAST_TEXT: usize = 160;

/// The state of the list: what its address has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadListQuery {
    /// The words to find.
    pub words: Option<String>,
    /// The status of the threads.
    pub status: Option<ThreadStatus>,
    /// The agent of the last run.
    pub agent: Option<String>,
    /// The day or the instant since which the threads changed, as in the address.
    pub since: Option<String>,
    /// Only threads in which a call or a request waits for a person.
    pub waits: bool,
    /// The cursor of the page.
    pub cursor: Option<String>,
}

/// A text with found words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarkedText {
    /// The text.
    pub text: String,
    /// The bytes of the found words, in order and without overlaps.
    pub matches: Vec<Range<usize>>,
}

/// A thread of the list.
#[derive(Clone, Debug)]
pub struct ThreadEntry {
    /// Its key.
    pub key: String,
    /// Its title.
    pub title: Option<String>,
    /// The agent of its last run.
    pub agent: Option<String>,
    /// The beginning of its last text.
    pub last_text: Option<String>,
    /// The texts with the words of a search.
    pub hits: Vec<MarkedText>,
    /// Its status.
    pub status: ThreadStatus,
    /// Whether a call or a request of its own waits for a person.
    pub waits: bool,
    /// When it last changed.
    pub changed_at: Timestamp,
    /// Whether it is a fork.
    pub is_fork: bool,
    /// The key of the thread that it was forked from.
    pub forked_from: Option<String>,
    /// Whether it is the thread of a sub-agent.
    pub is_subagent: bool,
}

/// The page of the list.
#[derive(Debug)]
pub struct ThreadsPage<'a> {
    /// The frame of the page.
    pub frame: ConsoleFrame<'a>,
    /// The state of the list.
    pub search: &'a ThreadListQuery,
    /// The agents to choose from.
    pub agents: &'a [String],
    /// The threads, in order.
    pub threads: &'a [ThreadEntry],
    /// The cursor of the next page.
    pub next: Option<&'a str>,
}

impl ThreadListQuery {
    /// Whether it leaves out threads.
    fn is_filter(&self) -> bool {
        self.words.is_some()
            || self.status.is_some()
            || self.agent.is_some()
            || self.since.is_some()
            || self.waits
    }

    /// The address of the list with another cursor.
    fn path(&self, cursor: Option<&str>) -> String {
        self.path_of("/console", self.since.as_deref(), cursor)
    }

    /// The address of the same list in the native API, with the instant since which threads changed.
    pub fn api_path(&self, since: Option<Timestamp>) -> String {
        let since = since.map(|since| since.to_string());
        self.path_of("/api/v1/threads", since.as_deref(), self.cursor.as_deref())
    }

    fn path_of(&self, base: &str, since: Option<&str>, cursor: Option<&str>) -> String {
        let status = self.status.map(|status| status.to_string());
        let parameters = [
            ("q", self.words.as_deref()),
            ("status", status.as_deref()),
            ("agent", self.agent.as_deref()),
            ("since", since),
            ("waits", self.waits.then_some("true")),
            ("cursor", cursor),
        ];
        let mut path = base.to_owned();
        let mut separator = '?';
        for (name, value) in parameters {
            if let Some(value) = value {
                // Writing to a string can't fail.
                let _ = write!(path, "{separator}{name}={}", path_segment(value));
                separator = '&';
            }
        }
        path
    }

    /// The filters in words.
    fn words(&self) -> Markup {
        html! {
            @if let Some(words) = &self.words { " with the words “" bdi { (json::visible(words)) } "”" }
            @if let Some(status) = self.status { " with the status “" (status_words(status).1) "”" }
            @if let Some(agent) = &self.agent { " of the agent “" bdi { (json::visible(agent)) } "”" }
            @if let Some(since) = &self.since { " changed since " (json::visible(since)) }
            @if self.waits { " with a pending call or an open request" }
        }
    }
}

impl ThreadsPage<'_> {
    /// The page as HTML.
    pub fn html(&self) -> Markup {
        self.frame.html(&html! {
            (self.form())
            @if self.threads.is_empty() { (self.empty()) } @else { (self.table()) }
            (paging(&html! {
                @if self.search.cursor.is_some() { a class="button" href=(self.search.path(None)) { "First page" } }
                @if let Some(next) = self.next { a class="button" href=(self.search.path(Some(next))) rel="next" { "Next page" } }
            }))
        })
    }

    fn form(&self) -> Markup {
        let search = self.search;
        let is_status = |status: ThreadStatus| search.status == Some(status);
        let agent = search.agent.as_deref();
        let is_listed = agent.is_none_or(|agent| self.agents.iter().any(|own| own == agent));
        let day = search.since.as_deref().and_then(|since| since.get(..10));
        html! {
            form class="filters" role="search" method="get" action="/console" {
                label { "Words" input type="search" name="q" value=(search.words.as_deref().unwrap_or_default()) maxlength="512" dir="auto"; }
                label { "Status"
                    select name="status" {
                        option value="" { "any" }
                        @for status in ThreadStatus::ALL {
                            option value=(status.to_string()) selected[is_status(*status)] { (status_words(*status).1) }
                        }
                    }
                }
                label { "Agent"
                    select name="agent" {
                        option value="" { "any" }
                        @if !is_listed { option selected { (json::visible(agent.unwrap_or_default())) } }
                        @for own in self.agents { option value=(own) selected[agent == Some(own.as_str())] { (json::visible(own)) } }
                    }
                }
                label { "Pending"
                    select name="waits" {
                        option value="" { "any" }
                        option value="true" selected[search.waits] { "calls and requests" }
                    }
                }
                label { "Changed since" input type="date" name="since" value=(day.unwrap_or_default()); }
                button type="submit" class="primary" { "Find" }
                @if search.is_filter() { a class="button" href="/console" { "Clear" } }
            }
        }
    }

    fn empty(&self) -> Markup {
        html! {
            section class="empty" {
                @if self.search.is_filter() {
                    h2 { "No thread found" }
                    p { "There is no thread" (self.search.words()) "." }
                    p { a href="/console" { "Clear the filter" } }
                } @else if self.search.cursor.is_some() {
                    h2 { "No more threads" }
                    p { a href="/console" { "To the first page" } }
                } @else {
                    h2 { "No threads yet" }
                    p { "Each conversation with an agent is a thread. Threads of all clients appear here." }
                    p { a href="/chat" { "Begin a chat" } }
                }
            }
        }
    }

    fn table(&self) -> Markup {
        let is_search = self.search.words.is_some();
        html! {
            div class="scroll" tabindex="0" role="region" aria-label="Threads" {
                table class="threads" {
                    thead {
                        tr {
                            th scope="col" { "Thread" }
                            th scope="col" class="wide" { "Agent" }
                            th scope="col" class="wide" { @if is_search { "Found" } @else { "Last text" } }
                            th scope="col" { "Status" }
                            th scope="col" class="wide" { "Changed" }
                        }
                    }
                    tbody { @for thread in self.threads { (row(thread)) } }
                }
            }
        }
    }
}

fn row(thread: &ThreadEntry) -> Markup {
    let name = thread.title.as_deref().unwrap_or(&thread.key);
    let path = ThreadSection::Timeline.path(&thread.key);
    html! {
        tr {
            th scope="row" {
                @if thread.is_fork { (fork_icon()) " " }
                a href=(path) dir="auto" { (json::visible(name)) }
                @if thread.title.is_some() { " " code class="key" { (json::visible(&thread.key)) } }
                @if let Some(parent) = &thread.forked_from {
                    " " a class="quiet" href=(ThreadSection::Timeline.path(parent)) { "fork of " bdi { (json::visible(parent)) } }
                }
                @if thread.is_subagent { " " span class="badge" { "sub-agent" } }
            }
            td class="wide" dir="auto" { (json::visible(thread.agent.as_deref().unwrap_or_default())) }
            td class="wide text" {
                @if thread.hits.is_empty() {
                    p dir="auto" { (json::line(thread.last_text.as_deref().unwrap_or_default(), LAST_TEXT)) }
                }
                @for hit in &thread.hits { p dir="auto" { (marked(hit)) } }
            }
            td {
                (badge(status_words(thread.status)))
                @if thread.waits { " " (badge(("waits", "waits"))) }
            }
            td class="wide" { (time::instant(thread.changed_at)) }
        }
    }
}

/// A text with its found words marked.
fn marked(hit: &MarkedText) -> Markup {
    let piece = |range: Range<usize>| json::visible(hit.text.get(range).unwrap_or_default());
    let starts = std::iter::once(0).chain(hit.matches.iter().map(|found| found.end));
    let last = hit.matches.last().map_or(0, |found| found.end);
    html! {
        @for (start, found) in starts.zip(&hit.matches) {
            (piece(start..found.start))
            mark { (piece(found.clone())) }
        }
        (piece(last..hit.text.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn found_words_are_marked_and_everything_else_is_text() {
        let hit = MarkedText {
            text: "a <b>word</b> & word".to_owned(),
            matches: vec![5..9, 16..20],
        };
        assert_eq!(
            marked(&hit).into_string(),
            "a &lt;b&gt;<mark>word</mark>&lt;/b&gt; &amp; <mark>word</mark>"
        );
    }

    #[test]
    fn the_address_of_a_page_has_all_filters() {
        let search = ThreadListQuery {
            words: Some("a&b c".to_owned()),
            status: Some(ThreadStatus::Open),
            ..ThreadListQuery::default()
        };
        let path = search.path(Some("7"));
        assert_eq!(path, "/console?q=a%26b%20c&status=open&cursor=7");
        assert_eq!(ThreadListQuery::default().path(None), "/console");
    }
}
