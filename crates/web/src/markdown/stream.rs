//! Markdown while it is written, as patches of an open page.

use super::text::{attribute, escape};
use super::writer::{self, Headings, Mark};
use crate::Patch;
use crate::hidden::visible;
use std::fmt::Write as _;

/// The open part is drawn again when it has grown by this, in bytes, or by a sixteenth.
const MIN_GROWTH: usize = 24;

/// A Markdown text that is written piece by piece.
///
/// The container of the page has final blocks, which never change, and then the tail. The tail is drawn
/// again each time when it has grown by a sixteenth, so the work is linear in the length of the text.
/// Between two redraws, new text is added at the end of the tail as it is.
#[derive(Clone, Debug)]
pub struct MarkdownStream {
    id: String,
    base: u8,
    source: String,
    /// Where the open part begins in the source.
    stable: usize,
    /// The length of the source that was drawn.
    drawn: usize,
    min_growth: usize,
    /// The headings before the open part.
    headings: Headings,
    /// The HTML of all final blocks.
    done: String,
    /// Each batch of final blocks: its offset in the source and in `done`.
    batches: Vec<(usize, usize)>,
    /// The HTML of the open part, as it was drawn.
    tail: String,
    /// Where new text is added in `tail`.
    end: usize,
    is_finished: bool,
    /// The number of bytes that were parsed.
    #[cfg(test)]
    pub(super) parsed: usize,
}

impl MarkdownStream {
    /// A text that is empty so far. `id` is the id of its container, `<div class="md" id="ID">`; `base` is
    /// the level of the heading above it.
    pub fn new(id: impl Into<String>, base: u8) -> Self {
        Self {
            id: id.into(),
            base,
            source: String::new(),
            stable: 0,
            drawn: 0,
            min_growth: MIN_GROWTH,
            headings: Headings::default(),
            done: String::new(),
            batches: Vec::new(),
            tail: String::new(),
            end: 0,
            is_finished: false,
            #[cfg(test)]
            parsed: 0,
        }
    }

    /// Draws the open part at each push, so that short tests meet every state.
    #[cfg(test)]
    pub(super) fn eager(mut self) -> Self {
        self.min_growth = 1;
        self
    }

    /// Adds a piece of text, and the patches that show it. A finished text does not change.
    pub fn push(&mut self, delta: &str, out: &mut Vec<Patch>) {
        if self.is_finished || delta.is_empty() {
            return;
        }
        self.source.push_str(delta);
        let growth = (self.drawn - self.stable) / 16;
        if self.source.len() - self.drawn >= growth.max(self.min_growth) {
            self.redraw(out);
        } else {
            out.push(Patch::Text {
                id: self.part("x"),
                text: visible(delta).replace('\r', ""),
            });
        }
    }

    /// Ends the text, and adds the patches after which the container has the blocks of [`render`].
    ///
    /// [`render`]: super::render
    pub fn finish(&mut self, out: &mut Vec<Patch>) {
        if self.is_finished {
            return;
        }
        self.is_finished = true;
        let fresh = self.write(0, Headings::default()).html;
        if let Some(rest) = fresh.strip_prefix(&self.done) {
            if !rest.is_empty() {
                self.add_batch(rest, out);
            }
            out.push(Patch::Drop { id: self.part("t") });
        } else {
            // A definition at the end of the text has made links of text in final blocks.
            self.batches.clear();
            out.push(Patch::Put {
                id: self.id.clone(),
                html: element("md", &self.id, &fresh),
            });
        }
        self.done = fresh;
    }

    /// The text so far.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The inner HTML of the container at this moment. Later patches fit it.
    pub fn html(&self) -> String {
        let first = self.batches.first().map_or(self.done.len(), |it| it.1);
        let mut html = self.done[..first].to_owned();
        let ends = self.batches.iter().skip(1).map(|it| it.1);
        for ((source, from), to) in self.batches.iter().zip(ends.chain([self.done.len()])) {
            html.push_str(&self.batch(*source, &self.done[*from..to]));
        }
        if !self.is_finished {
            html.push_str(&self.tail());
        }
        html
    }

    fn redraw(&mut self, out: &mut Vec<Patch>) {
        let mut written = self.write(self.stable, self.headings);
        if let Some(cut) = boundary(&self.source[self.stable..], &written.marks) {
            let tail = written.html.split_off(cut.html);
            self.add_batch(&written.html, out);
            self.done.push_str(&written.html);
            self.stable += cut.source;
            self.headings = cut.headings;
            self.tail = tail;
        } else {
            self.tail = written.html;
        }
        self.drawn = self.source.len();
        self.end = end_of_text(&self.source[self.stable..], &self.tail);
        out.push(Patch::Put {
            id: self.part("t"),
            html: self.tail(),
        });
    }

    /// Parses the source from an offset on.
    fn write(&mut self, from: usize, headings: Headings) -> writer::Written {
        #[cfg(test)]
        {
            self.parsed += self.source.len() - from;
        }
        writer::write(&self.source[from..], self.base, headings)
    }

    /// Adds final blocks, which begin where the open part began.
    fn add_batch(&mut self, html: &str, out: &mut Vec<Patch>) {
        self.batches.push((self.stable, self.done.len()));
        out.push(Patch::Before {
            id: self.part("t"),
            html: self.batch(self.stable, html),
        });
    }

    fn batch(&self, source: usize, html: &str) -> String {
        element("b", &self.part(&source.to_string()), html)
    }

    /// The tail element, with the text that was not drawn yet.
    fn tail(&self) -> String {
        let (before, after) = self.tail.split_at(self.end);
        let mut html = format!(r#"{before}<span id=""#);
        attribute(&mut html, &self.part("x"));
        html.push_str(r#"">"#);
        // The space at the end of a line is not in the HTML, and parts it from what follows.
        if self.source[self.stable..self.drawn].ends_with(' ') && !before.ends_with(' ') {
            html.push(' ');
        }
        escape(&mut html, &visible(&self.source[self.drawn..]));
        html.push_str("</span>");
        html.push_str(after);
        element("tail", &self.part("t"), &html)
    }

    /// The id of an element within the container.
    fn part(&self, name: &str) -> String {
        format!("{}-{name}", self.id)
    }
}

fn element(class: &str, id: &str, html: &str) -> String {
    let mut out = format!(r#"<div class="{class}" id=""#);
    attribute(&mut out, id);
    // Writing to a string can't fail.
    let _ = write!(out, r#"">{html}</div>"#);
    out
}

/// The last block before which a text may be cut, with the offset of its line. A blank line is before it,
/// and one more block follows it: what is written later may change the last block, or join it to the one
/// before.
fn boundary(source: &str, marks: &[Mark]) -> Option<Mark> {
    let candidates = marks.get(1..marks.len().checked_sub(1)?)?;
    candidates.iter().rev().find_map(|mark| {
        let is_end = |c: char| c == '\n' || c == '\r';
        let at = source[..mark.source].rfind(is_end)? + 1;
        let before = &source[..at];
        let before = before.strip_suffix('\n').unwrap_or(before);
        let before = before.strip_suffix('\r').unwrap_or(before);
        let is_blank = before.trim_end_matches([' ', '\t']).ends_with(is_end);
        is_blank.then_some(Mark {
            source: at,
            ..*mark
        })
    })
}

/// Where new text is shown in the HTML of the open part: within the last block, if it may go on.
fn end_of_text(source: &str, html: &str) -> usize {
    const CLOSING: [&str; 5] = ["</p>", "</li>", "</ul>", "</ol>", "</blockquote>"];
    let line = source.trim_end().rsplit('\n').next().unwrap_or_default();
    let is_fence = line.trim_start().starts_with(['`', '~']);
    if let Some(code) = html.strip_suffix("</code></pre>").filter(|_| !is_fence) {
        return code.len();
    }
    let mut rest = html;
    while !source.ends_with('\n') {
        let Some(shorter) = CLOSING.iter().find_map(|it| rest.strip_suffix(it)) else {
            break;
        };
        rest = shorter;
    }
    rest.len()
}
