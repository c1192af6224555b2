//! The tools that a provider runs itself (UPP §18): values for `tools` in params.
//!
//! ```
//! use loomline_upp::responses::tools;
//! use serde_json::json;
//!
//! let params = json!({"tools": [tools::web_search(), tools::file_search(["vs_1"])]});
//! assert_eq!(params["tools"][0], json!({"type": "web_search"}));
//! ```
//!
//! Each has the fields that its provider requires; set further fields on the value. The answer stores
//! the items of these tools and sends them back. Calls that wait for an action of the caller other than
//! a function (a computer, a shell, an approval of MCP) are stored too. This protocol has no answer for
//! them.

use serde_json::{Value, json};

/// Searches the web.
pub fn web_search() -> Value {
    json!({"type": "web_search"})
}

/// Searches posts on X (xAI).
pub fn x_search() -> Value {
    json!({"type": "x_search"})
}

/// Searches the files of these vector stores.
pub fn file_search<I: Into<String>>(vector_store_ids: impl IntoIterator<Item = I>) -> Value {
    let ids: Vec<String> = vector_store_ids.into_iter().map(Into::into).collect();
    json!({"type": "file_search", "vector_store_ids": ids})
}

/// Runs code in a container of the provider's choice.
pub fn code_interpreter() -> Value {
    json!({"type": "code_interpreter", "container": {"type": "auto"}})
}

/// Uses a computer.
pub fn computer() -> Value {
    json!({"type": "computer"})
}

/// Makes images.
pub fn image_generation() -> Value {
    json!({"type": "image_generation"})
}

/// Uses the tools of an MCP server at this address without asking.
pub fn mcp(server_label: &str, server_url: &str) -> Value {
    json!({
        "type": "mcp", "server_label": server_label, "server_url": server_url,
        "require_approval": "never",
    })
}
