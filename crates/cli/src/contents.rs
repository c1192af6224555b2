//! Large contents of documents in a directory: each content once, in a file that is named by its hash.

use crate::args::Exchanged;
use crate::error::CliError;
use crate::output::Output;
use crate::sink::Sink;
use std::path::PathBuf;
use thread::content::{ContentStore, ExternaliseOptions, externalise, inline};
use thread::{Limits, Thread};

/// A directory of contents.
pub(crate) struct ContentDirectory<'a> {
    directory: PathBuf,
    output: &'a Output,
}

impl<'a> ContentDirectory<'a> {
    /// A directory that holds the contents of documents of this format.
    pub(crate) fn new(
        directory: PathBuf,
        format: Exchanged,
        output: &'a Output,
    ) -> Result<Self, CliError> {
        if matches!(format, Exchanged::Thread) {
            return Ok(Self { directory, output });
        }
        Err(CliError::Usage {
            what: "--contents needs the format `thread`, whose documents can refer to contents"
                .to_owned(),
        })
    }

    /// The document with references in the places of its large contents, which are in the directory then.
    pub(crate) fn move_out(&mut self, text: &str) -> Result<(String, Thread), CliError> {
        let document = decode(text, "the export")?;
        std::fs::create_dir_all(&self.directory)
            .map_err(CliError::io(format!("create {}", self.directory.display())))?;
        let moved = externalise(&document, self, ExternaliseOptions::default());
        let moved = moved.map_err(|error| unreadable("the export", error))?;
        Ok((moved.thread.encode(), moved.thread))
    }

    /// The document with the contents that it refers to.
    pub(crate) fn put_back(&self, text: &str, name: &str) -> Result<String, CliError> {
        let document = decode(text, name)?;
        let whole = inline(&document, self).map_err(|error| unreadable(name, error))?;
        Ok(whole.encode())
    }

    fn file(&self, hash: &str) -> PathBuf {
        self.directory
            .join(format!("{}.json", hash.replace(':', "-")))
    }
}

fn decode(text: &str, name: &str) -> Result<Thread, CliError> {
    let limits = Limits {
        max_depth: Limits::DEEPEST,
        max_bytes: usize::MAX,
        max_nodes: usize::MAX,
    };
    Thread::decode_with(text, &limits).map_err(|error| unreadable(name, error))
}

fn unreadable(name: &str, source: impl std::error::Error + Send + Sync + 'static) -> CliError {
    CliError::Unreadable {
        spot: name.to_owned(),
        what: "a ThreadProtocol document",
        source: source.into(),
    }
}

impl ContentStore for ContentDirectory<'_> {
    type Error = CliError;

    fn put(&mut self, hash: &str, text: &str) -> Result<(), CliError> {
        let file = self.file(hash);
        let is_there = std::fs::metadata(&file).is_ok_and(|it| it.len() == text.len() as u64);
        if is_there {
            return Ok(());
        }
        let mut sink = Sink::open(Some(&file), self.output)?;
        sink.lines(text)?;
        sink.finish()
    }

    fn get(&self, hash: &str) -> Result<Option<String>, CliError> {
        let file = self.file(hash);
        match std::fs::read_to_string(&file) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(CliError::io(format!("read {}", file.display()))(error)),
        }
    }
}
