//! Large contents of documents in a directory: each content once, in a file that is named by its hash.

use crate::args::Exchanged;
use crate::error::CliError;
use crate::output::Output;
use crate::sink::Sink;
use std::path::{Path, PathBuf};
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

    /// The file of a hash. None if a document names what is no hash: it could lead out of the directory.
    fn file(&self, hash: &str) -> Option<PathBuf> {
        let digits = hash.strip_prefix("sha256:")?;
        let is_digit = |it: u8| it.is_ascii_digit() || (b'a'..=b'f').contains(&it);
        let is_hash = digits.len() == 64 && digits.bytes().all(is_digit);
        is_hash.then(|| self.directory.join(format!("sha256-{digits}.json")))
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

/// The largest content that is read, in bytes. The store takes no larger value.
const MAX_CONTENT: u64 = 1 << 30;

/// Reads a regular file of limited size.
fn read(file: &Path) -> std::io::Result<String> {
    let about = std::fs::metadata(file)?;
    if !about.is_file() || about.len() > MAX_CONTENT {
        let what = format!("it is no file of at most {MAX_CONTENT} bytes");
        return Err(std::io::Error::new(std::io::ErrorKind::InvalidInput, what));
    }
    std::fs::read_to_string(file)
}

impl ContentStore for ContentDirectory<'_> {
    type Error = CliError;

    fn put(&mut self, hash: &str, text: &str) -> Result<(), CliError> {
        let file = self.file(hash).ok_or_else(|| CliError::Usage {
            what: format!("{hash:?} is no hash of a content"),
        })?;
        let is_there = std::fs::read(&file).is_ok_and(|it| it == text.as_bytes());
        if is_there {
            return Ok(());
        }
        let mut sink = Sink::open(Some(&file), self.output)?;
        sink.lines(text)?;
        sink.finish()
    }

    fn get(&self, hash: &str) -> Result<Option<String>, CliError> {
        let Some(file) = self.file(hash) else {
            return Ok(None);
        };
        match read(&file) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(CliError::io(format!("read {}", file.display()))(error)),
        }
    }
}
