//! Frames that are ready to be sent.

use bytes::Bytes;
use runtime::{LargeRecord, Logged};
use std::collections::VecDeque;
use std::ops::{Deref, DerefMut, Range};
use std::sync::Arc;

/// Size from which a record's text is sent from the memory that all readers share, in bytes.
const SHARED_FROM: usize = 32 << 10;
/// Maximum size of a chunk, in bytes.
const PIECE_BYTES: usize = 64 << 10;

/// Frames that are ready to be sent: own text, and large texts that streams share. Dereferences to the
/// text at its end.
#[derive(Default)]
pub(crate) struct FrameBuffer {
    text: String,
    pieces: VecDeque<Bytes>,
    n_bytes: usize,
    /// Bytes that no other stream shares.
    n_own: usize,
}

impl FrameBuffer {
    /// Number of bytes in the buffer.
    pub(super) fn len(&self) -> usize {
        self.n_bytes + self.text.len()
    }

    /// Number of bytes in the buffer that no other stream shares.
    pub(super) fn own_bytes(&self) -> usize {
        self.n_own + self.text.len()
    }

    /// Whether the buffer is empty.
    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes the next chunk, of at most 64 KiB: a connection that polls for it has sent some of the
    /// earlier ones.
    pub(super) fn pop(&mut self) -> Option<Bytes> {
        if self.pieces.is_empty() {
            if self.text.is_empty() {
                return None;
            }
            self.push_own();
        }
        let first = self.pieces.front_mut()?;
        let piece = first.split_to(first.len().min(PIECE_BYTES));
        self.n_bytes -= piece.len();
        if first.is_empty() {
            self.pieces.pop_front();
        }
        if self.pieces.is_empty() {
            self.n_own = 0;
        }
        Some(piece)
    }

    /// Turns the text at the end into a chunk.
    fn push_own(&mut self) {
        let text = std::mem::take(&mut self.text);
        self.n_own += text.len();
        self.push(text.into());
    }

    fn push(&mut self, piece: Bytes) {
        self.n_bytes += piece.len();
        self.pieces.push_back(piece);
    }

    /// Writes a part of a record's text that has no line breaks. Large parts are not copied.
    pub(super) fn push_text(&mut self, logged: &Logged, part: Range<usize>) {
        let text = logged.text.get(part.clone()).unwrap_or_default();
        if text.len() < SHARED_FROM {
            self.text.push_str(text);
            return;
        }
        if !self.text.is_empty() {
            self.push_own();
        }
        let shared = SharedText {
            text: Arc::clone(&logged.text),
            _large: logged.large.clone(),
        };
        self.push(Bytes::from_owner(shared).slice(part));
    }
}

impl Deref for FrameBuffer {
    type Target = String;

    fn deref(&self) -> &String {
        &self.text
    }
}

impl DerefMut for FrameBuffer {
    fn deref_mut(&mut self) -> &mut String {
        &mut self.text
    }
}

struct SharedText {
    text: Arc<str>,
    _large: Option<Arc<LargeRecord>>,
}

impl AsRef<[u8]> for SharedText {
    fn as_ref(&self) -> &[u8] {
        self.text.as_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use timeline::{Event, Payload, Record, Seq};

    #[test]
    fn a_large_text_is_sent_from_the_memory_of_its_record() {
        let part = format!(r#"{{"type":"app-x","s":"{}"}}"#, "x".repeat(SHARED_FROM));
        let event = Event::PartCreated {
            part_key: "s:0".into(),
            step_id: "s".into(),
            idx: 0,
            part: Payload::from_text(part).unwrap(),
        };
        let text: Arc<str> = event.encode().unwrap().into();
        let at = jiff::Timestamp::UNIX_EPOCH;
        let record = Record {
            seq: Seq(7),
            at,
            event,
        };
        let logged = Logged {
            record,
            text: Arc::clone(&text),
            large: None,
        };
        let mut buffer = FrameBuffer::default();
        let incarnation = crate::event_id::Incarnation::of(&"t".into());
        let followed = runtime::FollowedRecord::stored(logged.into());
        crate::sse::record_frame(&followed, incarnation, &mut buffer);
        assert!(buffer.own_bytes() < 200 && buffer.len() > SHARED_FROM);
        let mut pieces = Vec::new();
        while let Some(piece) = buffer.pop() {
            pieces.push(piece);
        }
        let [head, shared, end] = pieces.as_slice() else {
            panic!("{} pieces", pieces.len());
        };
        assert_eq!(shared.as_ptr(), text[1..].as_ptr());
        assert_eq!(end.as_ref(), b"\n\n");
        let whole = [head, shared].map(|it| std::str::from_utf8(it).unwrap());
        let data = whole.concat();
        let data = data.split_once("data: ").unwrap().1;
        let data: serde_json::Value = serde_json::from_str(data).unwrap();
        assert_eq!(data["seq"], 7);
    }
}
