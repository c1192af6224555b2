//! `docs/conformance.md`: one row for every requirement, and no test that does not exist.

use crate::sources::{self, Source};
use anyhow::{Context as _, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

const TABLE: &str = "docs/conformance.md";

/// The requirements: a prefix, and the number of the last.
const RANGES: [(&str, u32); 5] = [("TP", 18), ("EK", 17), ("UAP", 14), ("AITP", 8), ("X", 9)];

/// How far a requirement is met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum State {
    Done,
    Partial,
    Open,
}

/// A row of the table.
#[derive(Debug, PartialEq, Eq)]
struct Row {
    line: usize,
    id: String,
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
            let cells: Vec<&str> = text.trim().strip_prefix('|')?.split('|').collect();
            let [id, state, tests, ..] = cells.as_slice() else {
                return None;
            };
            let (prefix, number) = id.trim().rsplit_once('-')?;
            let is_id = !prefix.is_empty()
                && prefix.bytes().all(|byte| byte.is_ascii_uppercase())
                && !number.is_empty()
                && number.bytes().all(|byte| byte.is_ascii_digit());
            is_id.then(|| Row {
                line,
                id: id.trim().to_owned(),
                state: state.trim().to_owned(),
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
    let expected: Vec<String> = RANGES
        .iter()
        .flat_map(|(prefix, last)| (1..=*last).map(move |number| format!("{prefix}-{number}")))
        .collect();
    for row in rows {
        let mut find =
            |what: String| findings.push(format!("{TABLE}:{}: {}: {what}", row.line, row.id));
        if !expected.contains(&row.id) {
            find("there is no such requirement".into());
        }
        if !seen.insert(&row.id) {
            find("this requirement has a row already".into());
        }
        match state(&row.state) {
            None => find(format!("{:?} is not done, partial or open", row.state)),
            Some(State::Done | State::Partial) if row.tests.is_empty() => {
                find(format!("{} needs a test that shows it", row.state));
            }
            Some(State::Done | State::Partial | State::Open) => {}
        }
        for test in row.tests.iter().filter(|test| !tests.has(test)) {
            find(format!("there is no test `{test}`"));
        }
    }
    let missing = expected.iter().filter(|id| !seen.contains(id));
    findings.extend(missing.map(|id| format!("{TABLE}: {id} has no row")));
    findings
}

fn state(word: &str) -> Option<State> {
    match word {
        "done" => Some(State::Done),
        "partial" => Some(State::Partial),
        "open" => Some(State::Open),
        _ => None,
    }
}

fn summary(rows: &[Row]) -> Result<String> {
    let mut counts: BTreeMap<&str, [usize; 3]> = BTreeMap::new();
    let mut n_tests = 0;
    for row in rows {
        let prefix = row.id.split('-').next().unwrap_or_default();
        if let Some(state) = state(&row.state) {
            counts.entry(prefix).or_default()[state as usize] += 1;
        }
        n_tests += row.tests.len();
    }
    let mut out = String::from("      done  partial  open\n");
    let mut total = [0; 3];
    for (prefix, _) in RANGES {
        let [done, partial, open] = counts.get(prefix).copied().unwrap_or_default();
        writeln!(out, "{prefix:<5} {done:>4}  {partial:>7}  {open:>4}")?;
        for (sum, count) in total.iter_mut().zip([done, partial, open]) {
            *sum += count;
        }
    }
    let [done, partial, open] = total;
    writeln!(out, "all   {done:>4}  {partial:>7}  {open:>4}")?;
    writeln!(
        out,
        "{} requirements, {n_tests} tests named, all of them exist",
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
        for folder in ["tests/js", "conformance"] {
            for source in sources::under(root, folder)? {
                tests.titles.extend(titles(&source));
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

/// The titles of the tests of a JavaScript file, as they stand in `test("…", …)`.
fn titles(source: &Source) -> Vec<String> {
    if !source.is("mjs") && !source.is("js") {
        return Vec::new();
    }
    ["test(", "it("]
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
mod tests {
    use super::*;

    fn table(change: impl Fn(&str) -> Option<String>) -> String {
        let mut text = String::from("# Table\n\n| id | state | tests |\n|---|---|---|\n");
        for (prefix, last) in RANGES {
            for number in 1..=last {
                let id = format!("{prefix}-{number}");
                let row = change(&id).unwrap_or_else(|| format!("| {id} | open | |"));
                text.push_str(&row);
                text.push('\n');
            }
        }
        text
    }

    fn findings(text: &str) -> Vec<String> {
        let tests = Tests {
            functions: BTreeSet::from(["a_thing_holds".to_owned()]),
            titles: BTreeSet::from(["a chat resumes".to_owned()]),
            files: BTreeSet::from(["conformance/tp/case.md".to_owned()]),
        };
        judge(&rows(text), &tests)
    }

    #[test]
    fn a_table_with_every_requirement_once_is_sound() {
        assert_eq!(findings(&table(|_| None)), Vec::<String>::new());
    }

    #[test]
    fn a_missing_row_is_named() {
        let text = table(|id| (id == "EK-7").then(String::new));
        assert_eq!(findings(&text), ["docs/conformance.md: EK-7 has no row"]);
    }

    #[test]
    fn a_second_row_and_an_unknown_id_are_refused() {
        let text = table(|_| None) + "| X-9 | open | |\n| X-10 | open | |\n";
        let found = findings(&text);
        assert_eq!(found.len(), 2);
        assert!(found[0].ends_with("X-9: this requirement has a row already"));
        assert!(found[1].ends_with("X-10: there is no such requirement"));
    }

    #[test]
    fn functions_titles_and_files_count_as_tests() {
        let row = "| TP-1 | done | `a_thing_holds`, `a chat resumes`, `conformance/tp/case.md` |";
        let text = table(|id| (id == "TP-1").then(|| row.to_owned()));
        assert_eq!(findings(&text), Vec::<String>::new());
    }

    #[test]
    fn a_test_that_does_not_exist_is_refused() {
        let text = table(|id| (id == "TP-1").then(|| "| TP-1 | partial | `nowhere` |".to_owned()));
        assert!(findings(&text)[0].ends_with("TP-1: there is no test `nowhere`"));
    }

    #[test]
    fn done_needs_a_test_and_a_state_is_one_of_three() {
        let text = table(|id| match id {
            "TP-1" => Some("| TP-1 | done | |".into()),
            "TP-2" => Some("| TP-2 | nearly | `a_thing_holds` |".into()),
            _ => None,
        });
        let found = findings(&text);
        assert!(found[0].ends_with("TP-1: done needs a test that shows it"));
        assert!(found[1].ends_with("TP-2: \"nearly\" is not done, partial or open"));
    }

    #[test]
    fn names_in_comments_and_strings_are_no_functions() {
        let source = Source {
            path: "crates/x/src/lib.rs".into(),
            text: "// fn not_this\nconst A: &str = \"fn nor_this\";\nfn this_one() {}".into(),
        };
        assert_eq!(functions(&source), ["this_one"]);
    }

    #[test]
    fn titles_are_read_from_javascript() {
        let source = Source {
            path: "tests/js/chat.test.mjs".into(),
            text: "test('one', async () => {});\ntest(\n  \"two, three\",\n);".into(),
        };
        assert_eq!(titles(&source), ["one", "two, three"]);
    }
}
