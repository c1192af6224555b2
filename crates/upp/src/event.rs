//! Stream events (UPP §9).

mod aggregate;
mod json;

pub use aggregate::Aggregate;

use crate::shared_json::SharedJson;
use crate::tool::ToolCallId;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// One event of a stream; `index` is the content block or, for tools, the call's position.
///
/// As JSON it is `{type, index, delta}` (UPP §9): all fields but the index are in `delta`, bytes
/// are base64. A start or stop without content has an empty `delta`.
#[derive(Clone, Debug, PartialEq)]
pub enum StreamEvent {
    /// The answer of a model call starts.
    MessageStart,
    /// A model call has answered.
    MessageStop,
    /// A content block starts.
    ContentBlockStart {
        /// The block.
        index: u32,
    },
    /// A content block is whole.
    ContentBlockStop {
        /// The block.
        index: u32,
    },
    /// More text.
    TextDelta {
        /// The block.
        index: u32,
        /// The text.
        text: String,
    },
    /// More reasoning.
    ReasoningDelta {
        /// The block.
        index: u32,
        /// The text.
        text: String,
    },
    /// More of a tool call's arguments; the first one of a call names it.
    ToolCallDelta {
        /// The call's position among the calls of the response.
        index: u32,
        /// The call's id; empty if the provider does not repeat it.
        tool_call_id: ToolCallId,
        /// The tool's name; empty if the provider does not repeat it.
        tool_name: Arc<str>,
        /// The next piece of the arguments' text; may be empty.
        arguments_json: String,
    },
    /// More of an image.
    ImageDelta {
        /// The image's position.
        index: u32,
        /// The next bytes.
        data: Bytes,
        /// The MIME type, if known; UPP has no such field.
        mime_type: Option<String>,
    },
    /// More audio.
    AudioDelta {
        /// The block.
        index: u32,
        /// The next bytes.
        data: Bytes,
        /// The MIME type, if known; UPP has no such field.
        mime_type: Option<String>,
    },
    /// More video.
    VideoDelta {
        /// The block.
        index: u32,
        /// The next bytes.
        data: Bytes,
        /// The MIME type, if known; UPP has no such field.
        mime_type: Option<String>,
    },
    /// A tool starts; emitted before it runs.
    ToolExecutionStart {
        /// The call's position.
        index: u32,
        /// The call.
        tool_call_id: ToolCallId,
        /// The tool.
        tool_name: Arc<str>,
        /// Milliseconds since the epoch.
        timestamp: i64,
    },
    /// A tool has ended; emitted when it does.
    ToolExecutionEnd {
        /// The call's position.
        index: u32,
        /// The call.
        tool_call_id: ToolCallId,
        /// The tool.
        tool_name: Arc<str>,
        /// The result of the call.
        result: SharedJson,
        /// Whether it failed.
        is_error: bool,
        /// Milliseconds since the epoch.
        timestamp: i64,
    },
}

/// The twelve types of events (UPP §9).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StreamEventType {
    /// The answer of a model call starts.
    MessageStart,
    /// A model call has answered.
    MessageStop,
    /// A content block starts.
    ContentBlockStart,
    /// A content block is whole.
    ContentBlockStop,
    /// More text.
    TextDelta,
    /// More reasoning.
    ReasoningDelta,
    /// More of a tool call.
    ToolCallDelta,
    /// More of an image.
    ImageDelta,
    /// More audio.
    AudioDelta,
    /// More video.
    VideoDelta,
    /// A tool starts.
    ToolExecutionStart,
    /// A tool has ended.
    ToolExecutionEnd,
}

impl StreamEvent {
    /// The type.
    pub fn event_type(&self) -> StreamEventType {
        match self {
            Self::MessageStart => StreamEventType::MessageStart,
            Self::MessageStop => StreamEventType::MessageStop,
            Self::ContentBlockStart { .. } => StreamEventType::ContentBlockStart,
            Self::ContentBlockStop { .. } => StreamEventType::ContentBlockStop,
            Self::TextDelta { .. } => StreamEventType::TextDelta,
            Self::ReasoningDelta { .. } => StreamEventType::ReasoningDelta,
            Self::ToolCallDelta { .. } => StreamEventType::ToolCallDelta,
            Self::ImageDelta { .. } => StreamEventType::ImageDelta,
            Self::AudioDelta { .. } => StreamEventType::AudioDelta,
            Self::VideoDelta { .. } => StreamEventType::VideoDelta,
            Self::ToolExecutionStart { .. } => StreamEventType::ToolExecutionStart,
            Self::ToolExecutionEnd { .. } => StreamEventType::ToolExecutionEnd,
        }
    }

    /// The block or call it is about; 0 for a message's start and stop.
    pub fn index(&self) -> u32 {
        match self {
            Self::MessageStart | Self::MessageStop => 0,
            Self::ContentBlockStart { index }
            | Self::ContentBlockStop { index }
            | Self::TextDelta { index, .. }
            | Self::ReasoningDelta { index, .. }
            | Self::ToolCallDelta { index, .. }
            | Self::ImageDelta { index, .. }
            | Self::AudioDelta { index, .. }
            | Self::VideoDelta { index, .. }
            | Self::ToolExecutionStart { index, .. }
            | Self::ToolExecutionEnd { index, .. } => *index,
        }
    }
}

#[cfg(test)]
mod tests;
