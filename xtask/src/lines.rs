//! Lines of Rust by what they are: code, comments, blanks, tests, suites.

use crate::sources::{self, Source, code, production_lines, without_comments};
use anyhow::{Context as _, Result, bail};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

/// The lines of a crate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Lines {
    files: usize,
    code: usize,
    comments: usize,
    blanks: usize,
    /// All lines of tests, and of suites that implementations of a trait pass.
    tests: usize,
    suites: usize,
}

/// The table of today's lines, compared with those of a git revision where there is one.
pub(crate) fn table(root: &Path, revision: Option<&str>) -> Result<String> {
    let now = by_crate(&sources::under(root, "crates")?);
    let Some(revision) = revision else {
        return Ok(render(&now, None));
    };
    let before = by_crate(&at_revision(root, revision)?);
    Ok(render(&now, Some(&before)))
}

fn by_crate(sources: &[Source]) -> BTreeMap<String, Lines> {
    let tests = sources::test_files(sources);
    let mut crates = BTreeMap::new();
    for source in sources.iter().filter(|source| source.is("rs")) {
        if let Some(name) = source.crate_name() {
            crates
                .entry(name.to_owned())
                .or_insert_with(Lines::default)
                .add(source, &tests);
        }
    }
    crates
}

impl Lines {
    fn add(&mut self, source: &Source, tests: &BTreeSet<&str>) {
        let n_lines = source.text.lines().count();
        if tests.contains(source.path.as_str()) {
            self.tests += n_lines;
            return;
        }
        let is_suite = source.path.contains("/suite/") || source.path.ends_with("/suite.rs");
        if is_suite {
            self.suites += n_lines;
            return;
        }
        self.files += 1;
        let flags = production_lines(&code(&source.text));
        let bare = without_comments(&source.text);
        for ((line, bare), counts) in source.text.lines().zip(bare.lines()).zip(flags) {
            let kind = match (counts, line.trim().is_empty(), bare.trim().is_empty()) {
                (false, _, _) => &mut self.tests,
                (true, true, _) => &mut self.blanks,
                (true, false, true) => &mut self.comments,
                (true, false, false) => &mut self.code,
            };
            *kind += 1;
        }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            files: self.files + other.files,
            code: self.code + other.code,
            comments: self.comments + other.comments,
            blanks: self.blanks + other.blanks,
            tests: self.tests + other.tests,
            suites: self.suites + other.suites,
        }
    }
}

fn render(now: &BTreeMap<String, Lines>, before: Option<&BTreeMap<String, Lines>>) -> String {
    let mut out = format!(
        "{:<10}{:>7}{:>9}{:>10}{:>8}{:>8}{:>8}",
        "crate", "files", "code", "comments", "blanks", "tests", "suites"
    );
    if before.is_some() {
        out.push_str("   code before  change");
    }
    out.push('\n');
    let names: BTreeSet<&String> = now
        .keys()
        .chain(before.into_iter().flat_map(BTreeMap::keys))
        .collect();
    let of = |crates: &BTreeMap<String, Lines>, name: &str| {
        crates.get(name).copied().unwrap_or_default()
    };
    let sum = |crates: &BTreeMap<String, Lines>| {
        crates.values().copied().fold(Lines::default(), Lines::plus)
    };
    for name in names {
        row(&mut out, name, of(now, name), before.map(|it| of(it, name)));
    }
    row(&mut out, "all", sum(now), before.map(sum));
    out
}

fn row(out: &mut String, name: &str, now: Lines, before: Option<Lines>) {
    // Writing to a string can't fail.
    let _ = write!(
        out,
        "{name:<10}{:>7}{:>9}{:>10}{:>8}{:>8}{:>8}",
        now.files, now.code, now.comments, now.blanks, now.tests, now.suites
    );
    if let Some(before) = before {
        let change =
            i128::try_from(now.code).unwrap_or(0) - i128::try_from(before.code).unwrap_or(0);
        let _ = write!(out, "{:>14}{change:>+8}", before.code);
    }
    out.push('\n');
}

/// The Rust files under `crates/` at a git revision.
fn at_revision(root: &Path, revision: &str) -> Result<Vec<Source>> {
    let listed = Command::new("git")
        .args(["ls-tree", "-r", "--name-only", revision, "crates"])
        .current_dir(root)
        .output()
        .context("git can't be started")?;
    if !listed.status.success() {
        bail!("git ls-tree: {}", String::from_utf8_lossy(&listed.stderr));
    }
    let listed = String::from_utf8(listed.stdout)?;
    let paths: Vec<String> = listed
        .lines()
        .filter(|it| it.strip_suffix(".rs").is_some())
        .map(str::to_owned)
        .collect();
    let mut git = Command::new("git")
        .args(["cat-file", "--batch"])
        .current_dir(root)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("git can't be started")?;
    let mut requests = git.stdin.take().context("git has no input")?;
    let mut answers = BufReader::new(git.stdout.take().context("git has no output")?);
    let mut sources = Vec::new();
    for path in paths {
        writeln!(requests, "{revision}:{path}")?;
        requests.flush()?;
        let mut head = String::new();
        answers.read_line(&mut head)?;
        let length = head.trim_end().rsplit(' ').next().unwrap_or_default();
        let length: usize = length
            .parse()
            .with_context(|| format!("git cat-file: {head}"))?;
        // A newline follows the file.
        let mut bytes = vec![0; length + 1];
        answers.read_exact(&mut bytes)?;
        bytes.truncate(length);
        let text = String::from_utf8(bytes)?;
        sources.push(Source { path, text });
    }
    drop(requests);
    git.wait()?;
    Ok(sources)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(files: &[(&str, &str)]) -> Lines {
        let sources: Vec<Source> = files
            .iter()
            .map(|(path, text)| Source {
                path: (*path).to_owned(),
                text: (*text).to_owned(),
            })
            .collect();
        by_crate(&sources)["a"]
    }

    #[test]
    fn lines_are_counted_by_what_they_are() {
        let text = "//! Doc.\n\n/* a\nb */\nfn f() { // c\n    let g = \"// h\n// i\";\n}\n#[cfg(test)]\nmod tests {\n\n}\n";
        let expected = Lines {
            files: 1,
            code: 4,
            comments: 3,
            blanks: 1,
            tests: 4,
            suites: 0,
        };
        assert_eq!(lines(&[("crates/a/src/lib.rs", text)]), expected);
    }

    #[test]
    fn files_of_tests_and_suites_are_counted_whole() {
        let files = [
            ("crates/a/src/b/tests.rs", "fn a() {}\n\n"),
            ("crates/a/tests/it/main.rs", "// b\n"),
            ("crates/a/src/suite/reads.rs", "fn c() {}\n"),
        ];
        let expected = Lines {
            tests: 3,
            suites: 1,
            ..Lines::default()
        };
        assert_eq!(lines(&files), expected);
    }

    #[test]
    fn the_table_has_a_sum_and_a_change() {
        let lines = |code| Lines {
            code,
            ..Lines::default()
        };
        let now = BTreeMap::from([("a".to_owned(), lines(5)), ("b".to_owned(), lines(2))]);
        let before = BTreeMap::from([("a".to_owned(), lines(9))]);
        let table = render(&now, Some(&before));
        let last = table.lines().last().unwrap();
        assert_eq!(
            last.split_whitespace().collect::<Vec<_>>(),
            ["all", "0", "7", "0", "0", "0", "0", "9", "-2"]
        );
    }
}
