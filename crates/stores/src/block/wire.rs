//! Numbers, texts, ids, instants and JSON values in the bytes of a block.

use super::event::{self, Stream};
use super::{BlockFault, ByteRange, ByteRanges};
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::sync::Arc;
use timeline::{Event, Payload};
use uuid::Uuid;

/// A value that a block holds.
pub(super) trait Field: Sized {
    fn write(&self, to: &mut Writer);
    fn read(from: &mut Reader<'_>) -> Result<Self, BlockFault>;
}

/// Collects the events of a block.
#[derive(Debug, Default)]
pub(super) struct Writer {
    events: Vec<u8>,
    ids: Vec<Box<str>>,
    numbers: BTreeMap<Box<str>, u64>,
    base: Timestamp,
    ranges: BTreeMap<usize, ByteRange>,
    streams: Vec<WrittenStream>,
    /// The bytes of all streams.
    n_streamed: usize,
    parts: Vec<ByteRange>,
}

/// A stream of chunks that were written.
#[derive(Debug)]
struct WrittenStream {
    fields: Stream,
    /// Its deltas, in order.
    text: String,
    /// The number of parts before its first chunk.
    n_parts: usize,
}

/// Only this many streams of a block, the first ones, can be ranges of parts. A step has a stream for each of its texts.
/// The limit bounds the time of writers and readers.
const MAX_RANGES: usize = 32;

impl Writer {
    /// The bytes of the events, without the texts of streams.
    pub(super) fn len(&self) -> usize {
        self.events.len()
    }

    /// The bytes of the texts of streams.
    pub(super) fn streamed(&self) -> usize {
        self.n_streamed
    }

    pub(super) fn set_base(&mut self, at: Timestamp) {
        self.base = at;
    }

    pub(super) fn byte(&mut self, byte: u8) {
        self.events.push(byte);
    }

    pub(super) fn number(&mut self, n: u64) {
        put_number(&mut self.events, u128::from(n));
    }

    pub(super) fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.events.extend_from_slice(text.as_bytes());
    }

    /// An id: its number in the list.
    pub(super) fn id(&mut self, id: &str) {
        let n = if let Some(n) = self.numbers.get(id) {
            *n
        } else {
            let n = self.ids.len() as u64;
            self.ids.push(id.into());
            self.numbers.insert(id.into(), n);
            n
        };
        self.number(n);
    }

    pub(super) fn instant(&mut self, at: Timestamp) {
        self.instant_after(self.base, at);
    }

    pub(super) fn instant_after(&mut self, before: Timestamp, at: Timestamp) {
        put_instant(&mut self.events, before, at);
    }

    /// A text; its range is stored under this address.
    fn ranged(&mut self, address: usize, text: &str) {
        self.number(text.len() as u64);
        let range = ByteRange {
            offset: self.events.len(),
            length: text.len(),
        };
        self.ranges.insert(address, range);
        self.events.extend_from_slice(text.as_bytes());
    }

    /// A part of a step, which can repeat the text of streams.
    pub(super) fn part(&mut self, part: &Payload) {
        let text = part.text();
        self.ranged(text.as_ptr().addr(), text);
        self.parts.push(ByteRange {
            offset: self.events.len() - text.len(),
            length: text.len(),
        });
    }

    /// Whether a chunk of this stream continues the last one.
    pub(super) fn continues(&self, stream: &Stream) -> bool {
        self.streams
            .last()
            .is_some_and(|last| last.fields == *stream)
    }

    /// Begins a stream.
    pub(super) fn begin_stream(&mut self, fields: Stream) {
        self.streams.push(WrittenStream {
            fields,
            text: String::new(),
            n_parts: self.parts.len(),
        });
    }

    /// A delta of the last stream.
    pub(super) fn delta(&mut self, delta: &str) {
        self.number(delta.len() as u64);
        self.n_streamed += delta.len();
        if let Some(stream) = self.streams.last_mut() {
            stream.text.push_str(delta);
        }
    }

    /// The offset of the text of a stream in a part behind it.
    fn repeated(&self, stream: &WrittenStream) -> Option<usize> {
        let parts = self.parts.get(stream.n_parts..)?;
        parts.iter().find_map(|part| {
            let bytes = self.events.get(part.offset..part.offset + part.length)?;
            let found = std::str::from_utf8(bytes).ok()?.find(&stream.text)?;
            Some(part.offset + found)
        })
    }

    /// The list of streams.
    fn put_streams(&self, to: &mut Vec<u8>) {
        put_number(to, self.streams.len() as u128);
        for (n, stream) in self.streams.iter().enumerate() {
            let stream_of_part = Some(stream).filter(|_| n < MAX_RANGES);
            if let Some(offset) = stream_of_part.and_then(|stream| self.repeated(stream)) {
                to.push(1);
                put_number(to, offset as u128);
                put_number(to, stream.text.len() as u128);
            } else {
                to.push(0);
                put_number(to, stream.text.len() as u128);
                to.extend_from_slice(stream.text.as_bytes());
            }
        }
    }

    /// The text of an event.
    pub(super) fn raw(&mut self, event: &Event, text: &str) {
        self.number(text.len() as u64);
        let offset = self.events.len();
        self.events.extend_from_slice(text.as_bytes());
        find_ranges(&mut self.ranges, event, text, offset);
    }

    pub(super) fn finish(self, version: u8, n: usize, first: Timestamp) -> (Vec<u8>, ByteRanges) {
        let mut body = Vec::with_capacity(self.events.len() + 32 + self.ids.len() * 17);
        body.push(version);
        put_number(&mut body, n as u128);
        put_instant(&mut body, Timestamp::UNIX_EPOCH, first);
        put_number(&mut body, self.ids.len() as u128);
        for id in &self.ids {
            if let Some(uuid) = uuid_of(id) {
                body.push(0);
                body.extend_from_slice(uuid.as_bytes());
            } else {
                put_number(&mut body, id.len() as u128 + 1);
                body.extend_from_slice(id.as_bytes());
            }
        }
        self.put_streams(&mut body);
        let start = body.len();
        body.extend_from_slice(&self.events);
        let mut by_address = self.ranges;
        for range in by_address.values_mut() {
            range.offset += start;
        }
        (body, ByteRanges { by_address })
    }
}

/// The UUID of an id in the usual spelling.
fn uuid_of(id: &str) -> Option<Uuid> {
    let uuid = Uuid::try_parse(id).ok()?;
    let mut spelled = Uuid::encode_buffer();
    (*uuid.hyphenated().encode_lower(&mut spelled) == *id).then_some(uuid)
}

fn put_number(to: &mut Vec<u8>, mut n: u128) {
    loop {
        let low = (n & 0x7f) as u8;
        n >>= 7;
        if n == 0 {
            return to.push(low);
        }
        to.push(low | 0x80);
    }
}

fn put_instant(to: &mut Vec<u8>, before: Timestamp, at: Timestamp) {
    let delta = at.as_nanosecond() - before.as_nanosecond();
    put_number(to, ((delta << 1) ^ (delta >> 127)).cast_unsigned());
}

/// Finds the JSON values of an event in its text.
fn find_ranges(ranges: &mut BTreeMap<usize, ByteRange>, event: &Event, text: &str, start: usize) {
    event::each_value(event, &mut |value| {
        let value = value.text();
        if let Some(offset) = text.find(value) {
            let range = ByteRange {
                offset: start + offset,
                length: value.len(),
            };
            ranges.insert(value.as_ptr().addr(), range);
        }
    });
}

/// Reads a block.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    body: &'a [u8],
    position: usize,
    ids: Vec<Arc<str>>,
    base: Timestamp,
    ranges: BTreeMap<usize, ByteRange>,
    /// The texts of the later streams, the next one last.
    streams: Vec<&'a str>,
    /// The current stream, with the rest of its text.
    stream: Option<(Stream, &'a str)>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(body: &'a [u8]) -> Self {
        Self {
            body,
            position: 0,
            ids: Vec::new(),
            base: Timestamp::UNIX_EPOCH,
            ranges: BTreeMap::new(),
            streams: Vec::new(),
            stream: None,
        }
    }

    pub(super) fn set_base(&mut self, at: Timestamp) {
        self.base = at;
    }

    pub(super) fn is_over(&self) -> bool {
        self.position == self.body.len() && self.streams.is_empty() && self.is_stream_over()
    }

    fn is_stream_over(&self) -> bool {
        self.stream.as_ref().is_none_or(|(_, left)| left.is_empty())
    }

    pub(super) fn into_ranges(self) -> ByteRanges {
        ByteRanges {
            by_address: self.ranges,
        }
    }

    pub(super) fn byte(&mut self) -> Result<u8, BlockFault> {
        let byte = self.body.get(self.position).ok_or(BlockFault::Truncated)?;
        self.position += 1;
        Ok(*byte)
    }

    fn bytes(&mut self, n: usize) -> Result<&'a [u8], BlockFault> {
        let end = self.position.checked_add(n).ok_or(BlockFault::Truncated)?;
        let bytes = self
            .body
            .get(self.position..end)
            .ok_or(BlockFault::Truncated)?;
        self.position = end;
        Ok(bytes)
    }

    fn wide(&mut self) -> Result<u128, BlockFault> {
        let (mut n, mut shift) = (0_u128, 0_u32);
        loop {
            let byte = self.byte()?;
            let low = u128::from(byte & 0x7f);
            if shift > 121 || (low << shift) >> shift != low {
                return Err(BlockFault::Number);
            }
            n |= low << shift;
            if byte & 0x80 == 0 {
                return Ok(n);
            }
            shift += 7;
        }
    }

    pub(super) fn number(&mut self) -> Result<u64, BlockFault> {
        u64::try_from(self.wide()?).map_err(|_| BlockFault::Number)
    }

    fn length(&mut self) -> Result<usize, BlockFault> {
        usize::try_from(self.number()?).map_err(|_| BlockFault::Truncated)
    }

    pub(super) fn text(&mut self) -> Result<&'a str, BlockFault> {
        let length = self.length()?;
        std::str::from_utf8(self.bytes(length)?).map_err(|_| BlockFault::Text)
    }

    pub(super) fn ids(&mut self) -> Result<(), BlockFault> {
        for _ in 0..self.number()? {
            let id = match self.length()? {
                0 => {
                    let bytes = self.bytes(16)?;
                    let uuid = Uuid::from_slice(bytes).map_err(|_| BlockFault::Truncated)?;
                    let mut spelled = Uuid::encode_buffer();
                    Arc::from(&*uuid.hyphenated().encode_lower(&mut spelled))
                }
                length => {
                    let bytes = self.bytes(length - 1)?;
                    Arc::from(std::str::from_utf8(bytes).map_err(|_| BlockFault::Text)?)
                }
            };
            self.ids.push(id);
        }
        Ok(())
    }

    pub(super) fn streams(&mut self) -> Result<(), BlockFault> {
        let (mut texts, mut ranges) = (Vec::new(), Vec::new());
        for n in 0..self.number()? {
            match self.byte()? {
                0 => texts.push(self.text()?),
                1 if n < MAX_RANGES as u64 => {
                    ranges.push((texts.len(), self.length()?, self.length()?));
                    texts.push("");
                }
                other => return Err(BlockFault::Code(other.into(), "a stream")),
            }
        }
        let events = self.body.get(self.position..).unwrap_or_default();
        for (n, offset, length) in ranges {
            let end = offset.checked_add(length).ok_or(BlockFault::Truncated)?;
            let bytes = events.get(offset..end).ok_or(BlockFault::Truncated)?;
            if let Some(text) = texts.get_mut(n) {
                *text = std::str::from_utf8(bytes).map_err(|_| BlockFault::Text)?;
            }
        }
        texts.reverse();
        self.streams = texts;
        Ok(())
    }

    /// Begins the next stream.
    pub(super) fn begin_stream(&mut self, of: Stream) -> Result<(), BlockFault> {
        if !self.is_stream_over() {
            return Err(BlockFault::TooLong);
        }
        let text = self.streams.pop().ok_or(BlockFault::Delta)?;
        self.stream = Some((of, text));
        Ok(())
    }

    /// The next delta of the current stream.
    pub(super) fn delta(&mut self) -> Result<(&Stream, &'a str), BlockFault> {
        let length = self.length()?;
        let (stream, left) = self.stream.as_mut().ok_or(BlockFault::Delta)?;
        let (delta, behind) = left.split_at_checked(length).ok_or(BlockFault::Delta)?;
        *left = behind;
        Ok((stream, delta))
    }

    pub(super) fn id(&mut self) -> Result<Arc<str>, BlockFault> {
        let n = self.number()?;
        let id = usize::try_from(n).ok().and_then(|n| self.ids.get(n));
        id.cloned().ok_or(BlockFault::Code(n, "an id"))
    }

    pub(super) fn instant(&mut self) -> Result<Timestamp, BlockFault> {
        self.instant_after(self.base)
    }

    pub(super) fn instant_after(&mut self, before: Timestamp) -> Result<Timestamp, BlockFault> {
        let n = self.wide()?;
        let delta = (n >> 1).cast_signed() ^ -(n & 1).cast_signed();
        let at = before.as_nanosecond().checked_add(delta);
        at.and_then(|at| Timestamp::from_nanosecond(at).ok())
            .ok_or(BlockFault::Instant)
    }

    pub(super) fn find_ranges(&mut self, event: &Event, text: &str) {
        let start = self.position - text.len();
        find_ranges(&mut self.ranges, event, text, start);
    }

    fn ranged(&mut self) -> Result<(&'a str, ByteRange), BlockFault> {
        let text = self.text()?;
        let range = ByteRange {
            offset: self.position - text.len(),
            length: text.len(),
        };
        Ok((text, range))
    }
}

impl Field for String {
    fn write(&self, to: &mut Writer) {
        to.text(self);
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, BlockFault> {
        from.text().map(str::to_owned)
    }
}

impl Field for Timestamp {
    fn write(&self, to: &mut Writer) {
        to.instant(*self);
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, BlockFault> {
        from.instant()
    }
}

impl Field for u32 {
    fn write(&self, to: &mut Writer) {
        to.number(u64::from(*self));
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, BlockFault> {
        Self::try_from(from.number()?).map_err(|_| BlockFault::Number)
    }
}

impl Field for bool {
    fn write(&self, to: &mut Writer) {
        to.byte(u8::from(*self));
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, BlockFault> {
        match from.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(BlockFault::Code(other.into(), "a flag")),
        }
    }
}

impl<T: Field> Field for Option<T> {
    fn write(&self, to: &mut Writer) {
        self.is_some().write(to);
        if let Some(value) = self {
            value.write(to);
        }
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, BlockFault> {
        Ok(if bool::read(from)? {
            Some(T::read(from)?)
        } else {
            None
        })
    }
}

impl Field for Payload {
    fn write(&self, to: &mut Writer) {
        let text = self.text();
        to.ranged(text.as_ptr().addr(), text);
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, BlockFault> {
        let (text, range) = from.ranged()?;
        let payload = Self::from_text(text.to_owned())?;
        from.ranges.insert(payload.text().as_ptr().addr(), range);
        Ok(payload)
    }
}
