//! The configured models.

use super::AgentsError;
use super::advice::AdvisedModel;
use crate::config::{ModelConfig, ProviderKind, RemoteModel, ScriptSource};
use secrecy::ExposeSecret;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use upp::{
    Anthropic, ChatCompletions, Codec, Dialect, Error, Gemini, Model, Ollama, Provider,
    ProviderConfig, Responses, RoundRobinKeys, Script, Scripted,
};

/// Maximum size of a file of the configuration, in bytes.
const FILE_BYTES: u64 = 4 << 20;

/// Makes a model, without sending a request.
pub(super) fn model_of(
    name: &str,
    model: &ModelConfig,
    is_development: bool,
) -> Result<Arc<dyn Model>, AgentsError> {
    match model {
        ModelConfig::Scripted {
            model,
            delay,
            script,
            params: _,
        } => {
            let mut scripted = match script {
                Some(ScriptSource::File(path)) => Scripted::with_script(script_of(name, path)?),
                Some(ScriptSource::Inline(script)) => Scripted::with_script(script.clone()),
                None => Scripted::new(),
            };
            if let Some(id) = model {
                scripted = scripted.with_model_id(id.as_str());
            }
            if let Some(delay) = delay {
                scripted = scripted.with_delay(*delay);
            }
            Ok(Arc::new(scripted))
        }
        ModelConfig::Remote(model) => {
            let made = remote(name, model).map_err(|source| AgentsError::Model {
                model: name.to_owned(),
                source,
            });
            Ok(Arc::new(AdvisedModel::new(made?, model, is_development)))
        }
    }
}

fn remote(name: &str, model: &RemoteModel) -> Result<Arc<dyn Model>, Error> {
    let id = model.model.as_str();
    let base = model.base_url.as_deref().unwrap_or_default();
    let chat = |dialect: Dialect| made(ChatCompletions::new(dialect, id), model);
    match model.provider {
        ProviderKind::ChatCompletions => chat(Dialect::compatible(name, base)),
        ProviderKind::OpenAi => made(Responses::openai(id), model),
        ProviderKind::OpenAiChat => chat(Dialect::openai()),
        ProviderKind::Anthropic => made(messages(Anthropic::new(id), model), model),
        ProviderKind::Google => made(Gemini::new(id), model),
        ProviderKind::Ollama => made(Ollama::new(id), model),
        ProviderKind::OpenRouter => chat(Dialect::openrouter()),
        ProviderKind::OpenRouterResponses => made(Responses::openrouter(id), model),
        ProviderKind::Xai => chat(Dialect::xai()),
        ProviderKind::XaiResponses => made(Responses::xai(id), model),
        ProviderKind::XaiMessages => {
            let codec = Anthropic::compatible("xai", "https://api.x.ai/v1", id);
            made(messages(codec, model), model)
        }
        ProviderKind::Groq => chat(Dialect::groq()),
        ProviderKind::Cerebras => chat(Dialect::cerebras()),
        ProviderKind::Moonshot => chat(Dialect::moonshot()),
        ProviderKind::OpenResponses => made(Responses::host(name, base, id), model),
    }
}

fn messages(codec: Anthropic, model: &RemoteModel) -> Anthropic {
    Anthropic {
        default_max_tokens: model.default_max_tokens,
        ..codec.with_betas(&model.betas)
    }
}

fn made(codec: impl Codec, model: &RemoteModel) -> Result<Arc<dyn Model>, Error> {
    let mut config = ProviderConfig {
        base_url: model.base_url.clone(),
        timeouts: model.timeouts,
        capabilities: Some(model.capabilities.over(codec.capabilities())),
        ..ProviderConfig::default()
    };
    for (name, value) in &model.headers {
        config = config.with_header(name.as_str(), value.expose_secret());
    }
    // An empty list means a provider without a key.
    if let Ok(keys) = RoundRobinKeys::new(model.keys.clone()) {
        config = config.with_keys(Arc::new(keys));
    }
    if let Some(wait) = model.retry_after_max {
        config.retry_after_max = wait;
    }
    let refused = |text: String| Error::new(upp::Code::InvalidRequest, codec.provider(), text);
    if let Some(retry) = &model.retry {
        let strategy = retry.strategy();
        config = config.with_retry(strategy.map_err(|error| refused(error.to_string()))?);
    }
    Ok(Arc::new(Provider::new(codec, config)?))
}

fn script_of(name: &str, path: &Path) -> Result<Script, AgentsError> {
    let (model, path) = (name.to_owned(), path.to_owned());
    match text_of(&path) {
        Ok(text) => Script::from_json(&text).map_err(|source| AgentsError::BadScript {
            model,
            path,
            source,
        }),
        Err(source) => Err(AgentsError::NoScript {
            model,
            path,
            source,
        }),
    }
}

/// The text of a file that the configuration names.
pub(super) fn text_of(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    let file = std::fs::File::open(path)?;
    file.take(FILE_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > FILE_BYTES {
        let message = format!("it is longer than {FILE_BYTES} bytes");
        return Err(std::io::Error::new(
            std::io::ErrorKind::FileTooLarge,
            message,
        ));
    }
    Ok(text)
}
