//! The rules of `ARCHITECTURE.md` that a machine can check.

mod arrows;
mod cycles;
mod text;

use crate::sources;
use anyhow::Result;
use std::path::Path;

/// Checks all of them; gives what was looked at.
pub(crate) fn check(root: &Path) -> Result<String> {
    let packages = arrows::packages(root)?;
    let sources = sources::under(root, "")?;
    let mut findings = arrows::judge(&packages);
    for source in &sources {
        findings.extend(text::judge(source));
    }
    findings.extend(text::broken_links(root, &sources));
    findings.extend(text::lost_lints(&sources));
    findings.extend(cycles::judge(&sources));
    findings.sort();
    crate::report("tidy", &findings)?;
    Ok(format!(
        "tidy: {} crates and {} files, nothing to say\n",
        packages.len(),
        sources.len()
    ))
}
