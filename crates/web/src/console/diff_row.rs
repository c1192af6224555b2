//! The lines of a comparison: pieces of two documents, in words.

use crate::json;
use maud::{Markup, html};
use thread::Json;
use thread::diff::{DiffChange, DiffKind, Edit, Level, MemberChange};
use thread::document::{Message, Part, PartKind, Turn};

/// Maximum length of a text, in bytes.
const MAX_TEXT: usize = 2_000;
/// Number of characters that are shown on each side of a difference.
const AROUND: usize = 120;

/// A piece of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DiffLine {
    /// Its kind, or its name.
    pub(crate) label: String,
    /// Its text.
    pub(crate) text: String,
}

/// A piece of the first document, and that of the second in its place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DiffRow {
    /// The piece of the first document.
    pub(crate) from: Option<DiffLine>,
    /// The piece of the second document.
    pub(crate) to: Option<DiffLine>,
    /// Whether it is no content, such as an instant or an id.
    pub(crate) is_detail: bool,
}

impl DiffLine {
    fn new(label: impl Into<String>, text: String) -> Self {
        Self {
            label: label.into(),
            text,
        }
    }
}

/// The lines of a turn.
pub(crate) fn turn_lines(turn: &Json) -> Vec<DiffLine> {
    match Turn::new(turn) {
        Turn::User(user) => user.parts().map(part_line).collect(),
        Turn::Agent(agent) => agent.messages().flat_map(message_lines).collect(),
        Turn::Unknown(json) => vec![DiffLine::new("turn", json.to_text())],
    }
}

fn message_lines(message: Message<'_>) -> Vec<DiffLine> {
    match message {
        Message::Request(request) => request.parts().map(part_line).collect(),
        Message::Response(response) => response.parts().map(part_line).collect(),
        Message::System(event) => {
            let label = format!("event {}", event.event_type().unwrap_or_default());
            let data = event.event_data().map(text_of);
            vec![DiffLine::new(label, data.unwrap_or_default())]
        }
        Message::Unknown(json) => vec![DiffLine::new("message", json.to_text())],
    }
}

fn part_line(part: Part<'_>) -> DiffLine {
    let tool = part.tool_name().unwrap_or("a tool");
    let label = match part.kind() {
        PartKind::UserPrompt => "message".to_owned(),
        PartKind::Text => "text".to_owned(),
        PartKind::Thinking => "reasoning".to_owned(),
        PartKind::ToolCall => format!("call of {tool}"),
        PartKind::ToolReturn => format!("result of {tool}"),
        PartKind::RetryPrompt => "request to correct".to_owned(),
        PartKind::File => "file".to_owned(),
        PartKind::SystemPrompt => "instructions".to_owned(),
        PartKind::Other(kind) => kind.to_owned(),
        PartKind::Missing => "part".to_owned(),
    };
    let text = if part.kind() == PartKind::ToolCall {
        part.args()
    } else {
        part.content()
    };
    DiffLine::new(label, text_of(text.unwrap_or(part.json())))
}

fn text_of(value: &Json) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_text(), str::to_owned)
}

/// The semantic changes within something that both documents have, or the whole of what one has.
pub(crate) fn changed_rows(change: &DiffChange) -> Vec<DiffRow> {
    if !change.semantic {
        return Vec::new();
    }
    match &change.kind {
        DiffKind::Removed { value, .. } => lines(change, value)
            .into_iter()
            .map(|line| DiffRow {
                from: Some(line),
                ..DiffRow::default()
            })
            .collect(),
        DiffKind::Added { value, .. } => lines(change, value)
            .into_iter()
            .map(|line| DiffRow {
                to: Some(line),
                ..DiffRow::default()
            })
            .collect(),
        DiffKind::Changed { members, inner } => {
            let members = members.iter().filter(|member| member.semantic);
            let own = members.filter_map(|member| member_row(change, member));
            own.chain(inner.iter().flat_map(changed_rows)).collect()
        }
    }
}

/// The lines of something that only one document has.
fn lines(change: &DiffChange, value: &Json) -> Vec<DiffLine> {
    match change.level {
        Level::Turn => turn_lines(value),
        Level::Message => message_lines(Message::new(value)),
        Level::Part => vec![part_line(Part::new(value))],
        Level::Root | Level::Agent => vec![DiffLine::new(change.label.clone(), text_of(value))],
    }
}

fn member_row(change: &DiffChange, member: &MemberChange) -> Option<DiffRow> {
    let name = member.pointer.trim_start_matches('/');
    let label = match (change.label.as_str(), name) {
        ("", name) => name.to_owned(),
        (label, "" | "content") => label.to_owned(),
        (label, name) => format!("{label}, {name}"),
    };
    let line = |value: &Json| Some(DiffLine::new(label.clone(), text_of(value)));
    let (from, to) = match &member.edit {
        Edit::Added { new, .. } => (None, line(new)),
        Edit::Removed { old, .. } => (line(old), None),
        Edit::Replaced { old, new } => (line(old), line(new)),
        Edit::Reordered { .. } => return None,
    };
    let is_detail = matches!(change.level, Level::Turn | Level::Message);
    Some(DiffRow {
        from,
        to,
        is_detail,
    })
}

/// Both texts of a row. If both have one, the words that differ are marked.
pub(crate) fn differing(row: &DiffRow) -> (Markup, Markup) {
    let cut = |text: &str| json::visible(&json::cut(text, MAX_TEXT)).into_owned();
    match (&row.from, &row.to) {
        (Some(from), Some(to)) if from.label == to.label => {
            let (start, end) = alike(&from.text, &to.text);
            let from = pieces(&from.text, start, end);
            let to = pieces(&to.text, start, end);
            let marked = |[before, middle, after]: [&str; 3], is_from: bool| {
                html! {
                    (json::visible(&end_of(before)))
                    @if middle.is_empty() {}
                    @else if is_from { del { (cut(middle)) } }
                    @else { ins { (cut(middle)) } }
                    (json::visible(&start_of(after)))
                }
            };
            (marked(from, true), marked(to, false))
        }
        (from, to) => {
            let text = |line: &Option<DiffLine>| {
                html! { @if let Some(line) = line { (cut(&line.text)) } }
            };
            (text(from), text(to))
        }
    }
}

/// Number of bytes at the start and at the end of two texts that are the same, in whole words.
fn alike(one: &str, other: &str) -> (usize, usize) {
    let same = common(one.chars(), other.chars());
    let ends_word = |text: &str| {
        let mut rest = text.get(same..).unwrap_or_default().chars();
        rest.next().is_none_or(char::is_whitespace)
    };
    let start = if ends_word(one) && ends_word(other) {
        same
    } else {
        let head = one.get(..same).unwrap_or_default();
        head.rfind(char::is_whitespace)
            .map_or(0, |at| at + width(head, at))
    };
    let (one, other) = (one.get(start..), other.get(start..));
    let (one, other) = (one.unwrap_or_default(), other.unwrap_or_default());
    let same = common(one.chars().rev(), other.chars().rev());
    let begins_word = |text: &str| {
        let mut before = text.get(..text.len() - same).unwrap_or_default().chars();
        before.next_back().is_none_or(char::is_whitespace)
    };
    let end = if begins_word(one) && begins_word(other) {
        same
    } else {
        let tail = one.get(one.len() - same..).unwrap_or_default();
        tail.find(char::is_whitespace)
            .map_or(0, |at| tail.len() - at)
    };
    (start, end)
}

/// Number of bytes of the characters that two texts begin with.
fn common(one: impl Iterator<Item = char>, other: impl Iterator<Item = char>) -> usize {
    let same = one.zip(other).take_while(|(a, b)| a == b);
    same.map(|(c, _)| c.len_utf8()).sum()
}

/// The length of the character at an index.
fn width(text: &str, at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    rest.chars().next().map_or(0, char::len_utf8)
}

/// A text before, in and after a difference.
fn pieces(text: &str, start: usize, end: usize) -> [&str; 3] {
    let end = text.len().saturating_sub(end).max(start);
    [text.get(..start), text.get(start..end), text.get(end..)].map(Option::unwrap_or_default)
}

/// The last characters of a text.
fn end_of(text: &str) -> String {
    let n = text.chars().count();
    if n <= AROUND {
        return text.to_owned();
    }
    let end: String = text.chars().skip(n - AROUND).collect();
    format!("…{end}")
}

/// The first characters of a text.
fn start_of(text: &str) -> String {
    let mut chars = text.chars();
    let mut start: String = chars.by_ref().take(AROUND).collect();
    if chars.next().is_some() {
        start.push('…');
    }
    start
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marked(from: &str, to: &str) -> (String, String) {
        let line = |text: &str| Some(DiffLine::new("text", text.to_owned()));
        let row = DiffRow {
            from: line(from),
            to: line(to),
            is_detail: false,
        };
        let (from, to) = differing(&row);
        (from.into_string(), to.into_string())
    }

    #[test]
    fn whole_words_that_differ_are_marked() {
        assert_eq!(
            marked("a window seat please", "an aisle seat please"),
            (
                "<del>a window</del> seat please".to_owned(),
                "<ins>an aisle</ins> seat please".to_owned()
            )
        );
        assert_eq!(
            marked("one two", "one two three"),
            ("one two".to_owned(), "one two<ins> three</ins>".to_owned())
        );
        assert_eq!(
            marked("same", "same"),
            ("same".to_owned(), "same".to_owned())
        );
        assert_eq!(
            marked("é", "è"),
            ("<del>é</del>".to_owned(), "<ins>è</ins>".to_owned())
        );
    }

    #[test]
    fn a_long_text_is_cut_around_the_difference() {
        let (before, after) = ("word ".repeat(500), " more".repeat(500));
        let (from, to) = marked(
            &format!("{before}old{after}"),
            &format!("{before}new{after}"),
        );
        assert!(from.starts_with('…') && from.ends_with('…'), "{from}");
        assert!(from.contains("<del>old</del>") && to.contains("<ins>new</ins>"));
        assert!(from.len() < 400, "{from}");
    }
}
