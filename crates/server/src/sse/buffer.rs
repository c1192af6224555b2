//! Frames that are ready to be sent.

use bytes::Bytes;
use runtime::{LargeRecord, Logged};
use std::collections::VecDeque;
use std::ops::{Deref, DerefMut, Range};
use std::sync::Arc;

/// From this size on the text of a record is sent from the memory that all its readers share, in bytes.
const SHARED_FROM: usize = 32 << 10;

/// Frames that are ready to be sent: text, and large texts that streams share. Dereferences to the text
/// at its end.
#[derive(Default)]
pub(crate) struct FrameBuffer {
    text: String,
    pieces: VecDeque<Bytes>,
    n_bytes: usize,
}

impl FrameBuffer {
    /// How many bytes it holds.
    pub(super) fn len(&self) -> usize {
        self.n_bytes + self.text.len()
    }

    /// Takes the first piece.
    pub(super) fn pop(&mut self) -> Option<Bytes> {
        let piece = self.pieces.pop_front();
        let piece = piece.inspect(|piece| self.n_bytes -= piece.len());
        piece.or_else(|| (!self.text.is_empty()).then(|| std::mem::take(&mut self.text).into()))
    }

    fn push(&mut self, piece: Bytes) {
        self.n_bytes += piece.len();
        self.pieces.push_back(piece);
    }

    /// Writes a part of a record's text that has no line breaks. A large one is not copied.
    pub(super) fn push_text(&mut self, logged: &Logged, part: Range<usize>) {
        let text = logged.text.get(part.clone()).unwrap_or_default();
        if text.len() < SHARED_FROM {
            self.text.push_str(text);
            return;
        }
        if !self.text.is_empty() {
            let before = std::mem::take(&mut self.text);
            self.push(before.into());
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
