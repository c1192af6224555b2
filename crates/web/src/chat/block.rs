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
}

impl TextBlock {
    pub(crate) fn new(run: &str, block_id: &str) -> Self {
        let id = ids::block(run, block_id);
        Self {
            text: MarkdownStream::new(ids::within(&id, "m"), HEADING_LEVEL),
            id,
            block_id: block_id.to_owned(),
            is_over: false,
        }
    }

    pub(crate) fn push(&mut self, text: &str, out: &mut Vec<Patch>) {
        self.text.push(text, out);
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
                    None => (self.markdown()),
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
                details class="reasoning" id=(text.id) { (text.summary()) (text.markdown()) }
            },
            Self::Tool(card) => card.html(),
            Self::Handoff { to, reason } => html! {
                p class="note handoff" {
                    "Handed over to " b { (json::visible(to)) }
                    @if let Some(reason) = reason { ": " span dir="auto" { (json::visible(reason)) } }
                }
            },
            Self::File { url, media_type } => file(url, media_type, None),
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

/// A file or an image. The page never loads it by itself.
pub(crate) fn file(url: &str, media_type: &str, name: Option<&str>) -> Markup {
    let shown = name.map_or_else(|| "file".into(), json::visible);
    let is_image = media_type.starts_with("image/");
    html! {
        figure class="file" {
            span class="label" { @if is_image { "Image" } @else { "File" } }
            span class="name" dir="auto" { (shown) }
            @if !media_type.is_empty() { span class="quiet" { (json::visible(media_type)) } }
            @if let Some(data) = inline_image(url, media_type) {
                button type="button" class="show" data-image=(data) { "Show" }
            } @else if is_linked(url) {
                a href=(url) target="_blank" rel="noopener noreferrer nofollow" data-ask { "Open" }
            }
        }
    }
}

/// The base64 text of an image that the page can show from memory.
fn inline_image<'u>(url: &'u str, media_type: &str) -> Option<&'u str> {
    const SHOWN: [&str; 5] = [
        "image/png",
        "image/jpeg",
        "image/gif",
        "image/webp",
        "image/avif",
    ];
    let (head, data) = url.strip_prefix("data:")?.split_once(',')?;
    let kind = head.strip_suffix(";base64")?;
    let is_shown = SHOWN.contains(&kind)
        && (media_type.is_empty() || SHOWN.contains(&media_type) || media_type == "image/*");
    is_shown.then_some(data)
}

/// A member of a JSON object that is a text.
pub(crate) fn text_member<'v>(value: &'v Value, name: &str) -> Option<&'v str> {
    value.get(name).and_then(Value::as_str)
}
