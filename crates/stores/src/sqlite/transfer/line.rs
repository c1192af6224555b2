//! The lines of an export.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The form of exports that this program writes and reads.
pub(super) const FORMAT: u32 = 1;

/// One line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Line {
    /// The first line.
    Tenant(TenantLine),
    /// A thread. A fork comes after its parent.
    Thread(ThreadLine),
    /// Events of the last thread that were written together.
    Events(EventsLine),
    /// A token of the last thread.
    Token(TokenLine),
    /// The content of files. Objects come after it.
    Content(ContentLine),
    /// An object.
    Object(ObjectLine),
    /// The state of an agent.
    Checkpoint(CheckpointLine),
    /// The last line.
    End(EndLine),
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TenantLine {
    pub(super) format: u32,
    pub(super) name: String,
    pub(super) program: String,
    pub(super) exported_at: Timestamp,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ThreadLine {
    pub(super) id: String,
    pub(super) key: Option<String>,
    /// The id of the parent of a fork.
    pub(super) parent: Option<String>,
    /// The event after which a fork begins.
    pub(super) fork_seq: Option<i64>,
    pub(super) created_at: Timestamp,
    pub(super) events: i64,
    /// The size of the events' texts.
    pub(super) bytes: i64,
    /// The place in the list of threads.
    pub(super) change: i64,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EventsLine {
    /// The number of the first one.
    pub(super) first: u64,
    pub(super) epoch: u64,
    /// The SHA-256 of the body that the block had before its content was erased, in hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) erased: Option<String>,
    pub(super) list: Vec<EventText>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EventText {
    pub(super) at: Timestamp,
    /// The event's JSON, byte for byte.
    pub(super) text: String,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TokenLine {
    pub(super) token: String,
    pub(super) answer: String,
    pub(super) seq: i64,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ContentLine {
    /// In hexadecimal digits.
    pub(super) sha256: String,
    /// In Base64.
    pub(super) data: String,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ObjectLine {
    pub(super) kind: String,
    pub(super) id: String,
    pub(super) created_at: i64,
    /// The id of the thread that it goes with.
    pub(super) thread: Option<String>,
    /// The SHA-256 of its content.
    pub(super) content: Option<String>,
    /// The object's JSON, byte for byte.
    pub(super) text: String,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CheckpointLine {
    pub(super) session_id: String,
    pub(super) checkpoint_id: String,
    pub(super) saved_at: i64,
    pub(super) step: i64,
    pub(super) agent_id: Option<String>,
    pub(super) state: String,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct EndLine {
    #[serde(flatten)]
    pub(super) counts: Transferred,
    /// Of all lines before this one.
    pub(super) sha256: String,
}

/// How much was exported or imported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transferred {
    /// Threads.
    pub threads: u64,
    /// Events.
    pub events: u64,
    /// Tokens.
    pub tokens: u64,
    /// Contents of files.
    pub contents: u64,
    /// Objects.
    pub objects: u64,
    /// Checkpoints of agents.
    pub checkpoints: u64,
}

impl Transferred {
    /// Counts a line.
    pub(super) fn count(&mut self, line: &Line) {
        match line {
            Line::Thread(_) => self.threads += 1,
            Line::Events(events) => self.events += events.list.len() as u64,
            Line::Token(_) => self.tokens += 1,
            Line::Content(_) => self.contents += 1,
            Line::Object(_) => self.objects += 1,
            Line::Checkpoint(_) => self.checkpoints += 1,
            Line::Tenant(_) | Line::End(_) => {}
        }
    }
}
