//! The events of the Markdown parser as HTML.

use super::address::{Address, is_same};
use super::code;
use super::text::{attribute, escape};
use pulldown_cmark::{
    Alignment, CodeBlockKind, CowStr, Event, HeadingLevel, LinkType, Options, Parser, Tag, TagEnd,
};
use std::fmt::Write as _;
use std::ops::Range;

/// Maximum number of elements within each other. Browsers have a limit of their own, mostly 512.
const MAX_DEPTH: usize = 128;

/// The last column in which a list item or a quote may begin. The parser looks at each of them on each line.
const MAX_COLUMN: usize = 200;

/// The text's own direction.
const DIR: &str = r#" dir="auto""#;

/// The levels of the headings that the next one may be below, as bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Headings(u8);

impl Headings {
    /// The element of a heading. It is at most one level below the heading before it.
    fn next(&mut self, level: HeadingLevel, base: u8) -> &'static str {
        let bit = 1 << (level as u8);
        self.0 = self.0 & (bit - 1) | bit;
        match u32::from(base) + self.0.count_ones() {
            0 | 1 => "h1",
            2 => "h2",
            3 => "h3",
            4 => "h4",
            5 => "h5",
            _ => "h6",
        }
    }
}

/// Where a block of the top level begins.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    /// Its offset in the source.
    pub(super) source: usize,
    /// Its offset in the HTML.
    pub(super) html: usize,
    /// The headings before it.
    pub(super) headings: Headings,
}

/// The HTML of a text.
#[derive(Debug, Default)]
pub(super) struct Written {
    pub(super) html: String,
    /// The blocks of the top level.
    pub(super) marks: Vec<Mark>,
}

/// Writes a text. `headings` are those before it.
pub(super) fn write(source: &str, base: u8, headings: Headings) -> Written {
    let mut writer = Writer {
        source,
        base,
        headings,
        ..Writer::default()
    };
    if source.lines().any(is_too_deep) {
        writer.open("p", r#" class="raw" dir="auto""#);
        writer.text(source);
        writer.close();
        return writer.written;
    }
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut depth = 0;
    for (event, range) in Parser::new_ext(source, options).into_offset_iter() {
        let is_end = matches!(event, Event::End(_));
        depth -= usize::from(is_end);
        if depth == 0 && !is_end {
            writer.written.marks.push(Mark {
                source: range.start,
                html: writer.written.html.len(),
                headings: writer.headings,
            });
        }
        depth += usize::from(matches!(event, Event::Start(_)));
        writer.event(event, &range);
    }
    writer.written
}

/// Whether a line begins with too many quotes and list items to read the text in linear time.
fn is_too_deep(line: &str) -> bool {
    let mut rest = line;
    loop {
        rest = rest.trim_start_matches([' ', '\t']);
        let column = line.len() - rest.len();
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let length = if rest.starts_with('>') {
            1
        } else if digits > 0 && rest[digits..].starts_with(['.', ')']) {
            digits + 1
        } else {
            usize::from(rest.starts_with(['-', '+', '*']))
        };
        let is_item = rest[length..].is_empty() || rest[length..].starts_with([' ', '\t']);
        if length == 0 || !is_item && !rest.starts_with('>') {
            return false;
        }
        if column > MAX_COLUMN {
            return true;
        }
        rest = &rest[length..];
    }
}

/// A link or an image whose end was not read yet.
#[derive(Debug)]
struct Target<'a> {
    address: CowStr<'a>,
    /// Its text so far.
    text: String,
}

#[derive(Debug, Default)]
struct Writer<'a> {
    source: &'a str,
    base: u8,
    headings: Headings,
    written: Written,
    /// The open elements. Those that are too deep are empty.
    open: Vec<&'static str>,
    link: Option<Target<'a>>,
    /// The number of links around what is read. The parser knows links within links, HTML does not.
    links: usize,
    image: Option<Target<'a>>,
    /// The number of images around what is read.
    images: usize,
    /// The language and text of a code block.
    code: Option<(CowStr<'a>, String)>,
    /// The columns of a table.
    alignments: Vec<Alignment>,
    column: usize,
    /// Where the last cell ends in the source.
    cell_end: usize,
    in_head: bool,
}

impl<'a> Writer<'a> {
    fn event(&mut self, event: Event<'a>, range: &Range<usize>) {
        match event {
            Event::Start(tag) => self.start(tag, range),
            Event::End(tag) => self.end(tag, range),
            Event::Text(text)
            | Event::Html(text)
            | Event::InlineHtml(text)
            | Event::InlineMath(text)
            | Event::DisplayMath(text)
            | Event::FootnoteReference(text) => self.text(&text),
            Event::Code(text) => {
                self.open("code", "");
                self.text(&text);
                self.close();
            }
            Event::SoftBreak => self.text("\n"),
            Event::HardBreak if self.image.is_some() => self.text("\n"),
            Event::HardBreak => self.html("<br>"),
            Event::Rule => self.html("<hr>"),
            Event::TaskListMarker(true) => self.text("☑ "),
            Event::TaskListMarker(false) => self.text("☐ "),
        }
    }

    fn start(&mut self, tag: Tag<'a>, range: &Range<usize>) {
        match tag {
            Tag::Paragraph => self.open("p", DIR),
            Tag::Heading { level, .. } => {
                let name = self.headings.next(level, self.base);
                self.open(name, DIR);
            }
            Tag::BlockQuote(_) => self.open("blockquote", DIR),
            Tag::CodeBlock(CodeBlockKind::Indented) => {
                self.code = Some(("".into(), String::new()));
            }
            Tag::CodeBlock(CodeBlockKind::Fenced(info)) => self.code = Some((info, String::new())),
            Tag::HtmlBlock => self.open("p", r#" class="raw" dir="auto""#),
            Tag::List(None) => self.open("ul", DIR),
            Tag::List(Some(first)) => self.open("ol", &format!(r#"{DIR} start="{first}""#)),
            Tag::Item => self.open("li", DIR),
            Tag::Table(alignments) => {
                let region = r#" class="table" tabindex="0" role="region" aria-label="Table""#;
                self.open("div", region);
                self.open("table", "");
                self.alignments = alignments;
            }
            Tag::TableHead => {
                self.open("thead", "");
                self.row(true);
            }
            Tag::TableRow => self.row(false),
            Tag::TableCell => self.cell(range),
            Tag::Emphasis => self.open("em", ""),
            Tag::Strong => self.open("strong", ""),
            Tag::Strikethrough => self.open("del", ""),
            Tag::Link {
                link_type,
                dest_url,
                ..
            } => self.start_link(link_type, dest_url),
            Tag::Image { dest_url, .. } => {
                self.images += 1;
                self.image.get_or_insert_with(|| Target {
                    address: dest_url,
                    text: String::new(),
                });
            }
            Tag::FootnoteDefinition(_)
            | Tag::DefinitionList
            | Tag::DefinitionListTitle
            | Tag::DefinitionListDefinition
            | Tag::Superscript
            | Tag::Subscript
            | Tag::MetadataBlock(_) => {}
        }
    }

    fn end(&mut self, tag: TagEnd, range: &Range<usize>) {
        match tag {
            TagEnd::Paragraph
            | TagEnd::Heading(_)
            | TagEnd::BlockQuote(_)
            | TagEnd::HtmlBlock
            | TagEnd::List(_)
            | TagEnd::Item
            | TagEnd::TableCell
            | TagEnd::Emphasis
            | TagEnd::Strong
            | TagEnd::Strikethrough => self.close(),
            TagEnd::CodeBlock => self.end_code(),
            TagEnd::Table => {
                self.close();
                self.close();
                self.close();
            }
            TagEnd::TableHead => {
                self.end_row(range);
                self.close();
                self.open("tbody", "");
            }
            TagEnd::TableRow => self.end_row(range),
            TagEnd::Link => self.end_link(),
            TagEnd::Image => self.end_image(),
            TagEnd::FootnoteDefinition
            | TagEnd::DefinitionList
            | TagEnd::DefinitionListTitle
            | TagEnd::DefinitionListDefinition
            | TagEnd::Superscript
            | TagEnd::Subscript
            | TagEnd::MetadataBlock(_) => {}
        }
    }

    /// Adds HTML of ours.
    fn html(&mut self, html: &str) {
        self.written.html.push_str(html);
    }

    /// Adds text, or collects it for what it belongs to.
    fn text(&mut self, text: &str) {
        if let Some((_, code)) = &mut self.code {
            code.push_str(text);
        } else if let Some(image) = &mut self.image {
            image.text.push_str(text);
        } else {
            if let Some(link) = &mut self.link {
                link.text.push_str(text);
            }
            escape(&mut self.written.html, text);
        }
    }

    /// Opens an element. One that is too deep is a space.
    fn open(&mut self, name: &'static str, attributes: &str) {
        if self.image.is_some() {
            self.open.push("");
        } else if self.open.len() >= MAX_DEPTH {
            self.open.push("");
            self.html(" ");
        } else {
            self.open.push(name);
            // Writing to a string can't fail.
            let _ = write!(self.written.html, "<{name}{attributes}>");
        }
    }

    /// Closes the innermost element.
    fn close(&mut self) {
        if let Some(name) = self.open.pop().filter(|name| !name.is_empty()) {
            let _ = write!(self.written.html, "</{name}>");
        }
    }

    fn row(&mut self, is_head: bool) {
        self.open("tr", "");
        self.in_head = is_head;
        self.column = 0;
    }

    /// Opens a cell. The parser adds cells that a row does not have; those are left out.
    fn cell(&mut self, range: &Range<usize>) {
        let alignment = self.alignments.get(self.column);
        let class = match alignment.copied().unwrap_or(Alignment::None) {
            Alignment::None => "",
            Alignment::Left => r#" class="left""#,
            Alignment::Center => r#" class="center""#,
            Alignment::Right => r#" class="right""#,
        };
        self.column += 1;
        self.cell_end = range.end;
        if range.is_empty() {
            self.open.push("");
        } else {
            let name = if self.in_head { "th" } else { "td" };
            self.open(name, &format!("{class}{DIR}"));
        }
    }

    /// Closes a row. The parser drops the cells that the head has no column for; they become one cell.
    fn end_row(&mut self, range: &Range<usize>) {
        let rest = self.source.get(self.cell_end..range.end);
        let rest = rest
            .unwrap_or_default()
            .trim_matches([' ', '|', '\t', '\r', '\n']);
        if !rest.is_empty() {
            self.open("td", DIR);
            self.text(rest);
            self.close();
        }
        self.close();
    }

    fn start_link(&mut self, link_type: LinkType, address: CowStr<'a>) {
        let address = match link_type {
            LinkType::Email => format!("mailto:{address}").into(),
            LinkType::Inline
            | LinkType::Reference
            | LinkType::ReferenceUnknown
            | LinkType::Collapsed
            | LinkType::CollapsedUnknown
            | LinkType::Shortcut
            | LinkType::ShortcutUnknown
            | LinkType::Autolink
            | LinkType::WikiLink { .. } => address,
        };
        self.links += 1;
        if self.image.is_some() || self.links > 1 {
            return;
        }
        if let Some(it) = Address::read(&address) {
            self.html(r#"<a href=""#);
            attribute(&mut self.written.html, &address);
            self.html(r#"" target="_blank" rel="noopener noreferrer nofollow""#);
            self.html(if it.is_long { r#" data-ask="1">"# } else { ">" });
        }
        self.link = Some(Target {
            address,
            text: String::new(),
        });
    }

    /// Closes a link. The host follows the text, unless the text is the address.
    fn end_link(&mut self) {
        self.links -= 1;
        if self.image.is_some() || self.links > 0 {
            return;
        }
        let Some(link) = self.link.take() else { return };
        let is_same = is_same(&link.text, &link.address);
        let Some(it) = Address::read(&link.address) else {
            if !is_same && !link.address.is_empty() {
                self.text(&format!(" ({})", link.address));
            }
            return;
        };
        if it.is_odd || !is_same {
            self.html(r#" <span class="host""#);
            self.html(if it.is_odd { r#" data-odd="1">"# } else { ">" });
            self.text(it.host);
            self.html("</span>");
        }
        self.html("</a>");
    }

    /// Writes an image as a button that names its host. Within a link it is text.
    fn end_image(&mut self) {
        self.images -= 1;
        let Some(image) = self.image.take_if(|_| self.images == 0) else {
            return;
        };
        let Target { address, text } = image;
        match Address::read(&address).filter(|it| it.is_web) {
            Some(it) => {
                let gap = if text.is_empty() { "" } else { " · " };
                let label = format!("{}{gap}{text}", it.host);
                if self.link.is_some() {
                    self.text(&label);
                    return;
                }
                self.html(r#"<button type="button" class="image" data-src=""#);
                attribute(&mut self.written.html, &address);
                self.html(if it.is_odd {
                    r#"" data-odd="1">"#
                } else {
                    r#"">"#
                });
                self.text(&label);
                self.html("</button>");
            }
            None if address.is_empty() => self.text(&text),
            None => self.text(&format!("{text} ({address})")),
        }
    }

    fn end_code(&mut self) {
        let Some((info, text)) = self.code.take() else {
            return;
        };
        let language = code::language(&info);
        self.html(r#"<pre tabindex="0" dir="auto"><code"#);
        if !language.is_empty() {
            self.html(r#" class="language-"#);
            self.html(&language);
            self.html("\"");
        }
        self.html(">");
        code::write(&mut self.written.html, &language, &text);
        self.html("</code></pre>");
    }
}
