//! The Unified Provider Protocol (UPP-1.2): one vocabulary for every language model.
//!
//! Read [`Message`], [`StreamEvent`] and [`Model`] first. A [`Model`] turns a [`Request`] into a
//! stream of events that ends with a [`Response`]; `Llm` adds the tool loop on top. Each provider
//! is a codec between these types and one wire format; with the feature `http` the codec also sends.
//!
//! The crate keeps what providers say: tool arguments keep the provider's text, unknown metadata
//! stays in the provider's namespace. It does not store anything, retry by itself, or validate
//! tool arguments (UPP §10).

mod content;
mod error;
mod event;
mod message;
mod model;
mod tool;
mod usage;

pub use content::{AssistantContent, Media, MediaSource, UserContent};
pub use error::{Code, Error, Modality};
pub use event::{Aggregate, StreamEvent};
pub use message::{
    AssistantMessage, Message, MessageId, MessageOptions, Messages, Metadata, ToolResultMessage,
    UserMessage,
};
pub use model::{
    Capabilities, Model, ModelEvent, ModelStream, Request, Response, StopReason, ToolChoice,
};
pub use tool::{
    Arguments, ArgumentsError, Effect, Tool, ToolCall, ToolCallId, ToolContext, ToolExecution,
    ToolFailure, ToolOutput, ToolResult, ToolRun,
};
pub use usage::{CycleUsage, TokenUsage};
