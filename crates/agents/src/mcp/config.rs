//! The configuration of an MCP server.

use secrecy::SecretString;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use upp::{Effect, ToolCallId};

/// An MCP server, how to reach it, and what of it an agent may use (UAP-14).
#[derive(Clone)]
pub struct McpServer {
    /// The name in errors and logs, and in the metadata of the tools.
    pub name: Arc<str>,
    /// How it is reached.
    pub transport: McpTransport,
    /// How long to wait and how much to take.
    pub limits: McpLimits,
    /// Which of the protocol's two beginnings to use.
    pub lifecycle: McpLifecycle,
    /// The only tools to take, by the server's names; absent: all. Each must exist.
    pub allow: Option<BTreeSet<String>>,
    /// Tools not to take, by the server's names; stronger than `allow`.
    pub deny: BTreeSet<String>,
    /// A prefix for each tool's name, such as `files_`. Default: empty.
    pub prefix: String,
    /// The effects of tools, by the server's names. They decide whether a call with an unknown
    /// outcome runs again. They override annotations.
    pub effects: BTreeMap<String, Effect>,
    /// The effect of tools that `effects` does not name. [`Effect::Effect`] by default.
    pub default_effect: Effect,
    /// Whether the server's own word counts: `readOnlyHint` then means [`Effect::Pure`],
    /// `idempotentHint` means [`Effect::Idempotent`]. Not for a server one does not trust.
    pub trust_annotations: bool,
    /// Hears of the progress of calls. Called on the connection's tasks; it must not block.
    pub on_progress: Option<OnProgress>,
}

impl McpServer {
    /// A server that runs as a child process.
    pub fn stdio(name: impl Into<Arc<str>>, stdio: McpStdio) -> Self {
        Self::new(name.into(), McpTransport::Stdio(stdio))
    }

    /// A server that is reached by streamable HTTP.
    pub fn http(name: impl Into<Arc<str>>, http: McpHttp) -> Self {
        Self::new(name.into(), McpTransport::Http(http))
    }

    fn new(name: Arc<str>, transport: McpTransport) -> Self {
        Self {
            name,
            transport,
            limits: McpLimits::default(),
            lifecycle: McpLifecycle::default(),
            allow: None,
            deny: BTreeSet::new(),
            prefix: String::new(),
            effects: BTreeMap::new(),
            default_effect: Effect::default(),
            trust_annotations: false,
            on_progress: None,
        }
    }

    /// Whether the lists leave this tool in.
    pub(super) fn takes(&self, tool: &str) -> bool {
        let allowed = self.allow.as_ref().is_none_or(|names| names.contains(tool));
        allowed && !self.deny.contains(tool)
    }
}

impl std::fmt::Debug for McpServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("McpServer")
            .field("name", &self.name)
            .field("transport", &self.transport)
            .field("limits", &self.limits)
            .field("lifecycle", &self.lifecycle)
            .field("allow", &self.allow)
            .field("deny", &self.deny)
            .field("prefix", &self.prefix)
            .finish_non_exhaustive()
    }
}

/// How a server is reached.
#[derive(Clone, Debug)]
pub enum McpTransport {
    /// As a child process, by its standard input and output.
    Stdio(McpStdio),
    /// By streamable HTTP.
    Http(McpHttp),
}

/// A server that runs as a child process.
///
/// It does not get the parent's environment: only `HOME`, `LANG`, `LOGNAME`, `PATH`, `SHELL`, `TERM`,
/// `TMPDIR` and `USER`, and what `env` lists. It leads a process group of its own, which is killed as
/// a whole when the server does not end by itself.
#[derive(Clone, Debug, Default)]
pub struct McpStdio {
    /// The program, looked up in `PATH`.
    pub command: String,
    /// Its arguments; no shell reads them. They are shown in logs and to other users of the machine, so
    /// secrets go into `env`.
    pub args: Vec<String>,
    /// Further variables of its environment.
    pub env: BTreeMap<String, SecretString>,
    /// The child's working directory. Default: the parent's.
    pub cwd: Option<PathBuf>,
}

/// A server that is reached by streamable HTTP.
#[derive(Clone, Default)]
pub struct McpHttp {
    /// The endpoint, `http` or `https`.
    pub url: String,
    /// Sent with every request.
    pub headers: BTreeMap<String, SecretString>,
    /// Sent as `Authorization: Bearer …`.
    pub bearer: Option<SecretString>,
}

impl std::fmt::Debug for McpHttp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // A query may hold a key.
        let address = self.url.split(['?', '#']).next().unwrap_or_default();
        f.debug_struct("McpHttp")
            .field("url", &address)
            .field("headers", &self.headers)
            .field("bearer", &self.bearer)
            .finish()
    }
}

/// Which of the protocol's two beginnings to use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum McpLifecycle {
    /// Ask by `server/discover` (2026-07-28); begin with `initialize` where the server does not know
    /// it, or says nothing to it for ten seconds.
    #[default]
    Auto,
    /// Begin with `initialize`: for servers that take `server/discover` amiss.
    Initialize,
}

/// How long to wait for a server, and how much to take from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct McpLimits {
    /// From the start of the process or the connection to the list of tools.
    pub connect: Duration,
    /// For one call, whatever progress it makes.
    pub call: Duration,
    /// How many tools to take; more is an error.
    pub max_tools: usize,
    /// How long a result may be as JSON, in bytes; a longer one is a failure.
    pub max_result_bytes: usize,
    /// How long one message of the server may be, in bytes. A server that sends more over stdio is
    /// disconnected; over HTTP that answer is lost.
    pub max_message_bytes: usize,
    /// How long calls fail at once after the first vain attempt to connect.
    pub first_backoff: Duration,
    /// The longest such wait.
    pub max_backoff: Duration,
}

impl Default for McpLimits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(30),
            call: Duration::from_mins(2),
            max_tools: 128,
            max_result_bytes: 4 << 20,
            max_message_bytes: 16 << 20,
            first_backoff: Duration::from_millis(250),
            max_backoff: Duration::from_secs(30),
        }
    }
}

/// How far a call is, as its server says.
#[derive(Clone, Debug, PartialEq)]
pub struct McpProgress {
    /// The server.
    pub server: Arc<str>,
    /// The call.
    pub tool_call_id: ToolCallId,
    /// How far it is, in a unit of the server's; it only grows.
    pub progress: f64,
    /// Where it ends, if the server knows.
    pub total: Option<f64>,
    /// The server's description of the current work, at most 1024 bytes.
    pub message: Option<String>,
}

/// Hears of the progress of calls.
pub type OnProgress = Arc<dyn Fn(&McpProgress) + Send + Sync>;
