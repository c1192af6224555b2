//! Server-sent events of a chunk stream. The data of each event is one chunk's JSON, and the last
//! event is [`DONE`]. Clients read on after it.
//!
//! [`SseDecoder`] decodes the data of events from bytes in parts of any size; [`Chunks`] decodes the
//! chunks. Both behave like the parser of the AI SDK's client: an event without a final empty line is
//! ignored, and only the field `data` counts.

mod chunks;

pub use crate::sse::{DONE, write_event};
pub use chunks::{Chunks, ChunksError};

/// An event is larger than the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event has more than {limit} bytes, expected a smaller one")]
pub struct EventTooLarge {
    /// How many bytes an event may have.
    pub limit: usize,
}

/// The byte order mark in UTF-8.
const BOM: &[u8] = b"\xEF\xBB\xBF";

/// Decodes server-sent events from bytes that arrive in parts.
///
/// ```
/// use loomline_interop::ai_sdk::sse::SseDecoder;
///
/// let mut decoder = SseDecoder::new();
/// let mut events = Vec::new();
/// decoder.push(b": keep-alive\n\ndata: {\"type\":", &mut events)?;
/// decoder.push(b"\"start\"}\r\n\r\ndata: cut off", &mut events)?;
/// assert_eq!(events, [r#"{"type":"start"}"#]);
/// # Ok::<(), loomline_interop::ai_sdk::sse::EventTooLarge>(())
/// ```
#[derive(Clone, Debug)]
pub struct SseDecoder {
    limit: usize,
    /// The line that is not over.
    line: Vec<u8>,
    /// The data of the unfinished event, from the first line on.
    data: Option<String>,
    begun: bool,
    after_cr: bool,
    failed: bool,
}

impl Default for SseDecoder {
    fn default() -> Self {
        Self::new()
    }
}

impl SseDecoder {
    /// Default maximum size of an event in bytes: 64 MiB, because one event can contain a whole file.
    pub const LIMIT: usize = 64 << 20;

    /// A decoder at the start of a stream.
    #[must_use]
    pub fn new() -> Self {
        Self::with_limit(Self::LIMIT)
    }

    /// A decoder for events of at most `limit` bytes. It buffers at most `limit` bytes between two
    /// pushes.
    #[must_use]
    pub fn with_limit(limit: usize) -> Self {
        Self {
            limit,
            line: Vec::new(),
            data: None,
            begun: false,
            after_cr: false,
            failed: false,
        }
    }

    /// Takes the next bytes, and appends the data of each event that they complete.
    ///
    /// After an error the stream ends: every further call returns this error.
    pub fn push(&mut self, bytes: &[u8], events: &mut Vec<String>) -> Result<(), EventTooLarge> {
        let mut rest = bytes;
        if self.failed {
            return Err(self.too_large());
        }
        while let Some((first, after)) = rest.split_first() {
            if std::mem::take(&mut self.after_cr) && *first == b'\n' {
                rest = after;
                continue;
            }
            let Some(end) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) else {
                self.check(rest.len())?;
                self.line.extend_from_slice(rest);
                break;
            };
            let (line, after) = rest.split_at(end);
            self.check(line.len())?;
            if self.line.is_empty() {
                self.line(line, events);
            } else {
                let mut whole = std::mem::take(&mut self.line);
                whole.extend_from_slice(line);
                self.line(&whole, events);
                whole.clear();
                self.line = whole;
            }
            self.after_cr = after.first() == Some(&b'\r');
            rest = after.get(1..).unwrap_or_default();
        }
        Ok(())
    }

    /// Fails if `more` additional bytes would exceed the limit.
    fn check(&mut self, more: usize) -> Result<(), EventTooLarge> {
        let held = self.line.len() + self.data.as_ref().map_or(0, String::len);
        if held + more <= self.limit {
            return Ok(());
        }
        self.failed = true;
        self.line = Vec::new();
        self.data = None;
        Err(self.too_large())
    }

    fn too_large(&self) -> EventTooLarge {
        EventTooLarge { limit: self.limit }
    }

    /// Takes a complete line.
    fn line(&mut self, line: &[u8], events: &mut Vec<String>) {
        let first = !std::mem::replace(&mut self.begun, true);
        let line = if first {
            line.strip_prefix(BOM).unwrap_or(line)
        } else {
            line
        };
        if line.is_empty() {
            events.extend(self.data.take());
            return;
        }
        let value = match line.strip_prefix(b"data") {
            Some([]) => &[],
            Some([b':', b' ', value @ ..] | [b':', value @ ..]) => value,
            Some(_) | None => return,
        };
        // Cut into lines, bytes can be decoded by themselves: no character holds a line's end.
        let value = String::from_utf8_lossy(value);
        match &mut self.data {
            Some(data) => {
                data.push('\n');
                data.push_str(&value);
            }
            None => self.data = Some(value.into_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(bytes: &[u8]) -> Vec<String> {
        let mut events = Vec::new();
        SseDecoder::new().push(bytes, &mut events).unwrap();
        events
    }

    #[test]
    fn lines_end_in_any_of_the_three_ways() {
        let events = decoded(b"data: a\n\ndata:b\r\rdata:  c\r\n\r\ndata\r\n\n");
        assert_eq!(events, ["a", "b", " c", ""]);
    }

    #[test]
    fn only_data_counts_and_its_lines_are_joined() {
        let bytes =
            "\u{feff}data: a\nid: 1\n: data: x\ndatas: y\nevent: e\ndata: ž\n\nretry: 5\n\n";
        assert_eq!(decoded(bytes.as_bytes()), ["a\nž"]);
    }

    #[test]
    fn an_event_without_its_end_was_never_sent() {
        assert!(decoded(b"data: a\n").is_empty());
    }

    #[test]
    fn bytes_that_are_no_text_are_replaced() {
        assert_eq!(decoded(b"data: a\xE2\x82\n\n"), ["a\u{fffd}"]);
    }

    #[test]
    fn what_was_written_is_read_again() {
        let mut written = String::new();
        write_event("a\nb", &mut written);
        write_event(DONE, &mut written);
        assert_eq!(written, "data: a\ndata: b\n\ndata: [DONE]\n\n");
        assert_eq!(decoded(written.as_bytes()), ["a\nb", "[DONE]"]);
    }

    #[test]
    fn an_event_beyond_the_limit_is_refused_for_good() {
        let mut decoder = SseDecoder::with_limit(8);
        let mut events = Vec::new();
        decoder.push(b"data: a\n\n", &mut events).unwrap();
        let error = EventTooLarge { limit: 8 };
        for piece in [b"data: abcdef\n\n", b"data: a\n\ndata:"] {
            assert_eq!(decoder.push(piece, &mut events), Err(error));
        }
        assert_eq!(events, ["a"]);
    }

    #[test]
    fn a_line_that_never_ends_is_refused_however_it_comes() {
        let mut decoder = SseDecoder::with_limit(100);
        let mut events = Vec::new();
        let taken = (0..1000).take_while(|_| decoder.push(b":", &mut events).is_ok());
        assert_eq!(taken.count(), 100);
    }
}
