//! A compaction as a log has it, and a thread as a model is to read it.

use crate::thread_page::Position;
use agents::middleware::summary_message;
use jiff::Timestamp;
use timeline::{Compaction, Transcript};
use upp::{Message, MessageOptions};

/// A compaction at its position in a thread.
#[derive(Clone, Debug)]
pub(crate) struct StoredCompaction {
    pub(crate) compaction: Compaction,
    pub(crate) at: Timestamp,
    /// The position of its event.
    pub(crate) position: Position,
    /// The size of its event.
    pub(crate) bytes: usize,
    pub(crate) is_withdrawn: bool,
}

impl StoredCompaction {
    /// The last position that it replaces.
    pub(crate) fn through(&self) -> Position {
        Position(self.compaction.through.0)
    }

    /// The summary as a message. It is the same at every reading.
    pub(crate) fn message(&self) -> Message {
        let id = self.compaction.id.as_str();
        let options = MessageOptions {
            id: Some(id.into()),
            timestamp: Some(self.at),
            metadata: None,
        };
        summary_message(&self.compaction.summary, (id, id), options).into()
    }
}

/// A thread as a model is to read it.
#[derive(Debug, Default)]
pub(crate) struct ForModel {
    /// Replaces all that precedes the transcript.
    pub(crate) compaction: Option<StoredCompaction>,
    /// Removed entries are still in it.
    pub(crate) transcript: Transcript,
}
