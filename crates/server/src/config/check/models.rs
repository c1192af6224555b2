//! Models.

use super::{Checker, FindingSeverity};
use crate::config::file::{Model, Retry};
use crate::config::{ConfigError, ModelConfig, ProviderKind, RemoteModel, ScriptSource};
use secrecy::SecretString;
use serde_json::{Map, Value};
use std::num::NonZeroU64;
use std::ops::Range;
use std::time::Duration;
use toml::Spanned;
use upp::{RetryConfig, RetryConfigError, Timeouts};

const SCRIPTED: &str = "scripted";

impl Checker<'_> {
    pub(super) fn model(
        &self,
        name: &str,
        model: Spanned<Model>,
    ) -> Result<ModelConfig, ConfigError> {
        let span = model.span();
        let model = model.into_inner();
        if model.provider.get_ref() == SCRIPTED {
            return self.scripted(model);
        }
        let names = ProviderKind::ALL.map(ProviderKind::as_str);
        self.known("provider", &model.provider, [SCRIPTED].iter().chain(&names))?;
        let found = |kind: &ProviderKind| kind.as_str() == model.provider.get_ref();
        let Some(kind) = ProviderKind::ALL.into_iter().find(found) else {
            return Err(self.wrong(&model.provider, "there is no such provider"));
        };
        self.remote(name, kind, model, span)
    }

    fn scripted(&self, model: Model) -> Result<ModelConfig, ConfigError> {
        let place = model.base_url.as_ref().or(model.api_key_env.as_ref());
        let place = place.map(Spanned::span);
        let place = place
            .or(model.api_key_envs.as_ref().map(Spanned::span))
            .or(model.headers.values().next().map(Spanned::span))
            .or(model.headers_env.values().next().map(Spanned::span));
        if let Some(place) = place {
            let message = "the scripted model has no address and no key";
            return Err(ConfigError::at(self.text, place, message));
        }
        let place = [
            model.betas.as_ref().map(Spanned::span),
            model.default_max_tokens.as_ref().map(Spanned::span),
            model.connect_timeout_s.as_ref().map(Spanned::span),
            model.headers_timeout_s.as_ref().map(Spanned::span),
            model.idle_timeout_s.as_ref().map(Spanned::span),
            model.retry.as_ref().map(Spanned::span),
            model.retry_after_max_s.as_ref().map(Spanned::span),
            model.capabilities.as_ref().map(Spanned::span),
        ];
        if let Some(place) = place.into_iter().flatten().next() {
            let message = "the scripted model sends no requests, so it has no such setting";
            return Err(ConfigError::at(self.text, place, message));
        }
        Ok(ModelConfig::Scripted {
            model: model.model,
            delay: model
                .delay_ms
                .map(|delay| Duration::from_millis(delay.into_inner())),
            script: model
                .script
                .map(|script| ScriptSource::File(script.into_inner())),
            params: model.params,
        })
    }

    fn remote(
        &self,
        name: &str,
        provider: ProviderKind,
        model: Model,
        span: Range<usize>,
    ) -> Result<ModelConfig, ConfigError> {
        if let Some(delay) = &model.delay_ms {
            return Err(self.wrong(delay, "only the scripted model has delay_ms"));
        }
        if let Some(script) = &model.script {
            return Err(self.wrong(script, "only the scripted model has a script"));
        }
        self.only_messages(provider, &model)?;
        let missing = |field: &str| {
            let kind = provider.as_str();
            let message =
                format!("the model {name:?} needs {field}, expected for provider {kind:?}");
            ConfigError::at(self.text, span.clone(), message)
        };
        match &model.base_url {
            Some(url) => self.address(url)?,
            None if provider.needs_base_url() => return Err(missing("a base_url")),
            None => {}
        }
        let (key_envs, keys) = self.keys(provider, &model, span.clone())?;
        let headers = self.headers(&model.headers, &model.headers_env)?;
        let retry = model.retry.as_ref().map(|retry| self.retry(retry));
        Ok(ModelConfig::Remote(Box::new(RemoteModel {
            provider,
            timeouts: timeouts(&model),
            model: model
                .model
                .filter(|id| !id.is_empty())
                .ok_or_else(|| missing("a model"))?,
            base_url: model.base_url.map(Spanned::into_inner),
            keys,
            key_envs,
            headers,
            params: model.params,
            betas: model.betas.map(Spanned::into_inner).unwrap_or_default(),
            default_max_tokens: model.default_max_tokens.map(|n| n.into_inner().get()),
            retry: retry.transpose()?.flatten(),
            retry_after_max: model
                .retry_after_max_s
                .map(|seconds| Duration::from_secs(seconds.into_inner())),
            capabilities: model
                .capabilities
                .map(Spanned::into_inner)
                .unwrap_or_default(),
        })))
    }

    fn only_messages(&self, provider: ProviderKind, model: &Model) -> Result<(), ConfigError> {
        let betas = model.betas.as_ref().map(Spanned::span);
        let tokens = model.default_max_tokens.as_ref().map(Spanned::span);
        match betas.or(tokens) {
            Some(place) if !provider.is_messages() => {
                let message = "only the providers \"anthropic\" and \"xai-messages\" have this setting; \
                    others take max_tokens and the like in params";
                Err(ConfigError::at(self.text, place, message))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// The variables that were searched for keys, and the keys found.
    fn keys(
        &self,
        provider: ProviderKind,
        model: &Model,
        span: Range<usize>,
    ) -> Result<(Vec<String>, Vec<SecretString>), ConfigError> {
        let variables: Vec<&Spanned<String>> = match (&model.api_key_env, &model.api_key_envs) {
            (Some(one), Some(_)) => {
                let message = "there are both api_key_env and api_key_envs, expected one of them";
                return Err(self.wrong(one, message));
            }
            (Some(one), None) => vec![one],
            (None, Some(several)) if several.get_ref().is_empty() => {
                return Err(
                    self.wrong(several, "the list is empty, expected at least one variable")
                );
            }
            (None, Some(several)) => several.get_ref().iter().collect(),
            (None, None) => return Ok(self.usual_key(provider, model, span)),
        };
        let keys = variables
            .iter()
            .filter_map(|variable| self.secret(variable, "a key"));
        let keys = keys.collect();
        let names = variables
            .iter()
            .map(|name| name.get_ref().clone())
            .collect();
        Ok((names, keys))
    }

    /// The key in the provider's usual variable.
    fn usual_key(
        &self,
        provider: ProviderKind,
        model: &Model,
        span: Range<usize>,
    ) -> (Vec<String>, Vec<SecretString>) {
        let names = provider.key_envs();
        let key = names.iter().find_map(|name| self.variable(name));
        let has_headers = !model.headers.is_empty() || !model.headers_env.is_empty();
        if key.is_none() && provider.needs_key() && model.base_url.is_none() && !has_headers {
            let names = names.join(" nor ");
            let message = format!(
                "the environment has no {names}, so every call of this model will fail with AUTHENTICATION_FAILED"
            );
            self.found(FindingSeverity::Warning, span, message);
        }
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        (names, key.into_iter().collect())
    }

    fn retry(&self, place: &Spanned<toml::Value>) -> Result<Option<RetryConfig>, ConfigError> {
        let (kind, fields) = match self.tagged::<Retry>(place, "strategy")? {
            Retry::None {} => return Ok(None),
            Retry::ExponentialBackoff {
                max_attempts,
                initial_delay_ms,
                max_delay_ms,
                jitter,
            } => (
                "exponential_backoff",
                vec![
                    ("maxAttempts", max_attempts.map(Value::from)),
                    ("initialDelay", initial_delay_ms.map(Value::from)),
                    ("maxDelay", max_delay_ms.map(Value::from)),
                    ("jitter", jitter.map(Value::from)),
                ],
            ),
            Retry::LinearBackoff {
                max_attempts,
                delay_ms,
            } => (
                "linear_backoff",
                vec![
                    ("maxAttempts", max_attempts.map(Value::from)),
                    ("delay", delay_ms.map(Value::from)),
                ],
            ),
            Retry::TokenBucket {
                capacity,
                refill_rate,
                max_attempts,
            } => (
                "token_bucket",
                vec![
                    ("maxAttempts", max_attempts.map(Value::from)),
                    ("capacity", capacity.map(Value::from)),
                    ("refillRate", refill_rate.map(Value::from)),
                ],
            ),
            Retry::RetryAfter {
                max_attempts,
                fallback_delay_ms,
            } => (
                "retry_after",
                vec![
                    ("maxAttempts", max_attempts.map(Value::from)),
                    ("fallbackDelay", fallback_delay_ms.map(Value::from)),
                ],
            ),
        };
        // Through its JSON form, so that what is absent has UPP's defaults.
        let mut form = Map::from_iter([("type".to_owned(), Value::from(kind))]);
        for (name, value) in fields {
            form.extend(value.map(|value| (name.to_owned(), value)));
        }
        let config: RetryConfig = serde_json::from_value(form.into())
            .map_err(|error| self.wrong(place, error.to_string()))?;
        match config.strategy() {
            Ok(_) => Ok(Some(config)),
            Err(RetryConfigError::Capacity) => {
                Err(self.wrong(place, "capacity is 0, expected at least 1 token"))
            }
            Err(RetryConfigError::RefillRate { refill_rate }) => {
                let message = format!(
                    "refill_rate is {refill_rate}, expected a number of tokens a second above 0"
                );
                Err(self.wrong(place, message))
            }
        }
    }
}

fn timeouts(model: &Model) -> Timeouts {
    let usual = Timeouts::default();
    let or = |seconds: &Option<Spanned<NonZeroU64>>, usual: Duration| {
        let seconds = seconds.as_ref().map(|seconds| seconds.get_ref().get());
        seconds.map_or(usual, Duration::from_secs)
    };
    Timeouts {
        connect: or(&model.connect_timeout_s, usual.connect),
        headers: or(&model.headers_timeout_s, usual.headers),
        idle: or(&model.idle_timeout_s, usual.idle),
    }
}
