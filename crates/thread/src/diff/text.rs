//! A diff as text for people.
//!
//! Only what is semantic is shown; the last line counts the rest. Everything that came from a
//! document is escaped, so that it can't steer a terminal, and shortened around what differs.

use super::{Change, ChangeKind, Diff, Edit, Level, MemberChange};
use crate::json::Json;
use std::fmt::{self, Display, Formatter, Write};

/// How many characters of a value are shown.
const SHOWN: usize = 100;

/// How many characters are shown before and after what differs.
const AROUND: usize = 20;

/// What JSON text holds by itself and a terminal takes as it is.
const QUOTES: [char; 3] = ['"', '\'', '\\'];

/// How much a diff holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// What was added, semantic changes only, by level from the root to parts.
    pub added: [usize; 5],
    /// What was removed, likewise.
    pub removed: [usize; 5],
    /// What has other members, likewise; what merely holds a change is not counted.
    pub changed: [usize; 5],
    /// Differences that are not semantic, one for each added or removed thing and each member.
    pub formal: usize,
}

impl Diff {
    /// Counts the changes.
    #[must_use]
    pub fn summary(&self) -> Summary {
        let mut summary = Summary::default();
        for change in self.iter() {
            let (counts, members) = match &change.kind {
                ChangeKind::Added { .. } => (&mut summary.added, None),
                ChangeKind::Removed { .. } => (&mut summary.removed, None),
                ChangeKind::Changed { members, .. } => (&mut summary.changed, Some(members)),
            };
            let semantic = members.map_or(change.semantic, |members| {
                members.iter().any(|member| member.semantic)
            });
            if semantic && let Some(count) = counts.get_mut(change.level as usize) {
                *count += 1;
            }
            summary.formal += match members {
                None => usize::from(!semantic),
                Some(members) => members.iter().filter(|member| !member.semantic).count(),
            };
        }
        summary
    }

    /// The diff for people: a line for each thing added (`+`), removed (`-`) and changed (`~`),
    /// indented below what holds it, and a last line that counts. Numbers are those of the JSON
    /// Pointers, from 0, in the second document where it has the thing.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        let written = self
            .changes
            .iter()
            .try_for_each(|change| write_change(&mut text, change, 0));
        debug_assert!(written.is_ok(), "a string refuses nothing");
        text.push_str(&self.summary().to_string());
        text.push('\n');
        text
    }
}

impl Display for Diff {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.to_text())
    }
}

impl Display for Summary {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let names = ["thread", "agent", "turn", "message", "part"];
        let mut said = Vec::new();
        let counts = [
            (self.added, "added"),
            (self.removed, "removed"),
            (self.changed, "changed"),
        ];
        for (at, name) in names.into_iter().enumerate() {
            for (counts, verb) in counts {
                let count = counts.get(at).copied().unwrap_or_default();
                if count > 0 {
                    said.push(format!("{count} {name}{} {verb}", plural(count)));
                }
            }
        }
        if said.is_empty() {
            formatter.write_str("no difference in meaning")?;
        }
        formatter.write_str(&said.join(", "))?;
        match self.formal {
            0 => Ok(()),
            1 => formatter.write_str("; 1 difference of form only"),
            count => write!(formatter, "; {count} differences of form only"),
        }
    }
}

fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}

fn write_change(out: &mut String, change: &Change, depth: usize) -> fmt::Result {
    if !change.semantic {
        return Ok(());
    }
    let indent = "  ".repeat(depth);
    match &change.kind {
        ChangeKind::Added { value, .. } => {
            writeln!(out, "{indent}+ {}{}", Title(change), excerpt(value))
        }
        ChangeKind::Removed { value, .. } => {
            writeln!(out, "{indent}- {}{}", Title(change), excerpt(value))
        }
        ChangeKind::Changed { members, inner } => {
            let shown: Vec<_> = members.iter().filter(|member| member.semantic).collect();
            let label = printable(&change.label);
            if let ([only], Level::Part) = (&*shown, change.level)
                && let Edit::Replaced { old, new } = &only.edit
            {
                let (old, new) = brief_pair(old, new);
                let name = member_name(only).filter(|name| name != "content");
                let name = name.map(|name| format!(" {name}")).unwrap_or_default();
                writeln!(out, "{indent}- {label}{name} {old}")?;
                return writeln!(out, "{indent}+ {label}{name} {new}");
            }
            writeln!(out, "{indent}~ {}", Title(change))?;
            for member in shown {
                write_member(out, member, &indent)?;
            }
            inner
                .iter()
                .try_for_each(|change| write_change(out, change, depth + 1))
        }
    }
}

fn write_member(out: &mut String, member: &MemberChange, indent: &str) -> fmt::Result {
    let name = member_name(member).map(|name| format!("{name} "));
    let name = name.unwrap_or_default();
    match &member.edit {
        Edit::Added { new, .. } => writeln!(out, "{indent}  + {name}{}", brief(new)),
        Edit::Removed { old, .. } => writeln!(out, "{indent}  - {name}{}", brief(old)),
        Edit::Replaced { old, new } => {
            let (old, new) = brief_pair(old, new);
            writeln!(out, "{indent}  - {name}{old}")?;
            writeln!(out, "{indent}  + {name}{new}")
        }
        Edit::Reordered { .. } => Ok(()),
    }
}

/// The pointer of a member without its first slash; none of the thing itself.
fn member_name(member: &MemberChange) -> Option<String> {
    member.pointer.strip_prefix('/').map(printable)
}

/// What a change is about: its level, number and label.
struct Title<'a>(&'a Change);

impl Display for Title<'_> {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let change = self.0;
        let place = change.to.as_deref().or(change.from.as_deref());
        let number = place.and_then(|place| Some(place.rsplit_once('/')?.1));
        let (number, label) = (
            printable(number.unwrap_or_default()),
            printable(&change.label),
        );
        match change.level {
            Level::Root => formatter.write_str("thread"),
            Level::Agent if label.is_empty() => write!(formatter, "agent {number}"),
            Level::Agent => write!(formatter, "agent {label} ({number})"),
            Level::Turn => write!(formatter, "turn {number} ({label})"),
            Level::Message => write!(formatter, "message {number} {label}"),
            Level::Part => formatter.write_str(&label),
        }
    }
}

/// The first text of what was added or removed, with a space before it; empty if it has none.
fn excerpt(value: &Json) -> String {
    let mut here = value;
    while let Some(inner) = first_inside(here) {
        here = inner;
    }
    let content = ["content", "args", "event_data"]
        .into_iter()
        .find_map(|key| here.get(key));
    content.map_or_else(String::new, |content| format!(" {}", brief(content)))
}

/// The first message or part of a value.
fn first_inside(value: &Json) -> Option<&Json> {
    let first = |key| value.get(key)?.as_array()?.first();
    first("messages").or_else(|| first("parts"))
}

/// A value on one line, shortened at the end.
pub(crate) fn brief(value: &Json) -> String {
    match value {
        Json::String(string) => quoted(string, "", ""),
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::Array(_) | Json::Object(_) => {
            let (text, cut) = cut(&value.to_text(), SHOWN);
            format!("{}{}", printable(&text), if cut { "…" } else { "" })
        }
    }
}

/// Two values on a line each, shortened so that what differs shows.
fn brief_pair(old: &Json, new: &Json) -> (String, String) {
    let (Some(old), Some(new)) = (old.as_str(), new.as_str()) else {
        return (brief(old), brief(new));
    };
    let alike = old.chars().zip(new.chars()).take_while(|(a, b)| a == b);
    let start: usize = alike.map(|(char, _)| char.len_utf8()).sum();
    let rest = |text: &'_ str| text.get(start..).unwrap_or_default().to_owned();
    let (old_rest, new_rest) = (rest(old), rest(new));
    let ends = old_rest.chars().rev().zip(new_rest.chars().rev());
    let end: usize = ends
        .take_while(|(a, b)| a == b)
        .map(|(char, _)| char.len_utf8())
        .sum();
    let show = |text: &str, rest: &str| {
        let middle = rest.get(..rest.len() - end).unwrap_or_default();
        quoted(
            middle,
            text.get(..start).unwrap_or_default(),
            rest.get(rest.len() - end..).unwrap_or_default(),
        )
    };
    (show(old, &old_rest), show(new, &new_rest))
}

/// A string in quotes: the end of what is before, what matters, the start of what is after.
fn quoted(text: &str, before: &str, after: &str) -> String {
    let skipped = before.chars().count().saturating_sub(AROUND);
    let context: String = before.chars().skip(skipped).collect();
    let (middle, middle_cut) = cut(text, SHOWN);
    let (after, after_cut) = if middle_cut {
        (String::new(), true)
    } else {
        cut(after, AROUND)
    };
    let shown = format!("{:?}", format!("{context}{middle}{after}"));
    let open = if skipped > 0 { "…" } else { "" };
    let close = if middle_cut || after_cut { "…" } else { "" };
    format!("{open}{shown}{close}")
}

/// The first characters of a text, and whether there are more.
fn cut(text: &str, length: usize) -> (String, bool) {
    let mut chars = text.chars();
    let kept = chars.by_ref().take(length).collect();
    (kept, chars.next().is_some())
}

/// A text in which nothing is left that a terminal could obey; quotes stay as they are.
pub(crate) fn printable(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for piece in text.split_inclusive(QUOTES) {
        let plain = piece.strip_suffix(QUOTES).unwrap_or(piece);
        safe.extend(plain.escape_debug());
        safe.push_str(piece.strip_prefix(plain).unwrap_or_default());
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_in_a_long_text_is_in_sight() {
        let (before, after) = ("a".repeat(500), "z".repeat(500));
        let old = Json::from(format!("{before} red {after}"));
        let new = Json::from(format!("{before} green {after}"));
        let (old, new) = brief_pair(&old, &new);
        assert_eq!(
            old,
            format!("…\"{} red {}\"…", "a".repeat(19), "z".repeat(19))
        );
        assert_eq!(
            new,
            format!("…\"{} green {}\"…", "a".repeat(19), "z".repeat(19))
        );
        assert_eq!(
            brief(&Json::from("x".repeat(101))),
            format!("\"{}\"…", "x".repeat(100))
        );
    }

    #[test]
    fn nothing_from_a_document_reaches_the_terminal_as_it_is() {
        let evil = "\u{1b}[2J\u{7}\u{9b}\u{202e}\u{85}\n";
        for shown in [
            printable(evil),
            brief(&evil.into()),
            brief(&Json::from(vec![evil])),
            brief_pair(&evil.into(), &"x".into()).0,
        ] {
            let obeyed = |char: char| char.is_control() || char == '\u{202e}';
            assert!(!shown.contains(obeyed), "{shown:?}");
        }
    }

    #[test]
    fn a_summary_counts_in_words() {
        let summary = Summary {
            added: [0, 0, 2, 0, 0],
            changed: [1, 0, 0, 0, 1],
            formal: 3,
            ..Summary::default()
        };
        let expected =
            "1 thread changed, 2 turns added, 1 part changed; 3 differences of form only";
        assert_eq!(summary.to_string(), expected);
        assert_eq!(Summary::default().to_string(), "no difference in meaning");
    }
}
