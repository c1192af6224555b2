//! Reference material outside the repository, for tests that compare the code with it.

use std::io::Write as _;
use std::path::PathBuf;

/// The folder that `LOOMLINE_SHARED` names. Where it names none, the caller goes without: this says so on
/// the terminal, though the test passes, and in the file that `LOOMLINE_SKIPPED` names. `scripts/test` shows
/// that file at its end.
#[expect(
    clippy::disallowed_methods,
    reason = "where the material is, only the one who runs the tests knows"
)]
pub(crate) fn reference(what: &str) -> Option<PathBuf> {
    if let Some(folder) = std::env::var_os("LOOMLINE_SHARED") {
        return Some(folder.into());
    }
    let thread = std::thread::current();
    let test = thread.name().unwrap_or_default();
    let line = format!("skipped: {test}: without LOOMLINE_SHARED {what} are not tried\n");
    // Not by a macro: what a macro prints is not shown of a test that passes.
    let _ = std::io::stderr().write_all(line.as_bytes());
    if let Some(report) = std::env::var_os("LOOMLINE_SKIPPED") {
        let report = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(report);
        let _ = report.and_then(|mut report| report.write_all(line.as_bytes()));
    }
    None
}
