//! Pairing the turns, messages, parts or links of two documents.

use super::align::align;
use super::location::MeaningHash;
use crate::json::Json;
use std::ops::Range;

/// A pair of items of two sequences, or an item without a counterpart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pairing {
    /// An item that only the first has.
    From(usize),
    /// An item that only the second has.
    To(usize),
    /// An item that both have, the same or changed.
    Both(usize, usize),
}

/// The members that distinguish items of one sequence while their other members change.
const NAMES: [&str; 8] = [
    "turn_type",
    "message_type",
    "part_kind",
    "agent_id",
    "event_type",
    "tool_call_id",
    "thread_id",
    "relation",
];

/// Returns the hash of an item's meaning.
pub(crate) type Meaning<'f> = &'f dyn Fn(&Json) -> Option<MeaningHash>;

/// The kind of an item: its JSON type and the strings that name it.
type Kind<'a> = (&'static str, [Option<&'a str>; NAMES.len()]);

fn kind(item: &Json) -> Kind<'_> {
    let name = |key| item.get(key).and_then(Json::as_str);
    (item.type_name(), NAMES.map(name))
}

/// Pairs the items of two sequences: first those with the same meaning, then, between them, those
/// of one kind. Items only in the first sequence come before items only in the second.
///
/// `meanings` returns the hashes of an item of the first and of one of the second sequence. It is
/// not called for equal items at the ends. An item without a meaning is paired by kind alone.
pub(crate) fn pairings(from: &[Json], to: &[Json], meanings: [Meaning<'_>; 2]) -> Vec<Pairing> {
    let start = n_equal(from.iter(), to.iter());
    let (one, other) = (after(from, start), after(to, start));
    let end = n_equal(one.iter().rev(), other.iter().rev());
    let (one, other) = (before(one, end), before(other, end));

    let [of_one, of_other] = meanings;
    let matches = if one.len().min(other.len()) == 0 || one.len() + other.len() == 2 {
        Vec::new()
    } else {
        let one: Vec<_> = one.iter().map(of_one).collect();
        let other: Vec<_> = other.iter().map(of_other).collect();
        align(&one, &other)
    };

    let mut pairings: Vec<_> = (0..start).map(|n| Pairing::Both(n, n)).collect();
    let (mut i, mut j) = (0, 0);
    for (a, b) in matches.into_iter().chain([(one.len(), other.len())]) {
        between(one, other, (i..a, j..b), start, &mut pairings);
        if a < one.len() {
            pairings.push(Pairing::Both(start + a, start + b));
        }
        (i, j) = (a + 1, b + 1);
    }
    let ends = (start..).zip(start..).take(end);
    pairings.extend(ends.map(|(a, b)| Pairing::Both(a + one.len(), b + other.len())));
    pairings
}

/// Pairs by kind the items between two pairs of the same meaning.
fn between(
    from: &[Json],
    to: &[Json],
    (a, b): (Range<usize>, Range<usize>),
    offset: usize,
    pairings: &mut Vec<Pairing>,
) {
    let matches = if a.is_empty() || b.is_empty() {
        Vec::new()
    } else {
        align(&kinds(from, a.clone()), &kinds(to, b.clone()))
    };
    let (mut i, mut j) = (a.start, b.start);
    let matches = matches.into_iter().map(|(x, y)| (a.start + x, b.start + y));
    for (x, y) in matches.chain([(a.end, b.end)]) {
        pairings.extend((i..x).map(|n| Pairing::From(offset + n)));
        pairings.extend((j..y).map(|n| Pairing::To(offset + n)));
        if x < a.end {
            pairings.push(Pairing::Both(offset + x, offset + y));
        }
        (i, j) = (x + 1, y + 1);
    }
}

fn kinds(items: &[Json], range: Range<usize>) -> Vec<Option<Kind<'_>>> {
    let items = items.get(range).unwrap_or_default();
    items.iter().map(kind).map(Some).collect()
}

fn after(items: &[Json], n: usize) -> &[Json] {
    items.get(n..).unwrap_or_default()
}

fn before(items: &[Json], n: usize) -> &[Json] {
    items.get(..items.len() - n).unwrap_or_default()
}

fn n_equal<'a>(
    one: impl Iterator<Item = &'a Json>,
    other: impl Iterator<Item = &'a Json>,
) -> usize {
    one.zip(other).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diff::Location;
    use crate::json::Object;

    fn pair(from: &str, to: &str) -> Vec<Pairing> {
        let meaning = |item: &Json| {
            let root = Object::new();
            Location::ROOT.key(&root, "x").meaning(Some(item.clone()))
        };
        let items = |text| Json::parse(text).unwrap().into_array().unwrap();
        pairings(&items(from), &items(to), [&meaning, &meaning])
    }

    #[test]
    fn what_means_the_same_is_paired_before_what_is_of_one_kind() {
        let from = r#"[{"turn_type":"user","n":1},{"turn_type":"user","n":2.0}]"#;
        let to = r#"[{"n":2,"turn_type":"user"}]"#;
        assert_eq!(pair(from, to), [Pairing::From(0), Pairing::Both(1, 0)]);
    }

    #[test]
    fn what_is_left_is_paired_by_type_agent_and_call() {
        let from = r#"[{"part_kind":"text","content":"a"},{"part_kind":"tool-call","tool_call_id":"x"},3]"#;
        let to = r#"[{"part_kind":"tool-call","tool_call_id":"x","args":1},{"part_kind":"tool-call","tool_call_id":"y"},4,"5"]"#;
        let expected = [
            Pairing::From(0),
            Pairing::Both(1, 0),
            Pairing::To(1),
            Pairing::Both(2, 2),
            Pairing::To(3),
        ];
        assert_eq!(pair(from, to), expected);
    }

    #[test]
    fn what_was_appended_or_put_in_front_is_found() {
        assert_eq!(
            pair("[1,2]", "[1,2,3]"),
            [Pairing::Both(0, 0), Pairing::Both(1, 1), Pairing::To(2)]
        );
        assert_eq!(
            pair("[1,2]", "[\"a\",1,2]"),
            [Pairing::To(0), Pairing::Both(0, 1), Pairing::Both(1, 2)]
        );
    }
}
