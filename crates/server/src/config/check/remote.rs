//! Checks of remote agents.

use super::{Checker, FindingSeverity};
use crate::config::file::{Agent, Remote};
use crate::config::{AgentSettings, ConfigError, OutboundConfig, RemoteConfig, RemoteProtocol};
use std::ops::Range;
use std::time::Duration;
use toml::Spanned;

/// Default time limit for response headers, and for the wait between two bytes.
const TIMEOUT: Duration = Duration::from_mins(2);
/// Default size limit of one response, in bytes.
const MAX_BYTES: usize = 64 << 20;

impl Checker<'_> {
    /// Checks a remote agent. Settings of local agents, such as a model or tools, are refused.
    pub(super) fn remote_agent(
        &self,
        agent: Agent,
        remote: Spanned<Remote>,
        outbound: &OutboundConfig,
    ) -> Result<AgentSettings, ConfigError> {
        if let Some(place) = own(&agent) {
            let message = "an agent elsewhere has its own model, tools and instructions; expected only remote, description and params";
            return Err(ConfigError::at(self.text, place, message));
        }
        let remote = self.remote_config(remote.into_inner(), outbound)?;
        Ok(AgentSettings {
            remote: Some(remote),
            description: agent.description,
            params: agent.params,
            ..AgentSettings::default()
        })
    }

    fn remote_config(
        &self,
        remote: Remote,
        outbound: &OutboundConfig,
    ) -> Result<RemoteConfig, ConfigError> {
        self.address(&remote.url)?;
        let url = remote.url.get_ref();
        let authority = url.split("://").nth(1).unwrap_or_default();
        let authority = authority.split('/').next().unwrap_or_default();
        if authority.contains('@') || url.contains(['?', '#']) {
            let message =
                "an agent's address has no user, no query and no fragment; a key goes into key_env";
            return Err(self.wrong(&remote.url, message));
        }
        if url.starts_with("http:") && !outbound.http {
            let message = "http: is not encrypted and would be refused; expected https:, or http = true in [outbound]";
            self.found(FindingSeverity::Error, remote.url.span(), message);
        }
        match (remote.protocol, &remote.agent) {
            (RemoteProtocol::A2a, Some(agent)) => {
                let message = "with A2A each agent has an address of its own, expected no agent";
                return Err(self.wrong(agent, message));
            }
            (RemoteProtocol::Threads, None) => {
                let message = "the Threads API asks an assistant, expected its id as agent";
                return Err(self.wrong(&remote.url, message));
            }
            (RemoteProtocol::A2a | RemoteProtocol::Responses, None)
            | (RemoteProtocol::Responses | RemoteProtocol::Threads, Some(_)) => {}
        }
        if let (Some(background), RemoteProtocol::A2a | RemoteProtocol::Threads) =
            (&remote.background, remote.protocol)
        {
            let message = "only with \"responses\" something is made in the background";
            return Err(self.wrong(background, message));
        }
        let headers = self.headers(&remote.headers, &remote.headers_env)?;
        let sets = [
            "accept",
            "authorization",
            "idempotency-key",
            "content-type",
            "a2a-version",
        ];
        let all = remote.headers.iter().chain(&remote.headers_env);
        for (name, place) in all {
            let lower = name.to_ascii_lowercase();
            let is_key = lower == "authorization" && remote.key_env.is_none();
            if sets.contains(&lower.as_str()) && !is_key {
                let message = format!("the header {name:?} is set by the client");
                return Err(self.wrong(place, message));
            }
        }
        let key = remote.key_env.as_ref();
        let seconds =
            |n: Option<std::num::NonZeroU64>| n.map_or(TIMEOUT, |n| Duration::from_secs(n.get()));
        Ok(RemoteConfig {
            protocol: remote.protocol,
            url: url.trim_end_matches('/').to_owned(),
            key: key.and_then(|variable| self.secret(variable, "a key")),
            headers,
            agent: remote.agent.map(Spanned::into_inner),
            repeatable: remote.repeatable.unwrap_or(true),
            background: remote.background.is_none_or(Spanned::into_inner),
            headers_timeout: seconds(remote.headers_timeout_s),
            idle_timeout: seconds(remote.idle_timeout_s),
            max_bytes: remote.max_bytes.map_or(MAX_BYTES, Into::into),
        })
    }
}

/// The place of the first setting that only local agents may have.
fn own(agent: &Agent) -> Option<Range<usize>> {
    let places = [
        agent.model.as_ref().map(Spanned::span),
        agent.worker.as_ref().map(Spanned::span),
        agent.system_file.as_ref().map(Spanned::span),
        agent.tools.first().map(Spanned::span),
        agent.external.first().map(|tool| tool.name.span()),
        agent.subagents.first().map(|subagent| subagent.name.span()),
        agent.handoffs.first().map(Spanned::span),
        agent.requires_approval.first().map(Spanned::span),
        agent.tool_choice.as_ref().map(Spanned::span),
        agent.strategy.as_ref().map(Spanned::span),
        agent.max_tool_rounds.as_ref().map(Spanned::span),
        agent.structure.as_ref().map(Spanned::span),
        agent.structure_file.as_ref().map(Spanned::span),
        agent.middleware.first().map(Spanned::span),
        agent.compaction.as_ref().map(Spanned::span),
    ];
    let system = agent.system.as_ref().map(Spanned::span);
    places.into_iter().flatten().chain(system).next()
}
