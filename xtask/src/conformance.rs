//! `docs/conformance.md`: one row for every requirement and rule, and no test that does not exist.

mod ids;
pub(crate) mod status;

use crate::sources::{self, Source};
use anyhow::{Context as _, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

const TABLE: &str = "docs/conformance.md";

/// How far a requirement is met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum State {
    Done,
    Partial,
    Open,
    /// A rule for somebody else, such as the developer of an application.
    NotOurs,
}

/// A row of the table.
#[derive(Debug, PartialEq, Eq)]
struct Row {
    line: usize,
    id: String,
    /// The text of the rule; requirements have none here.
    rule: Option<String>,
    state: String,
    tests: Vec<String>,
}

/// Everything a row may name.
#[derive(Debug, Default)]
struct Tests {
    functions: BTreeSet<String>,
    titles: BTreeSet<String>,
    files: BTreeSet<String>,
}

/// Checks the table against the repository; gives the summary.
pub(crate) fn check(root: &Path) -> Result<String> {
    let text = fs::read_to_string(root.join(TABLE)).with_context(|| format!("reading {TABLE}"))?;
    let rows = rows(&text);
    let findings = judge(&rows, &Tests::of(root)?);
    crate::report("conformance", &findings)?;
    summary(&rows)
}

fn rows(text: &str) -> Vec<Row> {
    (1..)
        .zip(text.lines())
        .filter_map(|(line, text)| {
            let row = text.trim().strip_prefix('|')?.strip_suffix('|')?;
            let cells: Vec<&str> = row.split('|').map(str::trim).collect();
            let (id, rule, state, tests) = match cells.as_slice() {
                [id, state, tests] => (id, None, state, tests),
                [id, rule, state, tests] => (id, Some(rule), state, tests),
                _ => return None,
            };
            ids::is_id(id).then(|| Row {
                line,
                id: (*id).to_owned(),
                rule: rule.map(|rule| (*rule).to_owned()),
                state: (*state).to_owned(),
                tests: backticked(tests),
            })
        })
        .collect()
}

fn backticked(cell: &str) -> Vec<String> {
    cell.split('`')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect()
}

fn judge(rows: &[Row], tests: &Tests) -> Vec<String> {
    let mut findings = Vec::new();
    let mut seen = BTreeSet::new();
    let expected: BTreeMap<String, ids::Group> = ids::all().collect();
    for row in rows {
        let mut find =
            |what: String| findings.push(format!("{TABLE}:{}: {}: {what}", row.line, row.id));
        match expected.get(&row.id).map(|group| group.has_rules) {
            None => find("there is no such requirement".into()),
            Some(true) if row.rule.as_deref().is_none_or(str::is_empty) => {
                find("what the rule says is missing".into());
            }
            Some(false) if row.rule.is_some() => find("a requirement has three cells".into()),
            Some(true | false) => {}
        }
        if !seen.insert(&row.id) {
            find("this requirement has a row already".into());
        }
        match state(&row.state) {
            Some(State::NotOurs) if row.rule.is_none() => {
                find("a requirement is always ours".into());
            }
            None => find(format!(
                "{:?} is not done, partial, open or not ours",
                row.state
            )),
            Some(State::Done | State::Partial) if row.tests.is_empty() => {
                find(format!("{} needs a test that shows it", row.state));
            }
            Some(State::Done | State::Partial | State::Open | State::NotOurs) => {}
        }
        for test in row.tests.iter().filter(|test| !tests.has(test)) {
            find(format!("there is no test `{test}`"));
        }
    }
    let missing = ids::all().filter(|(id, _)| !seen.contains(id));
    findings.extend(missing.map(|(id, _)| format!("{TABLE}: {id} has no row")));
    findings
}

fn state(word: &str) -> Option<State> {
    match word {
        "done" => Some(State::Done),
        "partial" => Some(State::Partial),
        "open" => Some(State::Open),
        "not ours" => Some(State::NotOurs),
        _ => None,
    }
}

fn summary(rows: &[Row]) -> Result<String> {
    let groups: BTreeMap<String, ids::Group> = ids::all().collect();
    let mut counts: BTreeMap<&str, [usize; 4]> = BTreeMap::new();
    let mut n_tests = 0;
    for row in rows {
        if let (Some(group), Some(state)) = (groups.get(&row.id), state(&row.state)) {
            counts.entry(group.name).or_default()[state as usize] += 1;
        }
        n_tests += row.tests.len();
    }
    let mut out = String::from("           done  partial  open  not ours\n");
    let mut total = [0; 4];
    let mut line = |name: &str, [done, partial, open, not_ours]: [usize; 4]| {
        writeln!(
            out,
            "{name:<10} {done:>4}  {partial:>7}  {open:>4}  {not_ours:>8}"
        )
    };
    for group in ids::GROUPS {
        let counts = counts.get(group.name).copied().unwrap_or_default();
        line(group.name, counts)?;
        for (sum, count) in total.iter_mut().zip(counts) {
            *sum += count;
        }
    }
    line("all", total)?;
    writeln!(
        out,
        "{} requirements and rules, {n_tests} tests named, all of them exist",
        rows.len()
    )?;
    Ok(out)
}

impl Tests {
    fn of(root: &Path) -> Result<Self> {
        let mut tests = Self::default();
        for source in sources::under(root, "crates")? {
            tests.functions.extend(functions(&source));
        }
        for folder in [
            "tests/browser",
            "tests/js",
            "clients/python/tests",
            "conformance",
        ] {
            for source in sources::under(root, folder)? {
                tests.titles.extend(titles(&source));
                tests.functions.extend(python_functions(&source));
                tests.files.insert(source.path);
            }
        }
        Ok(tests)
    }

    fn has(&self, name: &str) -> bool {
        self.functions.contains(name) || self.titles.contains(name) || self.files.contains(name)
    }
}

fn functions(source: &Source) -> Vec<String> {
    if !source.is("rs") {
        return Vec::new();
    }
    let code = sources::code(&source.text);
    let names = code.split("fn ").skip(1).map(|rest| {
        rest.chars()
            .take_while(|letter| letter.is_alphanumeric() || *letter == '_')
            .collect::<String>()
    });
    names.filter(|name| !name.is_empty()).collect()
}

/// The functions of a Python file.
fn python_functions(source: &Source) -> Vec<String> {
    if !source.is("py") {
        return Vec::new();
    }
    let names = source.text.lines().filter_map(|line| {
        let line = line.trim_start();
        let line = line.strip_prefix("async ").unwrap_or(line);
        line.strip_prefix("def ")?.split_once('(')
    });
    names.map(|(name, _)| name.to_owned()).collect()
}

/// The titles of the tests of a JavaScript file, as they stand in `test("…", …)` and, for pages, in
/// `claim("…", …)`.
fn titles(source: &Source) -> Vec<String> {
    if !source.is("mjs") && !source.is("js") {
        return Vec::new();
    }
    ["test(", "it(", "claim("]
        .iter()
        .flat_map(|call| source.text.split(call).skip(1))
        .filter_map(|rest| {
            let rest = rest.trim_start();
            let quote = rest
                .chars()
                .next()
                .filter(|quote| matches!(quote, '"' | '\'' | '`'))?;
            let (title, _) = rest[1..].split_once(quote)?;
            Some(title.to_owned())
        })
        .collect()
}

#[cfg(test)]
mod tests;
