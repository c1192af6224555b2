//! The configuration: one TOML file, read in two stages.
//!
//! `file` is what was typed; [`Config`] is what it means, with every name looked up and every
//! secret fetched. What is wrong is said with its line and column.

mod agents;
mod check;
mod file;
mod limits;
mod models;
mod remote;
mod template;

pub use self::agents::{
    AgentSettings, ExternalTool, LevelConfig, MiddlewareConfig, StrategyConfig, SubagentConfig,
    ToolRef,
};
pub use crate::auth::{KeySource, TokenClaims, TokenConfig};
pub use crate::outbound::OutboundConfig;
pub use crate::telemetry::TelemetryConfig;
pub use check::{Checked, ConfigError, Finding, FindingSeverity};
pub use limits::{AddressRange, LimitsConfig, TenantLimits};
pub use models::{CapabilityOverrides, ModelConfig, ProviderKind, RemoteModel};
pub use remote::{RemoteConfig, RemoteProtocol};
pub use stores::{NoStoreKey, StoreKey};
pub use template::{PromptTemplate, TemplateError};

use crate::auth::KeyConfig;
use ::agents::mcp::McpServer;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use upp::Effect;

/// The agent and the model of a configuration that names none.
const DEMO_AGENT: &str = "demo";
const DEMO_MODEL: &str = "scripted";

/// Everything a deployment is configured with.
#[derive(Clone, Debug)]
pub struct Config {
    /// The server.
    pub server: ServerConfig,
    /// The budgets of the process, and of tenants that have none of their own.
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
    /// The servers whose tools agents may use, by name.
    pub mcp: BTreeMap<String, McpServer>,
    /// Where requests may go whose address a user chose.
    pub outbound: OutboundConfig,
    /// How capability messages are looked at.
    pub aitp: AitpConfig,
    /// Where traces go; nowhere when absent.
    pub telemetry: Option<TelemetryConfig>,
    /// Whose tokens are taken beside the tenants' keys; nobody's when absent.
    pub tokens: Option<TokenConfig>,
    /// The tenants, by name. Without any, the server runs in development mode.
    pub tenants: BTreeMap<String, TenantConfig>,
}

/// Where the server listens and what it allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerConfig {
    /// The address, if the file names one.
    pub listen: Option<SocketAddr>,
    /// A second address that serves only the figures and the health of the process, to everyone who reaches it.
    pub metrics_listen: Option<SocketAddr>,
    /// The directory of the store, if the file names one.
    pub data: Option<PathBuf>,
    /// The longest body of a request, in bytes.
    pub max_body_bytes: usize,
    /// The longest file that can be uploaded, in bytes.
    pub max_file_bytes: usize,
    /// How deep the JSON of a body may nest.
    pub max_depth: usize,
    /// How long an execution may take, if its trigger does not say.
    pub run_timeout: Option<Duration>,
    /// The origins a browser may call from; `*` is all of them.
    pub cors_origins: Vec<String>,
    /// Where clients reach the server, without a slash at the end; what they ask for tells, if the file doesn't.
    pub public_url: Option<String>,
    /// The certificate, if the server speaks TLS itself.
    pub tls: Option<TlsConfig>,
}

/// Where the certificate is. Both files are PEM; they are read again when they change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsConfig {
    /// The certificate, followed by those that vouch for it.
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

/// How threads are kept.
#[derive(Clone, Debug, Default)]
pub struct StoreConfig {
    /// What the store is encrypted with; it is not, without.
    pub key: Option<StoreKey>,
}

/// What the tools may touch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolsConfig {
    /// The directory below which `read_file` reads; `files` in the data directory when absent.
    pub read_file_root: Option<PathBuf>,
    /// The file `record` writes to; there is no such tool when absent.
    pub ledger: Option<PathBuf>,
    /// What becomes of a `record` whose outcome a crash hid.
    pub ledger_effect: Effect,
}

/// How capability messages (AITP) are looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AitpConfig {
    /// Whether they are held to the published schemas to the letter. If not, unknown members are
    /// ignored, and what NEAR AI's user interface wrote is taken.
    pub strict: bool,
    /// Whether the documents are fetched that forms lead to by their `json_url`.
    pub fetch_forms: bool,
}

/// A tenant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TenantConfig {
    /// Its keys.
    pub keys: Vec<KeyConfig>,
    /// Its budgets.
    pub limits: TenantLimits,
}

impl AsRef<[KeyConfig]> for TenantConfig {
    fn as_ref(&self) -> &[KeyConfig] {
        &self.keys
    }
}

impl Default for Config {
    /// Development mode: the scripted model, the agent `demo` with both demo tools, no tenants.
    fn default() -> Self {
        let model = ModelConfig::Scripted {
            model: None,
            delay: None,
            script: None,
            params: serde_json::Map::new(),
        };
        let agent = AgentSettings {
            model: DEMO_MODEL.into(),
            tools: ["read_file", "compute"].map(ToolRef::parse).into(),
            ..AgentSettings::default()
        };
        Self {
            server: ServerConfig::default(),
            limits: LimitsConfig::default(),
            store: StoreConfig::default(),
            models: BTreeMap::from([(DEMO_MODEL.into(), model)]),
            agents: BTreeMap::from([(DEMO_AGENT.into(), agent)]),
            default_agent: DEMO_AGENT.into(),
            tools: ToolsConfig::default(),
            mcp: BTreeMap::new(),
            outbound: OutboundConfig::default(),
            aitp: AitpConfig::default(),
            telemetry: None,
            tokens: None,
            tenants: BTreeMap::new(),
        }
    }
}

impl Config {
    /// Reads a file's text. `env` looks up the variables that hold secrets. Nobody is called and no
    /// file is read.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong, with its place.
    pub fn parse(text: &str, env: &dyn Fn(&str) -> Option<String>) -> Result<Self, ConfigError> {
        let checked = check::check(text, env)?;
        let mut findings = checked.findings.into_iter();
        match findings.find(|finding| finding.severity == FindingSeverity::Error) {
            Some(finding) => Err(finding.error),
            None => Ok(checked.config),
        }
    }

    /// Reads a file's text as [`Config::parse`] does, and goes on where only a variable is missing:
    /// that is a finding, and so is what may be a mistake.
    ///
    /// # Errors
    ///
    /// The first thing that keeps the file from being understood, with its place.
    pub fn check(text: &str, env: &dyn Fn(&str) -> Option<String>) -> Result<Checked, ConfigError> {
        check::check(text, env)
    }

    /// Whether nobody needs a key, so that only this machine may be served.
    pub fn is_development(&self) -> bool {
        self.tenants.is_empty()
    }
}
