//! The objects of the protocol, as they are written.

use crate::responses::Tokens;
use serde::Serialize;
#[cfg(feature = "openapi")]
use utoipa::ToSchema;

/// A whole completion.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct ChatCompletion {
    /// `chatcmpl-…`.
    pub id: String,
    /// `chat.completion`.
    pub object: &'static str,
    /// When it began, in seconds since 1970.
    pub created: i64,
    /// The agent or model, as the request named it.
    pub model: String,
    /// One choice.
    pub choices: [CompletionChoice; 1],
    /// The tokens of all its model calls.
    pub usage: CompletionUsage,
}

/// The answer of a completion.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct CompletionChoice {
    /// 0.
    pub index: u32,
    /// The message.
    pub message: AssistantMessage,
    /// Always null.
    pub logprobs: Option<()>,
    /// Why it ended.
    pub finish_reason: FinishReason,
}

/// The message of an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct AssistantMessage {
    /// `assistant`.
    pub role: &'static str,
    /// The text; null where there are only calls.
    pub content: Option<String>,
    /// Always null: a refusal is text.
    pub refusal: Option<()>,
    /// The model's reasoning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_content: Option<String>,
    /// The calls that the client answers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "openapi", schema(required = false))]
    pub tool_calls: Vec<CompletionToolCall>,
}

/// A call that the client answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct CompletionToolCall {
    /// Correlates it with its result.
    pub id: String,
    /// `function`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// The function and its arguments.
    pub function: FunctionCall,
}

/// A function and its arguments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct FunctionCall {
    /// The function.
    pub name: String,
    /// The arguments, a text that should be JSON.
    pub arguments: String,
}

/// Why a completion ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// It is done.
    Stop,
    /// A limit was reached.
    Length,
    /// Its client answers the calls.
    ToolCalls,
    /// A filter took the rest away.
    ContentFilter,
}

/// The tokens of a completion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct CompletionUsage {
    /// All tokens of the prompts, cached ones included.
    pub prompt_tokens: u64,
    /// All tokens of the answers, reasoning included.
    pub completion_tokens: u64,
    /// Both together.
    pub total_tokens: u64,
    /// The kinds of prompt tokens.
    pub prompt_tokens_details: PromptTokens,
    /// The kinds of answer tokens.
    pub completion_tokens_details: CompletionTokens,
}

/// The prompt tokens of a completion, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct PromptTokens {
    /// Tokens that came from a cache.
    pub cached_tokens: u64,
}

/// The answer tokens of a completion, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct CompletionTokens {
    /// Tokens that were spent on reasoning.
    pub reasoning_tokens: u64,
}

impl From<Tokens> for CompletionUsage {
    fn from(tokens: Tokens) -> Self {
        Self {
            prompt_tokens: tokens.input_tokens,
            completion_tokens: tokens.output_tokens,
            total_tokens: tokens.input_tokens.saturating_add(tokens.output_tokens),
            prompt_tokens_details: PromptTokens {
                cached_tokens: tokens.cache_read_tokens,
            },
            completion_tokens_details: CompletionTokens {
                reasoning_tokens: tokens.reasoning_tokens,
            },
        }
    }
}

/// One event of a streamed completion.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct ChatCompletionChunk<'a> {
    /// `chatcmpl-…`, the same in all chunks.
    pub id: &'a str,
    /// `chat.completion.chunk`.
    pub object: &'static str,
    /// When the completion began, in seconds since 1970.
    pub created: i64,
    /// The agent or model, as the request named it.
    pub model: &'a str,
    /// One choice; none in the chunk that has the usage.
    pub choices: Vec<ChunkChoice<'a>>,
    /// Only where `stream_options.include_usage` asks for it: null but in the last chunk.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<CompletionUsage>))]
    pub usage: Option<Option<CompletionUsage>>,
}

/// An addition of a chunk to the answer.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct ChunkChoice<'a> {
    /// 0.
    pub index: u32,
    /// The addition.
    pub delta: Delta<'a>,
    /// Always null.
    pub logprobs: Option<()>,
    /// Why it ended; null but in the last choice.
    pub finish_reason: Option<FinishReason>,
}

/// An addition of a chunk to the message.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct Delta<'a> {
    /// `assistant`, in the first chunk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<&'static str>,
    /// Text to append.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<&'a str>,
    /// Reasoning to append.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_content: Option<&'a str>,
    /// Calls, each whole in one chunk.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "openapi", schema(required = false))]
    pub tool_calls: Vec<ToolCallDelta>,
}

/// A call in a chunk.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct ToolCallDelta {
    /// Its index among the calls of the completion.
    pub index: usize,
    /// The call.
    #[serde(flatten)]
    pub call: CompletionToolCall,
}
