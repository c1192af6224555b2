//! `OpenAI`'s Chat Completions: what its clients send, and what they are shown.
//!
//! A completion is a run: an execution with those its agents have handed over to. A request brings its
//! whole history. [`CompletionRequest::read`] checks it. Without a thread the history is imported into one
//! that is forgotten ([`CompletionRequest::create`]). On a thread it is matched against the log
//! ([`added`]), and only the new messages are taken. On the way out, [`CompletionStream`] turns the log
//! into chunks, record by record, and into the whole completion.
//!
//! Tools of the server run inside a completion and are not shown. Calls that the client answers are its
//! `tool_calls`.
//!
//! ```
//! use loomline_interop::chat_completions::{CompletionRequest, MessageContent};
//! use serde_json::json;
//!
//! let body = json!({"model": "small", "messages": [{"role": "user", "content": "Hello"}]});
//! let request = CompletionRequest::read(&body)?;
//! assert_eq!(request.options.model.as_deref(), Some("small"));
//! assert!(matches!(request.messages[0].content, MessageContent::Message { .. }));
//! # Ok::<(), loomline_interop::responses::RequestError>(())
//! ```

mod history;
mod message;
mod options;
mod request;
mod shown;
mod stream;
mod wire;

pub use history::{HistoryDifference, StoredMessages, added};
pub use message::{HistoryCall, HistoryMessage, MessageContent};
pub use request::CompletionRequest;
pub use stream::CompletionStream;
pub use wire::{
    AssistantMessage, ChatCompletion, ChatCompletionChunk, ChunkChoice, CompletionChoice,
    CompletionToolCall, CompletionUsage, Delta, FinishReason, FunctionCall, ToolCallDelta,
};

/// The name of this view, in the options of its runs.
const VIEW: &str = "chat_completions";
