//! Events of a stream, and their ids.

use crate::sse;
use serde_json::{Value, json};

/// The id of a frame: the number of its record in the log, and the frame's position among the record's
/// frames. A reader that selects equal modes again receives equal frames under equal ids.
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

impl FrameId {
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
