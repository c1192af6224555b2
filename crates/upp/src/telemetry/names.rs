//! Names of attributes.
//!
//! From OpenTelemetry's `GenAI` conventions, which have a repository of their own
//! (`semantic-conventions-genai`, as of its commit `024a4f944a12`, over the general conventions
//! 1.44.0). They are in development, and the published crate of names lags behind, so the names are
//! here, and only here.

/// `chat`, `execute_tool` or `invoke_agent`.
pub const OPERATION_NAME: &str = "gen_ai.operation.name";
/// The model's provider.
pub const PROVIDER_NAME: &str = "gen_ai.provider.name";
/// The conversation.
pub const CONVERSATION_ID: &str = "gen_ai.conversation.id";
/// `json` if the request demands a structured answer.
pub const OUTPUT_TYPE: &str = "gen_ai.output.type";
/// The requested model.
pub const REQUEST_MODEL: &str = "gen_ai.request.model";
/// Whether the answer is streamed.
pub const REQUEST_STREAM: &str = "gen_ai.request.stream";
/// The model that answered.
pub const RESPONSE_MODEL: &str = "gen_ai.response.model";
/// The provider's id of the response.
pub const RESPONSE_ID: &str = "gen_ai.response.id";
/// Why the model stopped; a list in OpenTelemetry, its one item here.
pub const RESPONSE_FINISH_REASONS: &str = "gen_ai.response.finish_reasons";
/// From the request to the first event, in seconds.
pub const RESPONSE_TIME_TO_FIRST_CHUNK: &str = "gen_ai.response.time_to_first_chunk";
/// Tokens of the prompt, cached ones included.
pub const USAGE_INPUT_TOKENS: &str = "gen_ai.usage.input_tokens";
/// Tokens the model wrote.
pub const USAGE_OUTPUT_TOKENS: &str = "gen_ai.usage.output_tokens";
/// Tokens of the prompt that were read from the provider's cache.
pub const USAGE_CACHE_READ: &str = "gen_ai.usage.cache_read.input_tokens";
/// Tokens of the prompt that were written to the provider's cache.
pub const USAGE_CACHE_WRITE: &str = "gen_ai.usage.cache_write.input_tokens";
/// Tokens spent on reasoning.
pub const USAGE_REASONING: &str = "gen_ai.usage.reasoning.output_tokens";
/// The agent's id.
pub const AGENT_ID: &str = "gen_ai.agent.id";
/// The agent's name.
pub const AGENT_NAME: &str = "gen_ai.agent.name";
/// The tool's name.
pub const TOOL_NAME: &str = "gen_ai.tool.name";
/// The id of the call.
pub const TOOL_CALL_ID: &str = "gen_ai.tool.call.id";
/// `function`: a tool that runs at the client.
pub const TOOL_TYPE: &str = "gen_ai.tool.type";
/// The tool's description.
pub const TOOL_DESCRIPTION: &str = "gen_ai.tool.description";
/// The class of a failure.
pub const ERROR_TYPE: &str = "error.type";

/// Content: the messages sent, as JSON.
pub const INPUT_MESSAGES: &str = "gen_ai.input.messages";
/// Content: the received message, as JSON.
pub const OUTPUT_MESSAGES: &str = "gen_ai.output.messages";
/// Content: the system prompt, as JSON.
pub const SYSTEM_INSTRUCTIONS: &str = "gen_ai.system_instructions";
/// Content: the arguments of a tool call, as JSON.
pub const TOOL_CALL_ARGUMENTS: &str = "gen_ai.tool.call.arguments";
/// Content: the result of a tool call, as JSON.
pub const TOOL_CALL_RESULT: &str = "gen_ai.tool.call.result";

/// Read by `tracing-opentelemetry`: the span's name.
pub const OTEL_NAME: &str = "otel.name";
/// Read by `tracing-opentelemetry`: the span's kind.
pub const OTEL_KIND: &str = "otel.kind";
/// Read by `tracing-opentelemetry`: the span's status.
pub const OTEL_STATUS_CODE: &str = "otel.status_code";
