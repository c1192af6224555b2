//! The semantic differences between the documents of two threads.

use super::diff_row::{DiffLine, DiffRow, changed_rows, differing, turn_lines};
use super::frame::{ConsoleFrame, ThreadSection};
use crate::json;
use crate::link::path_segment;
use crate::words::counted;
use maud::{Markup, html};
use thread::diff::{Diff, DiffChange, DiffKind, Level};

/// Maximum number of turns on a page.
const MAX_TURNS: usize = 200;
/// Maximum number of lines of one turn.
const MAX_LINES: usize = 100;

/// The page that compares two threads.
#[derive(Debug)]
pub struct DiffPage<'a> {
    /// The frame of the page.
    pub frame: ConsoleFrame<'a>,
    /// The key of the thread.
    pub key: &'a str,
    /// The key of the other thread, and the differences; `None` if none is chosen yet.
    pub other: Option<(&'a str, &'a Diff)>,
}

/// A turn of both documents, or of one of them.
#[derive(Debug, Default)]
pub(crate) struct TurnPair<'d> {
    /// The change of the turn in the first document.
    pub(crate) from: Option<&'d DiffChange>,
    /// The change of the turn in the second document.
    pub(crate) to: Option<&'d DiffChange>,
}

/// The turns that differ.
#[derive(Debug, Default)]
pub(crate) struct Turns<'d> {
    /// Number of turns at the start that are the same.
    pub(crate) same: Option<usize>,
    /// The turns that differ, in order.
    pub(crate) pairs: Vec<TurnPair<'d>>,
}

impl<'d> Turns<'d> {
    /// The turns of a diff. A removed and an added turn at the same place are a pair.
    pub(crate) fn of(diff: &'d Diff) -> Self {
        let mut turns = Self::default();
        let (mut n_removed, mut n_added) = (0, 0);
        // Number of turns that both documents have before the current place, and the pairs there.
        let (mut place, mut start, mut n_pairs) = (None, 0, [0, 0]);
        for change in diff.changes.iter().filter(|it| it.level == Level::Turn) {
            let (before, side) = match &change.kind {
                DiffKind::Removed { at, .. } => {
                    n_removed += 1;
                    (at + 1 - n_removed, Some(0))
                }
                DiffKind::Added { at, .. } => {
                    n_added += 1;
                    (at + 1 - n_added, Some(1))
                }
                DiffKind::Changed { .. } => {
                    let index = index_of(change.from.as_deref()).unwrap_or_default();
                    (index.saturating_sub(n_removed), None)
                }
            };
            if !change.semantic {
                continue;
            }
            turns.same.get_or_insert(before);
            let Some(side) = side else {
                turns.pairs.push(TurnPair {
                    from: Some(change),
                    to: Some(change),
                });
                place = None;
                continue;
            };
            if place != Some(before) {
                (place, start, n_pairs) = (Some(before), turns.pairs.len(), [0, 0]);
            }
            let Some(n) = n_pairs.get_mut(side) else {
                continue;
            };
            let index = start + *n;
            *n += 1;
            if index == turns.pairs.len() {
                turns.pairs.push(TurnPair::default());
            }
            if let Some(pair) = turns.pairs.get_mut(index) {
                let end = if side == 0 {
                    &mut pair.from
                } else {
                    &mut pair.to
                };
                *end = Some(change);
            }
        }
        turns
    }
}

/// The last number of a JSON pointer.
fn index_of(pointer: Option<&str>) -> Option<usize> {
    pointer?.rsplit('/').next()?.parse().ok()
}

impl DiffPage<'_> {
    /// The page as HTML.
    pub fn html(&self) -> Markup {
        self.frame.html(&html! {
            @if let Some((other, diff)) = self.other { (self.comparison(other, diff)) }
            (self.chooser())
        })
    }

    fn chooser(&self) -> Markup {
        let other = self.other.map(|(other, _)| other);
        html! {
            section aria-labelledby="choose" {
                h2 id="choose" { @if other.is_some() { "Compare with another thread" } @else { "Compare with which thread?" } }
                form class="filters" method="get" action={ "/console/t/" (path_segment(self.key)) "/diff" } {
                    label { "Key of the other thread"
                        input type="search" name="with" value=[other] required autocomplete="off" dir="auto";
                    }
                    button type="submit" { "Compare" }
                    a href=(ThreadSection::Branches.path(self.key)) { "Choose from the branches" }
                }
            }
        }
    }

    /// The native route of the comparison.
    fn api_path(&self, other: &str) -> String {
        let (key, other) = (path_segment(self.key), path_segment(other));
        format!("/api/v1/threads/{key}/diff?with={other}")
    }

    fn comparison(&self, other: &str, diff: &Diff) -> Markup {
        let turns = Turns::of(diff);
        html! {
            section aria-labelledby="difference" {
                h2 id="difference" { "Differences" }
                (heads(self.key, other, diff))
                p { (same_words(&turns)) " " span class="quiet" { (diff.summary().to_string()) "." } }
                @if !turns.pairs.is_empty() {
                    h3 { "Turns" }
                    @for pair in turns.pairs.iter().take(MAX_TURNS) { (turn(pair)) }
                    @if turns.pairs.len() > MAX_TURNS {
                        p class="note" {
                            (counted(turns.pairs.len() - MAX_TURNS, "more turn")) " with differences in the JSON: "
                            (self.frame.shell.menu.json_link(&self.api_path(other))) "."
                        }
                    }
                }
                (others(diff, Level::Root, "The thread itself"))
                (others(diff, Level::Agent, "Agents"))
            }
        }
    }
}

fn same_words(turns: &Turns<'_>) -> String {
    match turns.same {
        None => "All turns are the same.".to_owned(),
        Some(0) => "The first turn is different.".to_owned(),
        Some(n) => format!("The same up to turn {n}."),
    }
}

/// The threads with the hashes of their documents.
fn heads(from: &str, to: &str, diff: &Diff) -> Markup {
    let head = |sign: &str, words: &str, key: &str, hash: String| {
        html! {
            div class="side" {
                p { b { (sign) " " (words) } " " a href=(ThreadSection::Timeline.path(key)) dir="auto" { (json::visible(key)) } }
                p class="quiet" { "Hash of its text " code { (hash) } " · " a href=(ThreadSection::Document.path(key)) { "document" span class="hidden" { " of " (json::visible(key)) } } }
            }
        }
    };
    html! {
        div class="sides" {
            (head("−", "first:", from, diff.from.to_string()))
            (head("+", "second:", to, diff.to.to_string()))
        }
    }
}

/// The changes of one level that is no turn.
fn others(diff: &Diff, level: Level, title: &str) -> Markup {
    let changes = diff.changes.iter();
    let changes = changes.filter(|change| change.semantic && change.level == level);
    let rows: Vec<DiffRow> = changes.flat_map(changed_rows).collect();
    html! {
        @if !rows.is_empty() {
            h3 { (title) }
            (rows_html(&rows))
        }
    }
}

fn turn(pair: &TurnPair<'_>) -> Markup {
    let number = |change: Option<&DiffChange>, is_from: bool| {
        let change = change?;
        let pointer = if is_from { &change.from } else { &change.to };
        Some(index_of(pointer.as_deref())? + 1)
    };
    let (from, to) = (number(pair.from, true), number(pair.to, false));
    let title = match (from, to) {
        (Some(one), Some(other)) if one != other => format!("Turn {one} and turn {other}"),
        (Some(one), _) | (None, Some(one)) => format!("Turn {one}"),
        (None, None) => "Turn".to_owned(),
    };
    let what = match (pair.from, pair.to) {
        (Some(one), Some(other)) if std::ptr::eq(one, other) => "changed",
        (Some(_), Some(_)) => "different turns",
        (Some(_), None) => "only in the first",
        (None, _) => "only in the second",
    };
    let rows = match (pair.from, pair.to) {
        (Some(one), Some(other)) if std::ptr::eq(one, other) => changed_rows(one),
        (one, other) => whole_turns(one, other),
    };
    let (details, content): (Vec<DiffRow>, Vec<DiffRow>) =
        rows.into_iter().partition(|row| row.is_detail);
    html! {
        article class="turn" {
            h4 { (title) " " span class="quiet" { (what) } }
            (rows_html(&content))
            @if !details.is_empty() {
                details class="data" {
                    summary { "Times, ids and other members: " (details.len()) }
                    (rows_html(&details))
                }
            }
        }
    }
}

fn rows_html(rows: &[DiffRow]) -> Markup {
    html! {
        @for row in rows.iter().take(MAX_LINES) {
            @let (old, new) = differing(row);
            @if row.from == row.to {
                div class="side" { (line_html("in both: ", row.from.as_ref(), &old)) }
            } @else {
                div class="sides" {
                    (side(true, row.from.as_ref(), &old))
                    (side(false, row.to.as_ref(), &new))
                }
            }
        }
        @if rows.len() > MAX_LINES { p class="note" { "Not shown: " (counted(rows.len() - MAX_LINES, "more line")) "." } }
    }
}

/// One line of one side; empty if only the other side has it.
fn side(is_from: bool, line: Option<&DiffLine>, text: &Markup) -> Markup {
    let (sign, side, words) = if is_from {
        ("−", "from", "first: ")
    } else {
        ("+", "to", "second: ")
    };
    html! {
        @if line.is_some() {
            div class="side" data-side=(side) {
                span class="sign" aria-hidden="true" { (sign) } " "
                (line_html(words, line, text))
            }
        } @else {
            div class="side none" {}
        }
    }
}

/// A line with its label. `words` name its side for screen readers.
fn line_html(words: &str, line: Option<&DiffLine>, text: &Markup) -> Markup {
    html! {
        @if let Some(line) = line {
            span class="hidden" { (words) }
            span class="label" dir="auto" { (json::visible(&line.label)) }
            div class="plain" dir="auto" { (text) }
        }
    }
}

/// A removed and an added turn, line by line.
fn whole_turns(from: Option<&DiffChange>, to: Option<&DiffChange>) -> Vec<DiffRow> {
    let lines = |change: Option<&DiffChange>| match change.map(|it| &it.kind) {
        Some(DiffKind::Removed { value, .. } | DiffKind::Added { value, .. }) => turn_lines(value),
        Some(DiffKind::Changed { .. }) | None => Vec::new(),
    };
    let (mut from, mut to) = (lines(from).into_iter(), lines(to).into_iter());
    let mut rows = Vec::new();
    loop {
        let row = DiffRow {
            from: from.next(),
            to: to.next(),
            is_detail: false,
        };
        if row.from.is_none() && row.to.is_none() {
            return rows;
        }
        rows.push(row);
    }
}
