//! Documents worked on: one file, or each line of one, in the same way.

use crate::args::{Going, LimitOptions};
use crate::error::CliError;
use crate::input::Input;
use crate::jsonl;
use crate::output::Output;
use crate::progress::Progress;
use crate::sink::Sink;
use std::sync::Arc;

/// The place of a document.
#[derive(Clone, Debug)]
pub(crate) struct Location {
    /// The file.
    pub(crate) name: Arc<str>,
    /// The line number, if each line is a document.
    pub(crate) line: Option<u64>,
}

impl std::fmt::Display for Location {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.name)?;
        match self.line {
            None => Ok(()),
            Some(line) => write!(formatter, ", line {line}"),
        }
    }
}

/// The result of a command for one document.
#[derive(Debug, Default)]
pub(crate) struct Done {
    /// The document that is written, or the lines that are printed.
    pub(crate) out: String,
    /// The lines for standard error.
    pub(crate) stderr_lines: String,
    /// Number of findings: violations, losses, changes.
    pub(crate) n_found: usize,
    /// Why the document is not as it should be, though it could be read.
    pub(crate) refused: Option<CliError>,
}

/// A command's work on each document.
pub(crate) type Work = dyn Fn(&str, &Location) -> Result<Done, CliError> + Send + Sync;

/// A command's options for several documents.
pub(crate) struct BatchOptions {
    pub(crate) output: Output,
    pub(crate) limits: LimitOptions,
    /// Whether bad lines are reported and left out.
    pub(crate) keep_going: bool,
    /// Whether a line that is not UTF-8 counts as refused, like a document that breaks a rule.
    pub(crate) judges: bool,
    /// The word for a document that was refused.
    pub(crate) refused: &'static str,
}

impl BatchOptions {
    pub(crate) fn new(output: &Output, limits: LimitOptions, going: Going) -> Self {
        Self {
            output: output.clone(),
            limits,
            keep_going: going.keep_going,
            judges: false,
            refused: "refused",
        }
    }
}

/// The totals of all documents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    /// Documents, good and bad.
    pub(crate) documents: u64,
    /// Those that could not be read.
    pub(crate) failed: u64,
    /// Those that were refused.
    pub(crate) refused: u64,
    /// Number of findings: violations, losses, changes.
    pub(crate) found: usize,
}

/// Works on one document, or on each line.
pub(crate) fn work(
    input: Input,
    mut sink: Sink,
    way: &BatchOptions,
    work: impl Fn(&str, &Location) -> Result<Done, CliError> + Send + Sync + 'static,
) -> Result<Totals, CliError> {
    if input.by_line {
        return jsonl::work(input, sink, way, Arc::new(work));
    }
    let progress = Progress::of_document(&input, &way.output);
    let spot = Location {
        name: Arc::clone(&input.name),
        line: None,
    };
    let text = input.text(way.limits.limits().max_bytes)?;
    let done = work(&text, &spot)?;
    drop(progress);
    way.output.write_stderr(&done.stderr_lines);
    if done.refused.is_none() || !sink.takes_documents() {
        sink.document(&done.out)?;
    }
    if let Some(refused) = done.refused {
        return Err(refused);
    }
    sink.finish()?;
    Ok(Totals {
        documents: 1,
        found: done.n_found,
        ..Totals::default()
    })
}
