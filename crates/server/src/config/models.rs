//! Models: their names, providers and request settings.

use secrecy::SecretString;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;
use upp::{Capabilities, RetryConfig, Script, Timeouts};

/// A model and its connection.
#[derive(Clone, Debug)]
pub enum ModelConfig {
    /// The scripted model, which needs no network.
    Scripted {
        /// The model id it reports.
        model: Option<String>,
        /// Pause before each delta.
        delay: Option<Duration>,
        /// Fixed answers.
        script: Option<ScriptSource>,
        /// Parameters of every request; an agent's parameters override them.
        params: Map<String, Value>,
    },
    /// A model of a provider.
    Remote(Box<RemoteModel>),
}

/// The fixed answers of a scripted model.
#[derive(Clone, Debug)]
pub enum ScriptSource {
    /// A file.
    File(PathBuf),
    /// The answers themselves.
    Inline(Script),
}

impl ModelConfig {
    /// Parameters of every request; an agent's parameters override them.
    pub fn params(&self) -> &Map<String, Value> {
        match self {
            Self::Scripted { params, .. } => params,
            Self::Remote(model) => &model.params,
        }
    }
}

/// A model of a provider.
#[derive(Clone, Debug)]
pub struct RemoteModel {
    /// The provider and its API format.
    pub provider: ProviderKind,
    /// Its id at the provider.
    pub model: String,
    /// The prefix of the endpoint, such as `https://api.openai.com/v1`, instead of the provider's
    /// default.
    pub base_url: Option<String>,
    /// The keys, used in turn; none if the provider needs none.
    pub keys: Vec<SecretString>,
    /// The environment variables that were searched for keys.
    pub key_envs: Vec<String>,
    /// Further headers.
    pub headers: BTreeMap<String, SecretString>,
    /// Parameters of every request; an agent's parameters override them.
    pub params: Map<String, Value>,
    /// Beta features, for the Messages format.
    pub betas: Vec<String>,
    /// `max_tokens` if the parameters have none, for the Messages format.
    pub default_max_tokens: Option<u64>,
    /// The timeouts of its requests.
    pub timeouts: Timeouts,
    /// The requests that are sent again after an error; none when absent.
    pub retry: Option<RetryConfig>,
    /// Maximum wait that a `Retry-After` is followed for.
    pub retry_after_max: Option<Duration>,
    /// Capabilities that differ from those that the provider's models usually have.
    pub capabilities: CapabilityOverrides,
}

/// A provider and its API format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProviderKind {
    /// Any server with a Chat Completions API.
    ChatCompletions,
    /// `OpenAI`, by Responses.
    OpenAi,
    /// `OpenAI`, by Chat Completions.
    OpenAiChat,
    /// Anthropic.
    Anthropic,
    /// Google.
    Google,
    /// Ollama.
    Ollama,
    /// `OpenRouter`, by Chat Completions.
    OpenRouter,
    /// `OpenRouter`, by Responses.
    OpenRouterResponses,
    /// xAI, by Chat Completions.
    Xai,
    /// xAI, by Responses.
    XaiResponses,
    /// xAI, by Messages.
    XaiMessages,
    /// Groq.
    Groq,
    /// Cerebras.
    Cerebras,
    /// Moonshot.
    Moonshot,
    /// Any server with an Open Responses API.
    OpenResponses,
}

impl ProviderKind {
    /// All providers.
    pub const ALL: [Self; 15] = [
        Self::ChatCompletions,
        Self::OpenAi,
        Self::OpenAiChat,
        Self::Anthropic,
        Self::Google,
        Self::Ollama,
        Self::OpenRouter,
        Self::OpenRouterResponses,
        Self::Xai,
        Self::XaiResponses,
        Self::XaiMessages,
        Self::Groq,
        Self::Cerebras,
        Self::Moonshot,
        Self::OpenResponses,
    ];

    /// The name in a configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ChatCompletions => "chat-completions",
            Self::OpenAi => "openai",
            Self::OpenAiChat => "openai-chat",
            Self::Anthropic => "anthropic",
            Self::Google => "google",
            Self::Ollama => "ollama",
            Self::OpenRouter => "openrouter",
            Self::OpenRouterResponses => "openrouter-responses",
            Self::Xai => "xai",
            Self::XaiResponses => "xai-responses",
            Self::XaiMessages => "xai-messages",
            Self::Groq => "groq",
            Self::Cerebras => "cerebras",
            Self::Moonshot => "moonshot",
            Self::OpenResponses => "open-responses",
        }
    }

    /// The variables that are searched for a key if the file names none; the first one with a value is
    /// used (UPP §12).
    pub fn key_envs(self) -> &'static [&'static str] {
        match self {
            Self::ChatCompletions => &[],
            Self::OpenAi | Self::OpenAiChat => &["OPENAI_API_KEY"],
            Self::Anthropic => &["ANTHROPIC_API_KEY"],
            Self::Google => &["GOOGLE_API_KEY", "GEMINI_API_KEY"],
            Self::Ollama => &["OLLAMA_API_KEY"],
            Self::OpenRouter | Self::OpenRouterResponses => &["OPENROUTER_API_KEY"],
            Self::Xai | Self::XaiResponses | Self::XaiMessages => &["XAI_API_KEY"],
            Self::Groq => &["GROQ_API_KEY"],
            Self::Cerebras => &["CEREBRAS_API_KEY"],
            Self::Moonshot => &["MOONSHOT_API_KEY", "KIMI_API_KEY"],
            Self::OpenResponses => &["OPENRESPONSES_API_KEY"],
        }
    }

    /// Whether the provider refuses requests without a key.
    pub fn needs_key(self) -> bool {
        !matches!(
            self,
            Self::ChatCompletions | Self::Ollama | Self::OpenResponses
        )
    }

    /// Whether the provider has no default URL.
    pub fn needs_base_url(self) -> bool {
        matches!(self, Self::ChatCompletions | Self::OpenResponses)
    }

    /// Whether its API requires a limit of tokens in each request.
    pub fn needs_max_tokens(self) -> bool {
        self.is_messages()
    }

    /// Whether its API has the Messages format.
    pub(crate) fn is_messages(self) -> bool {
        matches!(self, Self::Anthropic | Self::XaiMessages)
    }
}

/// Capabilities that differ from those that the provider's models usually have (UPP §12).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CapabilityOverrides {
    /// It can stream.
    pub streaming: Option<bool>,
    /// It can call tools.
    pub tools: Option<bool>,
    /// It can answer in a JSON Schema of the request.
    pub structured_output: Option<bool>,
    /// It takes images.
    pub image_input: Option<bool>,
    /// It takes documents.
    pub document_input: Option<bool>,
    /// It takes video.
    pub video_input: Option<bool>,
    /// It takes audio.
    pub audio_input: Option<bool>,
}

impl CapabilityOverrides {
    /// The usual capabilities with these overrides applied.
    pub fn over(self, usual: Capabilities) -> Capabilities {
        Capabilities {
            streaming: self.streaming.unwrap_or(usual.streaming),
            tools: self.tools.unwrap_or(usual.tools),
            structured_output: self.structured_output.unwrap_or(usual.structured_output),
            image_input: self.image_input.unwrap_or(usual.image_input),
            document_input: self.document_input.unwrap_or(usual.document_input),
            video_input: self.video_input.unwrap_or(usual.video_input),
            audio_input: self.audio_input.unwrap_or(usual.audio_input),
        }
    }
}
