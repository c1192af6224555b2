//! Chores of the repository: `cargo xtask conformance`, `cargo xtask tidy`, `cargo xtask ci`.

mod conformance;
mod sources;
mod tidy;

use anyhow::{Context as _, Result, bail};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

const USAGE: &str = "\
usage: cargo xtask CHORE

  conformance   every requirement has one row, and every test it names exists
  tidy          crate arrows, purity, file length and other rules of ARCHITECTURE.md
  ci            everything: the same as scripts/test
";

#[expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a chore talks to whoever runs it"
)]
fn main() -> ExitCode {
    let chore = std::env::args().nth(1);
    match run(chore.as_deref()) {
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

fn run(chore: Option<&str>) -> Result<String> {
    let root = root()?;
    match chore {
        Some("conformance") => conformance::check(&root),
        Some("tidy") => tidy::check(&root),
        Some("ci") => ci(&root),
        Some("help" | "--help" | "-h") => Ok(USAGE.to_owned()),
        Some(other) => bail!("there is no chore {other:?}\n\n{USAGE}"),
        None => bail!("{USAGE}"),
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
    let root = here.parent().context("xtask stands in no folder")?;
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
