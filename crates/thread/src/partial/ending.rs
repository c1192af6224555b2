//! The end of a streaming turn.

use super::{Open, PartialTurn, Streamed, StreamedKind};
use crate::cycles::complete_cycles;
use crate::document::CompletionStatus;
use crate::json::{Json, Object};

/// The ending of a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PartialEnding {
    /// By itself.
    Complete {
        /// When.
        at: String,
    },
    /// From outside.
    Interrupted {
        /// The reason, from an open set: `user_cancelled`, `timeout`, `error`, …
        reason: String,
        /// When.
        at: String,
    },
}

impl PartialTurn {
    /// The agent turn for the document (0.0.4 "Building an Interrupted Turn").
    ///
    /// Unfinished parts are dropped, and then all incomplete cycles. Dropped messages still count
    /// in `total_usage`; only whole numbers are summed. In a complete turn, calls of the last
    /// response may lack answers: they are pending.
    #[must_use]
    pub fn finish(self, ending: PartialEnding) -> Json {
        let Self {
            agent_id,
            started_at,
            mut messages,
            response,
            ..
        } = self;
        if let Some(open) = response {
            messages.push(open.into_message(&agent_id).into());
        }
        let usage = total_usage(&messages);
        let turn = Object::new()
            .with("turn_type", "agent")
            .with("agent_id", agent_id)
            .with("started_at", started_at);
        let status = match ending {
            PartialEnding::Complete { .. } => CompletionStatus::Complete,
            PartialEnding::Interrupted { .. } => CompletionStatus::Interrupted,
        };
        let turn = turn.with("completion_status", status.as_str());
        let turn = match ending {
            PartialEnding::Complete { at } => turn.with("completed_at", at),
            PartialEnding::Interrupted { reason, at } => {
                let why = Object::new()
                    .with("reason", reason)
                    .with("interrupted_at", at);
                turn.with("interruption", why)
            }
        };
        turn.with("messages", complete_cycles(messages, status))
            .with_some("total_usage", usage)
            .into()
    }
}

impl Open {
    /// The response with its complete parts.
    pub(super) fn into_message(self, agent_id: &str) -> Object {
        let mut message = Object::new().with("message_type", "response");
        if let Some(timestamp) = self.members.get("timestamp") {
            message.insert("timestamp", timestamp.clone());
        }
        message.insert("agent_id", agent_id);
        let parts = self.parts.into_iter().filter(|part| part.done);
        message.insert("parts", parts.map(Streamed::into_part).collect::<Json>());
        for (key, value) in self.members {
            if !message.contains_key(&key) {
                message.insert(key, value);
            }
        }
        message
    }
}

impl Streamed {
    fn into_part(self) -> Object {
        let kind = Object::new().with("part_kind", self.kind.as_str());
        let mut part = match self.kind {
            StreamedKind::Text | StreamedKind::Thinking => kind.with("content", self.text),
            // Arguments may come whole at the end; the text before was their draft.
            StreamedKind::ToolCall if self.members.contains_key("args") => kind,
            StreamedKind::ToolCall => kind.with("args", self.text),
        };
        for (key, value) in self.members {
            part.insert(key, value);
        }
        part
    }
}

/// The sum over all responses; `None` if none has usage.
fn total_usage(messages: &[Json]) -> Option<Object> {
    let mut sum = Object::new();
    let usages = messages
        .iter()
        .filter_map(|message| message.get("usage")?.as_object());
    for (name, count) in usages.flatten() {
        if let Some(count) = count.as_u64() {
            let so_far = sum.get(name).and_then(Json::as_u64).unwrap_or_default();
            sum.insert(name, so_far.saturating_add(count));
        }
    }
    (!sum.is_empty()).then_some(sum)
}
