//! The configuration of an MCP server.

use secrecy::SecretString;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use upp::{Effect, ToolCallId};

/// An MCP server: its transport, and the tools that an agent may use (UAP-14).
#[derive(Clone)]
pub struct McpServer {
    /// The name in errors and logs, and in the metadata of the tools.
    pub name: Arc<str>,
    /// The transport to the server.
    pub transport: McpTransport,
    /// Timeouts and size limits.
    pub limits: McpLimits,
    /// The protocol's handshake to use.
    pub lifecycle: McpLifecycle,
    /// The only tools to use, by the server's names; `None`: all. Each must exist.
    pub allow: Option<BTreeSet<String>>,
    /// Tools not to use, by the server's names. Overrides `allow`.
    pub deny: BTreeSet<String>,
    /// A prefix for each tool's name, such as `files_`. Default: empty.
    pub prefix: String,
    /// The effects of tools, by the server's names. They decide whether a call with an unknown
    /// outcome runs again. They override annotations.
    pub effects: BTreeMap<String, Effect>,
    /// The effect of tools that `effects` does not name. [`Effect::Effect`] by default.
    pub default_effect: Effect,
    /// Whether to trust the server's annotations: `readOnlyHint` then means [`Effect::Pure`],
    /// `idempotentHint` means [`Effect::Idempotent`]. Don't set it for untrusted servers.
    pub trust_annotations: bool,
    /// Receives the progress of calls. It is called on the connection's tasks and must not block.
    pub on_progress: Option<OnProgress>,
}

impl McpServer {
    /// A server that runs as a child process.
    pub fn stdio(name: impl Into<Arc<str>>, stdio: McpStdio) -> Self {
        Self::new(name.into(), McpTransport::Stdio(stdio))
    }

    /// A server that uses streamable HTTP.
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

    /// Whether the allow and deny lists permit this tool.
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

/// The transport to a server.
#[derive(Clone, Debug)]
pub enum McpTransport {
    /// As a child process, by its standard input and output.
    Stdio(McpStdio),
    /// By streamable HTTP.
    Http(McpHttp),
}

/// A server that runs as a child process.
///
/// It does not inherit the parent's environment, except `HOME`, `LANG`, `LOGNAME`, `PATH`, `SHELL`,
/// `TERM`, `TMPDIR`, `USER` and the entries of `env`. It leads a process group of its own. The
/// whole group is killed if the server does not end by itself.
#[derive(Clone, Debug, Default)]
pub struct McpStdio {
    /// The program, looked up in `PATH`.
    pub command: String,
    /// Its arguments, passed without a shell. They appear in logs and to other users of the
    /// machine, so put secrets into `env`.
    pub args: Vec<String>,
    /// Additional environment variables.
    pub env: BTreeMap<String, SecretString>,
    /// The child's working directory. Default: the parent's.
    pub cwd: Option<PathBuf>,
}

/// A server that uses streamable HTTP.
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

/// The protocol's handshakes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum McpLifecycle {
    /// Uses `server/discover` (2026-07-28). If the server does not know it, or does not answer it
    /// within ten seconds, uses `initialize`.
    #[default]
    Auto,
    /// Starts with `initialize`: for servers that fail on `server/discover`.
    Initialize,
}

/// Timeouts and size limits of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct McpLimits {
    /// Timeout from the start of the process or the connection to the list of tools.
    pub connect: Duration,
    /// Timeout of one call, whatever progress it reports.
    pub call: Duration,
    /// Maximum number of tools; more are an error.
    pub max_tools: usize,
    /// Maximum size of a result as JSON, in bytes; a larger one is a failure.
    pub max_result_bytes: usize,
    /// Maximum size of one message from the server, in bytes. Over stdio, a server that exceeds it
    /// is disconnected; over HTTP, that answer is lost.
    pub max_message_bytes: usize,
    /// The time during which calls fail at once after the first failed attempt to connect.
    pub first_backoff: Duration,
    /// Maximum back-off.
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

/// The progress of a call, as reported by its server.
#[derive(Clone, Debug, PartialEq)]
pub struct McpProgress {
    /// The server.
    pub server: Arc<str>,
    /// The call.
    pub tool_call_id: ToolCallId,
    /// The current progress, in a unit of the server; it only grows.
    pub progress: f64,
    /// The final value of the progress, if the server knows it.
    pub total: Option<f64>,
    /// The server's description of the current work, at most 1024 bytes.
    pub message: Option<String>,
}

/// Receives the progress of calls.
pub type OnProgress = Arc<dyn Fn(&McpProgress) + Send + Sync>;
