//! Sources of documents: files and standard input, within the limits.

use crate::args::Source;
use crate::error::CliError;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

/// The byte order mark that some editors write first.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// A file or standard input, opened.
pub(crate) struct Input {
    /// The name for messages.
    pub(crate) name: Arc<str>,
    pub(crate) reader: Box<dyn Read + Send>,
    /// Its size in bytes, if known.
    pub(crate) size: Option<u64>,
    /// Whether each line is a document.
    pub(crate) by_line: bool,
}

impl Input {
    /// Opens what the command line names.
    pub(crate) fn of(source: &Source) -> Result<Self, CliError> {
        let mut input = Self::open(source.file.as_deref())?;
        input.by_line |= source.jsonl;
        Ok(input)
    }

    /// Opens a file; none and - are standard input.
    pub(crate) fn open(file: Option<&Path>) -> Result<Self, CliError> {
        let Some(file) = file.filter(|file| *file != Path::new("-")) else {
            return Ok(Self {
                name: "standard input".into(),
                reader: Box::new(std::io::stdin()),
                size: None,
                by_line: false,
            });
        };
        let name = file.display().to_string();
        let reader = File::open(file).map_err(CliError::io(format!("read {name}")))?;
        let about = reader
            .metadata()
            .map_err(CliError::io(format!("read {name}")))?;
        Ok(Self {
            name: name.into(),
            reader: Box::new(reader),
            size: about.is_file().then_some(about.len()),
            by_line: is_by_line(file),
        })
    }

    /// The whole text; fails if it has more than `max_bytes` bytes.
    pub(crate) fn text(self, max_bytes: usize) -> Result<String, CliError> {
        let limit = u64::try_from(max_bytes).unwrap_or(u64::MAX);
        if self.size.is_some_and(|size| size > limit) {
            return Err(self.too_large(max_bytes));
        }
        let size = self.size.and_then(|size| usize::try_from(size).ok());
        let mut bytes = Vec::with_capacity(size.map_or(0, |size| size.saturating_add(1)));
        let reading = CliError::io(format!("read {}", self.name));
        let mut reader = self.reader.take(limit.saturating_add(1));
        reader.read_to_end(&mut bytes).map_err(reading)?;
        if bytes.len() > max_bytes {
            return Err(CliError::TooLarge {
                spot: self.name.to_string(),
                limit: max_bytes,
            });
        }
        if bytes.starts_with(BYTE_ORDER_MARK) {
            return Err(CliError::ByteOrderMark {
                spot: self.name.to_string(),
            });
        }
        String::from_utf8(bytes).map_err(|error| CliError::NotUtf8 {
            spot: self.name.to_string(),
            at: error.utf8_error().valid_up_to(),
        })
    }

    fn too_large(&self, limit: usize) -> CliError {
        CliError::TooLarge {
            spot: self.name.to_string(),
            limit,
        }
    }
}

/// Whether the file's name means one document per line.
fn is_by_line(file: &Path) -> bool {
    let extension = file.extension().and_then(|extension| extension.to_str());
    extension.is_some_and(|extension| {
        extension.eq_ignore_ascii_case("jsonl") || extension.eq_ignore_ascii_case("ndjson")
    })
}
