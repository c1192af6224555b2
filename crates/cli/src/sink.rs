//! Destinations of documents: standard output as they are made, or a file that is written atomically.

use crate::error::CliError;
use crate::output::Output;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// A destination of documents.
pub(crate) enum Sink {
    /// A report of the documents, on standard output, as text for people or as JSON.
    Report(Output),
    /// Standard output.
    Stdout(Output),
    /// A file.
    File(Draft),
}

/// A temporary file that replaces the target once it is complete.
pub(crate) struct Draft {
    target: PathBuf,
    /// The temporary file in the target's directory; `None` if the target is a device or a pipe.
    beside: Option<PathBuf>,
    file: Option<BufWriter<File>>,
}

impl Sink {
    /// A sink for documents; without a file and for -, standard output.
    pub(crate) fn open(file: Option<&Path>, output: &Output) -> Result<Self, CliError> {
        match file.filter(|file| *file != Path::new("-")) {
            None => Ok(Self::Stdout(output.clone())),
            Some(file) => Draft::begin(file).map(Self::File),
        }
    }

    /// Whether the destination receives documents rather than a report.
    pub(crate) fn takes_documents(&self) -> bool {
        !matches!(self, Self::Report(_))
    }

    /// Writes lines.
    pub(crate) fn lines(&mut self, text: &str) -> Result<(), CliError> {
        match self {
            Self::Report(output) => output.report(text),
            Self::Stdout(output) => output.exact(text),
            Self::File(draft) => draft.write(text),
        }
    }

    /// Writes a whole document.
    pub(crate) fn document(&mut self, text: &str) -> Result<(), CliError> {
        match self {
            Self::Report(output) => output.report(text),
            Self::Stdout(output) => output.document(text.strip_suffix('\n').unwrap_or(text)),
            Self::File(draft) => draft.write(text),
        }
    }

    /// Moves the finished file to its target.
    pub(crate) fn finish(self) -> Result<(), CliError> {
        match self {
            Self::Report(_) | Self::Stdout(_) => Ok(()),
            Self::File(draft) => draft.finish(),
        }
    }
}

impl Draft {
    fn begin(file: &Path) -> Result<Self, CliError> {
        // What a link leads to is replaced, not the link.
        let target = std::fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
        let failed = |source| CliError::io(format!("write {}", file.display()))(source);
        let there = std::fs::metadata(&target);
        if there.as_ref().is_ok_and(|it| !it.is_file()) {
            let opened = File::options().write(true).open(&target).map_err(failed)?;
            return Ok(Self {
                target,
                beside: None,
                file: Some(BufWriter::new(opened)),
            });
        }
        let mut name = std::ffi::OsString::from(".");
        name.push(target.file_name().unwrap_or_default());
        name.push(format!(".{}.part", std::process::id()));
        let beside = target.with_file_name(name);
        let opened = File::create_new(&beside).map_err(failed)?;
        let draft = Self {
            target,
            beside: Some(beside),
            file: Some(BufWriter::with_capacity(1 << 17, opened)),
        };
        if let (Ok(there), Some(file)) = (there, &draft.file) {
            let file = file.get_ref();
            file.set_permissions(there.permissions()).map_err(failed)?;
        }
        Ok(draft)
    }

    fn write(&mut self, text: &str) -> Result<(), CliError> {
        let name = self.target.display().to_string();
        match &mut self.file {
            None => Ok(()),
            Some(file) => file
                .write_all(text.as_bytes())
                .map_err(CliError::io(format!("write {name}"))),
        }
    }

    fn finish(mut self) -> Result<(), CliError> {
        let failed = CliError::io(format!("write {}", self.target.display()));
        let written = match self.file.take() {
            None => Ok(()),
            Some(mut file) => file.flush(),
        };
        written
            .and_then(|()| match &self.beside {
                None => Ok(()),
                Some(beside) => std::fs::rename(beside, &self.target),
            })
            .map_err(failed)?;
        self.beside = None;
        Ok(())
    }
}

impl Drop for Draft {
    /// Deletes an incomplete file.
    fn drop(&mut self) {
        if let Some(beside) = &self.beside {
            // Nothing can be done when it has gone already.
            let _ = std::fs::remove_file(beside);
        }
    }
}
