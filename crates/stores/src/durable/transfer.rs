//! All data of one tenant as lines of JSON.
//!
//! The first line names the tenant, the last one counts the others and has their SHA-256. A file that is cut or
//! changed is refused before anything is written.

use super::line::{EndLine, FORMAT, Line, Transferred};
use crate::value::hex;
use sha2::{Digest as _, Sha256};
use std::io::{BufRead, BufReader, Read, Write};
use store::{StoreError, TenantId};

/// Why an export or an import failed.
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    /// The store has nothing of this tenant.
    #[error("the store has nothing of a tenant {0:?}")]
    NoTenant(String),
    /// The file can't be read or written.
    #[error("the file of the tenant can't be read or written")]
    Io(#[from] std::io::Error),
    /// The file is cut, or was changed.
    #[error("this is no whole export of a tenant: {0}")]
    NotWhole(&'static str),
    /// A line is not what it should be.
    #[error("line {number} of the export is wrong: {what}")]
    Line {
        /// The number, from 1.
        number: u64,
        /// The fault.
        what: String,
    },
    /// A thread has runs or queued messages, and the import is of threads at rest.
    #[error("thread {0} has runs or queued messages")]
    Unfinished(String),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The lines that are written, and what the last one says of them.
pub(crate) struct LineWriter<'a> {
    to: &'a mut (dyn Write + Send),
    hash: Sha256,
    counts: Transferred,
    buffer: Vec<u8>,
}

impl<'a> LineWriter<'a> {
    pub(crate) fn new(to: &'a mut (dyn Write + Send)) -> Self {
        Self {
            to,
            hash: Sha256::new(),
            counts: Transferred::default(),
            buffer: Vec::new(),
        }
    }

    /// Writes a line.
    pub(crate) fn write(&mut self, line: &Line) -> Result<(), TransferError> {
        self.buffer.clear();
        serde_json::to_writer(&mut self.buffer, line).map_err(std::io::Error::from)?;
        self.buffer.push(b'\n');
        self.hash.update(&self.buffer);
        self.counts.count(line);
        self.to.write_all(&self.buffer)?;
        Ok(())
    }

    /// Writes the last line.
    pub(crate) fn end(mut self) -> Result<Transferred, TransferError> {
        let sha256 = hex(&self.hash.clone().finalize());
        let counts = self.counts;
        self.write(&Line::End(EndLine { counts, sha256 }))?;
        self.to.flush()?;
        Ok(counts)
    }
}

/// The lines that are read, in the order that they must have.
#[derive(Default)]
pub(crate) struct LineReader {
    /// The number of the last line, from 1.
    number: u64,
    counts: Transferred,
    tenant: Option<TenantId>,
    is_over: bool,
}

impl LineReader {
    /// A fault of the last line.
    pub(crate) fn wrong(&self, what: impl Into<String>) -> TransferError {
        TransferError::Line {
            number: self.number,
            what: what.into(),
        }
    }

    /// Reads the next line.
    pub(crate) fn read(&mut self, text: &[u8]) -> Result<Line, TransferError> {
        self.number += 1;
        let line: Line =
            serde_json::from_slice(text).map_err(|error| self.wrong(error.to_string()))?;
        self.counts.count(&line);
        if self.is_over {
            return Err(self.wrong("nothing comes after the last line"));
        }
        if self.tenant.is_none() != matches!(line, Line::Tenant(_)) {
            return Err(self.wrong("the first line, and no other, names the tenant"));
        }
        if let Line::Tenant(line) = &line {
            if line.format != FORMAT {
                return Err(self.wrong(format!(
                    "its form has version {}, and this program knows {FORMAT}",
                    line.format
                )));
            }
            self.tenant = Some(TenantId::from(line.name.as_str()));
        }
        self.is_over = matches!(line, Line::End(_));
        Ok(line)
    }

    pub(crate) fn tenant(&self) -> Result<&TenantId, TransferError> {
        let missing = || self.wrong("the first line names the tenant");
        self.tenant.as_ref().ok_or_else(missing)
    }

    /// Compares the lines with what the last one counts.
    pub(crate) fn end(&self, expected: Transferred) -> Result<Transferred, TransferError> {
        if !self.is_over {
            return Err(TransferError::NotWhole("its last line is missing"));
        }
        if self.counts != expected {
            return Err(TransferError::NotWhole("its last line counts other lines"));
        }
        Ok(self.counts)
    }
}

/// The largest line, in bytes. SQLite stores no larger content.
pub(crate) const MAX_LINE: u64 = 1 << 30;

/// Reads a line of at most `max` bytes without its end. Whether there was one.
pub(crate) fn next(
    lines: &mut impl BufRead,
    text: &mut Vec<u8>,
    max: u64,
) -> Result<bool, TransferError> {
    text.clear();
    if lines.take(max + 1).read_until(b'\n', text)? == 0 {
        return Ok(false);
    }
    match text.pop() {
        Some(b'\n') => Ok(true),
        _ if text.len() as u64 >= max => Err(TransferError::NotWhole("a line is too long")),
        _ => Err(TransferError::NotWhole("its last line is cut")),
    }
}

/// Compares the lines with what the last one says of them, and returns what that counts.
pub(crate) fn whole(from: &mut impl Read) -> Result<Transferred, TransferError> {
    let mut lines = BufReader::new(from);
    let mut hash = Sha256::new();
    let (mut before, mut text) = (Vec::new(), Vec::new());
    let mut n: u64 = 0;
    while next(&mut lines, &mut text, MAX_LINE)? {
        if n > 0 {
            hash.update(&before);
            hash.update(b"\n");
        }
        n += 1;
        std::mem::swap(&mut before, &mut text);
    }
    let Ok(Line::End(EndLine { counts, sha256 })) = serde_json::from_slice(&before) else {
        return Err(TransferError::NotWhole("its last line is missing"));
    };
    if hex(&hash.finalize()) != sha256 {
        return Err(TransferError::NotWhole(
            "the sum of its lines is not that of its last line",
        ));
    }
    Ok(counts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_an_import_are_read_up_to_a_size() {
        let read = |mut lines: &[u8]| {
            let mut text = Vec::new();
            let found = next(&mut lines, &mut text, 5);
            found
                .map(|is_line| is_line.then_some(text))
                .map_err(|error| error.to_string())
        };
        assert_eq!(read(b"12345\n6"), Ok(Some(b"12345".to_vec())));
        assert_eq!(read(b""), Ok(None));
        assert!(read(b"1234").unwrap_err().contains("is cut"));
        assert!(read(b"123456\n").unwrap_err().contains("is too long"));
        assert!(read(b"12345678").unwrap_err().contains("is too long"));
    }
}
