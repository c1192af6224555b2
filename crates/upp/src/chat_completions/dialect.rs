//! In what the providers that speak Chat Completions differ (UPP §17.3, §17.6–§17.8).

use crate::codec::CallIdForm;
use crate::model::Capabilities;
use serde_json::{Map, Value};
use std::sync::Arc;

/// How a provider shows reasoning, and takes it back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReasoningForm {
    /// It may show reasoning, and takes none back.
    #[default]
    Shown,
    /// As `reasoning_content`, which goes back with the message it came with. A message with calls
    /// and no reasoning of its own has a blank in its place.
    Content,
    /// As `reasoning`, which goes back with the message it came with.
    Text,
    /// As a list `reasoning_details`, signed or encrypted, which goes back as it was.
    Details,
}

/// A provider that speaks Chat Completions.
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
    /// Which ids of calls it takes. Calls of other models go under ids of this form; the thread
    /// keeps its own.
    pub call_ids: CallIdForm,
    /// Whether the request has `stream_options` for the usage if params have none. Some hosts refuse
    /// parameters that they don't know.
    pub asks_usage: bool,
    /// The name of the parameter that limits the output tokens.
    pub max_tokens: &'static str,
    /// Where it has how much the model reasons: members, separated by dots.
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

    /// `OpenRouter`: any kind of media, and reasoning that goes back.
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

    /// Leaves one limit of the answer's tokens where there are two, which is refused: settings are
    /// laid over under this dialect's name, and have the last word.
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

    /// Cerebras: text alone.
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

    /// Moonshot: its thinking models want their reasoning back in a round of tools.
    pub fn moonshot() -> Self {
        let mut dialect = Self::compatible("moonshot", "https://api.moonshot.ai/v1");
        dialect.capabilities.video_input = true;
        dialect.reasoning = ReasoningForm::Content;
        dialect
    }
}
