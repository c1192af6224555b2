//! Aligning two sequences by keys.
//!
//! Equal items at both ends are matched first. Keys that occur once on each side are then anchors,
//! and between anchors a table finds the longest common subsequence if it is small. Nothing else is
//! searched, so time and memory stay nearly linear for all sequences.

use std::collections::BTreeMap;
use std::ops::Range;

/// The largest table of a stretch without anchors, in cells.
const LARGEST_TABLE: usize = 1 << 18;

/// Maximum average number of visits to an item in the search for anchors.
const LARGEST_EFFORT: usize = 64;

/// A stretch of both sequences.
type Stretch = (Range<usize>, Range<usize>);

/// Pairs equal keys, in order on both sides; `None` equals nothing.
pub(super) fn align<K: Ord>(from: &[Option<K>], to: &[Option<K>]) -> Vec<(usize, usize)> {
    let (from, to) = (Keyed::new(from), Keyed::new(to));
    let (one, other) = (&from.keys, &to.keys);
    let mut effort = LARGEST_EFFORT.saturating_mul(one.len() + other.len());
    let mut matches = Vec::new();
    let mut open = vec![(0..one.len(), 0..other.len())];
    while let Some(stretch) = open.pop() {
        let (a, b) = trim(one, other, stretch, &mut matches);
        if a.is_empty() || b.is_empty() {
            continue;
        }
        let Some(left) = effort.checked_sub(a.len() + b.len()) else {
            continue;
        };
        effort = left;
        let anchors = anchors(one, other, &a, &b);
        if anchors.is_empty() {
            table(one, other, a, b, &mut matches);
            continue;
        }
        let (mut a_start, mut b_start) = (a.start, b.start);
        for (i, j) in anchors {
            open.push((a_start..i, b_start..j));
            matches.push((i, j));
            (a_start, b_start) = (i + 1, j + 1);
        }
        open.push((a_start..a.end, b_start..b.end));
    }
    matches.sort_unstable();
    let place = |(i, j)| Some((*from.places.get(i)?, *to.places.get(j)?));
    matches.into_iter().filter_map(place).collect()
}

/// The items with a key, and their indexes.
struct Keyed<'k, K> {
    keys: Vec<&'k K>,
    places: Vec<usize>,
}

impl<'k, K> Keyed<'k, K> {
    fn new(items: &'k [Option<K>]) -> Self {
        let keyed = items.iter().enumerate();
        let (places, keys) = keyed
            .filter_map(|(place, key)| Some((place, key.as_ref()?)))
            .unzip();
        Self { keys, places }
    }
}

/// Matches equal items at both ends of a stretch; returns the rest.
fn trim<K: Ord>(
    one: &[&K],
    other: &[&K],
    (mut a, mut b): Stretch,
    matches: &mut Vec<(usize, usize)>,
) -> Stretch {
    while !a.is_empty() && !b.is_empty() && one.get(a.start) == other.get(b.start) {
        matches.push((a.start, b.start));
        (a.start, b.start) = (a.start + 1, b.start + 1);
    }
    while !a.is_empty() && !b.is_empty() && one.get(a.end - 1) == other.get(b.end - 1) {
        (a.end, b.end) = (a.end - 1, b.end - 1);
        matches.push((a.end, b.end));
    }
    (a, b)
}

/// The keys that each side of a stretch has once, as many as are in the same order.
fn anchors<K: Ord>(
    one: &[&K],
    other: &[&K],
    a: &Range<usize>,
    b: &Range<usize>,
) -> Vec<(usize, usize)> {
    let mut places: BTreeMap<&K, Option<usize>> = BTreeMap::new();
    for j in b.clone() {
        if let Some(key) = other.get(j) {
            let place = places.entry(key);
            place.and_modify(|place| *place = None).or_insert(Some(j));
        }
    }
    let mut counts: BTreeMap<&K, usize> = BTreeMap::new();
    for i in a.clone() {
        if let Some(key) = one.get(i) {
            *counts.entry(key).or_default() += 1;
        }
    }
    let unique = a.clone().filter_map(|i| {
        let key = one.get(i)?;
        let j = places.get(key).copied().flatten()?;
        (counts.get(key) == Some(&1)).then_some((i, j))
    });
    rising(&unique.collect::<Vec<_>>())
}

/// The longest subsequence of pairs whose right side rises; their left sides already rise.
fn rising(pairs: &[(usize, usize)]) -> Vec<(usize, usize)> {
    // For each length, the pair with the lowest right that ends a run so long; for each pair, the
    // pair before it.
    let mut ends: Vec<(usize, usize)> = Vec::new();
    let mut before = Vec::with_capacity(pairs.len());
    for (at, (_, right)) in pairs.iter().enumerate() {
        let length = ends.partition_point(|(end, _)| end < right);
        let last = length.checked_sub(1).and_then(|n| ends.get(n));
        before.push(last.map(|(_, at)| *at));
        match ends.get_mut(length) {
            Some(end) => *end = (*right, at),
            None => ends.push((*right, at)),
        }
    }
    let mut run = Vec::with_capacity(ends.len());
    let mut next = ends.last().map(|(_, at)| *at);
    while let Some(at) = next {
        run.extend(pairs.get(at));
        next = before.get(at).copied().flatten();
    }
    run.reverse();
    run
}

/// The longest common subsequence of a stretch, by the table, if that is small enough.
fn table<K: Ord>(
    one: &[&K],
    other: &[&K],
    a: Range<usize>,
    b: Range<usize>,
    matches: &mut Vec<(usize, usize)>,
) {
    let width = b.len() + 1;
    let cells = width.saturating_mul(a.len() + 1);
    if cells > LARGEST_TABLE {
        return;
    }
    let mut longest = vec![0u32; cells];
    let cell = |i: usize, j: usize| (i - a.start) * width + (j - b.start);
    let at = |table: &[u32], i, j| table.get(cell(i, j)).copied().unwrap_or_default();
    for i in a.clone().rev() {
        for j in b.clone().rev() {
            let best = if one.get(i) == other.get(j) {
                at(&longest, i + 1, j + 1) + 1
            } else {
                at(&longest, i + 1, j).max(at(&longest, i, j + 1))
            };
            if let Some(entry) = longest.get_mut(cell(i, j)) {
                *entry = best;
            }
        }
    }
    let (mut i, mut j) = (a.start, b.start);
    while i < a.end && j < b.end {
        if one.get(i) == other.get(j) {
            matches.push((i, j));
            (i, j) = (i + 1, j + 1);
        } else if at(&longest, i + 1, j) >= at(&longest, i, j + 1) {
            i += 1;
        } else {
            j += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn aligned(from: &str, to: &str) -> String {
        let keys = |text: &str| {
            let key = |char: char| (char != '.').then_some(char);
            text.chars().map(key).collect::<Vec<_>>()
        };
        let matches = align(&keys(from), &keys(to));
        let chars: Vec<char> = from.chars().collect();
        matches.iter().map(|(i, _)| chars[*i]).collect()
    }

    #[test]
    fn the_longest_common_subsequence_is_found_where_it_is_small() {
        assert_eq!(aligned("abcabba", "cbabac").len(), 4);
        assert_eq!(aligned("abcdef", "abXdef"), "abdef");
        assert_eq!(aligned("", "abc"), "");
        assert_eq!(aligned("xaybzc", "paqbrc"), "abc");
    }

    #[test]
    fn what_has_no_key_is_never_matched_and_never_in_the_way() {
        assert_eq!(aligned(".a.b.b.", "a..bb"), "abb");
        assert_eq!(aligned("...", "..."), "");
    }

    #[test]
    fn a_long_stretch_without_anchors_is_left_alone() {
        let keys = |n: usize, first: u8| {
            let mut keys: Vec<_> = (0..n).map(|n| Some(u8::from(n % 2 == 0))).collect();
            keys.insert(0, Some(first));
            keys.push(Some(first));
            keys
        };
        assert_eq!(align(&keys(4000, 7), &keys(4001, 8)), []);
        assert_eq!(align(&keys(40, 7), &keys(41, 8)).len(), 40);
    }

    proptest! {
        #[test]
        fn matches_are_equal_and_rise_on_both_sides(from: Vec<Option<u8>>, to: Vec<Option<u8>>) {
            let matches = align(&from, &to);
            prop_assert!(matches.iter().all(|(i, j)| from[*i].is_some() && from[*i] == to[*j]));
            prop_assert!(matches.windows(2).all(|two| two[0].0 < two[1].0 && two[0].1 < two[1].1));
        }

        #[test]
        fn a_sequence_is_aligned_with_itself_whole(keys: Vec<u8>) {
            let keys: Vec<_> = keys.into_iter().map(Some).collect();
            prop_assert_eq!(align(&keys, &keys).len(), keys.len());
        }
    }
}
