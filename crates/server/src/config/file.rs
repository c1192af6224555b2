//! The file as it is typed.

use serde::Deserialize;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};
use std::path::PathBuf;
use toml::Spanned;

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct File {
    pub(super) server: Server,
    pub(super) models: BTreeMap<String, Spanned<Model>>,
    pub(super) agents: BTreeMap<String, Agent>,
    pub(super) default_agent: Option<Spanned<String>>,
    pub(super) tools: Tools,
    pub(super) tenants: BTreeMap<String, Tenant>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Server {
    pub(super) listen: Option<SocketAddr>,
    pub(super) data: Option<PathBuf>,
    pub(super) max_body_bytes: Option<NonZeroUsize>,
    pub(super) max_depth: Option<Spanned<NonZeroUsize>>,
    pub(super) max_streams: Option<NonZeroUsize>,
    pub(super) run_timeout_s: Option<NonZeroU64>,
    pub(super) cors_origins: Vec<Spanned<String>>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Provider {
    Scripted,
    ChatCompletions,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(
    clippy::struct_field_names,
    reason = "the fields have the names of the file"
)]
pub(super) struct Model {
    pub(super) provider: Provider,
    pub(super) model: Option<String>,
    pub(super) base_url: Option<Spanned<String>>,
    pub(super) api_key_env: Option<Spanned<String>>,
    pub(super) delay_ms: Option<Spanned<u64>>,
    pub(super) script: Option<Spanned<PathBuf>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Agent {
    pub(super) model: Spanned<String>,
    pub(super) system: Option<String>,
    #[serde(default)]
    pub(super) tools: Vec<Spanned<String>>,
    #[serde(default)]
    pub(super) approvals: Vec<Spanned<String>>,
    pub(super) max_tool_rounds: Option<NonZeroU32>,
    #[serde(default)]
    pub(super) params: serde_json::Map<String, serde_json::Value>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Tools {
    pub(super) read_file_root: Option<PathBuf>,
    pub(super) ledger: Option<PathBuf>,
    pub(super) ledger_effect: Option<upp::Effect>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Tenant {
    pub(super) key_hashes: Vec<Spanned<String>>,
}
