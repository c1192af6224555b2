//! The branches of a thread: its parents, its forks, and the threads of its sub-agents.

use super::frame::{ConsoleFrame, ThreadSection};
use crate::elements::badge;
use crate::link::{at_path, chat_path, path_segment};
use crate::words::{counted, status_words};
use crate::{json, time};
use jiff::Timestamp;
use maud::{Markup, html};
use std::borrow::Cow;
use std::collections::BTreeMap;
use timeline::ThreadStatus;

/// Number of lists inside each other. Deeper threads are in the innermost one.
const MAX_LEVELS: usize = 10;

/// A thread around another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelatedThread {
    /// Its key.
    pub key: String,
    /// Its title.
    pub title: Option<String>,
    /// The key of the thread that it was forked off, or that called the sub-agent.
    pub parent: Option<String>,
    /// The last event that a fork shares with its parent.
    pub forked_at: Option<u64>,
    /// The call that started a sub-agent's thread.
    pub tool_call_id: Option<String>,
    /// Whether the page is about this thread.
    pub is_current: bool,
    /// Its status.
    pub status: ThreadStatus,
    /// When it last changed.
    pub changed_at: Timestamp,
    /// Number of its events.
    pub n_events: u64,
}

/// The page of the branches of a thread.
#[derive(Debug)]
pub struct BranchesPage<'a> {
    /// The frame of the page.
    pub frame: ConsoleFrame<'a>,
    /// The key of the thread.
    pub key: &'a str,
    /// The threads around it and itself, each after its parent.
    pub threads: &'a [RelatedThread],
    /// Whether there are more threads.
    pub more: bool,
}

/// The threads below each thread, by its key.
type Below<'t> = BTreeMap<Option<&'t str>, Vec<&'t RelatedThread>>;

impl RelatedThread {
    fn name(&self) -> Cow<'_, str> {
        json::visible(self.title.as_deref().unwrap_or(&self.key))
    }
}

impl BranchesPage<'_> {
    /// The page as HTML.
    pub fn html(&self) -> Markup {
        self.frame.html(&html! {
            section aria-labelledby="tree" {
                h2 id="tree" { "Branches and sub-agents" }
                @if self.threads.len() < 2 { (self.alone()) } @else {
                    p class="quiet" { "A fork shares the events of its parent up to one event. A sub-agent works in a thread of its own." }
                    (self.tree())
                }
                @if self.more {
                    p class="note" {
                        "These are the first " (self.threads.len()) " threads. "
                        a href={ (ThreadSection::Branches.path(self.key)) "?limit=1000" } { "Show up to 1,000" }
                    }
                }
            }
            @if self.threads.len() > 1 { (self.chooser()) }
        })
    }

    fn alone(&self) -> Markup {
        html! {
            p { "This thread has no parent, no forks and no sub-agents." }
            p class="quiet" {
                "To get a fork, choose “Fork” below an answer in "
                a href=(chat_path(self.key)) { "the chat" } "."
            }
        }
    }

    fn tree(&self) -> Markup {
        let mut below = Below::new();
        for thread in self.threads {
            let list = below.entry(thread.parent.as_deref()).or_default();
            list.push(thread);
        }
        let roots = below.get(&None).map(Vec::as_slice).unwrap_or_default();
        self.list(&below, roots, 1)
    }

    fn list<'t>(&self, below: &Below<'t>, threads: &[&'t RelatedThread], level: usize) -> Markup {
        html! {
            ul class="tree" {
                @if level == MAX_LEVELS {
                    @for thread in whole(below, threads) { li { (self.entry(thread)) } }
                } @else {
                    @for thread in threads {
                        li {
                            (self.entry(thread))
                            @let inner = children(below, thread);
                            @if !inner.is_empty() { (self.list(below, inner, level + 1)) }
                        }
                    }
                }
            }
        }
    }

    fn entry(&self, thread: &RelatedThread) -> Markup {
        html! {
            div class="branch" {
                a href=(ThreadSection::Timeline.path(&thread.key)) aria-current=[thread.is_current.then_some("true")] dir="auto" { (thread.name()) }
                @if thread.is_current { b { "this thread" } }
                (badge(status_words(thread.status)))
                span class="quiet" {
                    (self.relation(thread)) (counted(thread.n_events, "event")) ", changed " (time::instant(thread.changed_at))
                }
                @if !thread.is_current {
                    a class="quiet" href=(diff_path(self.key, &thread.key)) { "Compare" span class="hidden" { " with " (thread.name()) } }
                }
            }
        }
    }

    /// Where a thread comes from.
    fn relation(&self, thread: &RelatedThread) -> Markup {
        let Some(parent) = &thread.parent else {
            return Markup::default();
        };
        let mut threads = self.threads.iter();
        let name = threads
            .find(|it| it.key == *parent)
            .map(RelatedThread::name);
        let name = name.unwrap_or_else(|| json::visible(parent));
        html! {
            @match (thread.forked_at, &thread.tool_call_id) {
                (Some(seq), _) => {
                    "fork of " bdi { (name) } " after "
                    a href=(at_path(parent, seq)) { "event " (seq) } ", "
                },
                (None, Some(call)) => { "sub-agent of " bdi { (name) } ", call " code { (json::visible(call)) } ", " },
                (None, None) => { "of " bdi { (name) } ", " },
            }
        }
    }

    /// The form with which a reader compares two of the threads.
    fn chooser(&self) -> Markup {
        let mut others = self.threads.iter().filter(|it| !it.is_current);
        let other = others.next().map(|it| it.key.as_str());
        let options = |chosen: Option<&str>| {
            html! {
                @for thread in self.threads {
                    option value=(thread.key) selected[chosen == Some(thread.key.as_str())] {
                        (thread.name())
                        @if thread.title.is_some() { " (" (json::visible(&thread.key)) ")" }
                    }
                }
            }
        };
        html! {
            section aria-labelledby="compare" {
                h2 id="compare" { "Compare two branches" }
                form class="filters" method="get" action="/ui/compare" {
                    label { "First" select name="left" { (options(Some(self.key))) } }
                    label { "Second" select name="right" { (options(other)) } }
                    button type="submit" { "Compare" }
                }
            }
        }
    }
}

/// The forks and sub-agents' threads of a thread.
fn children<'b, 't>(below: &'b Below<'t>, thread: &'t RelatedThread) -> &'b [&'t RelatedThread] {
    let found = below.get(&Some(thread.key.as_str()));
    found.map(Vec::as_slice).unwrap_or_default()
}

/// These threads and all below them, each after its parent.
fn whole<'t>(below: &Below<'t>, threads: &[&'t RelatedThread]) -> Vec<&'t RelatedThread> {
    let mut open: Vec<&RelatedThread> = threads.iter().rev().copied().collect();
    let mut all = Vec::new();
    while let Some(thread) = open.pop() {
        all.push(thread);
        open.extend(children(below, thread).iter().rev().copied());
    }
    all
}

/// The path of the page that compares two threads.
pub(crate) fn diff_path(key: &str, with: &str) -> String {
    let (key, with) = (path_segment(key), path_segment(with));
    format!("/console/t/{key}/diff?with={with}")
}
