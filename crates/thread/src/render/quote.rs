//! Foreign turns as quotations in a request.

use super::draft::{Draft, DraftPart, pointer_at};
use super::pairs::Link;
use super::{RenderChange, What};
use crate::document::{Part, PartKind};
use crate::json::{Json, Object};

/// Turns each run of foreign messages in a turn into one request that quotes them.
pub(super) fn quote<'a>(drafts: Vec<Draft<'a>>, changes: &mut Vec<RenderChange>) -> Vec<Draft<'a>> {
    let mut quoted: Vec<Draft<'a>> = Vec::with_capacity(drafts.len());
    let mut run: Option<Run<'a>> = None;
    for mut draft in drafts {
        let Some(name) = draft.foreign else {
            quoted.extend(run.take().and_then(Run::into_draft));
            quote_answers(&mut draft, changes);
            quoted.push(draft);
            continue;
        };
        let goes_on = run.as_ref().is_some_and(|run| run.is_of(&draft, name));
        if !goes_on {
            quoted.extend(run.take().and_then(Run::into_draft));
        }
        let own = take_own_answers(&mut draft);
        let run_now = run.get_or_insert_with(|| Run::new(&draft, name));
        for piece in &draft.parts {
            run_now.take(piece, changes);
        }
        if let Some(own) = own {
            quoted.extend(run.take().and_then(Run::into_draft));
            quoted.push(own);
        }
    }
    quoted.extend(run.and_then(Run::into_draft));
    quoted
}

/// The quotations of one request.
struct Run<'a> {
    name: &'a str,
    place: (usize, Option<usize>),
    timestamp: Option<Json>,
    lines: Vec<String>,
}

impl<'a> Run<'a> {
    fn new(draft: &Draft<'a>, name: &'a str) -> Self {
        Self {
            name,
            place: draft.location,
            timestamp: draft.timestamp.clone(),
            lines: Vec::new(),
        }
    }

    fn is_of(&self, draft: &Draft<'_>, name: &str) -> bool {
        self.place.0 == draft.location.0 && self.name == name
    }

    fn take(&mut self, piece: &DraftPart<'_>, changes: &mut Vec<RenderChange>) {
        let what = match quoted_text(Part::new(&piece.json)) {
            Some(text) => {
                self.lines.push(text);
                What::Quoted
            }
            None => What::NotQuotable,
        };
        changes.push(RenderChange::new(pointer_at(piece.at), what));
    }

    fn into_draft(self) -> Option<Draft<'a>> {
        if self.lines.is_empty() {
            return None;
        }
        let json = prompt(self.name, &self.lines, self.timestamp.clone());
        let at = (self.place.0, self.place.1, 0);
        let link = None;
        let parts = vec![DraftPart { json, at, link }];
        Some(Draft::request(self.place, self.timestamp, parts))
    }
}

/// The viewing agent's own answers in a foreign message, as a request of their own.
fn take_own_answers<'a>(draft: &mut Draft<'a>) -> Option<Draft<'a>> {
    let is_own = |piece: &DraftPart<'_>| matches!(piece.link, Some(Link::Answer(_, None)));
    if !draft.parts.iter().any(is_own) {
        return None;
    }
    let (own, others) = std::mem::take(&mut draft.parts)
        .into_iter()
        .partition(is_own);
    draft.parts = others;
    Some(Draft::request(draft.location, draft.timestamp.clone(), own))
}

/// Quotes the answers to foreign calls that stand in a message of a user or of the viewing agent.
fn quote_answers(draft: &mut Draft<'_>, changes: &mut Vec<RenderChange>) {
    for piece in &mut draft.parts {
        if let Some(Link::Answer(_, Some(name))) = piece.link
            && let Some(text) = quoted_text(Part::new(&piece.json))
        {
            piece.json = prompt(name, &[text], draft.timestamp.clone());
            piece.link = None;
            changes.push(RenderChange::new(pointer_at(piece.at), What::Quoted));
        }
    }
}

fn prompt(name: &str, texts: &[String], timestamp: Option<Json>) -> Json {
    let mut content = format!("The agent {name} wrote:");
    for line in texts.iter().flat_map(|text| text.split('\n')) {
        content.push_str("\n> ");
        content.push_str(line);
    }
    let part = Object::new()
        .with("part_kind", "user-prompt")
        .with("content", content);
    part.with_some("timestamp", timestamp).into()
}

/// A part as one or more lines of text; `None` if it has no text.
fn quoted_text(part: Part<'_>) -> Option<String> {
    let tool = || part.tool_name().unwrap_or("a tool");
    let content = || part.content().map(plain).unwrap_or_default();
    match part.kind() {
        PartKind::Text => part.content_str().map(str::to_owned),
        PartKind::UserPrompt => Some(format!("[was told: {}]", content())),
        PartKind::ToolCall => {
            let args = part.args().map(plain).unwrap_or_default();
            Some(format!("[called {} with {args}]", tool()))
        }
        PartKind::ToolReturn => Some(format!("[{} returned {}]", tool(), content())),
        PartKind::RetryPrompt => Some(format!("[was asked to try again: {}]", content())),
        PartKind::File => {
            let media_type = part.content().and_then(|file| file.get("media_type"));
            let media_type = media_type.and_then(Json::as_str).unwrap_or("unknown type");
            Some(format!("[made a file: {media_type}]"))
        }
        PartKind::Thinking | PartKind::SystemPrompt | PartKind::Other(_) | PartKind::Missing => {
            None
        }
    }
}

/// A string unchanged, a prompt's list as text, anything else as JSON.
fn plain(json: &Json) -> String {
    match json {
        Json::String(text) => text.clone(),
        Json::Array(items) if items.iter().any(is_media) => {
            let items: Vec<_> = items.iter().map(item).collect();
            items.join(" ")
        }
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::Array(_) | Json::Object(_) => {
            json.to_text()
        }
    }
}

fn is_media(item: &Json) -> bool {
    item.get("kind").and_then(Json::as_str).is_some()
}

/// One item of a prompt; bytes are only named.
fn item(item: &Json) -> String {
    let text = |key: &str| item.get(key).and_then(Json::as_str);
    match (item.as_str(), text("kind"), text("url"), text("content")) {
        (Some(said), ..) | (None, Some(_), None, Some(said)) => said.to_owned(),
        (None, Some(kind), Some(url), _) => format!("({kind}: {url})"),
        (None, Some(kind), None, None) => {
            format!("({kind}: {})", text("media_type").unwrap_or("unknown type"))
        }
        (None, None, ..) => item.to_text(),
    }
}
