//! Events of a stream, and their places.

use crate::sse;
use serde_json::{Value, json};

/// The place of a frame: the record of the log that it comes from, and which of the record's frames it is. A reader
/// that asks for the same modes again meets the same frames under the same ids.
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

/// How many bits of a number say which of a record's frames it is.
const NTH_BITS: u32 = 16;

impl FrameId {
    /// A place as one number, in the same order. A log has fewer records than would make numbers that JavaScript
    /// can't hold.
    pub fn number(self) -> u64 {
        let nth = u64::from(self.nth).min((1 << NTH_BITS) - 1);
        (self.seq << NTH_BITS) | nth
    }

    /// The place of such a number.
    pub fn of_number(number: u64) -> Self {
        let nth = number & ((1 << NTH_BITS) - 1);
        Self {
            seq: number >> NTH_BITS,
            nth: u32::try_from(nth).unwrap_or(u32::MAX),
        }
    }

    /// After a record, all of it.
    pub fn after(seq: u64) -> Self {
        Self::of_number((seq << NTH_BITS) | ((1 << NTH_BITS) - 1))
    }

    /// The record that it is of.
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
    /// Its place; none of what is said again whenever it is asked for.
    pub id: Option<FrameId>,
    /// Its name.
    pub event: &'static str,
    /// What it says.
    pub data: Value,
}

impl Frame {
    /// That the stream can't go on, or that the run has failed.
    pub fn error(error: &str, message: &str) -> Self {
        Self {
            id: None,
            event: "error",
            data: json!({"error": error, "message": message}),
        }
    }

    /// Writes it.
    pub fn write(&self, out: &mut String) {
        if let Some(id) = self.id {
            sse::write_id(id, out);
        }
        sse::write_named(self.event, &self.data, out);
    }
}
