//! A block of an agent's answer.

use super::tool::ToolCard;
use crate::ids;
use crate::json;
use crate::markdown::MarkdownStream;
use crate::patch::Patch;
use crate::requests::capability_card;
use maud::{Markup, PreEscaped, html};
use serde_json::Value;
use timeline::Payload;

/// The level of a message's heading, below which its texts have theirs.
const HEADING_LEVEL: u8 = 2;
/// Maximum length of a text on the page, in bytes.
const MAX_SHOWN: usize = 512 << 10;
/// Maximum length of a source's address on the page, in bytes.
const MAX_URL: usize = 2_000;

/// A block of an answer, by its kind.
#[derive(Debug)]
pub(crate) enum Block {
    Text(TextBlock),
    Reasoning(TextBlock),
    Tool(Box<ToolCard>),
    Handoff {
        to: String,
        reason: Option<String>,
    },
    File {
        url: String,
        /// The address on this server, if the content is within the part.
        source: String,
        media_type: String,
    },
    Source {
        title: String,
        url: Option<String>,
    },
    /// Data of an application, or a part of an unknown type.
    Data {
        name: String,
        json: String,
        /// Whether it is a chunk, which no new page shows after the answer.
        is_streamed: bool,
    },
}

/// A text that the model writes.
#[derive(Debug)]
pub(crate) struct TextBlock {
    /// The id of its element.
    id: String,
    /// The id in the log.
    pub(crate) block_id: String,
    text: MarkdownStream,
    is_over: bool,
    /// Whether the page shows only its beginning.
    is_cut: bool,
}

impl TextBlock {
    pub(crate) fn new(run: &str, block_id: &str) -> Self {
        let id = ids::block(run, block_id);
        Self {
            text: MarkdownStream::new(ids::within(&id, "m"), HEADING_LEVEL),
            id,
            block_id: block_id.to_owned(),
            is_over: false,
            is_cut: false,
        }
    }

    pub(crate) fn push(&mut self, text: &str, out: &mut Vec<Patch>) {
        if self.is_cut {
            return;
        }
        let room = MAX_SHOWN.saturating_sub(self.text.source().len());
        let (shown, rest) = text.split_at(text.floor_char_boundary(room));
        self.text.push(shown, out);
        if !rest.is_empty() {
            self.is_cut = true;
            out.push(Patch::Put {
                id: ids::within(&self.id, "n"),
                html: self.note().into_string(),
            });
        }
    }

    /// The place of the note below a text that is cut.
    fn note(&self) -> Markup {
        html! {
            div id=(ids::within(&self.id, "n")) {
                @if self.is_cut {
                    p class="note" { "This text is longer. The page shows its first " (MAX_SHOWN >> 10) " KiB." }
                }
            }
        }
    }

    /// The text is complete.
    pub(crate) fn finish(&mut self, is_reasoning: bool, out: &mut Vec<Patch>) {
        self.text.finish(out);
        self.is_over = true;
        if !is_reasoning && self.card().is_some() {
            out.push(Patch::Put {
                id: self.id.clone(),
                html: self.html().into_string(),
            });
        }
        if is_reasoning {
            out.push(Patch::Put {
                id: ids::within(&self.id, "h"),
                html: self.summary().into_string(),
            });
        }
    }

    /// The card of a capability message.
    fn card(&self) -> Option<Markup> {
        self.is_over
            .then(|| capability_card(self.text.source()))
            .flatten()
    }

    fn html(&self) -> Markup {
        html! {
            div class="text" id=(self.id) {
                @match self.card() {
                    Some(card) => (card),
                    None => { (self.markdown()) (self.note()) },
                }
            }
        }
    }

    /// Another block begins. More of this one may follow.
    pub(crate) fn pause(&mut self, out: &mut Vec<Patch>) {
        if !self.is_over {
            self.is_over = true;
            out.push(Patch::Put {
                id: ids::within(&self.id, "h"),
                html: self.summary().into_string(),
            });
        }
    }

    fn markdown(&self) -> Markup {
        html! { div class="md" id=(ids::within(&self.id, "m")) dir="auto" { (PreEscaped(self.text.html())) } }
    }

    fn summary(&self) -> Markup {
        html! {
            summary id=(ids::within(&self.id, "h")) {
                "Reasoning"
                @if !self.is_over { span class="words" { "thinking" } }
            }
        }
    }
}

impl Block {
    pub(crate) fn html(&self) -> Markup {
        match self {
            Self::Text(text) => text.html(),
            Self::Reasoning(text) => html! {
                details class="reasoning" id=(text.id) { (text.summary()) (text.markdown()) (text.note()) }
            },
            Self::Tool(card) => card.html(),
            Self::Handoff { to, reason } => html! {
                p class="note handoff" {
                    "Handed over to " b { (json::visible(to)) }
                    @if let Some(reason) = reason { ": " span dir="auto" { (json::visible(reason)) } }
                }
            },
            Self::File {
                url,
                source,
                media_type,
            } => file((url, source), media_type, None),
            Self::Source { title, url } => source(title, url.as_deref()),
            Self::Data { name, json, .. } => html! {
                details class="data" {
                    summary { "Data " code { (json::visible(name)) } }
                    pre tabindex="0" { code { (json::pretty(json)) } }
                }
            },
        }
    }

    /// A source, as the AI SDK describes it.
    pub(crate) fn source(data: &Payload) -> Self {
        let url = data.str_field("url");
        let title = data
            .str_field("title")
            .or_else(|| data.str_field("filename"));
        let title = title.or_else(|| url.clone());
        Self::Source {
            title: title.unwrap_or_else(|| "source".to_owned()),
            url,
        }
    }

    /// Whether it is shown only until the model has answered.
    pub(crate) fn is_streamed(&self) -> bool {
        match self {
            Self::Source { .. } => true,
            Self::Data { is_streamed, .. } => *is_streamed,
            Self::Text(_)
            | Self::Reasoning(_)
            | Self::Tool(_)
            | Self::Handoff { .. }
            | Self::File { .. } => false,
        }
    }

    /// Data with a name.
    pub(crate) fn data(name: &str, data: Option<&Payload>, is_streamed: bool) -> Self {
        Self::Data {
            is_streamed,
            name: name.to_owned(),
            json: data.map(|data| data.text().to_owned()).unwrap_or_default(),
        }
    }
}

/// Whether the page links this address.
fn is_linked(url: &str) -> bool {
    let lower = url.get(..8).unwrap_or(url).to_ascii_lowercase();
    url.len() <= MAX_URL && (lower.starts_with("http://") || lower.starts_with("https://"))
}

fn source(title: &str, url: Option<&str>) -> Markup {
    html! {
        p class="note source" {
            "Source: "
            @match url.filter(|url| is_linked(url)) {
                Some(url) => a href=(url) target="_blank" rel="noopener noreferrer nofollow" data-ask { (json::visible(title)) },
                None => span dir="auto" { (json::visible(title)) },
            }
        }
    }
}

/// A file or an image. The page never loads it by itself. `url` is what the thread has; if that is the
/// content, this server has the file at `source`.
pub(crate) fn file((url, source): (&str, &str), media_type: &str, name: Option<&str>) -> Markup {
    let shown = name.map_or_else(|| "file".into(), json::visible);
    let is_image = media_type.starts_with("image/");
    html! {
        figure class="file" {
            span class="label" { @if is_image { "Image" } @else { "File" } }
            span class="name" dir="auto" { (shown) }
            @if !media_type.is_empty() { span class="quiet" { (json::visible(media_type)) } }
            @if is_shown_image(url, media_type) {
                button type="button" class="show" data-image=(source) { "Show" }
            }
            @if is_content(url) {
                a href=(source) download=(shown) { "Save" }
            } @else if is_linked(url) {
                a href=(url) target="_blank" rel="noopener noreferrer nofollow" data-ask { "Open" }
            }
        }
    }
}

/// Whether the part has the content itself: as a `data:` URL, or in base64.
fn is_content(url: &str) -> bool {
    url.starts_with("data:") || (!url.is_empty() && !url.contains(':'))
}

/// Whether it is an image that the page can show from memory.
fn is_shown_image(url: &str, media_type: &str) -> bool {
    const SHOWN: [&str; 5] = [
        "image/png",
        "image/jpeg",
        "image/gif",
        "image/webp",
        "image/avif",
    ];
    let within = url
        .strip_prefix("data:")
        .and_then(|data| data.split_once(";base64,"));
    let kind = within.map_or(media_type, |(kind, _)| kind);
    let is_declared =
        media_type.is_empty() || media_type == "image/*" || SHOWN.contains(&media_type);
    is_content(url) && is_declared && SHOWN.contains(&kind)
}

/// A member of a JSON object that is a text.
pub(crate) fn text_member<'v>(value: &'v Value, name: &str) -> Option<&'v str> {
    value.get(name).and_then(Value::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_beyond_the_limit_is_cut_with_one_note() {
        let mut text = TextBlock::new("r", "b");
        let mut patches = Vec::new();
        for _ in 0..6 {
            text.push(&"ä".repeat(50_000), &mut patches);
        }
        text.finish(false, &mut patches);
        let shown = text.html().into_string();
        assert_eq!(shown.matches("The page shows its first").count(), 1);
        assert!(text.text.source().len() <= MAX_SHOWN);
        let is_note = |patch: &&Patch| matches!(patch, Patch::Put { id, .. } if *id == ids::within(&text.id, "n"));
        assert_eq!(patches.iter().filter(is_note).count(), 1);
    }

    #[test]
    fn a_file_within_a_part_is_read_from_the_server() {
        let image =
            |url: &str, kind: &str| file((url, "/ui/file?x"), kind, Some("a.png")).into_string();
        let shown = image("data:image/png;base64,AAAA", "image/png");
        assert!(shown.contains("data-image=\"/ui/file?x\"") && !shown.contains("AAAA"));
        assert!(shown.contains("download=\"a.png\""));
        let drawing = image("data:image/svg+xml;base64,AAAA", "image/svg+xml");
        assert!(!drawing.contains("data-image") && drawing.contains("Save"));
        let remote = image("https://example.org/a.png", "image/png");
        assert!(!remote.contains("data-image") && remote.contains("data-ask"));
    }
}
