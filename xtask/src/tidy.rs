//! The rules of `ARCHITECTURE.md` and of the glossary that a machine can check.

mod arrows;
mod comments;
pub(crate) mod cycles;
mod exceptions;
mod glossary;
mod once;
mod text;
pub(crate) mod types;
mod words;

use crate::sources;
use anyhow::Result;
use exceptions::Counts;
use std::path::Path;

/// Checks all rules and gives a summary. With `write`, lowers the counts of `xtask/exceptions.txt` instead.
pub(crate) fn check(root: &Path, write: bool) -> Result<String> {
    let packages = arrows::packages(root)?;
    let sources = sources::under(root, "")?;
    let tests = sources::test_files(&sources);
    let mut counts = Counts::default();
    for source in &sources {
        let is_test = tests.contains(source.path.as_str());
        words::count(source, is_test, &mut counts);
        once::count(source, is_test, &mut counts);
    }
    cycles::count(&sources, &tests, &mut counts);
    if write {
        return exceptions::write(root, &counts);
    }
    let mut findings = arrows::judge(&packages);
    for source in &sources {
        findings.extend(text::judge(source));
        findings.extend(comments::findings(source));
    }
    findings.extend(text::lost_lints(&sources));
    findings.extend(glossary::findings(&sources));
    findings.extend(types::findings(
        root,
        &types::doubles(&sources, &tests, true),
    )?);
    findings.extend(exceptions::findings(root, &counts)?);
    findings.sort();
    crate::report("tidy", &findings)?;
    Ok(format!(
        "tidy: {} crates and {} files, nothing to say\n",
        packages.len(),
        sources.len()
    ))
}
