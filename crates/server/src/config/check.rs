//! Checks a parsed file and makes a configuration of it.

mod agents;
mod auth;
mod limits;
mod links;
mod mcp;
mod models;
mod names;
mod outbound;
mod remote;
mod secrets;
mod store;
mod subagents;
mod tenants;
mod web;

use super::file::{File, Server, Telemetry, Tools};
use super::{AitpConfig, Config, ServerConfig, TelemetryConfig, TlsConfig, ToolsConfig};
use crate::serde_messages;
use crate::strict_struct::ByName;
use http::HeaderValue;
use serde::Deserialize as _;
use serde::de::DeserializeOwned;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::Range;
use std::time::Duration;
use toml::Spanned;
use upp::Effect;

/// The limit of `serde_json`, so that it can parse what this limit allows.
const DEEPEST: usize = 127;

/// Maximum length of the name of a node, in bytes.
const MAX_NODE: usize = 200;

/// An error in a configuration, and its place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
pub struct ConfigError {
    /// The error, and what was expected.
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

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FindingSeverity {
    /// The server does not start with it.
    Error,
    /// It may be a mistake.
    Warning,
}

/// A finding in a readable configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The severity.
    pub severity: FindingSeverity,
    /// The message and the place.
    pub error: ConfigError,
}

/// A readable configuration.
#[derive(Clone, Debug)]
pub struct Checked {
    /// The configuration. A missing key is absent in it.
    pub config: Config,
    /// The findings: problems that do not prevent reading.
    pub findings: Vec<Finding>,
}

struct Checker<'a> {
    text: &'a str,
    env: &'a dyn Fn(&str) -> Option<String>,
    findings: RefCell<Vec<Finding>>,
}

pub(super) fn check(
    text: &str,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Checked, ConfigError> {
    let read = toml::Deserializer::parse(text).and_then(|it| File::deserialize(ByName(it)));
    let file = read.map_err(|error| {
        ConfigError::at(text, error.span().unwrap_or(0..0), syntax_message(&error))
    })?;
    let findings = RefCell::default();
    let checker = Checker {
        text,
        env,
        findings,
    };
    let config = checker.config(file)?;
    let findings = checker.findings.into_inner();
    Ok(Checked { config, findings })
}

/// The message of a syntax error, on one line.
fn syntax_message(error: &toml::de::Error) -> String {
    serde_messages::TOML.of(error.message().lines().next().unwrap_or_default())
}

impl Checker<'_> {
    fn wrong<T>(&self, place: &Spanned<T>, message: impl Into<String>) -> ConfigError {
        ConfigError::at(self.text, place.span(), message)
    }

    fn found(&self, severity: FindingSeverity, span: Range<usize>, message: impl Into<String>) {
        let error = ConfigError::at(self.text, span, message);
        let finding = Finding { severity, error };
        self.findings.borrow_mut().push(finding);
    }

    /// Reads a value that is a name, or a table whose field `tag` has the name.
    fn tagged<T: DeserializeOwned>(
        &self,
        place: &Spanned<toml::Value>,
        tag: &str,
    ) -> Result<T, ConfigError> {
        let value = match place.get_ref().as_str() {
            Some(name) => toml::Table::from_iter([(tag.to_owned(), name.into())]).into(),
            None => place.get_ref().clone(),
        };
        let read: Result<T, toml::de::Error> = T::deserialize(ByName(value));
        read.map_err(|error| self.wrong(place, syntax_message(&error)))
    }

    fn config(&self, file: File) -> Result<Config, ConfigError> {
        let shards: Vec<_> = file
            .store
            .shards
            .keys()
            .map(|name| name.get_ref().clone())
            .collect();
        let mut config = Config {
            server: self.server(file.server)?,
            limits: self.limits(&file.limits)?,
            store: self.store(file.store)?,
            tools: self.tools(file.tools)?,
            outbound: self.outbound(&file.outbound)?,
            aitp: AitpConfig {
                strict: file.aitp.strict,
                fetch_forms: file.aitp.fetch_forms,
            },
            ..Config::default()
        };
        if !file.agents.is_empty() {
            config.models.clear();
            config.agents.clear();
            config.web.starters.clear();
        }
        for (name, model) in file.models {
            if let Some(max) = model.get_ref().concurrent_runs {
                config.limits.model_runs.insert(name.clone(), max.get());
            }
            let model = self.model(&name, model)?;
            config.models.insert(name, model);
        }
        for (name, server) in file.mcp {
            let server = self.mcp_server(&name, server)?;
            config.mcp.insert(name, server);
        }
        self.agents(file.agents, &mut config)?;
        if let Some(name) = file.default_agent {
            self.known("agent", &name, config.agents.keys())?;
            config.default_agent = name.into_inner();
        } else if !config.agents.contains_key(&config.default_agent) {
            // The first by name, so that one agent alone needs no word.
            config.default_agent = config.agents.keys().next().cloned().unwrap_or_default();
        }
        self.web(file.web, &mut config)?;
        config.telemetry = file
            .telemetry
            .map(|telemetry| self.telemetry(telemetry))
            .transpose()?;
        if let Some(jwt) = file.auth.jwt {
            if file.tenants.is_empty() {
                let message = "tokens name their tenant, and there is none: add [tenants.NAME]";
                return Err(self.wrong(&jwt, message));
            }
            config.tokens = Some(self.tokens(jwt)?);
        }
        self.distinct_keys(&file.tenants)?;
        for (name, tenant) in file.tenants {
            if name.get_ref().is_empty() {
                return Err(self.wrong(&name, "the name of the tenant is empty, expected one"));
            }
            let tenant = self.tenant(&tenant, config.limits.tenant, &shards)?;
            config.tenants.insert(name.into_inner(), tenant);
        }
        Ok(config)
    }

    /// Refuses an unknown name.
    fn known<'n, N: AsRef<str> + 'n>(
        &self,
        what: &str,
        name: &Spanned<String>,
        names: impl IntoIterator<Item = &'n N>,
    ) -> Result<(), ConfigError> {
        let names: Vec<&str> = names.into_iter().map(AsRef::as_ref).collect();
        if names.contains(&name.get_ref().as_str()) {
            return Ok(());
        }
        let known = if names.is_empty() {
            "and there is none at all".to_owned()
        } else {
            format!("expected one of: {}", names.join(", "))
        };
        let message = format!("there is no {what} {:?}, {known}", name.get_ref());
        Err(self.wrong(name, message))
    }

    fn tools(&self, file: Tools) -> Result<ToolsConfig, ConfigError> {
        let ledger_effect = file.ledger_effect.map(|effect| self.effect(effect));
        Ok(ToolsConfig {
            read_file_root: file.read_file_root,
            ledger: file.ledger,
            ledger_effect: ledger_effect.transpose()?.unwrap_or_default(),
        })
    }

    /// The effect of a built-in tool. `reconcilable` is refused, because these tools can't report the
    /// result of an earlier call.
    fn effect(&self, effect: Spanned<Effect>) -> Result<Effect, ConfigError> {
        if *effect.get_ref() == Effect::Reconcilable {
            let message = "this tool can't say what became of a call, expected one of: pure, idempotent, effect";
            return Err(self.wrong(&effect, message));
        }
        Ok(effect.into_inner())
    }

    fn telemetry(&self, file: Telemetry) -> Result<TelemetryConfig, ConfigError> {
        self.address(&file.endpoint)?;
        let sample_ratio = match &file.sample_ratio {
            Some(ratio) if !(0.0..=1.0).contains(ratio.get_ref()) => {
                let message = "sample_ratio is the share of traces that is kept, expected a number from 0 to 1";
                return Err(self.wrong(ratio, message));
            }
            Some(ratio) => *ratio.get_ref(),
            None => 1.0,
        };
        if let Some(name) = &file.service_name
            && name.get_ref().trim().is_empty()
        {
            return Err(self.wrong(name, "the name is empty, expected one such as \"loomline\""));
        }
        let service_name = file.service_name.map(Spanned::into_inner);
        Ok(TelemetryConfig {
            endpoint: file.endpoint.into_inner(),
            headers: self.headers(&BTreeMap::new(), &file.headers_env)?,
            service_name: service_name.unwrap_or_else(|| "loomline".to_owned()),
            sample_ratio,
            capture_content: file.capture_content,
        })
    }

    fn listen(&self, address: &Spanned<String>) -> Result<SocketAddr, ConfigError> {
        let text = address.get_ref();
        let expected = "expected an IP address and a port, such as \"127.0.0.1:8787\"";
        text.parse()
            .map_err(|_| self.wrong(address, format!("{text:?} is no address, {expected}")))
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
        if let Some(url) = &file.public_url {
            let text = url.get_ref();
            let rest = ["https://", "http://"]
                .iter()
                .find_map(|scheme| text.strip_prefix(scheme));
            let valid = rest.is_some_and(|rest| {
                !rest.is_empty() && !rest.starts_with('/') && !rest.contains(['?', '#', ' '])
            });
            if !valid {
                let what = format!(
                    "{text:?} is no address of a server, expected one such as \"https://agents.example.org\""
                );
                return Err(self.wrong(url, what));
            }
        }
        if let Some(node) = &file.node {
            let name = node.get_ref();
            if name.is_empty() || name.len() > MAX_NODE || name.chars().any(char::is_control) {
                let what = format!(
                    "this is no name of a node, expected 1 to {MAX_NODE} bytes without control characters"
                );
                return Err(self.wrong(node, what));
            }
        }
        Ok(ServerConfig {
            listen: file.listen.map(|it| self.listen(&it)).transpose()?,
            metrics_listen: file.metrics_listen.map(|it| self.listen(&it)).transpose()?,
            data: file.data,
            node: file.node.map(Spanned::into_inner),
            max_body_bytes: file
                .max_body_bytes
                .map_or(default.max_body_bytes, Into::into),
            max_file_bytes: file
                .max_file_bytes
                .map_or(default.max_file_bytes, Into::into),
            max_depth,
            run_timeout: file
                .run_timeout_s
                .map(|seconds| Duration::from_secs(seconds.get())),
            cors_origins: file
                .cors_origins
                .into_iter()
                .map(Spanned::into_inner)
                .collect(),
            public_url: file
                .public_url
                .map(|url| url.into_inner().trim_end_matches('/').to_owned()),
            tls: file.tls.map(|tls| TlsConfig {
                cert: tls.cert,
                key: tls.key,
            }),
        })
    }
}

#[cfg(test)]
mod tests;
