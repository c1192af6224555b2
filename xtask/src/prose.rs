//! The rules for prose: pages, doc comments, help texts and error texts.

mod rules;
pub(crate) mod rust;

use crate::markdown::{self, Kind, Piece};
use crate::sources::{self, Source};
use anyhow::{Result, bail};
use rules::{Finding, Rule, sentences};
use std::fmt::Write as _;
use std::path::Path;

/// Pages at the root.
const PAGES: [&str; 4] = [
    "README.md",
    "CHANGELOG.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
];

/// Pages under `docs` that are tables of facts.
const TABLES: [&str; 1] = ["docs/conformance.md"];

/// How pages begin that a program writes.
const GENERATED: &str = "<!-- generated";

/// Beginnings of help texts that are no doc comments.
const HELPS: [&str; 3] = ["(help = ", " help = ", "about = "];

/// The lengths of a page's sentences. Headings and cells are not counted: they are short by nature.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Length {
    path: String,
    n_sentences: usize,
    n_words: usize,
    longest: usize,
}

/// Checks all prose. With `summary`, the report has the lengths of each page's sentences.
pub(crate) fn check(root: &Path, summary: bool) -> Result<String> {
    let sources = sources::under(root, "")?;
    let tests = sources::test_files(&sources);
    let (mut findings, mut lengths) = (Vec::new(), Vec::new());
    for source in &sources {
        if is_page(source) {
            let pieces = markdown::pieces(&source.text);
            findings.extend(judge(&source.path, &pieces));
            let length = Length::of(&source.path, &pieces);
            findings.extend(length.finding());
            lengths.push(length);
        } else if source.is("rs") && !tests.contains(source.path.as_str()) {
            findings.extend(judge(&source.path, &rust_pieces(source)));
        }
    }
    findings.sort();
    let mut out = if summary {
        table(&lengths, &findings)
    } else {
        String::new()
    };
    if findings.is_empty() {
        let _ = writeln!(out, "prose: {} pages, nothing to say", lengths.len());
        return Ok(out);
    }
    let lines: Vec<String> = findings.iter().map(Finding::to_string).collect();
    bail!(
        "{}\n{out}prose: {} findings: {}",
        lines.join("\n"),
        lines.len(),
        by_rule(&findings)
    );
}

fn judge(path: &str, pieces: &[Piece]) -> Vec<Finding> {
    pieces
        .iter()
        .flat_map(|it| rules::judge(path, it))
        .collect()
}

/// Whether users or contributors read it, and a person wrote it.
fn is_page(source: &Source) -> bool {
    let path = source.path.as_str();
    let in_docs = path.starts_with("docs/") && source.is("md");
    (in_docs || PAGES.contains(&path))
        && !TABLES.contains(&path)
        && !source.text.trim_start().starts_with(GENERATED)
}

/// The prose of production code.
fn rust_pieces(source: &Source) -> Vec<Piece> {
    let mut prose = rust::doc_comments(&source.text);
    prose.extend(rust::literals_after(&source.text, &HELPS));
    prose.extend(rust::literals_after(&source.text, &["#[error("]));
    prose.iter().flat_map(rust::Prose::pieces).collect()
}

impl Length {
    fn of(path: &str, pieces: &[Piece]) -> Self {
        let texts = pieces.iter().filter(|it| it.kind == Kind::Text);
        let lengths: Vec<usize> = texts.flat_map(sentences).map(rules::n_words).collect();
        Self {
            path: path.to_owned(),
            n_sentences: lengths.len(),
            n_words: lengths.iter().sum(),
            longest: lengths.iter().max().copied().unwrap_or_default(),
        }
    }

    /// Words per sentence in tenths, rounded.
    fn tenths(&self) -> usize {
        let n_sentences = self.n_sentences.max(1);
        (self.n_words * 10 + n_sentences / 2) / n_sentences
    }

    fn finding(&self) -> Option<Finding> {
        let is_long = self.n_words > rules::AVERAGE * self.n_sentences;
        is_long.then(|| Finding {
            path: self.path.clone(),
            line: 1,
            rule: Rule::Average,
            text: format!(
                "{}.{} words in {} sentences",
                self.tenths() / 10,
                self.tenths() % 10,
                self.n_sentences
            ),
        })
    }
}

/// The pages with the lengths of their sentences and the number of findings.
fn table(lengths: &[Length], findings: &[Finding]) -> String {
    let mut out = String::from(" average  longest  sentences  findings  page\n");
    for it in lengths {
        let (whole, tenth) = (it.tenths() / 10, it.tenths() % 10);
        let n_findings = findings
            .iter()
            .filter(|found| found.path == it.path)
            .count();
        // Writing to a string can't fail.
        let _ = writeln!(
            out,
            "{whole:>6}.{tenth}  {:>7}  {:>9}  {n_findings:>8}  {}",
            it.longest, it.n_sentences, it.path
        );
    }
    out
}

/// How many findings each rule has.
fn by_rule(findings: &[Finding]) -> String {
    let counts = Rule::ALL.iter().filter_map(|rule| {
        let n = findings.iter().filter(|it| it.rule.is_like(*rule)).count();
        (n > 0).then(|| format!("{n} {}", rule.name()))
    });
    counts.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, text: &str) -> Source {
        Source {
            path: path.into(),
            text: text.into(),
        }
    }

    fn found(text: &str) -> Vec<String> {
        let pieces = rust_pieces(&source("a.rs", text));
        let findings = judge("a.rs", &pieces);
        findings.iter().map(Finding::to_string).collect()
    }

    #[test]
    fn pages_are_read_unless_a_program_writes_them() {
        let is_page = |path, text| is_page(&source(path, text));
        assert!(is_page("README.md", "A."));
        assert!(is_page("docs/guides/a.md", "A."));
        assert!(!is_page("docs/conformance.md", "A."));
        assert!(!is_page("docs/a.md", "<!-- generated by a chore -->\n"));
        assert!(!is_page("tests/README.md", "A."));
    }

    #[test]
    fn doc_comments_help_and_error_texts_are_prose() {
        assert_eq!(
            found("/// It is\n/// told and `told`.\nfn a() {}\n"),
            ["a.rs:2: banned: told: It is told and `told`."]
        );
        assert_eq!(
            found("#[error(\"nobody {told} was told\")]\n"),
            ["a.rs:1: banned: told: nobody `{told}` was told"]
        );
        assert_eq!(
            found("#[arg(help = \"At most so many.\")]\n"),
            ["a.rs:1: banned: so many: At most so many."]
        );
    }

    #[test]
    fn an_average_counts_paragraphs_and_items_only() {
        let text = format!(
            "# A\n\n{}x.\n\n- b c.\n\n| d |\n|---|\n| e |\n",
            "x ".repeat(39)
        );
        let length = Length::of("a.md", &markdown::pieces(&text));
        assert_eq!((length.n_sentences, length.n_words), (2, 42));
        let finding = length.finding().map(|it| it.to_string());
        let expected = "a.md:1: average over 20 words: 21.0 words in 2 sentences";
        assert_eq!(finding.as_deref(), Some(expected));
    }
}
