//! A diff as text for people.
//!
//! It shows only semantic changes; the last line counts the others. All text from a document is
//! escaped, so that it can't control a terminal, and shortened around the difference.

use super::brief::{brief, brief_pair, printable};
use super::{Diff, DiffChange, DiffKind, Edit, Level, MemberChange};
use crate::json::Json;
use std::collections::BTreeSet;
use std::fmt::{self, Display, Formatter, Write};

/// The number of changes in a diff.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// The number of additions, semantic changes only, by level from the root to parts.
    pub added: [usize; 5],
    /// The number of removals, counted likewise.
    pub removed: [usize; 5],
    /// The number of things whose own members changed, counted likewise. A thing that only contains
    /// a change is not counted.
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
                DiffKind::Added { .. } => (&mut summary.added, None),
                DiffKind::Removed { .. } => (&mut summary.removed, None),
                DiffKind::Changed { members, .. } => (&mut summary.changed, Some(members)),
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
    /// indented below its container, and a last line with counts. Numbers are the zero-based
    /// indexes of the JSON Pointers, in the second document if it has the thing.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        let written = write_changes(&mut text, &self.changes, 0);
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

/// Writes changes of one sequence. If a removed and an added thing have equal lines, the id of
/// their call is appended.
fn write_changes(out: &mut String, changes: &[DiffChange], depth: usize) -> fmt::Result {
    let lines = |of_removed: bool| -> BTreeSet<String> {
        let moved = changes.iter().filter_map(|change| match &change.kind {
            DiffKind::Removed { value, .. } if of_removed => Some((change, value)),
            DiffKind::Added { value, .. } if !of_removed => Some((change, value)),
            DiffKind::Removed { .. } | DiffKind::Added { .. } | DiffKind::Changed { .. } => None,
        });
        moved.map(|(change, value)| line(change, value)).collect()
    };
    let removed = lines(true);
    let alike = if removed.is_empty() {
        removed
    } else {
        removed.intersection(&lines(false)).cloned().collect()
    };
    changes
        .iter()
        .try_for_each(|change| write_change(out, change, depth, &alike))
}

/// The line for something added or removed.
fn line(change: &DiffChange, value: &Json) -> String {
    format!("{}{}", Title(change), excerpt(value))
}

fn write_change(
    out: &mut String,
    change: &DiffChange,
    depth: usize,
    alike: &BTreeSet<String>,
) -> fmt::Result {
    if !change.semantic {
        return Ok(());
    }
    let indent = "  ".repeat(depth);
    match &change.kind {
        DiffKind::Added { value, .. } | DiffKind::Removed { value, .. } => {
            let added = matches!(change.kind, DiffKind::Added { .. });
            let sign = if added { '+' } else { '-' };
            let line = line(change, value);
            let id = if alike.contains(&line) {
                call_id(value)
            } else {
                String::new()
            };
            writeln!(out, "{indent}{sign} {line}{id}")
        }
        DiffKind::Changed { members, inner } => {
            let shown: Vec<_> = members.iter().filter(|member| member.semantic).collect();
            if let ([only], Level::Part) = (&*shown, change.level)
                && let Edit::Replaced { old, new } = &only.edit
            {
                let (was, is) = labels(&change.label, only);
                let (old, new) = brief_pair(old, new);
                let name = member_name(only).filter(|name| name != "content");
                let name = name.map(|name| format!(" {name}")).unwrap_or_default();
                writeln!(out, "{indent}- {was}{name} {old}")?;
                return writeln!(out, "{indent}+ {is}{name} {new}");
            }
            writeln!(out, "{indent}~ {}", Title(change))?;
            for member in shown {
                write_member(out, member, &indent)?;
            }
            write_changes(out, inner, depth + 1)
        }
    }
}

/// The old and the new label of a part. They differ if its tool does.
fn labels(label: &str, only: &MemberChange) -> (String, String) {
    if let ("/tool_name", Edit::Replaced { old, new }) = (&*only.pointer, &only.edit) {
        let name = |json: &Json| json.as_str().map(|name| format!(" {name}"));
        let (old, new) = (name(old).unwrap_or_default(), name(new).unwrap_or_default());
        let mut known = [&new, &old].into_iter().filter(|name| !name.is_empty());
        let stem = known.find_map(|name| label.strip_suffix(name.as_str()));
        if let Some(stem) = stem {
            return (
                printable(&format!("{stem}{old}")),
                printable(&format!("{stem}{new}")),
            );
        }
    }
    (printable(label), printable(label))
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

/// The pointer of a member without its first slash; `None` for the thing itself.
fn member_name(member: &MemberChange) -> Option<String> {
    member.pointer.strip_prefix('/').map(printable)
}

/// The subject of a change: its level, number and label.
struct Title<'a>(&'a DiffChange);

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

/// The first text of an added or removed thing, after a space; empty if it has none.
fn excerpt(value: &Json) -> String {
    let here = innermost(value);
    let content = ["content", "args", "event_data"]
        .into_iter()
        .find_map(|key| here.get(key));
    content.map_or_else(String::new, |content| format!(" {}", brief(content)))
}

/// The id of the first call or answer, with its name and after a space; empty if there is none.
fn call_id(value: &Json) -> String {
    let id = innermost(value).get("tool_call_id");
    id.map_or_else(String::new, |id| format!(" tool_call_id {}", brief(id)))
}

fn innermost(value: &Json) -> &Json {
    let mut here = value;
    while let Some(inner) = first_inside(here) {
        here = inner;
    }
    here
}

/// The first message or part of a value.
fn first_inside(value: &Json) -> Option<&Json> {
    let first = |key| value.get(key)?.as_array()?.first();
    first("messages").or_else(|| first("parts"))
}

#[cfg(test)]
mod tests {
    use super::*;

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
