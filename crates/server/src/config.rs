//! The configuration: one TOML file, read in two stages.
//!
//! `file` is what was typed; [`Config`] is what it means, with every name looked up and every
//! secret fetched. What is wrong is said with its line and column.

mod check;
mod file;

pub use check::ConfigError;

use secrecy::SecretString;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::num::NonZeroU32;
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
    /// The models, by name.
    pub models: BTreeMap<String, ModelConfig>,
    /// The agents, by name.
    pub agents: BTreeMap<String, AgentConfig>,
    /// The agent that answers when a message names none.
    pub default_agent: String,
    /// The tools.
    pub tools: ToolsConfig,
    /// The tenants, by name. Without any, the server runs in development mode.
    pub tenants: BTreeMap<String, TenantConfig>,
}

/// Where the server listens and what it allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerConfig {
    /// The address, if the file names one.
    pub listen: Option<SocketAddr>,
    /// The directory of the store, if the file names one.
    pub data: Option<PathBuf>,
    /// The longest body of a request, in bytes.
    pub max_body_bytes: usize,
    /// How deep the JSON of a body may nest.
    pub max_depth: usize,
    /// How many streams may be open at once.
    pub max_streams: usize,
    /// How long an execution may take, if its trigger does not say.
    pub run_timeout: Option<Duration>,
    /// The origins a browser may call from; `*` is all of them.
    pub cors_origins: Vec<String>,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            listen: None,
            data: None,
            max_body_bytes: 16 << 20,
            max_depth: 128,
            max_streams: 1_000,
            run_timeout: None,
            cors_origins: Vec::new(),
        }
    }
}

/// A model and how it is reached.
#[derive(Clone, Debug)]
pub enum ModelConfig {
    /// The scripted model, which needs no network.
    Scripted {
        /// The model id it reports.
        model: Option<String>,
        /// How long it waits before each delta.
        delay: Option<Duration>,
        /// A file with fixed answers.
        script: Option<PathBuf>,
    },
    /// A model behind the Chat Completions format.
    ChatCompletions {
        /// The model.
        model: String,
        /// The prefix of the endpoint, such as `https://api.openai.com/v1`.
        base_url: String,
        /// Sent as a bearer token.
        api_key: Option<SecretString>,
    },
}

/// An agent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AgentConfig {
    /// The name of its model.
    pub model: String,
    /// The system prompt.
    pub system: Option<String>,
    /// The names of its tools.
    pub tools: Vec<String>,
    /// Those of its tools whose calls wait until somebody allows them.
    pub approvals: Vec<String>,
    /// How many rounds of tools may run; unbounded when absent.
    pub max_tool_rounds: Option<NonZeroU32>,
    /// Provider-native parameters, passed unchanged.
    pub params: Map<String, Value>,
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

/// A tenant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TenantConfig {
    /// The SHA-256 of each of its keys.
    pub key_hashes: Vec<[u8; 32]>,
}

impl Default for Config {
    /// Development mode: the scripted model, the agent `demo` with both demo tools, no tenants.
    fn default() -> Self {
        let model = ModelConfig::Scripted {
            model: None,
            delay: None,
            script: None,
        };
        let agent = AgentConfig {
            model: DEMO_MODEL.into(),
            tools: vec!["read_file".into(), "compute".into()],
            ..AgentConfig::default()
        };
        Self {
            server: ServerConfig::default(),
            models: BTreeMap::from([(DEMO_MODEL.into(), model)]),
            agents: BTreeMap::from([(DEMO_AGENT.into(), agent)]),
            default_agent: DEMO_AGENT.into(),
            tools: ToolsConfig::default(),
            tenants: BTreeMap::new(),
        }
    }
}

impl Config {
    /// Reads a file's text. `env` looks up the variables that `api_key_env` names.
    pub fn parse(text: &str, env: &dyn Fn(&str) -> Option<String>) -> Result<Self, ConfigError> {
        check::check(text, env)
    }

    /// Whether nobody needs a key, so that only this machine may be served.
    pub fn is_development(&self) -> bool {
        self.tenants.is_empty()
    }
}
