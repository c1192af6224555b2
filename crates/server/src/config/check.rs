//! From what was typed to what it means.

use super::file::{Agent, File, Model, Provider, Server, Tenant};
use super::{AgentConfig, Config, ModelConfig, ServerConfig, TenantConfig, ToolsConfig};
use crate::auth;
use crate::tools;
use http::HeaderValue;
use std::ops::Range;
use std::time::Duration;
use toml::Spanned;

/// `serde_json`'s own limit, so that what passes ours can be read.
const DEEPEST: usize = 127;

/// Why a configuration can't be used, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
pub struct ConfigError {
    /// What is wrong, and what was expected.
    pub message: String,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
}

impl ConfigError {
    fn at(text: &str, span: Range<usize>, message: impl Into<String>) -> Self {
        let before = text.get(..span.start).unwrap_or(text);
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Self {
            message: message.into(),
            line: before.matches('\n').count() + 1,
            column: before.get(start..).unwrap_or_default().chars().count() + 1,
        }
    }
}

struct Checker<'a> {
    text: &'a str,
    env: &'a dyn Fn(&str) -> Option<String>,
}

pub(super) fn check(
    text: &str,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Config, ConfigError> {
    let file: File = toml::from_str(text).map_err(|error| {
        let message = error
            .message()
            .lines()
            .next()
            .unwrap_or_default()
            .to_owned();
        ConfigError::at(text, error.span().unwrap_or(0..0), message)
    })?;
    Checker { text, env }.config(file)
}

impl Checker<'_> {
    fn wrong<T>(&self, place: &Spanned<T>, message: impl Into<String>) -> ConfigError {
        ConfigError::at(self.text, place.span(), message)
    }

    fn config(&self, file: File) -> Result<Config, ConfigError> {
        let mut config = Config {
            server: self.server(file.server)?,
            tools: ToolsConfig {
                read_file_root: file.tools.read_file_root,
                ledger: file.tools.ledger,
                ledger_effect: file.tools.ledger_effect.unwrap_or_default(),
            },
            ..Config::default()
        };
        if !file.agents.is_empty() {
            config.models.clear();
            config.agents.clear();
        }
        for (name, model) in file.models {
            config
                .models
                .insert(name.clone(), self.model(&name, model)?);
        }
        for (name, agent) in file.agents {
            config.agents.insert(name, self.agent(agent, &config)?);
        }
        if let Some(name) = file.default_agent {
            if !config.agents.contains_key(name.get_ref()) {
                return Err(self.wrong(
                    &name,
                    unknown(
                        "agent",
                        name.get_ref(),
                        config.agents.keys().map(String::as_str),
                    ),
                ));
            }
            config.default_agent = name.into_inner();
        } else if !config.agents.contains_key(&config.default_agent) {
            // The first by name, so that one agent alone needs no word.
            config.default_agent = config.agents.keys().next().cloned().unwrap_or_default();
        }
        for (name, tenant) in file.tenants {
            config.tenants.insert(name, self.tenant(&tenant)?);
        }
        Ok(config)
    }

    fn server(&self, file: Server) -> Result<ServerConfig, ConfigError> {
        let default = ServerConfig::default();
        let max_depth = match &file.max_depth {
            Some(depth) if depth.get_ref().get() > DEEPEST + 1 => {
                return Err(self.wrong(
                    depth,
                    format!("max_depth is too large, expected at most {}", DEEPEST + 1),
                ));
            }
            Some(depth) => depth.get_ref().get(),
            None => default.max_depth,
        };
        for origin in &file.cors_origins {
            let text = origin.get_ref();
            let valid = text == "*"
                || (HeaderValue::from_str(text).is_ok()
                    && text
                        .split_once("://")
                        .is_some_and(|(_, host)| !host.is_empty() && !host.contains('/')));
            if !valid {
                let expected = "expected an origin such as \"https://app.example.com\", without a path, or \"*\"";
                return Err(self.wrong(origin, format!("{text:?} is no origin, {expected}")));
            }
        }
        Ok(ServerConfig {
            listen: file.listen,
            data: file.data,
            max_body_bytes: file
                .max_body_bytes
                .map_or(default.max_body_bytes, Into::into),
            max_depth,
            max_streams: file.max_streams.map_or(default.max_streams, Into::into),
            run_timeout: file
                .run_timeout_s
                .map(|seconds| Duration::from_secs(seconds.get())),
            cors_origins: file
                .cors_origins
                .into_iter()
                .map(Spanned::into_inner)
                .collect(),
        })
    }

    fn model(&self, name: &str, model: Spanned<Model>) -> Result<ModelConfig, ConfigError> {
        let span = model.span();
        let model = model.into_inner();
        match model.provider {
            Provider::Scripted => {
                if let Some(place) = model.base_url.as_ref().or(model.api_key_env.as_ref()) {
                    return Err(self.wrong(place, "the scripted model has no address and no key"));
                }
                Ok(ModelConfig::Scripted {
                    model: model.model,
                    delay: model
                        .delay_ms
                        .map(|delay| Duration::from_millis(delay.into_inner())),
                    script: model.script.map(Spanned::into_inner),
                })
            }
            Provider::ChatCompletions => {
                if let Some(delay) = &model.delay_ms {
                    return Err(self.wrong(delay, "only the scripted model has delay_ms"));
                }
                if let Some(script) = &model.script {
                    return Err(self.wrong(script, "only the scripted model has a script"));
                }
                let missing = |field: &str| {
                    let message = format!(
                        "the model {name:?} needs {field}, expected for provider \"chat-completions\""
                    );
                    ConfigError::at(self.text, span.clone(), message)
                };
                let api_key = match &model.api_key_env {
                    Some(variable) => Some(
                        (self.env)(variable.get_ref())
                            .filter(|key| !key.is_empty())
                            .ok_or_else(|| {
                                let name = variable.get_ref();
                                self.wrong(
                                    variable,
                                    format!("the environment has no {name}, expected a key in it"),
                                )
                            })?,
                    ),
                    None => None,
                };
                Ok(ModelConfig::ChatCompletions {
                    model: model.model.ok_or_else(|| missing("a model"))?,
                    base_url: model
                        .base_url
                        .map(Spanned::into_inner)
                        .ok_or_else(|| missing("a base_url"))?,
                    api_key: api_key.map(Into::into),
                })
            }
        }
    }

    fn agent(&self, agent: Agent, config: &Config) -> Result<AgentConfig, ConfigError> {
        if !config.models.contains_key(agent.model.get_ref()) {
            return Err(self.wrong(
                &agent.model,
                unknown(
                    "model",
                    agent.model.get_ref(),
                    config.models.keys().map(String::as_str),
                ),
            ));
        }
        let known: Vec<&str> = tools::names(&config.tools).collect();
        for tool in &agent.tools {
            if !known.contains(&tool.get_ref().as_str()) {
                let message = unknown("tool", tool.get_ref(), known.iter().copied());
                return Err(self.wrong(tool, message));
            }
        }
        let own: Vec<&str> = agent.tools.iter().map(|it| it.get_ref().as_str()).collect();
        for tool in &agent.approvals {
            if !own.contains(&tool.get_ref().as_str()) {
                let message = unknown("tool of this agent", tool.get_ref(), own.iter().copied());
                return Err(self.wrong(tool, message));
            }
        }
        let names = |tools: Vec<Spanned<String>>| tools.into_iter().map(Spanned::into_inner);
        Ok(AgentConfig {
            model: agent.model.into_inner(),
            system: agent.system,
            tools: names(agent.tools).collect(),
            approvals: names(agent.approvals).collect(),
            max_tool_rounds: agent.max_tool_rounds,
            params: agent.params,
        })
    }

    fn tenant(&self, tenant: &Tenant) -> Result<TenantConfig, ConfigError> {
        let hash = |text: &Spanned<String>| {
            auth::parse_hash(text.get_ref()).ok_or_else(|| {
                self.wrong(
                    text,
                    "this is no key hash, expected \"sha256:\" and 64 hexadecimal digits",
                )
            })
        };
        Ok(TenantConfig {
            key_hashes: tenant
                .key_hashes
                .iter()
                .map(hash)
                .collect::<Result<_, _>>()?,
        })
    }
}

fn unknown<'a>(what: &str, name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<&str> = known.collect();
    format!(
        "there is no {what} {name:?}, expected one of: {}",
        names.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Config, ConfigError> {
        Config::parse(text, &|name| (name == "KEY").then(|| "secret".to_owned()))
    }

    #[test]
    fn an_empty_file_is_development_mode() {
        let config = parse("").unwrap();
        assert!(config.is_development());
        assert_eq!(config.default_agent, "demo");
        assert_eq!(config.server, ServerConfig::default());
    }

    #[test]
    fn every_setting_is_read() {
        let config = parse(
            r#"
            default_agent = "b"
            [server]
            listen = "127.0.0.1:9"
            data = "d"
            max_body_bytes = 10
            max_depth = 5
            max_streams = 2
            run_timeout_s = 3
            cors_origins = ["https://a.example"]
            [models.m]
            provider = "chat-completions"
            model = "gpt"
            base_url = "https://api.example/v1"
            api_key_env = "KEY"
            [models.s]
            provider = "scripted"
            delay_ms = 5
            [agents.a]
            model = "s"
            tools = ["compute", "record"]
            approvals = ["record"]
            [agents.b]
            model = "m"
            system = "Be kind."
            max_tool_rounds = 4
            params = { temperature = 0.5 }
            [tools]
            ledger = "l.txt"
            ledger_effect = "idempotent"
            [tenants.acme]
            key_hashes = ["sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"]
            "#,
        )
        .unwrap();
        assert_eq!(config.default_agent, "b");
        assert_eq!(config.server.max_body_bytes, 10);
        assert_eq!(config.server.run_timeout, Some(Duration::from_secs(3)));
        assert_eq!(
            config
                .agents
                .get("b")
                .unwrap()
                .max_tool_rounds
                .unwrap()
                .get(),
            4
        );
        assert_eq!(config.agents.get("a").unwrap().approvals, ["record"]);
        assert_eq!(config.tools.ledger_effect, upp::Effect::Idempotent);
        assert_eq!(config.tenants.get("acme").unwrap().key_hashes.len(), 1);
        assert!(!format!("{config:?}").contains("secret"));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        let said = |text: &str| parse(text).unwrap_err().to_string();
        assert_eq!(
            said("[server]\nlisten = \"127.0.0.1:80\"\nlissen = 1"),
            "line 3, column 1: unknown field `lissen`, expected one of `listen`, `data`, `max_body_bytes`, \
             `max_depth`, `max_streams`, `run_timeout_s`, `cors_origins`"
        );
        assert_eq!(
            said("[models.m]\nprovider = \"scripted\"\n[agents.a]\nmodel = \"n\""),
            "line 4, column 9: there is no model \"n\", expected one of: m"
        );
        assert_eq!(
            said(
                "[models.m]\nprovider = \"chat-completions\"\nmodel=\"x\"\nbase_url=\"y\"\napi_key_env = \"NONE\""
            ),
            "line 5, column 15: the environment has no NONE, expected a key in it"
        );
        assert!(
            said("[tenants.t]\nkey_hashes = [\"md5:00\"]")
                .starts_with("line 2, column 15: this is no key hash")
        );
        assert!(said("[server]\nmax_depth = 1000").starts_with("line 2, column 13"));
    }
}
