//! The Unified Provider Protocol (UPP-1.2): one set of types for every language model.
//!
//! Read [`Message`], [`StreamEvent`] and [`Model`] first. A [`Model`] turns a [`Request`] into a stream
//! of events that ends with a [`Response`]; [`Llm`] adds the tool loop on top. Each provider is a codec
//! between these types and one wire format; with the feature `http` the codec also sends.
//!
//! [`Scripted`] is a model that needs no network:
//!
//! ```
//! use loomline_upp::{Llm, LlmOptions, Messages, Scripted};
//! use std::sync::Arc;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), loomline_upp::Error> {
//! let llm = Llm::new(LlmOptions::new(Arc::new(Scripted::new())))?;
//! let turn = llm.generate(Messages::new(), ["Good morning"]).await?;
//! assert_eq!(turn.response.joined_text(), "You said: Good morning");
//! # Ok(())
//! # }
//! ```
//!
//! The crate preserves the providers' data: tool arguments have the provider's text, and unknown
//! metadata stays in the provider's namespace. The crate does not store anything, does not validate tool
//! arguments (UPP §10), and retries only with a [`RetryStrategy`].

pub mod anthropic;
mod call;
pub mod chat_completions;
mod clock;
pub mod codec;
mod content;
mod embedding;
mod error;
mod event;
mod execute;
mod failure;
pub mod gemini;
#[cfg(feature = "http")]
mod http;
mod image;
mod keys;
mod llm;
pub mod media;
mod message;
mod messages;
mod metadata;
mod model;
pub mod ollama;
mod prefix;
#[cfg(feature = "http")]
mod provider;
pub mod responses;
mod retry;
pub mod schema;
pub mod scripted;
mod settings;
mod shared;
mod shared_json;
mod signal;
mod strategy;
pub mod telemetry;
mod thread;
mod tool;
mod turn;
mod usage;

pub use anthropic::Anthropic;
pub use call::{CallBody, EndpointCall, FormField, FormValue};
pub use chat_completions::{ChatCompletions, Dialect, ReasoningForm};
pub use codec::{CallIdForm, Codec, CodecProgress, Decoder, Encoded, Omission};
pub use content::{AssistantContent, Media, MediaSource, ReasoningAsInput, UserContent};
#[cfg(feature = "http")]
pub use embedding::EmbeddingProvider;
pub use embedding::{
    EmbedOptions, Embedding, EmbeddingCodec, EmbeddingEvent, EmbeddingInput, EmbeddingInputs,
    EmbeddingModel, EmbeddingOptions, EmbeddingRequest, EmbeddingResult, EmbeddingStream,
    EmbeddingUsage, EmbeddingVector, GoogleEmbeddings, InputType, NotEmbeddable, OllamaEmbeddings,
    OpenAiEmbeddings, vector_from_base64,
};
pub use error::{Code, Error, Modality};
pub use event::{Aggregate, StreamEvent, StreamEventType};
pub use execute::{ExecuteError, arguments_of, execute};
pub use gemini::Gemini;
#[cfg(feature = "http")]
pub use http::{Timeouts, http_client_builder, http_client_builder_trusting, tls_config};
#[cfg(feature = "http")]
pub use image::ImageProvider;
pub use image::{
    GeneratedImage, GoogleImages, ImageCapabilities, ImageCodec, ImageDecoder, ImageEditRequest,
    ImageEvent, ImageGenerator, ImageModel, ImageOptions, ImageRequest, ImageResult, ImageStream,
    ImageStreamEvent, ImageUsage, OpenAiImages, XaiImages,
};
pub use keys::{
    ApiKeyError, DynamicKey, KeyStrategy, RoundRobinKeys, StaticKey, WeightedKeys, mask_key,
};
pub use llm::{Llm, LlmOptions, TurnEvent, TurnStream};
pub use media::{Audio, Document, Image, MediaError, Video};
pub use message::{
    AssistantMessage, Message, MessageId, MessageOptions, MessageRole, Messages, Metadata, Speaker,
    ToolResultMessage, UserMessage,
};
pub use model::{
    CallRecord, Capabilities, Model, ModelEvent, ModelLayer, ModelStream, Request, Response, Sent,
    StopReason, ToolChoice,
};
pub use ollama::Ollama;
pub use prefix::{Break, Prefix, RequestReport};
#[cfg(feature = "http")]
pub use provider::{Provider, ProviderConfig, answer, event_data};
pub use responses::Responses;
pub use retry::{
    ExponentialBackoff, LinearBackoff, NoRetry, Random, RetryAfter, RetryConfig, RetryConfigError,
    RetryStrategy, TokenBucket, retry_stream, with_retries,
};
pub use scripted::{Script, ScriptError, ScriptTurn, Scripted};
pub use settings::{NativeSettings, Settings, merge};
pub use shared_json::SharedJson;
pub use signal::Signal;
pub use strategy::{
    BeforeCall, OnAfterCall, OnBeforeCall, OnError, OnMaxIterations, OnToolCall, ToolUseStrategy,
};
pub use thread::{History, Thread};
pub use tool::{
    Approval, Arguments, ArgumentsError, Effect, Reconcile, Reconciled, Tool, ToolCall, ToolCallId,
    ToolContext, ToolExecution, ToolFailure, ToolOutput, ToolResult, ToolRun,
};
pub use turn::Turn;
pub use usage::{CycleUsage, TokenUsage};
