//! The page of a thread, and of a new one.

use super::composer::{AgentChoice, Composer};
use super::conversation::{Conversation, state, title_html};
use crate::ids;
use crate::link::{chat_path, path_segment};
use crate::shell::Shell;
use maud::{Markup, html};
use timeline::ThreadStatus;

/// The chat of a thread, or the start of a new one.
#[derive(Debug)]
pub struct ChatPage<'a> {
    /// The frame of the page.
    pub shell: Shell<'a>,
    /// The thread; none for a new one.
    pub thread: Option<ChatThread<'a>>,
    /// The agents to choose from.
    pub agents: &'a [AgentChoice],
    /// The agent of the last run.
    pub agent: Option<&'a str>,
    /// A new key, so that the message of the form is sent once.
    pub idempotency_key: &'a str,
    /// First messages to choose from, for a new thread.
    pub starters: &'a [StarterChoice],
    /// Whether the person may answer pending calls.
    pub may_answer: bool,
    /// Why the person can't write, if so.
    pub closed: Option<&'a str>,
    /// Maximum size of all files of a message, in bytes.
    pub max_file_bytes: usize,
}

/// A first message that a person can choose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StarterChoice {
    /// The feature that it shows.
    pub label: String,
    /// The message.
    pub text: String,
}

/// The thread of a page.
#[derive(Debug)]
pub struct ChatThread<'a> {
    /// Its key.
    pub key: &'a str,
    /// Its title.
    pub title: Option<&'a str>,
    /// Its messages.
    pub conversation: &'a Conversation,
    /// The id from which the stream continues.
    pub after: &'a str,
    /// The cursor of earlier messages, if there are any.
    pub before: Option<u64>,
    /// The key of the thread that it was forked off.
    pub forked_from: Option<&'a str>,
    /// The event after which the page shows the thread; `None` for a live page.
    pub at: Option<u64>,
    /// The runs that a summary replaces when a model reads the thread.
    pub compacted: Option<CompactedRuns>,
}

/// The runs that a summary replaces when a model reads a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompactedRuns {
    /// Their number.
    pub n_runs: u64,
    /// Their last event; `None` if it is in the log of an ancestor.
    pub last: Option<u64>,
}

impl ChatPage<'_> {
    /// The page as HTML.
    pub fn html(&self) -> Markup {
        self.shell.html(&self.parts(true))
    }

    /// The conversation without the frame of the page, for a page within another site.
    pub fn content(&self) -> Markup {
        self.parts(false)
    }

    fn parts(&self, has_focus: bool) -> Markup {
        html! {
            (self.header())
            (self.log())
            div class="dock" {
                @if let Some(thread) = &self.thread { (thread.conversation.waiting()) }
                (self.composer(has_focus))
            }
        }
    }

    fn header(&self) -> Markup {
        let status = self
            .thread
            .as_ref()
            .map(|thread| thread.conversation.status());
        html! {
            header class="top" data-answers=[(!self.may_answer).then_some("no")] {
                (title_html(self.shell.title))
                (state(status.unwrap_or(ThreadStatus::Open)))
                span class="grow" {}
                @if let Some(thread) = &self.thread {
                    @if let Some(parent) = thread.forked_from {
                        a class="quiet" href=(chat_path(parent)) { "fork of " (crate::json::visible(parent)) }
                    }
                    form method="post" action="/ui/stop" id="stop" {
                        input type="hidden" name="thread" value=(thread.key);
                        button type="submit" { "Stop" }
                    }
                }
            }
        }
    }

    fn log(&self) -> Markup {
        html! {
            @match &self.thread {
                Some(thread) => main id="log" class="log" role="log" aria-live="off" aria-label="Conversation" tabindex="0"
                    data-thread=[thread.at.is_none().then_some(thread.key)] data-after=(thread.after) {
                    @if let Some(at) = thread.at { (past(thread.key, at)) }
                    @if let Some(runs) = thread.compacted { (compacted(runs)) }
                    @if let Some(before) = thread.before { (earlier(thread.key, before)) }
                    (thread.conversation.html())
                    div id=(ids::END_OF_LOG) {}
                },
                None => main id="log" class="log empty" {
                    h2 { "What shall the agent do?" }
                    @if !self.starters.is_empty() {
                        ul class="starters" {
                            @for (index, starter) in self.starters.iter().enumerate() {
                                li {
                                    button type="submit" form="composer" name="starter" value=(index) formnovalidate {
                                        b { (starter.label) }
                                        span class="quiet" { (starter.text) }
                                    }
                                }
                            }
                        }
                    }
                },
            }
        }
    }

    fn composer(&self, has_focus: bool) -> Markup {
        let composer = Composer {
            thread_key: self.thread.as_ref().map(|thread| thread.key),
            agents: self.agents,
            agent: self.agent,
            idempotency_key: self.idempotency_key,
            closed: self.closed,
            max_file_bytes: self.max_file_bytes,
            has_focus,
        };
        composer.html()
    }
}

/// The note on a page that shows a thread as it was.
fn past(key: &str, at: u64) -> Markup {
    html! {
        div class="card" {
            p { "This is the thread as it was after event " (at) "." }
            div class="buttons" {
                a class="button" href=(chat_path(key)) { "Open it as it is now" }
                form method="post" action="/ui/fork" {
                    input type="hidden" name="thread" value=(key);
                    input type="hidden" name="at" value=(at);
                    button type="submit" { "Continue from here (fork)" }
                }
            }
        }
    }
}

/// The note on a page of a thread with a compaction.
fn compacted(CompactedRuns { n_runs, last }: CompactedRuns) -> Markup {
    html! {
        p class="quiet" id="compacted" {
            "When a model reads this thread, a summary replaces "
            @match n_runs { 1 => "the first run", n => { "the first " (n) " runs" } }
            @if let Some(last) = last { ", up to event " (last) }
            "."
        }
    }
}

/// The link to earlier messages. The script replaces it with them.
fn earlier(key: &str, before: u64) -> Markup {
    html! {
        p class="earlier" id="earlier" {
            a href={ (chat_path(key)) "?before=" (before) } data-older={ "/ui/older?thread=" (path_segment(key)) "&before=" (before) } {
                "Earlier messages"
            }
        }
    }
}

/// Earlier messages of a thread, for an open page: the link to those before them, then the messages.
pub fn older(key: &str, conversation: &Conversation, before: Option<u64>) -> Markup {
    html! {
        @if let Some(before) = before { (earlier(key, before)) }
        (conversation.html())
    }
}
