//! A turn that is still streaming, outside of the document (TP-17).
//!
//! A document holds complete cycles only, so a streaming turn has a form of its own: the complete
//! messages so far, the partial response, its usage, and the number of the last event, from which a
//! follower continues. As JSON it is an object with `turn_type` `partial`. It is stored next to the
//! document and never in it: in a document that turn type is unknown, and validation for writing
//! refuses it.
//!
//! | member | meaning |
//! |---|---|
//! | `turn_type` | `partial` |
//! | `agent_id`, `started_at` | as in the turn it becomes |
//! | `last_event` | the number of the last event taken in; absent before the first |
//! | `messages` | the whole messages so far, as in the turn |
//! | `response` | the response being written: its members, and `parts` with a `state` each |
//!
//! A part has its final members, and `state`: `streaming` or `done`. A streaming call has
//! `args_text`, the partial text of its arguments, in place of `args`.

mod delta;
mod ending;
mod json;

pub use delta::{DeltaRefused, MessageDelta, StreamedKind};
pub use ending::PartialEnding;
pub use json::PartialError;

use crate::json::{Json, Object};

/// A turn that is streaming.
///
/// ```
/// use loomline_thread::partial::{MessageDelta, PartialEnding, PartialTurn, StreamedKind};
///
/// let mut turn = PartialTurn::new("a", "2026-01-05T08:00:00Z");
/// turn.push(1, MessageDelta::response("2026-01-05T08:00:01Z"))?;
/// turn.push(2, MessageDelta::start(0, StreamedKind::Text))?;
/// turn.push(3, MessageDelta::append(0, "It is "))?;
/// turn.push(4, MessageDelta::append(0, "late."))?;
/// turn.push(5, MessageDelta::end(0))?;
/// turn.push(6, MessageDelta::start(1, StreamedKind::Text))?;
///
/// let reason = "user_cancelled".to_owned();
/// let at = "2026-01-05T08:00:02Z".to_owned();
/// let settled = turn.finish(PartialEnding::Interrupted { reason, at });
/// assert_eq!(settled.pointer("/messages/0/parts/0/content"), Some(&"It is late.".into()));
/// assert_eq!(settled.pointer("/messages/0/parts/1"), None);
/// # Ok::<(), loomline_thread::partial::DeltaRefused>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartialTurn {
    agent_id: String,
    started_at: String,
    last_event: Option<u64>,
    messages: Vec<Json>,
    response: Option<Open>,
}

/// A response being written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Open {
    /// Every member but the parts.
    members: Object,
    parts: Vec<Streamed>,
}

/// A part being written.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Streamed {
    kind: StreamedKind,
    /// Every member but the text that streams.
    members: Object,
    /// The content of a text or thought, the arguments of a call.
    text: String,
    done: bool,
}

impl PartialTurn {
    /// A turn without messages.
    #[must_use]
    pub fn new(agent_id: impl Into<String>, started_at: impl Into<String>) -> Self {
        Self {
            agent_id: agent_id.into(),
            started_at: started_at.into(),
            last_event: None,
            messages: Vec::new(),
            response: None,
        }
    }

    /// The agent of the turn.
    #[must_use]
    pub fn agent_id(&self) -> &str {
        &self.agent_id
    }

    /// When the run started.
    #[must_use]
    pub fn started_at(&self) -> &str {
        &self.started_at
    }

    /// The number of the last event, from which a follower continues.
    #[must_use]
    pub fn last_event(&self) -> Option<u64> {
        self.last_event
    }

    /// The complete messages so far.
    #[must_use]
    pub fn messages(&self) -> &[Json] {
        &self.messages
    }
}
