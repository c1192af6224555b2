//! The TOML file as typed, before names and secrets are resolved.

mod agent;
mod mcp;
mod model;
mod web;

pub(super) use agent::{Agent, Compaction, External, Remote, Subagent, Worker};
pub(super) use mcp::McpTable;
pub(super) use model::{Model, Retry};
pub(super) use web::{StarterTable, Web};

use crate::auth::Scope;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};
use std::path::PathBuf;
use toml::Spanned;

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct File {
    pub(super) server: Server,
    pub(super) limits: Limits,
    pub(super) store: Store,
    pub(super) models: BTreeMap<String, Spanned<Model>>,
    pub(super) agents: BTreeMap<String, Spanned<Agent>>,
    pub(super) default_agent: Option<Spanned<String>>,
    pub(super) tools: Tools,
    pub(super) mcp: BTreeMap<String, Spanned<McpTable>>,
    pub(super) outbound: Outbound,
    pub(super) aitp: Aitp,
    pub(super) web: Web,
    pub(super) telemetry: Option<Telemetry>,
    pub(super) auth: Auth,
    pub(super) tenants: BTreeMap<Spanned<String>, Tenant>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Server {
    pub(super) listen: Option<Spanned<String>>,
    pub(super) metrics_listen: Option<Spanned<String>>,
    pub(super) data: Option<PathBuf>,
    pub(super) node: Option<Spanned<String>>,
    pub(super) max_body_bytes: Option<NonZeroUsize>,
    pub(super) max_file_bytes: Option<NonZeroUsize>,
    pub(super) max_depth: Option<Spanned<NonZeroUsize>>,
    pub(super) run_timeout_s: Option<NonZeroU64>,
    pub(super) cors_origins: Vec<Spanned<String>>,
    pub(super) public_url: Option<Spanned<String>>,
    pub(super) tls: Option<Tls>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Limits {
    pub(super) connections: Option<NonZeroUsize>,
    pub(super) connections_per_address: Option<NonZeroUsize>,
    pub(super) trusted_proxies: Vec<Spanned<String>>,
    pub(super) header_timeout_s: Option<NonZeroU64>,
    pub(super) idle_timeout_s: Option<NonZeroU64>,
    pub(super) tls_timeout_s: Option<NonZeroU64>,
    pub(super) http2_streams: Option<NonZeroU32>,
    pub(super) body_bytes_in_flight: Option<NonZeroUsize>,
    pub(super) body_bytes_per_second: Option<NonZeroUsize>,
    pub(super) message_bytes: Option<NonZeroUsize>,
    pub(super) streams: Option<NonZeroUsize>,
    pub(super) requests_in_flight: Option<NonZeroUsize>,
    pub(super) ephemeral_bytes: Option<NonZeroUsize>,
    pub(super) stalled_reader_s: Option<NonZeroU64>,
    pub(super) concurrent_runs: Option<NonZeroUsize>,
    pub(super) restart_pause_ms: Option<NonZeroU64>,
    pub(super) thread_cache_bytes: Option<NonZeroUsize>,
    pub(super) thread_view_bytes: Option<NonZeroUsize>,
    pub(super) shutdown_grace_s: Option<NonZeroU64>,
    pub(super) tenant: TenantTable,
}

/// The budgets of one tenant: `[limits.tenant]` or `[tenants.NAME.limits]`.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct TenantTable {
    pub(super) requests_per_minute: Option<NonZeroU32>,
    pub(super) requests_in_flight: Option<NonZeroUsize>,
    pub(super) streams: Option<NonZeroUsize>,
    pub(super) streams_per_key: Option<NonZeroUsize>,
    pub(super) concurrent_runs: Option<NonZeroUsize>,
    pub(super) queued_triggers: Option<NonZeroUsize>,
    pub(super) threads: Option<NonZeroU64>,
    pub(super) ephemeral_threads: Option<NonZeroUsize>,
    pub(super) ephemeral_bytes: Option<NonZeroUsize>,
    pub(super) stored_bytes: Option<NonZeroU64>,
    pub(super) files: Option<NonZeroU64>,
    pub(super) body_bytes_in_flight: Option<NonZeroUsize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Tls {
    pub(super) cert: PathBuf,
    pub(super) key: PathBuf,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Store {
    pub(super) key_env: Option<Spanned<String>>,
    pub(super) url: Option<Spanned<String>>,
    pub(super) url_env: Option<Spanned<String>>,
    pub(super) listen_url: Option<Spanned<String>>,
    pub(super) listen_url_env: Option<Spanned<String>>,
    pub(super) prepared: Option<Spanned<bool>>,
    pub(super) writers: Option<Spanned<NonZeroUsize>>,
    pub(super) readers: Option<Spanned<NonZeroUsize>>,
    pub(super) ca: Option<Spanned<PathBuf>>,
    pub(super) shards: BTreeMap<Spanned<String>, Shard>,
}

/// A further database: `[store.shards.NAME]`.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Shard {
    pub(super) url: Option<Spanned<String>>,
    pub(super) url_env: Option<Spanned<String>>,
    pub(super) listen_url: Option<Spanned<String>>,
    pub(super) listen_url_env: Option<Spanned<String>>,
    pub(super) prepared: Option<Spanned<bool>>,
    pub(super) writers: Option<Spanned<NonZeroUsize>>,
    pub(super) readers: Option<Spanned<NonZeroUsize>>,
    pub(super) ca: Option<Spanned<PathBuf>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Tools {
    pub(super) read_file_root: Option<PathBuf>,
    pub(super) ledger: Option<PathBuf>,
    pub(super) ledger_effect: Option<Spanned<upp::Effect>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Outbound {
    pub(super) allow: Vec<Spanned<String>>,
    pub(super) http: bool,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Aitp {
    pub(super) strict: bool,
    pub(super) fetch_forms: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Telemetry {
    pub(super) endpoint: Spanned<String>,
    #[serde(default)]
    pub(super) headers_env: BTreeMap<String, Spanned<String>>,
    pub(super) service_name: Option<Spanned<String>>,
    pub(super) sample_ratio: Option<Spanned<f64>>,
    #[serde(default)]
    pub(super) capture_content: bool,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Auth {
    pub(super) jwt: Option<Spanned<Jwt>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Jwt {
    pub(super) issuer: Spanned<String>,
    pub(super) audience: Vec<Spanned<String>>,
    pub(super) algorithms: Option<Vec<Spanned<String>>>,
    pub(super) jwks: Option<Spanned<String>>,
    pub(super) jwks_file: Option<PathBuf>,
    pub(super) jwks_url: Option<Spanned<String>>,
    pub(super) leeway_s: Option<Spanned<u64>>,
    pub(super) requests_per_minute: Option<NonZeroU32>,
    #[serde(default)]
    pub(super) claims: Claims,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Claims {
    pub(super) tenant: Option<String>,
    pub(super) scopes: Option<String>,
    pub(super) scope_prefix: Option<String>,
    pub(super) threads: Option<String>,
    pub(super) actors: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Tenant {
    #[serde(default)]
    pub(super) key_hashes: Vec<Spanned<String>>,
    #[serde(default)]
    pub(super) keys: BTreeMap<String, Key>,
    #[serde(default)]
    pub(super) limits: TenantTable,
    pub(super) delete_threads_after_days: Option<NonZeroU32>,
    pub(super) shard: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) paused: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Key {
    pub(super) hash: Spanned<String>,
    pub(super) scopes: Option<Vec<Scope>>,
    pub(super) threads: Option<Vec<Spanned<String>>>,
    pub(super) actors: Option<Vec<String>>,
    pub(super) expires: Option<Spanned<toml::value::Datetime>>,
    pub(super) requests_per_minute: Option<NonZeroU32>,
}
