//! The document of a thread: its verdict, its losses, its hash, and its content as a tree.

use super::frame::{ConsoleFrame, ThreadSection};
use super::json_tree::{JsonTree, MAX_VALUES};
use crate::elements::{badge, fact};
use crate::json;
use crate::link::path_segment;
use crate::words::counted;
use interop::Loss;
use maud::{Markup, html};
use thread::{Json, Severity, Version, Violation};

/// Maximum number of rows of a table.
const MAX_ROWS: usize = 200;
/// Maximum length of a pointer or a message, in characters.
const MAX_LINE: usize = 300;

/// A document and the result of its check.
#[derive(Debug)]
pub struct DocumentView {
    /// The document.
    pub document: Json,
    /// Its version.
    pub version: Version,
    /// Whether it was checked with the rules for writers, else with those for readers.
    pub is_strict: bool,
    /// The breaches of the rules.
    pub violations: Vec<Violation>,
    /// The data that the document can't hold.
    pub losses: Vec<Loss>,
    /// `sha256:` and the hash of the canonical form.
    pub hash: Option<String>,
    /// Why the hash is not exact.
    pub hash_warning: Option<String>,
}

/// The page of the document of a thread.
#[derive(Debug)]
pub struct DocumentPage<'a> {
    /// The frame of the page.
    pub frame: ConsoleFrame<'a>,
    /// The key of the thread.
    pub key: &'a str,
    /// The document.
    pub view: &'a DocumentView,
    /// The JSON pointer of the value that the page shows, and the value.
    pub at: (&'a str, &'a Json),
    /// Number of members of the value that are left out at the start.
    pub from: usize,
}

/// The versions that documents are written in.
fn versions() -> impl Iterator<Item = Version> {
    let known = Version::KNOWN.into_iter().rev();
    known.filter(|version| *version != Version::V1_0_0)
}

impl DocumentPage<'_> {
    /// The page as HTML.
    pub fn html(&self) -> Markup {
        self.frame.html(&html! {
            section aria-labelledby="verdict" {
                h2 id="verdict" { "Document" }
                (self.chooser())
                (self.facts())
            }
            (self.violations())
            (self.losses())
            section aria-labelledby="tree" {
                h2 id="tree" { "Content" }
                (self.content())
            }
        })
    }

    fn is_newest(&self) -> bool {
        self.view.version == Version::NEWEST
    }

    /// The path of the document as a file.
    fn download_path(&self) -> String {
        let path = format!("/ui/document/{}", path_segment(self.key));
        if self.is_newest() {
            path
        } else {
            format!("{path}?version={}", self.view.version)
        }
    }

    /// The path of this page with another value of the document.
    fn path(&self, at: &str, from: usize) -> String {
        let check = if self.view.is_strict {
            "strict"
        } else {
            "lenient"
        };
        let part = if at.is_empty() {
            String::new()
        } else {
            format!("&at={}", path_segment(at))
        };
        let start = if from > 0 {
            format!("&from={from}")
        } else {
            String::new()
        };
        format!(
            "{}?version={}&check={check}{part}{start}#tree",
            ThreadSection::Document.path(self.key),
            self.view.version
        )
    }

    fn chooser(&self) -> Markup {
        let is_strict = self.view.is_strict;
        html! {
            form class="filters" method="get" action=(ThreadSection::Document.path(self.key)) {
                label { "Version"
                    select name="version" {
                        @for version in versions() {
                            option value=(version) selected[version == self.view.version] { (version) }
                        }
                    }
                }
                label { "Rules"
                    select name="check" {
                        option value="strict" selected[is_strict] { "for writers (strict)" }
                        option value="lenient" selected[!is_strict] { "for readers (lenient)" }
                    }
                }
                button type="submit" { "Show" }
            }
        }
    }

    fn facts(&self) -> Markup {
        let view = self.view;
        let is_error = |violation: &&Violation| violation.severity == Severity::Error;
        let n_errors = view.violations.iter().filter(is_error).count();
        html! {
            dl class="facts" {
                (fact("Verdict", &html! {
                    @if n_errors == 0 { (badge(("ok", "valid"))) }
                    @else { (badge(("error", "invalid"))) " " (counted(n_errors, "error")) }
                }))
                (fact("SHA-256", &html! {
                    @match &view.hash {
                        Some(hash) => span class="snippet inline" { code { (hash) } " " button type="button" class="copy" { "Copy" } },
                        None => "none, because a number has no canonical form",
                    }
                    @if let Some(warning) = &view.hash_warning { p class="warn" dir="auto" { (json::visible(warning)) } }
                }))
                (fact("Losses", &html! { (view.losses.len()) }))
                (fact("Download", &html! {
                    a href=(self.download_path()) download=(format!("{}.json", json::visible(self.key))) {
                        @if self.is_newest() { "the document" } @else { "the report with this version" }
                    }
                }))
            }
        }
    }

    fn violations(&self) -> Markup {
        let violations = &self.view.violations;
        html! {
            @if !violations.is_empty() {
                section aria-labelledby="problems" {
                    h2 id="problems" { "Problems" }
                    div class="scroll" tabindex="0" role="region" aria-label="Problems" {
                        table {
                            thead { tr {
                                th scope="col" { "Severity" }
                                th scope="col" { "Place" }
                                th scope="col" { "Rule" }
                                th scope="col" { "Problem" }
                            } }
                            tbody {
                                @for violation in violations.iter().take(MAX_ROWS) { (violation_row(violation)) }
                            }
                        }
                    }
                    (not_shown(violations.len()))
                }
            }
        }
    }

    fn losses(&self) -> Markup {
        let losses = &self.view.losses;
        html! {
            section aria-labelledby="losses" {
                h2 id="losses" { "Losses" }
                @if losses.is_empty() {
                    p { "This version holds everything of the thread." }
                } @else {
                    p class="quiet" { "The document can't hold these parts of the thread." }
                    div class="scroll" tabindex="0" role="region" aria-label="Losses" {
                        table {
                            thead { tr { th scope="col" { "Place" } th scope="col" { "Loss" } } }
                            tbody {
                                @for loss in losses.iter().take(MAX_ROWS) {
                                    tr { td { (place(&loss.pointer)) } td dir="auto" { (json::line(&loss.what, MAX_LINE)) } }
                                }
                            }
                        }
                    }
                    (not_shown(losses.len()))
                }
            }
        }
    }

    fn content(&self) -> Markup {
        let (at, value) = self.at;
        let tree = JsonTree::of(value, at, self.from);
        html! {
            @if !at.is_empty() {
                p { a href=(self.path("", 0)) { "The whole document" } " · at " (place(at)) }
            }
            (tree.html(&|at, from| self.path(at, from)))
            p class="quiet" {
                "A page shows up to " (MAX_VALUES) " values. The whole document is in the "
                a href=(self.download_path()) { "download" } "."
            }
        }
    }
}

fn violation_row(violation: &Violation) -> Markup {
    let (state, word) = match violation.severity {
        Severity::Error => ("error", "error"),
        Severity::Warning => ("waits", "warning"),
    };
    html! {
        tr {
            td { (badge((state, word))) }
            td { (place(&violation.pointer)) }
            td { code { (violation.rule.id()) } }
            td dir="auto" { (json::line(&violation.message, MAX_LINE)) }
        }
    }
}

fn place(pointer: &str) -> Markup {
    html! {
        @if pointer.is_empty() { "the document" } @else { code dir="auto" { (json::line(pointer, MAX_LINE)) } }
    }
}

fn not_shown(n: usize) -> Markup {
    html! {
        @if n > MAX_ROWS { p class="note" { "The JSON has " (counted(n - MAX_ROWS, "more row")) "." } }
    }
}
