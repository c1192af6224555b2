//! Lines as they come, some at a time.

use std::io::{BufRead, BufReader, ErrorKind, Read};

/// Bytes per read.
const CHUNK: usize = 256 << 10;

/// Some whole lines.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Batch {
    /// The number of the first line, from 1.
    pub(super) first: u64,
    /// The lines with their ends; the last of a text may have none.
    pub(super) bytes: Vec<u8>,
    /// Whether this is one line that was dropped because it is too long.
    pub(super) too_long: bool,
    /// How much was read to get here.
    pub(super) n_read: u64,
}

/// Splits its input into batches of whole lines. A batch has the complete lines of one read, so that
/// available lines never wait. It reads at most one line further.
pub(super) struct Lines<R> {
    reader: BufReader<R>,
    /// The beginning of the next line.
    rest: Vec<u8>,
    /// The number of the next line.
    next: u64,
    max_bytes: usize,
}

impl<R: Read> Lines<R> {
    pub(super) fn new(reader: R, max_bytes: usize) -> Self {
        Self {
            reader: BufReader::with_capacity(CHUNK, reader),
            rest: Vec::new(),
            next: 1,
            max_bytes,
        }
    }

    /// The next lines; `None` at the end.
    pub(super) fn more(&mut self) -> std::io::Result<Option<Batch>> {
        let mut n_read = 0;
        loop {
            let new = match self.reader.fill_buf() {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                new => new?,
            };
            let n_new = new.len();
            n_read += u64::try_from(n_new).unwrap_or(u64::MAX);
            let end = new.iter().rposition(|byte| *byte == b'\n');
            let (whole, begun) = new.split_at(end.map_or(0, |end| end + 1));
            if n_new == 0 {
                let last = std::mem::take(&mut self.rest);
                return Ok((!last.is_empty()).then(|| self.batch(last, n_read)));
            }
            if whole.is_empty() {
                self.rest.extend_from_slice(begun);
                self.reader.consume(n_new);
                if self.rest.len() > self.max_bytes {
                    return self.skip(n_read).map(Some);
                }
                continue;
            }
            let mut bytes = std::mem::take(&mut self.rest);
            bytes.extend_from_slice(whole);
            self.rest.extend_from_slice(begun);
            self.reader.consume(n_new);
            return Ok(Some(self.batch(bytes, n_read)));
        }
    }

    /// Skips the rest of a line.
    fn skip(&mut self, mut n_read: u64) -> std::io::Result<Batch> {
        self.rest = Vec::new();
        loop {
            let new = match self.reader.fill_buf() {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                new => new?,
            };
            let end = new.iter().position(|byte| *byte == b'\n');
            let n_skipped = end.map_or(new.len(), |end| end + 1);
            n_read += u64::try_from(n_skipped).unwrap_or(u64::MAX);
            self.reader.consume(n_skipped);
            if end.is_some() || n_skipped == 0 {
                let first = self.next;
                self.next += 1;
                return Ok(Batch {
                    first,
                    bytes: Vec::new(),
                    too_long: true,
                    n_read,
                });
            }
        }
    }

    fn batch(&mut self, bytes: Vec<u8>, n_read: u64) -> Batch {
        let first = self.next;
        self.next += bytes
            .iter()
            .map(|byte| u64::from(*byte == b'\n'))
            .sum::<u64>();
        Batch {
            first,
            bytes,
            too_long: false,
            n_read,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns at most this many bytes per read.
    struct Slow<'a>(&'a [u8], usize);

    impl Read for Slow<'_> {
        fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
            let n = self.1.min(into.len());
            self.0
                .take(n as u64)
                .read(into)
                .inspect(|n| self.0 = &self.0[*n..])
        }
    }

    fn batches(text: &[u8], at_once: usize, max_bytes: usize) -> Vec<Batch> {
        let mut lines = Lines::new(Slow(text, at_once), max_bytes);
        std::iter::from_fn(|| lines.more().unwrap()).collect()
    }

    #[test]
    fn however_it_is_read_the_lines_are_the_same() {
        // Every text of eight letters that are `a` or a line break, and those with fewer.
        for (pattern, length) in (0..256_u32).flat_map(|it| (0..9).map(move |n| (it, n))) {
            let letter = |at: u32| {
                if (pattern >> at) & 1 == 1 {
                    b'\n'
                } else {
                    b'a'
                }
            };
            let text: Vec<u8> = (0..length).map(letter).collect();
            for at_once in 1..9 {
                let found = batches(&text, at_once, 99);
                let mut line = 1;
                for (place, batch) in found.iter().enumerate() {
                    assert_eq!(batch.first, line);
                    assert!(batch.bytes.ends_with(b"\n") || place + 1 == found.len());
                    line += batch.bytes.split(|byte| *byte == b'\n').count() as u64 - 1;
                }
                let n_read: u64 = found.iter().map(|batch| batch.n_read).sum();
                assert_eq!(n_read, text.len() as u64);
                let bytes: Vec<u8> = found.into_iter().flat_map(|it| it.bytes).collect();
                assert_eq!(bytes, text);
            }
        }
    }

    #[test]
    fn a_line_that_is_too_long_is_left_out_and_has_its_number() {
        let found = batches(b"a\nbbbbbbbbbbbb\nc\n", 4, 6);
        let told: Vec<_> = found
            .iter()
            .map(|it| (it.first, it.too_long, it.bytes.as_slice()))
            .collect();
        assert_eq!(
            told,
            [
                (1, false, b"a\n".as_slice()),
                (2, true, b""),
                (3, false, b"c\n"),
            ]
        );
        assert!(batches(b"bbbbbbbbbbbb", 4, 6)[0].too_long);
    }
}
