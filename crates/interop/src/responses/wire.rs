//! Writing events: as server-sent events, or as lines of JSON.

use crate::sse;
use std::fmt::{Arguments, Write as _};

/// The frame around an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventFraming {
    /// A server-sent event: `event: <type>`, `data: <JSON>`, an empty line. The last one is followed
    /// by `data: [DONE]`.
    Sse,
    /// The event's JSON on a line of its own; each line is one WebSocket message.
    Lines,
}

/// After a reset, numbers continue at the next multiple of this number.
const NUMBERS_OF_AN_ATTEMPT: u64 = 1_000_000;

/// Numbers events and writes them.
#[derive(Clone, Debug)]
pub(super) struct Wire {
    framing: EventFraming,
    next: u64,
    /// The first number that is written.
    from: u64,
    is_muted: bool,
}

impl Wire {
    pub(super) fn new(framing: EventFraming) -> Self {
        Self {
            framing,
            next: 0,
            from: 0,
            is_muted: false,
        }
    }

    /// Writes no events, for callers that need only the final response.
    pub(super) fn muted() -> Self {
        Self {
            is_muted: true,
            ..Self::new(EventFraming::Lines)
        }
    }

    /// Omits the events up to this number.
    pub(super) fn start_after(&mut self, number: u64) {
        self.from = number.saturating_add(1);
    }

    /// Continues with a higher number than any client can have. A client may have events that were
    /// lost: they had numbers that the log does not account for.
    pub(super) fn skip_lost(&mut self) {
        let n_skipped = self.next / NUMBERS_OF_AN_ATTEMPT;
        self.next = n_skipped
            .saturating_add(1)
            .saturating_mul(NUMBERS_OF_AN_ATTEMPT);
    }

    /// Whether no events are written.
    pub(super) fn is_muted(&self) -> bool {
        self.is_muted
    }

    /// Whether the next event is written at all.
    pub(super) fn is_written(&self) -> bool {
        !self.is_muted && self.next >= self.from
    }

    /// Writes one event. `body` writes its members, each with a comma before it.
    pub(super) fn event(&mut self, out: &mut String, kind: &str, body: impl FnOnce(&mut String)) {
        let number = self.next;
        let is_written = self.is_written();
        self.next = number.saturating_add(1);
        if !is_written {
            return;
        }
        if self.framing == EventFraming::Sse {
            sse::begin(kind, out);
        }
        out.push_str("{\"type\":\"");
        out.push_str(kind);
        out.push_str("\",\"sequence_number\":");
        put(out, format_args!("{number}"));
        body(out);
        out.push_str(match self.framing {
            EventFraming::Sse => "}\n\n",
            EventFraming::Lines => "}\n",
        });
    }

    /// Writes the end of the stream.
    pub(super) fn done(&self, out: &mut String) {
        if !self.is_muted && self.framing == EventFraming::Sse {
            sse::write_event(sse::DONE, out);
        }
    }
}

/// Adds to a text.
pub(super) fn put(out: &mut String, what: Arguments<'_>) {
    // Writing to a string can't fail.
    let _ = out.write_fmt(what);
}
