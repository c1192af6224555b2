//! `[mcp.NAME]` as typed.

use agents::mcp::McpLifecycle;
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::num::{NonZeroU64, NonZeroUsize};
use std::path::PathBuf;
use toml::Spanned;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::config) struct McpTable {
    pub(in crate::config) command: Option<Spanned<String>>,
    pub(in crate::config) args: Option<Spanned<Vec<String>>>,
    pub(in crate::config) env: Option<Spanned<BTreeMap<String, String>>>,
    pub(in crate::config) env_from: Option<Spanned<BTreeMap<String, Spanned<String>>>>,
    pub(in crate::config) cwd: Option<Spanned<PathBuf>>,
    pub(in crate::config) url: Option<Spanned<String>>,
    pub(in crate::config) headers: Option<Spanned<BTreeMap<String, Spanned<String>>>>,
    pub(in crate::config) headers_env: Option<Spanned<BTreeMap<String, Spanned<String>>>>,
    pub(in crate::config) bearer_env: Option<Spanned<String>>,
    pub(in crate::config) prefix: Option<Spanned<String>>,
    pub(in crate::config) allow: Option<Vec<String>>,
    #[serde(default)]
    pub(in crate::config) deny: Vec<String>,
    #[serde(default)]
    pub(in crate::config) effects: BTreeMap<String, Spanned<upp::Effect>>,
    pub(in crate::config) default_effect: Option<Spanned<upp::Effect>>,
    #[serde(default)]
    pub(in crate::config) trust_annotations: bool,
    #[serde(default, deserialize_with = "lifecycle")]
    pub(in crate::config) lifecycle: McpLifecycle,
    pub(in crate::config) connect_timeout_s: Option<NonZeroU64>,
    pub(in crate::config) call_timeout_s: Option<NonZeroU64>,
    pub(in crate::config) max_tools: Option<NonZeroUsize>,
}

fn lifecycle<'de, D: Deserializer<'de>>(deserializer: D) -> Result<McpLifecycle, D::Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "kebab-case")]
    enum Lifecycle {
        Auto,
        Initialize,
    }
    Ok(match Lifecycle::deserialize(deserializer)? {
        Lifecycle::Auto => McpLifecycle::Auto,
        Lifecycle::Initialize => McpLifecycle::Initialize,
    })
}
