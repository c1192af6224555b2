//! Errors of MCP clients.

use std::sync::Arc;
use std::time::Duration;

/// Why a server can't be used (UAP-14). No message contains an address, a header or a variable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum McpError {
    /// The configuration is invalid.
    #[error("the configuration of the MCP server '{server}' is wrong: {what}")]
    Config {
        /// The server.
        server: Arc<str>,
        /// Where and what.
        what: String,
    },
    /// It can't be started or reached, or does not use the protocol.
    #[error("the MCP server '{server}' can't be used: {cause}")]
    Connect {
        /// The server.
        server: Arc<str>,
        /// The cause.
        cause: String,
    },
    /// It was not ready in time.
    #[error("the MCP server '{server}' was not ready within {after:?}")]
    Timeout {
        /// The server.
        server: Arc<str>,
        /// The timeout.
        after: Duration,
    },
    /// The client was closed.
    #[error("the client of the MCP server '{server}' was closed")]
    Closed {
        /// The server.
        server: Arc<str>,
    },
    /// Its list of tools is invalid.
    #[error("the MCP server '{server}' gives no list of tools: {what}")]
    List {
        /// The server.
        server: Arc<str>,
        /// A description of the defect.
        what: String,
    },
    /// It has more tools than the limit.
    #[error(
        "the MCP server '{server}' has more than {limit} tools; allow fewer, or raise the limit"
    )]
    TooManyTools {
        /// The server.
        server: Arc<str>,
        /// The limit.
        limit: usize,
    },
    /// A tool on the allow list is missing or can't be used.
    #[error("the MCP server '{server}' is to offer the tool '{tool}', but {cause}")]
    MissingTool {
        /// The server.
        server: Arc<str>,
        /// The tool, by the server's name.
        tool: String,
        /// The reason that it is missing.
        cause: String,
    },
    /// Two servers offer tools of one name.
    #[error(
        "the MCP servers '{first}' and '{second}' both offer the tool '{tool}'; give one a prefix"
    )]
    Collision {
        /// The tool, with its prefix.
        tool: String,
        /// The server that is listed first.
        first: Arc<str>,
        /// The other.
        second: Arc<str>,
    },
}
