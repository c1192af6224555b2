//! `xtask/exceptions.txt`: what the rules still allow, as counts that only fall.

use anyhow::{Context as _, Result, bail};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

const FILE: &str = "xtask/exceptions.txt";
const HEAD: &str = "\
# Places that break a rule of `cargo xtask tidy`, counted per rule and file. A count may only fall, and no
# rule's sum may grow: `cargo xtask tidy --write-exceptions` writes the lower counts and follows moved files.
";

/// Breaches by rule, then by file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts(BTreeMap<String, BTreeMap<String, Breaches>>);

/// The breaches of one rule in one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Breaches {
    n: usize,
    /// Where they are, for the report.
    notes: Vec<String>,
}

impl Counts {
    /// Adds a breach with a note such as `12: told`.
    pub(super) fn add(&mut self, rule: &str, path: &str, note: String) {
        let breaches = self.at(rule, path);
        breaches.n += 1;
        breaches.notes.push(note);
    }

    /// Sets a count that is no number of places, such as the size of a cycle.
    pub(super) fn set(&mut self, rule: &str, path: &str, n: usize, note: String) {
        *self.at(rule, path) = Breaches {
            n,
            notes: vec![note],
        };
    }

    fn at(&mut self, rule: &str, path: &str) -> &mut Breaches {
        let files = self.0.entry(rule.to_owned()).or_default();
        files.entry(path.to_owned()).or_default()
    }

    fn n(&self, rule: &str, path: &str) -> usize {
        let files = self.0.get(rule);
        files.and_then(|it| it.get(path)).map_or(0, |it| it.n)
    }

    fn sum(&self, rule: &str) -> usize {
        let files = self.0.get(rule);
        files.map_or(0, |files| files.values().map(|it| it.n).sum())
    }

    fn parse(text: &str) -> Result<Self> {
        let (mut counts, mut rule) = (Self::default(), String::new());
        for line in text.lines() {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if let Some(name) = line.strip_prefix('[').and_then(|it| it.strip_suffix(']')) {
                name.clone_into(&mut rule);
                continue;
            }
            let (path, n) = line.rsplit_once(' ').context("a line is `path count`")?;
            let n = n.parse().with_context(|| format!("{FILE}: {line}"))?;
            counts.set(&rule, path, n, String::new());
        }
        Ok(counts)
    }

    fn render(&self) -> String {
        let mut out = HEAD.to_owned();
        for (rule, files) in &self.0 {
            // Writing to a string can't fail.
            let _ = write!(out, "\n[{rule}]\n");
            for (path, breaches) in files.iter().filter(|(_, it)| it.n > 0) {
                let _ = writeln!(out, "{path} {}", breaches.n);
            }
        }
        out
    }

    /// The findings: more than `allowed` has, or fewer.
    fn against(&self, allowed: &Self) -> Vec<String> {
        let mut findings = Vec::new();
        for (rule, files) in &self.0 {
            for (path, breaches) in files {
                let most = allowed.n(rule, path);
                if breaches.n > most {
                    let (n, notes) = (breaches.n, breaches.notes.join(", "));
                    findings.push(format!(
                        "{path}: {rule}: {n}, {FILE} allows {most}: {notes}"
                    ));
                }
            }
        }
        for (rule, files) in &allowed.0 {
            for (path, breaches) in files {
                let n = self.n(rule, path);
                if n < breaches.n {
                    let listed = breaches.n;
                    findings.push(format!(
                        "{FILE}: {rule}: {path} has {n} and not {listed}: run `cargo xtask tidy --write-exceptions`"
                    ));
                }
            }
        }
        findings
    }
}

/// Compares the breaches with the file.
pub(super) fn findings(root: &Path, counts: &Counts) -> Result<Vec<String>> {
    let text = fs::read_to_string(root.join(FILE)).context(FILE)?;
    Ok(counts.against(&Counts::parse(&text)?))
}

/// Writes the file with today's counts, unless the sum of a rule has grown.
pub(super) fn write(root: &Path, counts: &Counts) -> Result<String> {
    let path = root.join(FILE);
    if let Ok(text) = fs::read_to_string(&path) {
        let before = Counts::parse(&text)?;
        // A rule without a section is new, and begins with what there is.
        for rule in counts.0.keys().filter(|it| before.0.contains_key(*it)) {
            let (was, is) = (before.sum(rule), counts.sum(rule));
            if is > was {
                let more = counts.against(&before).join("\n");
                bail!("{rule}: the sum grew from {was} to {is}; nothing written\n{more}");
            }
        }
    }
    fs::write(&path, counts.render()).context(FILE)?;
    Ok(format!("wrote {FILE}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(n: usize) -> Counts {
        let mut counts = Counts::default();
        for line in 1..=n {
            counts.add("docs", "a.rs", format!("{line}: told"));
        }
        counts
    }

    #[test]
    fn a_written_file_reads_back_with_its_counts() {
        let read = Counts::parse(&counts(2).render()).unwrap();
        assert_eq!(counts(2).against(&read), Vec::<String>::new());
    }

    #[test]
    fn more_breaches_than_listed_are_named() {
        let expected = "a.rs: docs: 2, xtask/exceptions.txt allows 1: 1: told, 2: told";
        assert_eq!(counts(2).against(&counts(1)), [expected]);
    }

    #[test]
    fn a_listed_count_that_is_too_high_is_a_finding() {
        let found = counts(1).against(&counts(2));
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("xtask/exceptions.txt: docs: a.rs has 1 and not 2"));
        assert_eq!(counts(0).against(&counts(2)).len(), 1);
    }

    #[test]
    fn the_sum_of_a_rule_never_grows_but_files_move() {
        let root = std::env::temp_dir().join(format!("xtask-exceptions-{}", std::process::id()));
        fs::create_dir_all(root.join("xtask")).unwrap();
        write(&root, &counts(1)).unwrap();
        assert!(write(&root, &counts(2)).is_err());
        let mut moved = Counts::default();
        moved.add("docs", "b.rs", String::new());
        write(&root, &moved).unwrap();
        assert_eq!(findings(&root, &moved).unwrap(), Vec::<String>::new());
        fs::remove_dir_all(root).unwrap();
    }
}
