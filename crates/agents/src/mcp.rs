//! Tools from MCP servers (Model Context Protocol, 2026-07-28 and the earlier versions that start
//! with `initialize`), over a child process's stdio or over streamable HTTP.
//!
//! Read [`McpServer`] and [`McpClient`] first. [`McpClient::connect`] starts or connects to a
//! server and lists its tools; [`McpClient::tools`] returns them as tools of an agent.
//!
//! The results of calls, in a form from which a codec can show pictures:
//!
//! | the server answers with | the tool's result |
//! |---|---|
//! | text blocks only | one string, the blocks joined by a newline |
//! | `structuredContent` | that JSON value; it must match the tool's `outputSchema`, if there is one |
//! | anything else | `{"content": [block, …]}`, in the server's order |
//! | `structuredContent` with non-text blocks | `{"content": [block, …], "structuredContent": value}` |
//! | `isError` | a failure with the text |
//!
//! A block is the protocol's content block without `_meta`: `{"type": "text", "text"}`,
//! `{"type": "image", "data", "mimeType"}` and `{"type": "audio", "data", "mimeType"}` with base64
//! data, `{"type": "resource_link", "uri", "name", …}`, `{"type": "resource", "resource": {…}}`.
//!
//! **The list of tools is frozen.** The list that [`McpClient::tools`] returned does not change. A
//! model's prompt cache hits only if the tools before the conversation are the same bytes.
//! [`McpClient::changes`] counts a server's notices of changed tools. The application calls
//! [`McpClient::refresh`] when it wants, and makes a new agent with the new list.
//!
//! **A server may disconnect.** Its calls in progress fail, and report that their outcome is
//! unknown. Calls of tools that may run again are sent once more. The next call connects again.
//! While a server is unreachable, calls fail at once until a back-off time after the last attempt
//! is over. That time doubles up to [`McpLimits::max_backoff`].
//!
//! The client offers nothing to servers: sampling, elicitation and roots are refused. Resources and
//! prompts are not read. Unlike the rest of the crate, this module runs tasks for connections and
//! calls. They end when the client and its tools are dropped, or with [`McpClient::close`].
//!
//! ```no_run
//! use loomline_agents::mcp::{McpClient, McpServer, McpStdio};
//! use loomline_agents::{Agent, AgentOptions};
//! use std::sync::Arc;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let stdio = McpStdio {
//!     command: "mcp-server-files".to_owned(),
//!     args: vec!["/srv/files".to_owned()],
//!     ..McpStdio::default()
//! };
//! let server = McpServer::stdio("files", stdio);
//! let files = McpClient::connect(server, tokio_util::sync::CancellationToken::new()).await?;
//! let mut options = AgentOptions::new("librarian", Arc::new(upp::Scripted::new()));
//! options.tools = files.tools();
//! let agent = Agent::new(options)?;
//! # Ok(())
//! # }
//! ```

mod answer;
mod call;
mod catalog;
mod client;
mod config;
mod connection;
mod error;
mod exchange;
mod handler;
mod http;
mod stdio;
mod text;

pub use catalog::RejectedTool;
pub use client::{McpClient, all_tools};
pub use config::{
    McpHttp, McpLifecycle, McpLimits, McpProgress, McpServer, McpStdio, McpTransport, OnProgress,
};
pub use error::McpError;
