//! The differences between the providers of Chat Completions (UPP §17.3, §17.6–§17.8).

use crate::codec::CallIdForm;
use crate::model::Capabilities;
use serde_json::{Map, Value};
use std::sync::Arc;

/// How a provider sends reasoning and accepts it back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReasoningForm {
    /// It may send reasoning, and accepts none back.
    #[default]
    Shown,
    /// As `reasoning_content`, sent back with its message. A message with calls but without reasoning
    /// gets a blank value.
    Content,
    /// As `reasoning`, sent back with its message.
    Text,
    /// As a list `reasoning_details`, signed or encrypted, sent back unchanged.
    Details,
}

/// A provider of Chat Completions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dialect {
    /// The provider's name: the namespace of its metadata, and the provider of errors.
    pub provider: Arc<str>,
    /// The usual prefix of the endpoint's address.
    pub base_url: String,
    /// The usual capabilities of its models.
    pub capabilities: Capabilities,
    /// How it shows reasoning.
    pub reasoning: ReasoningForm,
    /// Whether a document may be sent as a URL.
    pub document_urls: bool,
    /// Whether a structure is requested with `strict` if its schema allows that.
    pub strict: bool,
    /// The form of call ids that it accepts. Calls of other models are sent with ids of this form; the
    /// thread stores the original ids.
    pub call_ids: CallIdForm,
    /// Whether the request has `stream_options` for the usage if params have none. Some hosts refuse
    /// parameters that they don't know.
    pub asks_usage: bool,
    /// The name of the parameter that limits the output tokens.
    pub max_tokens: &'static str,
    /// The path of the parameter for the reasoning effort, with dots between its members.
    pub reasoning_effort: &'static str,
}

/// The names of the parameter that limits the output tokens; the older name comes first.
const MAX_TOKENS: [&str; 2] = ["max_tokens", "max_completion_tokens"];

/// The input types of most of these models: text, pictures and tools.
const USUAL: Capabilities = Capabilities {
    streaming: true,
    tools: true,
    structured_output: true,
    image_input: true,
    document_input: false,
    video_input: false,
    audio_input: false,
};

impl Dialect {
    /// A compatible provider of this name, at this address.
    pub fn compatible(provider: impl Into<Arc<str>>, base_url: impl Into<String>) -> Self {
        Self {
            provider: provider.into(),
            base_url: base_url.into(),
            capabilities: USUAL,
            reasoning: ReasoningForm::Shown,
            document_urls: false,
            strict: true,
            call_ids: CallIdForm::UpTo40,
            asks_usage: true,
            max_tokens: "max_tokens",
            reasoning_effort: "reasoning_effort",
        }
    }

    /// `OpenAI`.
    pub fn openai() -> Self {
        let mut dialect = Self::compatible("openai", "https://api.openai.com/v1");
        dialect.capabilities.document_input = true;
        dialect.capabilities.audio_input = true;
        dialect.max_tokens = "max_completion_tokens";
        dialect
    }

    /// `OpenRouter`: all media types, and reasoning that is sent back.
    pub fn openrouter() -> Self {
        let mut dialect = Self::compatible("openrouter", "https://openrouter.ai/api/v1");
        dialect.capabilities.document_input = true;
        dialect.capabilities.video_input = true;
        dialect.capabilities.audio_input = true;
        dialect.reasoning = ReasoningForm::Details;
        dialect.reasoning_effort = "reasoning.effort";
        dialect.document_urls = true;
        dialect
    }

    /// Removes one of two limits of the answer's tokens, because providers refuse both. Settings are
    /// written under this dialect's name and take precedence.
    pub(super) fn limit_once(&self, params: &mut Map<String, Value>) {
        if params.get(self.max_tokens).is_none_or(Value::is_null) {
            return;
        }
        for name in MAX_TOKENS.iter().filter(|name| **name != self.max_tokens) {
            params.shift_remove(*name);
        }
    }

    /// xAI.
    pub fn xai() -> Self {
        Self::compatible("xai", "https://api.x.ai/v1")
    }

    /// Groq.
    pub fn groq() -> Self {
        let mut dialect = Self::compatible("groq", "https://api.groq.com/openai/v1");
        dialect.reasoning = ReasoningForm::Text;
        dialect
    }

    /// Cerebras: text only.
    pub fn cerebras() -> Self {
        let mut dialect = Self::compatible("cerebras", "https://api.cerebras.ai/v1");
        dialect.capabilities.image_input = false;
        dialect.reasoning = ReasoningForm::Text;
        dialect
    }

    /// Mistral: call ids have nine letters and digits, and the usage is sent by default.
    pub fn mistral() -> Self {
        let mut dialect = Self::compatible("mistral", "https://api.mistral.ai/v1");
        dialect.call_ids = CallIdForm::NineAlphanumerics;
        dialect.asks_usage = false;
        dialect
    }

    /// Moonshot: its thinking models need their reasoning back during a tool loop.
    pub fn moonshot() -> Self {
        let mut dialect = Self::compatible("moonshot", "https://api.moonshot.ai/v1");
        dialect.capabilities.video_input = true;
        dialect.reasoning = ReasoningForm::Content;
        dialect
    }
}
