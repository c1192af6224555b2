//! Markdown pages as text, links and anchors.

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// The place of a code span in the text of a token.
pub(crate) const CODE: char = '\u{fffc}';

/// The place of a piece of text on its page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A paragraph or a list item.
    #[default]
    Text,
    Heading,
    Cell,
}

/// Text that ends where its paragraph, list item, heading or cell ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) kind: Kind,
    pub(crate) tokens: Vec<Token>,
}

/// Text between white space.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Token {
    /// The line of its first character, from 1.
    pub(crate) line: usize,
    /// Its prose, with `CODE` for each code span.
    pub(crate) text: String,
    /// Its prose with the code, in backticks.
    pub(crate) shown: String,
}

impl Token {
    /// Whether it counts as a word: it has a letter, a digit or code.
    pub(crate) fn is_word(&self) -> bool {
        self.text.chars().any(|c| c.is_alphanumeric() || c == CODE)
    }
}

/// A link, an image, or an address in HTML.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) line: usize,
    pub(crate) target: String,
    /// The text of the link.
    pub(crate) text: String,
}

/// The text of a page, without code blocks and HTML.
pub(crate) fn pieces(text: &str) -> Vec<Piece> {
    let lines = Lines::of(text);
    let mut builder = Builder::default();
    for (event, range) in events(text) {
        builder.add(event, lines.at(&range));
    }
    builder.finish(Kind::Text);
    builder.pieces
}

/// The links and images of a page, in order.
pub(crate) fn links(text: &str) -> Vec<Link> {
    let lines = Lines::of(text);
    let (mut found, mut open): (Vec<Link>, Vec<usize>) = (Vec::new(), Vec::new());
    for (event, range) in events(text) {
        let line = lines.at(&range);
        match event {
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                open.push(found.len());
                found.push(Link {
                    line,
                    target: dest_url.into_string(),
                    text: String::new(),
                });
            }
            Event::End(TagEnd::Link | TagEnd::Image) => {
                open.pop();
            }
            Event::Text(text) | Event::Code(text) => {
                for at in &open {
                    found[*at].text.push_str(&text);
                }
            }
            Event::Html(html) | Event::InlineHtml(html) => {
                found.extend(attributes(&html, &["href", "src"]).map(|target| Link {
                    line,
                    target,
                    text: String::new(),
                }));
            }
            Event::SoftBreak => {
                for at in &open {
                    found[*at].text.push(' ');
                }
            }
            Event::Start(_)
            | Event::End(_)
            | Event::InlineMath(_)
            | Event::DisplayMath(_)
            | Event::FootnoteReference(_)
            | Event::HardBreak
            | Event::Rule
            | Event::TaskListMarker(_) => {}
        }
    }
    found
}

/// The anchors of a page that are the same on GitHub and in mdBook: its headings, and ids in HTML.
pub(crate) fn anchors(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let (mut github, mut mdbook) = (Slugs::default(), Slugs::default());
    let mut heading: Option<String> = None;
    for (event, _) in events(text) {
        match event {
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::End(TagEnd::Heading(_)) => {
                let title = heading.take().unwrap_or_default();
                let slug = github.unique(slug(&title, |c| c.to_lowercase().collect()));
                if mdbook.unique(self::slug(&title, |c| c.to_ascii_lowercase().to_string())) == slug
                {
                    found.insert(slug);
                }
            }
            Event::Text(text) | Event::Code(text) => {
                if let Some(title) = &mut heading {
                    title.push_str(&text);
                }
            }
            Event::Html(html) | Event::InlineHtml(html) => {
                found.extend(attributes(&html, &["id", "name"]));
            }
            Event::Start(_)
            | Event::End(_)
            | Event::InlineMath(_)
            | Event::DisplayMath(_)
            | Event::FootnoteReference(_)
            | Event::SoftBreak
            | Event::HardBreak
            | Event::Rule
            | Event::TaskListMarker(_) => {}
        }
    }
    found
}

/// Each heading's text with the links until the next heading, in order.
pub(crate) fn sections(text: &str) -> Vec<(String, Vec<Link>)> {
    let titles: Vec<(usize, String)> = pieces(text)
        .into_iter()
        .filter(|it| it.kind == Kind::Heading)
        .filter_map(|it| Some((it.tokens.first()?.line, shown(&it.tokens))))
        .collect();
    let mut sections = vec![(String::new(), Vec::new())];
    let mut titles = titles.into_iter().peekable();
    for link in links(text) {
        while let Some((_, title)) = titles.next_if(|(line, _)| *line <= link.line) {
            sections.push((title, Vec::new()));
        }
        if let Some((_, links)) = sections.last_mut() {
            links.push(link);
        }
    }
    sections.retain(|(_, links)| !links.is_empty());
    sections
}

/// Tokens as text.
pub(crate) fn shown(tokens: &[Token]) -> String {
    let words: Vec<&str> = tokens.iter().map(|it| it.shown.as_str()).collect();
    words.join(" ")
}

fn events(text: &str) -> impl Iterator<Item = (Event<'_>, Range<usize>)> {
    Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter()
}

/// The values of attributes in HTML.
fn attributes(html: &str, names: &[&str]) -> impl Iterator<Item = String> {
    let mut found = Vec::new();
    for name in names {
        for rest in html.split(&format!(" {name}=\"")).skip(1) {
            found.extend(rest.split_once('"').map(|(value, _)| value.to_owned()));
        }
    }
    found.into_iter()
}

/// A heading as an anchor.
fn slug(title: &str, lower: impl Fn(char) -> String) -> String {
    let mut slug = String::new();
    for c in title.trim().chars() {
        if c.is_alphanumeric() || c == '_' || c == '-' {
            slug.push_str(&lower(c));
        } else if c.is_whitespace() {
            slug.push('-');
        }
    }
    slug
}

/// How often each anchor was there.
#[derive(Default)]
struct Slugs(BTreeMap<String, usize>);

impl Slugs {
    /// The anchor, with a number if the page has it already.
    fn unique(&mut self, slug: String) -> String {
        let count = self.0.entry(slug.clone()).or_default();
        *count += 1;
        if *count == 1 {
            slug
        } else {
            format!("{slug}-{}", *count - 1)
        }
    }
}

/// Where lines begin.
struct Lines(Vec<usize>);

impl Lines {
    fn of(text: &str) -> Self {
        let ends = text.match_indices('\n').map(|(at, _)| at + 1);
        Self(std::iter::once(0).chain(ends).collect())
    }

    /// The line of a range's first byte, from 1.
    fn at(&self, range: &Range<usize>) -> usize {
        self.0.partition_point(|start| *start <= range.start)
    }
}

/// Makes pieces of events.
#[derive(Default)]
struct Builder {
    pieces: Vec<Piece>,
    piece: Piece,
    /// Whether the next text begins a token.
    is_apart: bool,
    /// Whether the text is code or metadata.
    is_code: bool,
}

impl Builder {
    fn add(&mut self, event: Event<'_>, line: usize) {
        match event {
            Event::Start(tag) => self.start(&tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => {
                if !self.is_code {
                    self.text(&text, line);
                }
            }
            Event::Code(code) | Event::InlineMath(code) | Event::DisplayMath(code) => {
                let token = self.token(line);
                token.text.push(CODE);
                token.shown.push('`');
                token.shown.push_str(&code);
                token.shown.push('`');
            }
            Event::SoftBreak | Event::HardBreak | Event::InlineHtml(_) => self.is_apart = true,
            Event::Html(_)
            | Event::FootnoteReference(_)
            | Event::Rule
            | Event::TaskListMarker(_) => {}
        }
    }

    fn start(&mut self, tag: &Tag<'_>) {
        if is_inline(tag.to_end()) {
            return;
        }
        self.finish(if matches!(tag, Tag::Heading { .. }) {
            Kind::Heading
        } else if matches!(tag, Tag::TableCell) {
            Kind::Cell
        } else {
            Kind::Text
        });
        self.is_code |= is_code(tag.to_end());
    }

    fn end(&mut self, tag: TagEnd) {
        if is_inline(tag) {
            return;
        }
        self.finish(Kind::Text);
        self.is_code &= !is_code(tag);
    }

    fn text(&mut self, text: &str, line: usize) {
        for c in text.chars() {
            if c.is_whitespace() {
                self.is_apart = true;
            } else {
                let token = self.token(line);
                token.text.push(c);
                token.shown.push(c);
            }
        }
    }

    /// The token that text at this place belongs to.
    fn token(&mut self, line: usize) -> &mut Token {
        let tokens = &mut self.piece.tokens;
        if self.is_apart || tokens.is_empty() {
            tokens.push(Token {
                line,
                ..Token::default()
            });
        }
        self.is_apart = false;
        let last = tokens.len() - 1;
        &mut tokens[last]
    }

    /// Ends the piece; the next one is of this kind.
    fn finish(&mut self, kind: Kind) {
        let next = Piece {
            kind,
            tokens: Vec::new(),
        };
        let piece = std::mem::replace(&mut self.piece, next);
        if !piece.tokens.is_empty() {
            self.pieces.push(piece);
        }
        self.is_apart = false;
    }
}

fn is_inline(tag: TagEnd) -> bool {
    matches!(
        tag,
        TagEnd::Emphasis
            | TagEnd::Strong
            | TagEnd::Strikethrough
            | TagEnd::Superscript
            | TagEnd::Subscript
            | TagEnd::Link
            | TagEnd::Image
    )
}

fn is_code(tag: TagEnd) -> bool {
    matches!(
        tag,
        TagEnd::CodeBlock | TagEnd::HtmlBlock | TagEnd::MetadataBlock(_)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<(Kind, String)> {
        let pieces = pieces(text);
        let texts = pieces.iter().map(|it| (it.kind, shown(&it.tokens)));
        texts.collect()
    }

    #[test]
    fn items_headings_and_cells_are_pieces() {
        let text = "# A b\n\nC d\ne:\n\n- f\n  - g\n- h\n\n| i | `j` |\n|---|---|\n| k l | |\n";
        let expected = [
            (Kind::Heading, "A b"),
            (Kind::Text, "C d e:"),
            (Kind::Text, "f"),
            (Kind::Text, "g"),
            (Kind::Text, "h"),
            (Kind::Cell, "i"),
            (Kind::Cell, "`j`"),
            (Kind::Cell, "k l"),
        ];
        assert_eq!(
            texts(text),
            expected.map(|(kind, it)| (kind, it.to_owned()))
        );
    }

    #[test]
    fn code_blocks_html_and_link_targets_are_no_text() {
        let text = "a [b](c.md) d<br>e\n\n```sh\nf\n```\n\n<!-- g -->\n\n    h\n";
        assert_eq!(texts(text), [(Kind::Text, "a b d e".to_owned())]);
    }

    #[test]
    fn a_token_has_its_line_and_its_code() {
        let tokens = &pieces("a\n`b c`s,\n").remove(0).tokens;
        let code = &tokens[1];
        assert_eq!((code.line, code.shown.as_str()), (2, "`b c`s,"));
        assert_eq!(code.text, format!("{CODE}s,"));
    }

    #[test]
    fn links_images_and_html_have_targets_and_lines() {
        let text = "[a `b`](c.md#d)\n![e](f.png) <g@h.org>\n\n<img alt=\"\" src=\"i.svg\">\n\n[j][k]\n\n[k]: l.md\n";
        let found: Vec<_> = links(text)
            .into_iter()
            .map(|it| (it.line, it.target, it.text))
            .collect();
        let expected = [
            (1, "c.md#d", "a b"),
            (2, "f.png", "e"),
            (2, "g@h.org", "g@h.org"),
            (4, "i.svg", ""),
            (6, "l.md", "j"),
        ];
        assert_eq!(
            found,
            expected.map(|(line, target, text)| (line, target.to_owned(), text.to_owned()))
        );
    }

    #[test]
    fn anchors_follow_the_rules_of_github_and_mdbook() {
        let text =
            "# `GET /a/{b}` and “c” – d_e-f\n\n## A\n\n## A\n\n<a id=\"g\"></a>\n\n## Ärger\n";
        let expected = ["a", "a-1", "g", "get-ab-and-c--d_e-f"];
        assert_eq!(anchors(text).into_iter().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn sections_have_the_links_below_their_headings() {
        let text = "# Summary\n\n[a](a.md)\n\n# B\n\n- [c](c.md)\n  - [d](d.md)\n\n# E\n";
        let found: Vec<(String, usize)> = sections(text)
            .into_iter()
            .map(|(title, links)| (title, links.len()))
            .collect();
        assert_eq!(found, [("Summary".to_owned(), 1), ("B".to_owned(), 2)]);
    }
}
