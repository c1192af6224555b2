//! Events of a stream, and their ids.

use crate::sse;
use serde_json::{Value, json};
use timeline::{ReadPosition, Record};

/// The id of a frame: the number of its record in the log, and the frame's position among the record's
/// frames. A reader that selects equal modes again receives equal frames under equal ids.
///
/// A chunk that is not stored yet has no number. Its frames continue those of the last stored record,
/// from `AHEAD` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FrameId {
    pub(in crate::langgraph) seq: u64,
    pub(in crate::langgraph) nth: u32,
}

impl std::fmt::Display for FrameId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}", self.seq, self.nth)
    }
}

/// How many bits of a number are the position among a record's frames.
const NTH_BITS: u32 = 16;

/// The position of the first frame of unstored chunks. No record has as many frames of its own, except
/// at the end of a run, which no chunk follows.
const AHEAD: u32 = 9 << 12;
/// The end of these positions. Further frames share the last one.
const AHEAD_END: u32 = 12 << 12;

impl FrameId {
    /// The id of a frame of the unstored chunks after a record; `n` are before it.
    fn ahead(seq: u64, n: u32) -> Self {
        let nth = AHEAD.saturating_add(n).min(AHEAD_END - 1);
        Self { seq, nth }
    }

    /// Number of frames of unstored chunks that a reader with this last id has.
    fn n_ahead(self) -> u32 {
        let is_ahead = (AHEAD..AHEAD_END).contains(&self.nth);
        if is_ahead { self.nth - AHEAD + 1 } else { 0 }
    }

    /// The id as one number, in the order of ids. A log has fewer records than would make numbers that
    /// JavaScript can't hold.
    pub fn number(self) -> u64 {
        let nth = u64::from(self.nth).min((1 << NTH_BITS) - 1);
        (self.seq << NTH_BITS) | nth
    }

    /// The id of such a number.
    pub fn of_number(number: u64) -> Self {
        let nth = number & ((1 << NTH_BITS) - 1);
        Self {
            seq: number >> NTH_BITS,
            nth: u32::try_from(nth).unwrap_or(u32::MAX),
        }
    }

    /// The last id of a record.
    pub fn after(seq: u64) -> Self {
        Self::of_number((seq << NTH_BITS) | ((1 << NTH_BITS) - 1))
    }

    /// The number of the record.
    pub fn seq(self) -> u64 {
        self.seq
    }

    /// Reads a `Last-Event-ID`.
    pub fn read(text: &str) -> Option<Self> {
        let (seq, nth) = text.split_once('-')?;
        Some(Self {
            seq: seq.parse().ok()?,
            nth: nth.parse().ok()?,
        })
    }
}

/// Gives frames their ids, and finds those that a resumed reader lacks.
#[derive(Clone, Debug, Default)]
pub(in crate::langgraph) struct FrameIds {
    /// The last frame that the reader has.
    last: Option<FrameId>,
    /// Number of frames of chunks that the reader has, and that come after the record of `last`.
    n_known: u32,
    /// The last stored record.
    seq: u64,
    /// Number of frames of unstored chunks after it.
    n_ahead: u32,
    is_begun: bool,
    is_unstored: bool,
    is_streamed: bool,
}

impl FrameIds {
    /// The ids for a reader that has this frame and those before it.
    pub(in crate::langgraph) fn after(last: Option<FrameId>) -> Self {
        Self {
            last,
            n_known: last.map_or(0, FrameId::n_ahead),
            ..Self::default()
        }
    }

    /// Begins the frames of a record. `position` is that of a reader behind it. Returns whether the
    /// record voids chunks that the reader has and that the log lacks.
    pub(in crate::langgraph) fn begin(&mut self, record: &Record, position: ReadPosition) -> bool {
        self.is_unstored = position.seq < record.seq;
        self.is_streamed = record.event.is_streamed();
        if !self.is_unstored || self.seq != position.seq.0 {
            self.n_ahead = 0;
        }
        self.seq = position.seq.0;
        let is_later = self.last.is_some_and(|last| self.seq > last.seq);
        // The chunks of a run that begins later are others.
        let is_first = !std::mem::replace(&mut self.is_begun, true);
        let is_void = is_later && (is_first || record.event.voids_unstored());
        let n_lost = if is_void {
            std::mem::take(&mut self.n_known)
        } else {
            0
        };
        n_lost > 0 && !is_first
    }

    /// The id of the record's next frame, if the reader lacks it. In a stored record it has this
    /// position.
    pub(in crate::langgraph) fn next(&mut self, nth: u32) -> Option<FrameId> {
        let (seq, mut id) = (self.seq, FrameId { seq: self.seq, nth });
        if self.is_unstored {
            id = FrameId::ahead(seq, self.n_ahead);
            self.n_ahead = self.n_ahead.saturating_add(1);
        }
        let is_later = self.last.is_some_and(|last| seq > last.seq);
        if self.n_known > 0 && self.is_streamed && (is_later || self.is_unstored) {
            self.n_known -= 1;
            return None;
        }
        self.lacks(id).then_some(id)
    }

    /// Whether the reader lacks the frame of a stored record.
    pub(in crate::langgraph) fn lacks(&self, id: FrameId) -> bool {
        self.last.is_none_or(|last| id > last)
    }
}

/// One event of a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    /// The frame's id; `None` for a frame that is sent each time the stream is opened.
    pub id: Option<FrameId>,
    /// Its name.
    pub event: &'static str,
    /// Its content.
    pub data: Value,
}

impl Frame {
    /// The stream or the run failed.
    pub fn error(error: &str, message: &str) -> Self {
        Self {
            id: None,
            event: "error",
            data: json!({"error": error, "message": message}),
        }
    }

    /// Writes the frame.
    pub fn write(&self, out: &mut String) {
        if let Some(id) = self.id {
            sse::write_id(id, out);
        }
        sse::write_named(self.event, &self.data, out);
    }
}
