//! The chunks of UI message streams: their types, their fields, and which client knows which.

mod fields;
mod shape;

pub use fields::{FieldFault, check_chunk};
pub(super) use fields::{check_fields, check_needed, chunk_type};
pub(super) use shape::REASONS;

use thread::Json;

/// A major version of `ai`, whose clients agree on chunks and on what becomes of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Major {
    /// `ai` 5.
    V5,
    /// `ai` 6.
    V6,
    /// `ai` 7.
    V7,
}

impl Major {
    /// The newest one.
    pub const NEWEST: Self = Self::V7;

    /// The major version with this number, if it is supported.
    #[must_use]
    pub fn of(number: u8) -> Option<Self> {
        match number {
            5 => Some(Self::V5),
            6 => Some(Self::V6),
            7 => Some(Self::V7),
            _ => None,
        }
    }
}

/// A block that grows by deltas and has an `id`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Block {
    Text,
    Reasoning,
}

/// The type of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChunkType {
    Start,
    StartStep,
    FinishStep,
    ResetStep,
    BlockStart(Block),
    BlockDelta(Block),
    BlockEnd(Block),
    ToolInputStart,
    ToolInputDelta,
    ToolInputAvailable,
    ToolInputError,
    ToolApprovalRequest,
    ToolApprovalResponse,
    ToolOutputAvailable,
    ToolOutputError,
    ToolOutputDenied,
    SourceUrl,
    SourceDocument,
    File,
    ReasoningFile,
    Custom,
    SteeringMessage,
    Data,
    MessageMetadata,
    Error,
    Abort,
    Finish,
}

impl ChunkType {
    /// The type of this name, if clients of `major` know it.
    pub(super) fn known(name: &str, major: Major) -> Option<Self> {
        let (since, found) = Self::named(name)?;
        (since <= major).then_some(found)
    }

    fn named(name: &str) -> Option<(Major, Self)> {
        use Major::{V5, V6, V7};
        Some(match name {
            "text-delta" => (V5, Self::BlockDelta(Block::Text)),
            "reasoning-delta" => (V5, Self::BlockDelta(Block::Reasoning)),
            "tool-input-delta" => (V5, Self::ToolInputDelta),
            "text-start" => (V5, Self::BlockStart(Block::Text)),
            "text-end" => (V5, Self::BlockEnd(Block::Text)),
            "reasoning-start" => (V5, Self::BlockStart(Block::Reasoning)),
            "reasoning-end" => (V5, Self::BlockEnd(Block::Reasoning)),
            "tool-input-start" => (V5, Self::ToolInputStart),
            "tool-input-available" => (V5, Self::ToolInputAvailable),
            "tool-input-error" => (V5, Self::ToolInputError),
            "tool-output-available" => (V5, Self::ToolOutputAvailable),
            "tool-output-error" => (V5, Self::ToolOutputError),
            "tool-output-denied" => (V6, Self::ToolOutputDenied),
            "tool-approval-request" => (V6, Self::ToolApprovalRequest),
            "tool-approval-response" => (V7, Self::ToolApprovalResponse),
            "source-url" => (V5, Self::SourceUrl),
            "source-document" => (V5, Self::SourceDocument),
            "file" => (V5, Self::File),
            "reasoning-file" => (V7, Self::ReasoningFile),
            "custom" => (V7, Self::Custom),
            "steering-message" => (V7, Self::SteeringMessage),
            "start" => (V5, Self::Start),
            "start-step" => (V5, Self::StartStep),
            "finish-step" => (V5, Self::FinishStep),
            "reset-step" => (V7, Self::ResetStep),
            "message-metadata" => (V5, Self::MessageMetadata),
            "error" => (V5, Self::Error),
            "abort" => (V5, Self::Abort),
            "finish" => (V5, Self::Finish),
            name if name.starts_with("data-") => (V5, Self::Data),
            _ => return None,
        })
    }
}

/// The text of a field, empty where it has none.
pub(super) fn text<'a>(chunk: &'a Json, key: &str) -> &'a str {
    chunk.get(key).and_then(Json::as_str).unwrap_or_default()
}

/// The value of a field that is present and not `null`.
pub(super) fn some<'a>(chunk: &'a Json, key: &str) -> Option<&'a Json> {
    chunk.get(key).filter(|value| !value.is_null())
}

/// Whether a field is `true`.
pub(super) fn is_set(chunk: &Json, key: &str) -> bool {
    chunk.get(key) == Some(&Json::Bool(true))
}
