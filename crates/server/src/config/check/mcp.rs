//! MCP servers.

use super::Checker;
use crate::config::ConfigError;
use crate::config::file::McpTable;
use agents::mcp::{McpHttp, McpLimits, McpServer, McpStdio};
use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;
use toml::Spanned;

/// Maximum length of a server's name, in bytes: it is a file name too.
const NAME_BYTES: usize = 64;

impl Checker<'_> {
    pub(super) fn mcp_server(
        &self,
        name: &str,
        table: Spanned<McpTable>,
    ) -> Result<McpServer, ConfigError> {
        let span = table.span();
        let table = table.into_inner();
        if !is_name(name) || name.len() > NAME_BYTES {
            let message = format!(
                "{name:?} is no name of a server, expected 1 to {NAME_BYTES} letters, digits, '-' and '_'"
            );
            return Err(ConfigError::at(self.text, span, message));
        }
        let mut server = match (&table.command, &table.url) {
            (Some(command), None) => McpServer::stdio(name, self.stdio(command, &table)?),
            (None, Some(url)) => McpServer::http(name, self.http(url, &table)?),
            (Some(command), Some(_)) => {
                let message = "there are both a command and a url, expected one of them";
                return Err(self.wrong(command, message));
            }
            (None, None) => {
                let message = format!("the server {name:?} needs a command or a url");
                return Err(ConfigError::at(self.text, span, message));
            }
        };
        if let Some(prefix) = table.prefix {
            if !prefix.get_ref().is_empty() && !is_name(prefix.get_ref()) {
                let message = "this is no prefix, expected letters, digits, '-' and '_'";
                return Err(self.wrong(&prefix, message));
            }
            server.prefix = prefix.into_inner();
        }
        for (tool, effect) in table.effects {
            server.effects.insert(tool, self.effect(effect)?);
        }
        if let Some(effect) = table.default_effect {
            server.default_effect = self.effect(effect)?;
        }
        server.allow = table.allow.map(|names| names.into_iter().collect());
        server.deny = table.deny.into_iter().collect();
        server.trust_annotations = table.trust_annotations;
        server.lifecycle = table.lifecycle;
        let usual = McpLimits::default();
        let seconds = |n: std::num::NonZeroU64| Duration::from_secs(n.get());
        server.limits = McpLimits {
            connect: table.connect_timeout_s.map_or(usual.connect, seconds),
            call: table.call_timeout_s.map_or(usual.call, seconds),
            max_tools: table.max_tools.map_or(usual.max_tools, Into::into),
            ..usual
        };
        Ok(server)
    }

    fn stdio(&self, command: &Spanned<String>, table: &McpTable) -> Result<McpStdio, ConfigError> {
        self.refuse(
            [
                table.headers.as_ref().map(Spanned::span),
                table.headers_env.as_ref().map(Spanned::span),
                table.bearer_env.as_ref().map(Spanned::span),
            ],
            "only a server with a url has headers",
        )?;
        if command.get_ref().trim().is_empty() {
            return Err(self.wrong(command, "the command is empty, expected a program"));
        }
        let mut env = BTreeMap::new();
        for (name, value) in table.env.iter().flat_map(Spanned::get_ref) {
            env.insert(name.clone(), value.as_str().into());
        }
        for (name, variable) in table.env_from.iter().flat_map(Spanned::get_ref) {
            if env.contains_key(name) {
                let message = format!("the variable {name:?} is in env, too");
                return Err(self.wrong(variable, message));
            }
            if let Some(value) = self.secret(variable, "what the server is to be given") {
                env.insert(name.clone(), value);
            }
        }
        Ok(McpStdio {
            command: command.get_ref().clone(),
            args: table
                .args
                .as_ref()
                .map(|args| args.get_ref().clone())
                .unwrap_or_default(),
            env,
            cwd: table.cwd.as_ref().map(|cwd| cwd.get_ref().clone()),
        })
    }

    fn http(&self, url: &Spanned<String>, table: &McpTable) -> Result<McpHttp, ConfigError> {
        self.refuse(
            [
                table.args.as_ref().map(Spanned::span),
                table.env.as_ref().map(Spanned::span),
                table.env_from.as_ref().map(Spanned::span),
            ],
            "only a server with a command has arguments and an environment",
        )?;
        if let Some(cwd) = &table.cwd {
            let message = "only a server with a command has a directory";
            return Err(self.wrong(cwd, message));
        }
        self.address(url)?;
        let none = BTreeMap::new();
        let plain = table.headers.as_ref().map_or(&none, Spanned::get_ref);
        let from_env = table.headers_env.as_ref().map_or(&none, Spanned::get_ref);
        let bearer = table.bearer_env.as_ref();
        for (name, place) in plain.iter().chain(from_env) {
            let lower = name.to_ascii_lowercase();
            let is_ours =
                matches!(lower.as_str(), "accept" | "content-type") || lower.starts_with("mcp-");
            if is_ours || (lower == "authorization" && bearer.is_some()) {
                let message = format!("the header {name:?} is set by the client");
                return Err(self.wrong(place, message));
            }
        }
        Ok(McpHttp {
            url: url.get_ref().clone(),
            headers: self.headers(plain, from_env)?,
            bearer: bearer.and_then(|variable| self.secret(variable, "a token")),
        })
    }

    fn refuse(&self, places: [Option<Range<usize>>; 3], message: &str) -> Result<(), ConfigError> {
        match places.into_iter().flatten().next() {
            Some(place) => Err(ConfigError::at(self.text, place, message)),
            None => Ok(()),
        }
    }
}

fn is_name(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    !text.is_empty() && text.bytes().all(fits)
}
