//! `[agents.NAME]` as typed.

use crate::config::RemoteProtocol;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};
use std::path::PathBuf;
use toml::Spanned;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::config) struct Agent {
    pub(in crate::config) model: Option<Spanned<String>>,
    pub(in crate::config) remote: Option<Spanned<Remote>>,
    pub(in crate::config) worker: Option<Spanned<Worker>>,
    pub(in crate::config) description: Option<String>,
    pub(in crate::config) system: Option<Spanned<String>>,
    pub(in crate::config) system_file: Option<Spanned<PathBuf>>,
    #[serde(default)]
    pub(in crate::config) tools: Vec<Spanned<String>>,
    #[serde(default)]
    pub(in crate::config) external: Vec<External>,
    #[serde(default)]
    pub(in crate::config) subagents: Vec<Subagent>,
    #[serde(default)]
    pub(in crate::config) handoffs: Vec<Spanned<String>>,
    #[serde(default)]
    pub(in crate::config) requires_approval: Vec<Spanned<String>>,
    pub(in crate::config) tool_choice: Option<Spanned<toml::Value>>,
    pub(in crate::config) strategy: Option<Spanned<toml::Value>>,
    pub(in crate::config) max_tool_rounds: Option<Spanned<NonZeroU32>>,
    pub(in crate::config) structure: Option<Spanned<Value>>,
    pub(in crate::config) structure_file: Option<Spanned<PathBuf>>,
    #[serde(default)]
    pub(in crate::config) middleware: Vec<Spanned<toml::Value>>,
    pub(in crate::config) compaction: Option<Spanned<Compaction>>,
    #[serde(default)]
    pub(in crate::config) params: Map<String, Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::config) struct Worker {
    pub(in crate::config) lease_s: Option<Spanned<NonZeroU64>>,
    pub(in crate::config) wait_s: Option<Spanned<NonZeroU64>>,
    pub(in crate::config) max_lost_leases: Option<NonZeroU32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::config) struct Compaction {
    pub(in crate::config) at_tokens: NonZeroU64,
    pub(in crate::config) keep_runs: Option<usize>,
    pub(in crate::config) model: Option<Spanned<String>>,
    pub(in crate::config) prompt: Option<String>,
    #[serde(default)]
    pub(in crate::config) params: Map<String, Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::config) struct Remote {
    pub(in crate::config) protocol: RemoteProtocol,
    pub(in crate::config) url: Spanned<String>,
    pub(in crate::config) key_env: Option<Spanned<String>>,
    #[serde(default)]
    pub(in crate::config) headers: BTreeMap<String, Spanned<String>>,
    #[serde(default)]
    pub(in crate::config) headers_env: BTreeMap<String, Spanned<String>>,
    pub(in crate::config) agent: Option<Spanned<String>>,
    pub(in crate::config) repeatable: Option<bool>,
    pub(in crate::config) background: Option<Spanned<bool>>,
    pub(in crate::config) headers_timeout_s: Option<NonZeroU64>,
    pub(in crate::config) idle_timeout_s: Option<NonZeroU64>,
    pub(in crate::config) max_bytes: Option<NonZeroUsize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::config) struct External {
    pub(in crate::config) name: Spanned<String>,
    pub(in crate::config) description: String,
    pub(in crate::config) parameters: Spanned<Value>,
    pub(in crate::config) result: Option<Spanned<Value>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::config) struct Subagent {
    pub(in crate::config) agent: Spanned<String>,
    pub(in crate::config) name: Spanned<String>,
    pub(in crate::config) description: String,
    pub(in crate::config) parameters: Spanned<Value>,
    pub(in crate::config) prompt: Spanned<String>,
    pub(in crate::config) propagate_events: Option<bool>,
}
