//! Cycles among the files of a crate.
//!
//! The size of a cycle is the number of files that reach each other. One idiom does not count: a file that
//! uses what its direct parent module defines (`foo/bar.rs` → `foo.rs`). Where another way leads from that
//! parent back to the file through a module outside of the parent, the edge closes a real cycle and counts.

use super::exceptions::Counts;
use crate::modules::{Edges, Modules};
use crate::sources::Source;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// Crates with a maximum to reach. `xtask/exceptions.txt` has what they are at.
const TARGETS: [(&str, usize); 2] = [("runtime", 8), ("server", 12)];

/// Counts the largest cycle of each crate.
pub(super) fn count(sources: &[Source], tests: &BTreeSet<&str>, counts: &mut Counts) {
    for name in crates(sources) {
        let edges = Modules::of(name, sources, tests).edges();
        let largest = cycles(&counted(&edges)).into_iter().max_by_key(Vec::len);
        let n = largest.as_ref().map_or(1, Vec::len);
        let target = TARGETS
            .iter()
            .find(|(it, _)| *it == name)
            .map_or(1, |(_, n)| *n);
        if n > target {
            let note = format!("at most {target} wanted; see `cargo xtask cycles {name}`");
            counts.set(
                &format!("largest cycle of {name}"),
                &format!("crates/{name}"),
                n,
                note,
            );
        }
    }
}

/// The cycles of a crate, or a line for each crate.
pub(crate) fn report(sources: &[Source], tests: &BTreeSet<&str>, only: Option<&str>) -> String {
    let mut out = String::new();
    for name in crates(sources)
        .into_iter()
        .filter(|name| only.is_none_or(|only| only == *name))
    {
        let edges = Modules::of(name, sources, tests).edges();
        let all = cycles(&edges).iter().map(Vec::len).max().unwrap_or(1);
        let counted = counted(&edges);
        let mut cycles = cycles(&counted);
        cycles.sort_by_key(|it| std::cmp::Reverse(it.len()));
        let largest = cycles.first().map_or(1, Vec::len);
        let (n, n_files) = (cycles.len(), edges.len());
        // Writing to a string can't fail.
        let _ = writeln!(
            out,
            "{name}: {n_files} files, {n} cycles, largest {largest} ({all} with every edge to a parent)"
        );
        for cycle in cycles.iter().filter(|_| only.is_some()) {
            let _ = writeln!(out, "\n{} files", cycle.len());
            for file in cycle {
                let inside = counted[file].iter().filter(|it| cycle.contains(it));
                let short = |it: &String| {
                    it.split_once("/src/")
                        .map_or(it.clone(), |(_, it)| it.to_owned())
                };
                let used: Vec<String> = inside.map(short).collect();
                let _ = writeln!(out, "  {} → {}", short(file), used.join(" "));
            }
        }
    }
    out
}

fn crates(sources: &[Source]) -> BTreeSet<&str> {
    sources.iter().filter_map(Source::crate_name).collect()
}

/// The edges without those of the idiom.
fn counted(edges: &Edges) -> Edges {
    let counts =
        |from: &String, to: &String| !is_parent(to, from) || leads_back_outside(edges, to, from);
    edges
        .iter()
        .map(|(from, used)| {
            let used = used.iter().filter(|to| counts(from, to)).cloned();
            (from.clone(), used.collect())
        })
        .collect()
}

/// Whether `parent` is the module right above the file `child`.
fn is_parent(parent: &str, child: &str) -> bool {
    let folder = child.rsplit_once('/').map_or("", |(folder, _)| folder);
    parent.strip_suffix(".rs") == Some(folder)
        || [".rs", "/lib.rs", "/main.rs"]
            .iter()
            .any(|end| parent == format!("{folder}{end}"))
}

/// Whether a way leads from `parent` to its child `end` through a file that is not below `parent`.
fn leads_back_outside(edges: &Edges, parent: &str, end: &str) -> bool {
    let inside = parent
        .trim_end_matches(".rs")
        .trim_end_matches("lib")
        .trim_end_matches("main");
    let is_outside = |file: &str| {
        file != parent && !file.starts_with(&format!("{}/", inside.trim_end_matches('/')))
    };
    let mut seen = BTreeSet::from([(parent, false)]);
    let mut open = vec![(parent, false)];
    while let Some((file, was_outside)) = open.pop() {
        if file == end && was_outside {
            return true;
        }
        for next in edges.get(file).into_iter().flatten() {
            let step = (next.as_str(), was_outside || is_outside(next));
            if seen.insert(step) {
                open.push(step);
            }
        }
    }
    false
}

/// The sets of two files or more that reach each other.
fn cycles(edges: &Edges) -> Vec<Vec<String>> {
    let mut reach: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for from in edges.keys() {
        let (mut seen, mut open) = (BTreeSet::new(), vec![from.as_str()]);
        while let Some(file) = open.pop() {
            for next in edges.get(file).into_iter().flatten() {
                if seen.insert(next.as_str()) {
                    open.push(next);
                }
            }
        }
        reach.insert(from, seen);
    }
    let mut sets = BTreeSet::new();
    for (from, reached) in &reach {
        let both = |to: &&&str| reach.get(**to).is_some_and(|back| back.contains(from));
        let set: Vec<String> = reached
            .iter()
            .filter(both)
            .map(|it| (*it).to_owned())
            .collect();
        if set.len() > 1 {
            sets.insert(set);
        }
    }
    sets.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edges(list: &[(&str, &[&str])]) -> Edges {
        let owned = |names: &[&str]| names.iter().map(|it| (*it).to_owned()).collect();
        list.iter()
            .map(|(from, to)| ((*from).to_owned(), owned(to)))
            .collect()
    }

    #[test]
    fn a_child_that_uses_its_parent_is_no_cycle() {
        let edges = edges(&[("s/a.rs", &["s/a/b.rs"]), ("s/a/b.rs", &["s/a.rs"])]);
        assert_eq!(cycles(&edges).len(), 1);
        assert_eq!(cycles(&counted(&edges)), Vec::<Vec<String>>::new());
    }

    #[test]
    fn a_cycle_through_a_parent_and_another_module_counts() {
        let edges = edges(&[
            ("s/a.rs", &["s/c.rs"]),
            ("s/a/b.rs", &["s/a.rs"]),
            ("s/c.rs", &["s/a/b.rs"]),
        ]);
        assert_eq!(cycles(&counted(&edges)), [["s/a.rs", "s/a/b.rs", "s/c.rs"]]);
    }

    #[test]
    fn siblings_and_grandchildren_count() {
        let siblings = edges(&[("s/a/b.rs", &["s/a/c.rs"]), ("s/a/c.rs", &["s/a/b.rs"])]);
        assert_eq!(cycles(&counted(&siblings)).len(), 1);
        let grand = edges(&[
            ("s/a.rs", &["s/a/b.rs"]),
            ("s/a/b.rs", &["s/a/b/c.rs"]),
            ("s/a/b/c.rs", &["s/a.rs"]),
        ]);
        assert_eq!(cycles(&counted(&grand)).len(), 1);
    }
}
