//! Tools from MCP servers (Model Context Protocol, 2026-07-28 and the versions before it that begin
//! with `initialize`), over a child process's stdio or over streamable HTTP.
//!
//! Read [`McpServer`] and [`McpClient`] first. [`McpClient::connect`] starts or reaches a server and
//! lists its tools; [`McpClient::tools`] gives them as tools of an agent.
//!
//! What a call gives the model, so that a codec can show pictures as such:
//!
//! | the server answers with | the tool's result |
//! |---|---|
//! | text blocks only | one string, the blocks joined by a newline |
//! | `structuredContent` | that JSON value; it must match the tool's `outputSchema`, if there is one |
//! | anything else | `{"content": [block, …]}`, in the server's order |
//! | `structuredContent` beside blocks that are no text | `{"content": [block, …], "structuredContent": value}` |
//! | `isError` | a failure with the text |
//!
//! A block is what the protocol says without `_meta`: `{"type": "text", "text"}`,
//! `{"type": "image", "data", "mimeType"}` and `{"type": "audio", "data", "mimeType"}` with base64
//! data, `{"type": "resource_link", "uri", "name", …}`, `{"type": "resource", "resource": {…}}`.
//!
//! **The list of tools is frozen.** What [`McpClient::tools`] gave an agent does not change under it:
//! a model's prompt cache holds as long as the tools before the conversation are the same bytes. A
//! server's word that its tools changed is counted in [`McpClient::changes`]; the application calls
//! [`McpClient::refresh`] when it likes, and makes a new agent of the new list.
//!
//! **A server may go away.** The calls it was working on fail, and say that their outcome is unknown;
//! those of tools that may run again are sent once more. The next call connects anew. While a server
//! can't be reached, calls fail at once until the wait after the last attempt is over; the wait doubles
//! up to [`McpLimits::max_backoff`].
//!
//! The client offers nothing to servers: sampling, elicitation and roots are refused. Resources and
//! prompts are not read. Unlike the rest of the crate this module runs tasks, those of connections
//! and of calls; they end when the client and its tools are dropped, or with [`McpClient::close`].
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
