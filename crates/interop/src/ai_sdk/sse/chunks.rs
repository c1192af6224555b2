//! The chunks of a stream of events.

use super::{DONE, EventTooLarge, SseDecoder};
use crate::ai_sdk::partial_json::{PartialJsonError, read};
use thread::Json;

/// Why a stream of chunks can't be read on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChunksError {
    /// An event is too large.
    #[error(transparent)]
    TooLarge(#[from] EventTooLarge),
    /// An event is no JSON.
    #[error("the data of event {place} can't be read, expected JSON")]
    NotJson {
        /// Its place in the stream.
        place: usize,
        /// The JSON error.
        #[source]
        source: PartialJsonError,
    },
}

/// Decodes the chunks of a stream from bytes that arrive in parts. It does not validate them;
/// [`check_chunk`](crate::ai_sdk::check_chunk) does.
#[derive(Clone, Debug, Default)]
pub struct Chunks {
    decoder: SseDecoder,
    events: Vec<String>,
    place: usize,
    done: bool,
    failed: Option<ChunksError>,
}

impl Chunks {
    /// The start of a stream, whose events are not larger than [`SseDecoder::LIMIT`].
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The start of a stream whose events have at most `limit` bytes.
    #[must_use]
    pub fn with_limit(limit: usize) -> Self {
        Self {
            decoder: SseDecoder::with_limit(limit),
            ..Self::default()
        }
    }

    /// Takes the next bytes, and appends the chunks that they complete. Chunks after [`DONE`] count,
    /// as they do for clients.
    ///
    /// After an error the stream ends: every further call returns this error.
    pub fn push(&mut self, bytes: &[u8], chunks: &mut Vec<Json>) -> Result<(), ChunksError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let pushed = self.decoder.push(bytes, &mut self.events);
        let read = self.read(chunks);
        let taken = read.and_then(|()| Ok(pushed?));
        if let Err(error) = &taken {
            self.failed = Some(error.clone());
        }
        taken
    }

    /// Whether the stream had [`DONE`]. Clients do not require it.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.done
    }

    fn read(&mut self, chunks: &mut Vec<Json>) -> Result<(), ChunksError> {
        for event in self.events.drain(..) {
            if event == DONE {
                self.done = true;
                continue;
            }
            let place = self.place;
            self.place += 1;
            let chunk = read(&event).map_err(|source| ChunksError::NotJson { place, source })?;
            chunks.push(chunk);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_before_a_broken_one_are_there_and_none_after_it() {
        let mut stream = Chunks::new();
        let mut chunks = Vec::new();
        let bytes = b"data: {\"a\":1}\n\ndata: {\"b\"\n\ndata: {\"c\":1}\n\n";
        let error = stream.push(bytes, &mut chunks).unwrap_err();
        assert!(matches!(error, ChunksError::NotJson { place: 1, .. }));
        assert_eq!(stream.push(b"data: 1\n\n", &mut chunks), Err(error));
        assert_eq!(chunks, [Json::object([("a", 1.into())])]);
    }

    #[test]
    fn what_comes_after_the_end_counts_too() {
        let mut stream = Chunks::with_limit(20);
        let mut chunks = Vec::new();
        let taken = stream.push(b"data: 1\n\ndata: [DONE]\n\ndata: 2\n\n", &mut chunks);
        assert_eq!((taken, chunks.len()), (Ok(()), 2));
        assert!(stream.is_done());
        let error = stream.push(b"data: no\n\n", &mut chunks).unwrap_err();
        assert!(matches!(error, ChunksError::NotJson { place: 2, .. }));
    }
}
