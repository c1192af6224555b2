//! The configuration: one TOML file, read in two stages.
//!
//! `file` is the text as typed. [`Config`] is its meaning, with all names resolved and all secrets read.
//! Errors have a line and a column.

mod agents;
mod check;
mod demo;
mod file;
mod limits;
mod models;
mod remote;
mod template;
mod web;

pub use self::agents::{
    AgentSettings, CompactionConfig, ExternalTool, LevelConfig, MiddlewareConfig, StrategyConfig,
    SubagentConfig, ToolRef,
};
pub use crate::auth::{KeySource, TokenClaims, TokenConfig};
pub use crate::outbound::OutboundConfig;
pub use crate::telemetry::TelemetryConfig;
pub use check::{Checked, ConfigError, Finding, FindingSeverity};
pub use limits::{AddressRange, LimitsConfig, TenantLimits};
pub use models::{CapabilityOverrides, ModelConfig, ProviderKind, RemoteModel, ScriptSource};
pub use remote::{RemoteConfig, RemoteProtocol};
pub use stores::{NoStoreKey, StoreKey};
pub use template::{PromptTemplate, TemplateError};
pub use web::{Starter, WebConfig};

use crate::auth::KeyConfig;
use ::agents::mcp::McpServer;
use secrecy::SecretString;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;
use upp::Effect;

/// The configuration of a deployment.
#[derive(Clone, Debug)]
pub struct Config {
    /// The server.
    pub server: ServerConfig,
    /// The budgets of the process, and the defaults of tenants.
    pub limits: LimitsConfig,
    /// The store.
    pub store: StoreConfig,
    /// The models, by name.
    pub models: BTreeMap<String, ModelConfig>,
    /// The agents, by name.
    pub agents: BTreeMap<String, AgentSettings>,
    /// The agent that answers when a message names none.
    pub default_agent: String,
    /// The tools.
    pub tools: ToolsConfig,
    /// The MCP servers whose tools agents may use, by name.
    pub mcp: BTreeMap<String, McpServer>,
    /// Allowed destinations for requests to user-supplied URLs.
    pub outbound: OutboundConfig,
    /// The checks of capability messages.
    pub aitp: AitpConfig,
    /// The web interface.
    pub web: WebConfig,
    /// The destination of traces; none when absent.
    pub telemetry: Option<TelemetryConfig>,
    /// The tokens that are accepted besides the tenants' keys; none when absent.
    pub tokens: Option<TokenConfig>,
    /// The tenants, by name. Without any, the server runs in development mode.
    pub tenants: BTreeMap<String, TenantConfig>,
}

/// The server's addresses and limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerConfig {
    /// The address, if the file names one.
    pub listen: Option<SocketAddr>,
    /// A second address for metrics and health only, without authentication.
    pub metrics_listen: Option<SocketAddr>,
    /// The directory of the store, if the file names one.
    pub data: Option<PathBuf>,
    /// The name of this server among those that share a database. Default: a name that the data directory keeps.
    pub node: Option<String>,
    /// Maximum size of a request body, in bytes.
    pub max_body_bytes: usize,
    /// Maximum size of an uploaded file, in bytes.
    pub max_file_bytes: usize,
    /// Maximum nesting depth of a JSON body.
    pub max_depth: usize,
    /// Maximum duration of an execution whose trigger sets none.
    pub run_timeout: Option<Duration>,
    /// The origins of browsers that may call the server; `*` allows all.
    pub cors_origins: Vec<String>,
    /// The server's URL for clients, without a slash at the end. Default: derived from each request.
    pub public_url: Option<String>,
    /// The certificate, if the server terminates TLS itself.
    pub tls: Option<TlsConfig>,
}

/// The files of the certificate. Both are PEM and are read again when they change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsConfig {
    /// The certificate, followed by its chain.
    pub cert: PathBuf,
    /// The private key.
    pub key: PathBuf,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            listen: None,
            metrics_listen: None,
            data: None,
            node: None,
            max_body_bytes: 16 << 20,
            max_file_bytes: 32 << 20,
            max_depth: 128,
            run_timeout: None,
            cors_origins: Vec::new(),
            public_url: None,
            tls: None,
        }
    }
}

/// The storage of threads.
#[derive(Clone, Debug, Default)]
pub struct StoreConfig {
    /// The store's encryption key; without one the store is not encrypted.
    pub key: Option<StoreKey>,
    /// The database that several servers share. Without one, the store is a file in the data directory.
    pub postgres: Option<PostgresConfig>,
    /// Further databases for tenants, by name.
    pub shards: BTreeMap<String, PostgresConfig>,
}

/// The name of the database of `[store]` among the shards.
pub const DEFAULT_SHARD: &str = "default";

/// A PostgreSQL database that several servers share.
#[derive(Clone, Debug)]
pub struct PostgresConfig {
    /// Its URL: `postgres://USER:PASSWORD@HOST/DATABASE`, with the parameters of libpq. Several hosts are tried in order.
    pub url: SecretString,
    /// The URL for notifications, if `url` leads to a pooler that does not support them.
    pub listen_url: Option<SecretString>,
    /// Whether statements are prepared. A pooler in transaction mode may not support it.
    pub prepared: bool,
    /// Connections that write.
    pub writers: NonZeroUsize,
    /// Maximum number of connections that read.
    pub readers: NonZeroUsize,
    /// The file with certificates of further authorities for TLS, in PEM form.
    pub ca: Option<PathBuf>,
}

impl Default for PostgresConfig {
    fn default() -> Self {
        Self {
            url: SecretString::default(),
            listen_url: None,
            prepared: true,
            writers: NonZeroUsize::MIN.saturating_add(1),
            readers: NonZeroUsize::MIN.saturating_add(7),
            ca: None,
        }
    }
}

/// The files that tools may access.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolsConfig {
    /// The directory below which `read_file` reads; `files` in the data directory when absent.
    pub read_file_root: Option<PathBuf>,
    /// The file that the tool `record` appends to; without it there is no such tool.
    pub ledger: Option<PathBuf>,
    /// The declared effect of `record`, which decides whether it runs again after a crash.
    pub ledger_effect: Effect,
}

/// The checks of capability messages (AITP).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AitpConfig {
    /// Whether messages must match the published schemas exactly. If not, unknown members are ignored,
    /// and the messages of NEAR AI's user interface are accepted.
    pub strict: bool,
    /// Whether the server fetches the documents behind the `json_url` of forms.
    pub fetch_forms: bool,
}

/// A tenant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TenantConfig {
    /// Its keys.
    pub keys: Vec<KeyConfig>,
    /// Its budgets.
    pub limits: TenantLimits,
    /// How long a thread at rest stays after its last change. Without it, threads stay until they are deleted.
    pub delete_threads_after: Option<Duration>,
    /// The further database with its data; none for that of `[store]`.
    pub shard: Option<String>,
    /// Whether its requests are refused, because its data moves to another database.
    pub is_paused: bool,
}

impl AsRef<[KeyConfig]> for TenantConfig {
    fn as_ref(&self) -> &[KeyConfig] {
        &self.keys
    }
}

impl Default for Config {
    /// Development mode: the scripted model, the demo agents, no tenants.
    fn default() -> Self {
        Self {
            server: ServerConfig::default(),
            limits: LimitsConfig::default(),
            store: StoreConfig::default(),
            models: demo::models(),
            agents: demo::agents(),
            default_agent: demo::AGENT.into(),
            tools: ToolsConfig::default(),
            mcp: BTreeMap::new(),
            outbound: OutboundConfig::default(),
            aitp: AitpConfig::default(),
            web: WebConfig {
                starters: demo::starters(),
                ..WebConfig::default()
            },
            telemetry: None,
            tokens: None,
            tenants: BTreeMap::new(),
        }
    }
}

impl Config {
    /// Parses a configuration. `env` returns the variables that hold secrets. Opens no connections and
    /// reads no files.
    ///
    /// # Errors
    ///
    /// The first error, with its line and column.
    pub fn parse(text: &str, env: &dyn Fn(&str) -> Option<String>) -> Result<Self, ConfigError> {
        let checked = check::check(text, env)?;
        let mut findings = checked.findings.into_iter();
        match findings.find(|finding| finding.severity == FindingSeverity::Error) {
            Some(finding) => Err(finding.error),
            None => Ok(checked.config),
        }
    }

    /// Parses a configuration like [`Config::parse`], and lists findings: missing variables and possible
    /// mistakes.
    ///
    /// # Errors
    ///
    /// The first error that makes the file unreadable, with its line and column.
    pub fn check(text: &str, env: &dyn Fn(&str) -> Option<String>) -> Result<Checked, ConfigError> {
        check::check(text, env)
    }

    /// Whether the server needs no key; it then may serve this machine only.
    pub fn is_development(&self) -> bool {
        self.tenants.is_empty()
    }
}
