//! The stored form of the log: one block per commit, with the events of one append.
//!
//! ```text
//! block   = version | number of events | first instant | ids | streams | events
//! ids     = number, then for each: 0 and the 16 bytes of a UUID, or length + 1 and the text
//! streams = number, then for each: 0, length and text, or 1, an offset among the events and a length
//! event   = code | instant, if it differs from the one before | fields
//! ```
//!
//! Numbers are varints (LEB128), signed ones zigzag. Instants are nanoseconds since 1970; those of an
//! entity are relative to its event. An id is its number in the list of ids. JSON of others is stored as it
//! was received, after its length: columns of the tables name its [`ByteRange`]. An event that has another form
//! than this program writes is stored as its JSON text.
//!
//! Chunks that differ only in their delta are a stream. Each is stored as the length of its delta. The text of a
//! stream is in the list of streams, or is a range of the part of the block that repeats it. Version 1 has no
//! streams.
//!
//! A block is readable without others. Its events have the same JSON text as before they were stored.

mod event;
mod split;
mod wire;

pub(crate) use event::Coded;
pub(crate) use split::{ToStore, one_block, split};

use jiff::Timestamp;
use std::collections::BTreeMap;
use store::Filter;
use timeline::{Event, Payload};
use wire::{Reader, Writer};

/// The version of the form that is written.
const VERSION: u8 = 2;
/// The version without streams, which is read.
const WITHOUT_STREAMS: u8 = 1;
/// The bit of a code that says that the instant follows.
const INSTANT: u8 = 0x80;
/// The code of an event that is stored as its JSON text.
const RAW: u8 = 0x3f;
/// The code of a chunk that begins a stream.
const STREAM: u8 = 0x3e;
/// The code of a chunk that continues the last stream.
const DELTA: u8 = 0x3d;

/// Maximum number of events in one block. The number of an event among all events depends on it.
pub(crate) const MAX_EVENTS: u64 = 1 << 20;

/// Why bytes are not a block.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BlockFault {
    #[error("the block has version {0}, this program reads version {VERSION}")]
    Version(u8),
    #[error("the block ends within an event")]
    Truncated,
    #[error("the block has bytes behind its last event or its last chunk")]
    TooLong,
    #[error("a chunk is longer than what is left of its stream")]
    Delta,
    #[error("{0} is not a code of {1}")]
    Code(u64, &'static str),
    #[error("a number in the block is too large")]
    Number,
    #[error("a text in the block is not UTF-8")]
    Text,
    #[error("an instant in the block is out of range")]
    Instant,
    #[error("a JSON value in the block can't be read: {0}")]
    Json(#[from] serde_json::Error),
    #[error("an event in the block can't be read: {0}")]
    Event(#[from] timeline::EventError),
}

/// The position of a text in the body of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ByteRange {
    /// Its first byte, from 0.
    pub(crate) offset: usize,
    /// Its length, in bytes.
    pub(crate) length: usize,
}

/// The ranges of JSON values that were written to or read from blocks.
///
/// A value is found by its address, so it must be borrowed from the same events.
#[derive(Debug, Default)]
pub(crate) struct ByteRanges {
    by_address: BTreeMap<usize, ByteRange>,
}

impl ByteRanges {
    /// The range of a payload.
    pub(crate) fn of(&self, payload: &Payload) -> Option<ByteRange> {
        self.by_address
            .get(&payload.text().as_ptr().addr())
            .copied()
    }
}

/// A block that is ready to be stored.
#[derive(Debug)]
pub(crate) struct Block {
    /// Its bytes.
    pub(crate) body: Vec<u8>,
    /// The number of its events.
    pub(crate) n: usize,
    /// How many of them are facts.
    pub(crate) facts: usize,
    /// Where the JSON values of its events are.
    pub(crate) ranges: ByteRanges,
}

/// An event of a block.
#[derive(Debug)]
pub(crate) struct Decoded<'a> {
    /// When it was written.
    pub(crate) at: Timestamp,
    /// The event.
    pub(crate) event: Event,
    /// Its JSON text, if that is stored.
    pub(crate) text: Option<&'a str>,
}

impl Decoded<'_> {
    /// The event's JSON text.
    pub(crate) fn text(&self) -> Result<String, BlockFault> {
        match self.text {
            Some(text) => Ok(text.to_owned()),
            None => Ok(self.event.encode()?),
        }
    }
}

/// Reads the events of a block, in order.
#[derive(Debug)]
pub(crate) struct BlockReader<'a> {
    reader: Reader<'a>,
    n: u64,
    at: Timestamp,
    has_failed: bool,
}

impl<'a> BlockReader<'a> {
    /// Begins to read.
    pub(crate) fn new(body: &'a [u8]) -> Result<Self, BlockFault> {
        let mut reader = Reader::new(body);
        let version = reader.byte()?;
        if !(WITHOUT_STREAMS..=VERSION).contains(&version) {
            return Err(BlockFault::Version(version));
        }
        let n = reader.number()?;
        let at = reader.instant_after(Timestamp::UNIX_EPOCH)?;
        reader.ids()?;
        if version != WITHOUT_STREAMS {
            reader.streams()?;
        }
        Ok(Self {
            reader,
            n,
            at,
            has_failed: false,
        })
    }

    /// Where the JSON values of the events are that were read so far.
    pub(crate) fn into_ranges(self) -> ByteRanges {
        self.reader.into_ranges()
    }

    fn event(&mut self) -> Result<Decoded<'a>, BlockFault> {
        let code = self.reader.byte()?;
        if code & INSTANT != 0 {
            self.at = self.reader.instant_after(self.at)?;
        }
        self.reader.set_base(self.at);
        let (event, text) = match code & !INSTANT {
            RAW => {
                let text = self.reader.text()?;
                (Event::decode(text)?, Some(text))
            }
            code => (event::read(code, &mut self.reader)?, None),
        };
        if let Some(text) = text {
            self.reader.find_ranges(&event, text);
        }
        Ok(Decoded {
            at: self.at,
            event,
            text,
        })
    }
}

impl<'a> Iterator for BlockReader<'a> {
    type Item = Result<Decoded<'a>, BlockFault>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.has_failed {
            return None;
        }
        if self.n == 0 {
            let is_over = self.reader.is_over();
            self.has_failed = !is_over;
            return (!is_over).then_some(Err(BlockFault::TooLong));
        }
        self.n -= 1;
        let event = self.event();
        self.has_failed = event.is_err();
        Some(event)
    }
}

/// Writes a block.
#[derive(Debug)]
pub(crate) struct BlockWriter {
    writer: Writer,
    first: Timestamp,
    last: Timestamp,
    n: usize,
    facts: usize,
}

impl BlockWriter {
    /// Begins a block whose first event was written at this instant.
    pub(crate) fn new(first: Timestamp) -> Self {
        Self {
            writer: Writer::default(),
            first,
            last: first,
            n: 0,
            facts: 0,
        }
    }

    /// The bytes of its events so far, without the texts of streams.
    pub(crate) fn len(&self) -> usize {
        self.writer.len()
    }

    /// The bytes of the texts of its streams so far.
    pub(crate) fn streamed(&self) -> usize {
        self.writer.streamed()
    }

    /// The number of its events so far.
    pub(crate) fn n(&self) -> usize {
        self.n
    }

    /// Adds an event. `raw` is its JSON text, if this program would write it otherwise.
    pub(crate) fn add(&mut self, at: Timestamp, event: &Event, raw: Option<&str>) {
        // Only another program writes an event that has no own form.
        let owned = if raw.is_none() && !event::is_plain(event) {
            event.encode().ok()
        } else {
            None
        };
        let last = self.last;
        let begin = |writer: &mut Writer, code: u8| {
            if at == last {
                writer.byte(code);
            } else {
                writer.byte(code | INSTANT);
                writer.instant_after(last, at);
            }
            writer.set_base(at);
        };
        match raw.or(owned.as_deref()) {
            Some(text) => {
                begin(&mut self.writer, RAW);
                self.writer.raw(event, text);
            }
            None => event::write(event, &mut self.writer, begin),
        }
        self.last = at;
        self.n += 1;
        self.facts += usize::from(Filter::Facts.keeps(event));
    }

    /// Ends the block.
    pub(crate) fn finish(self) -> Block {
        let (body, ranges) = self.writer.finish(VERSION, self.n, self.first);
        Block {
            body,
            n: self.n,
            facts: self.facts,
            ranges,
        }
    }
}

#[cfg(test)]
mod tests;
