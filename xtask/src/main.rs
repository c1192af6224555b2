//! Chores of the repository: `cargo xtask conformance`, `cargo xtask tidy`, `cargo xtask lines` and others.

mod book;
mod charts;
mod conformance;
mod declared;
mod lines;
mod links;
mod markdown;
mod modules;
mod prose;
mod sources;
mod tidy;

use anyhow::{Context as _, Result, bail};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

const USAGE: &str = "\
usage: cargo xtask CHORE

  conformance                every requirement has one row, and every test it names exists
  charts [--check]           draws docs/pictures/chart-*.svg from docs/measurements, or compares
  status [--check]           writes docs/reference/status.md from the requirements and the pinned clients, or compares
  tidy                       crate arrows, names, cycles and other rules of ARCHITECTURE.md
  tidy --write-exceptions    writes the counts of xtask/exceptions.txt, which may only fall
  prose [--summary]          words, clauses and lengths of sentences in pages, doc comments, help and error texts
  links                      relative links and anchors of pages, and docs/SUMMARY.md against the pages under docs
  book FOLDER                adds llms.txt and the Markdown of each page to a book that mdBook made
  types                      type names with more than one meaning, types within a crate included
  cycles [CRATE]             files of a crate that use each other in a cycle
  lines [REVISION]           lines of Rust by crate, compared with a git revision
  ci                         everything that scripts/test does
";

#[expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a chore talks to whoever runs it"
)]
fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match run(&words) {
        Ok(report) => {
            print!("{report}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(words: &[&str]) -> Result<String> {
    let root = root()?;
    match words {
        ["conformance"] => conformance::check(&root),
        ["charts"] => charts::charts(&root, false),
        ["charts", "--check"] => charts::charts(&root, true),
        ["status"] => conformance::status::run(&root, false),
        ["status", "--check"] => conformance::status::run(&root, true),
        ["prose"] => prose::check(&root, false),
        ["prose", "--summary"] => prose::check(&root, true),
        ["links"] => links::check(&root),
        ["book", folder] => book::add(&root, Path::new(folder)),
        ["tidy"] => tidy::check(&root, false),
        ["tidy", "--write-exceptions"] => tidy::check(&root, true),
        ["types"] => {
            let sources = sources::under(&root, "crates")?;
            let tests = sources::test_files(&sources);
            Ok(tidy::types::listing(&tidy::types::doubles(
                &sources, &tests, false,
            )))
        }
        ["cycles", only @ ..] if only.len() < 2 => {
            let sources = sources::under(&root, "crates")?;
            let tests = sources::test_files(&sources);
            Ok(tidy::cycles::report(
                &sources,
                &tests,
                only.first().copied(),
            ))
        }
        ["lines"] => lines::table(&root, None),
        ["lines", revision] => lines::table(&root, Some(revision)),
        ["ci"] => ci(&root),
        ["help" | "--help" | "-h"] => Ok(USAGE.to_owned()),
        [] => bail!("{USAGE}"),
        other => bail!("there is no chore {:?}\n\n{USAGE}", other.join(" ")),
    }
}

fn ci(root: &Path) -> Result<String> {
    let status = Command::new(root.join("scripts/test"))
        .status()
        .context("scripts/test can't be started")?;
    if !status.success() {
        bail!("scripts/test failed");
    }
    Ok(String::new())
}

fn root() -> Result<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = here.parent().context("xtask has no parent folder")?;
    Ok(root.to_owned())
}

/// The findings of a chore as its error, one a line.
fn report(chore: &str, findings: &[String]) -> Result<()> {
    match findings.len() {
        0 => Ok(()),
        1 => bail!("{chore}: 1 finding\n{}", findings.join("\n")),
        n => bail!("{chore}: {n} findings\n{}", findings.join("\n")),
    }
}
