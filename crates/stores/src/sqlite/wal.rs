//! Looks for damage in a write-ahead log before SQLite reads it.
//!
//! SQLite ends its reading where a checksum is wrong, and forgets all commits from there on. That is right after
//! a power loss, which tears the transactions that were not synced and thus not acknowledged. These are few
//! ([`UNSYNCED`]). If more transactions follow a broken one, the log was whole and has changed since.

use super::connection::{sibling, wal};
use super::error::failed;
use super::sync::UNSYNCED;
use std::fs::File;
use std::io::{BufReader, Read as _};
use std::path::Path;
use store::StoreError;

const HEADER: usize = 32;
const FRAME: usize = 24;

/// A fault of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LogFault {
    /// It was whole once: commits that were acknowledged would be lost. It is whole up to this byte.
    Damaged(u64),
    /// One of the last transactions is not whole: a power loss has torn it, or it has changed since.
    Torn(u64),
}

/// The fault of the log of a database that no process serves, if it has one.
pub(super) fn fault(path: &Path) -> Result<Option<LogFault>, StoreError> {
    let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let Ok(file) = File::open(wal(&path)) else {
        return Ok(None);
    };
    let mut log = Log {
        file: BufReader::with_capacity(1 << 20, file),
        sums: (0, 0),
        is_big_endian: false,
    };
    log.fault().map_err(failed)
}

/// The fault of a log that another process may write. `None` if one does.
pub(super) fn fault_of_unserved(path: &Path) -> Result<Option<LogFault>, StoreError> {
    let state = || {
        let metadata = std::fs::metadata(wal(path)).ok()?;
        Some((metadata.len(), metadata.modified().ok()))
    };
    let before = state();
    if is_served(path) {
        return Ok(None);
    }
    let found = fault(path)?;
    Ok(found.filter(|_| state() == before && !is_served(path)))
}

fn is_served(path: &Path) -> bool {
    let lock = File::open(sibling(path, "lock"));
    lock.is_ok_and(|lock| lock.try_lock_shared().is_err())
}

/// The error of a log that was whole once.
pub(super) fn damaged(path: &Path, whole: u64) -> StoreError {
    let path = wal(path);
    let path = path.display();
    StoreError::Damaged(format!(
        "the write-ahead log {path} has changed at byte {whole} or soon after, and commits follow; restore a backup, or, \
         to go on without these commits, keep a copy and run `truncate -s {whole} {path}`"
    ))
}

/// The message about a last transaction that is not whole.
pub(super) fn torn(path: &Path, whole: u64) -> String {
    format!(
        "the write-ahead log {} is not whole from byte {whole} on: its last transactions were torn by a power loss, or were \
         changed since, and the next start of the server drops them",
        wal(path).display()
    )
}

struct Log {
    file: BufReader<File>,
    sums: (u32, u32),
    is_big_endian: bool,
}

impl Log {
    fn fault(&mut self) -> std::io::Result<Option<LogFault>> {
        let mut header = [0; HEADER];
        if !self.fill(&mut header)? || header == [0; HEADER] {
            return Ok(None);
        }
        let magic = word(&header, 0);
        self.is_big_endian = magic == 0x377f_0683;
        self.add(header.get(..FRAME).unwrap_or_default());
        let page = word(&header, 8) as usize;
        let is_header = (magic == 0x377f_0682 || self.is_big_endian)
            && word(&header, 4) == 3_007_000
            && (word(&header, 24), word(&header, 28)) == self.sums
            && (512..=65536).contains(&page);
        if !is_header {
            // The header is synced before the first frame.
            let has_frames = self.fill(&mut [0; FRAME])?;
            return Ok(has_frames.then_some(LogFault::Damaged(0)));
        }
        let salts: [u8; 8] = std::array::from_fn(|n| header[16 + n]);
        self.frames(page, salts)
    }

    fn frames(&mut self, page: usize, salts: [u8; 8]) -> std::io::Result<Option<LogFault>> {
        let (mut at, mut whole) = (HEADER as u64, HEADER as u64);
        // The sums that the frame before has, and the number of transactions that have ended since the first bad frame.
        let (mut stored, mut n_ended) = (self.sums, 0);
        let (mut is_bad, mut was_ours) = (false, false);
        let mut frame = vec![0; FRAME + page];
        while self.fill(&mut frame)? {
            at += frame.len() as u64;
            let is_last = word(&frame, 4) != 0;
            let sums = (word(&frame, 16), word(&frame, 20));
            let found = frame.get(8..16).unwrap_or_default();
            let n_equal = found.iter().zip(salts).filter(|(a, b)| **a == *b).count();
            // One of the two is right if the frame before has changed.
            let follows = [self.sums, stored].into_iter().any(|before| {
                self.sums = before;
                self.add(frame.get(..8).unwrap_or_default());
                self.add(frame.get(FRAME..).unwrap_or_default());
                self.sums == sums && n_equal == salts.len()
            });
            stored = sums;
            if !is_bad && follows {
                if is_last {
                    whole = at;
                }
                continue;
            }
            // A transaction that failed leaves frames too, but nothing follows its end.
            if follows && n_ended >= UNSYNCED {
                return Ok(Some(LogFault::Damaged(whole)));
            }
            // Frames of an earlier log have another random number.
            is_bad = true;
            was_ours |= n_equal >= 7;
            if is_last && (follows || n_ended == 0) {
                n_ended += 1;
            }
        }
        Ok(was_ours.then_some(LogFault::Torn(whole)))
    }

    /// Whether the buffer was filled.
    fn fill(&mut self, buffer: &mut [u8]) -> std::io::Result<bool> {
        match self.file.read_exact(buffer) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn add(&mut self, bytes: &[u8]) {
        let (mut one, mut two) = self.sums;
        let word = |bytes: &[u8]| {
            let bytes: [u8; 4] = bytes.try_into().unwrap_or_default();
            if self.is_big_endian {
                u32::from_be_bytes(bytes)
            } else {
                u32::from_le_bytes(bytes)
            }
        };
        for pair in bytes.chunks_exact(8) {
            let (first, second) = pair.split_at(4);
            one = one.wrapping_add(word(first)).wrapping_add(two);
            two = two.wrapping_add(word(second)).wrapping_add(one);
        }
        self.sums = (one, two);
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    let word = bytes.get(at..at + 4).and_then(|word| word.try_into().ok());
    word.map_or(0, u32::from_be_bytes)
}
