//! The position of a reader in a thread's log, also behind chunks that are not stored yet.

use crate::event::{Event, chunk_type};
use crate::ids::{Seq, StepId};

/// The part of a log that a reader has: every event up to `seq`, and the first `n_ahead` streamed
/// chunks after it.
///
/// The owner of a run shows streamed chunks before it stores them, and stores them in the same
/// order before it stores the next fact. Their positions in the log are known only then, because
/// another writer may append first. A reader that counts streamed chunks finds its place anyway.
/// If the chunks were lost, the log has a reset in their place. The count then ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReadPosition {
    /// The last event of the log that the reader has.
    pub seq: Seq,
    /// How many streamed chunks after it the reader has too.
    pub n_ahead: u32,
}

impl From<Seq> for ReadPosition {
    fn from(seq: Seq) -> Self {
        Self { seq, n_ahead: 0 }
    }
}

impl ReadPosition {
    /// Moves behind an event of the log, the next one in order. Returns whether the reader lacks
    /// the event.
    pub fn pass(&mut self, seq: Seq, event: &Event) -> bool {
        if seq <= self.seq {
            return false;
        }
        self.seq = seq;
        self.count(event)
    }

    /// Counts the next event after [`seq`](Self::seq), which stays. Returns whether the reader
    /// lacks the event.
    pub fn count(&mut self, event: &Event) -> bool {
        if self.n_ahead > 0 && event.is_streamed() {
            self.n_ahead -= 1;
            return false;
        }
        if event.voids_unstored() {
            self.n_ahead = 0;
        }
        true
    }

    /// The step that the next event ends, if the reader has chunks of it that the log lacks. Then another node than the
    /// owner has ended the run.
    pub fn lost_step<'e>(&self, next: &'e Event) -> Option<&'e StepId> {
        let Event::StepStatusChanged { step_id, .. } = next else {
            return None;
        };
        (self.n_ahead > 0).then_some(step_id)
    }

    /// The chunks that the reader lacks, of those that are not stored yet and follow the event
    /// [`seq`](Self::seq).
    pub fn lacking<'c, T>(&self, unstored: &'c [T]) -> &'c [T] {
        let n_seen = usize::try_from(self.n_ahead).unwrap_or(usize::MAX);
        unstored.get(n_seen..).unwrap_or_default()
    }

    /// Moves behind the next chunk that is not stored yet.
    pub fn pass_unstored(&mut self) {
        self.n_ahead = self.n_ahead.saturating_add(1);
    }
}

impl Event {
    /// Whether this is a chunk that a running step streams. Only the owner of the run writes those.
    pub fn is_streamed(&self) -> bool {
        let Self::ChunkEmitted { chunk_type, .. } = self else {
            return false;
        };
        !chunk_type::MARKERS.contains(&chunk_type.as_str())
    }

    /// Whether chunks of the step that were shown and are not stored before this event are lost. A
    /// process that takes up an execution resets its step in the same commit.
    pub fn voids_unstored(&self) -> bool {
        let Self::ChunkEmitted { chunk_type, .. } = self else {
            return matches!(self, Self::StepStatusChanged { .. });
        };
        [chunk_type::STEP_RESET, chunk_type::EXECUTION_RESUMED].contains(&chunk_type.as_str())
    }
}
