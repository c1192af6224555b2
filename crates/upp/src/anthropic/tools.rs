//! Tools that Anthropic defines (UPP §18).
//!
//! Tools that Anthropic runs itself go into the parameter `tools`. Their calls and results are stored
//! with the message and never reach the tool loop.
//!
//! Tools that Anthropic only defines ([`bash`], [`text_editor`], [`computer`], [`memory`]) run here. Put
//! the value under the provider's name into the metadata of a [`Tool`](crate::Tool) with the same name.
//! The description and parameters of that tool are then not sent.
//!
//! A value has only the fields that the vendor requires; add further options to it as fields.

use serde_json::{Value, json};

/// Searches the web.
pub fn web_search() -> Value {
    json!({"type": "web_search_20250305", "name": "web_search"})
}

/// Fetches pages whose addresses are in the conversation.
pub fn web_fetch() -> Value {
    json!({"type": "web_fetch_20250910", "name": "web_fetch"})
}

/// Runs code in a container of the vendor's.
pub fn code_execution() -> Value {
    json!({"type": "code_execution_20250825", "name": "code_execution"})
}

/// Finds tools marked `defer_loading` by a regular expression.
pub fn tool_search_regex() -> Value {
    json!({"type": "tool_search_tool_regex_20251119", "name": "tool_search_tool_regex"})
}

/// Finds tools marked `defer_loading` by words.
pub fn tool_search_bm25() -> Value {
    json!({"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"})
}

/// A shell, run here.
pub fn bash() -> Value {
    json!({"type": "bash_20250124", "name": "bash"})
}

/// An editor of text files, run here.
pub fn text_editor() -> Value {
    json!({"type": "text_editor_20250728", "name": "str_replace_based_edit_tool"})
}

/// A screen of this size in pixels with mouse and keyboard, run here; in beta.
pub fn computer(width: u32, height: u32) -> Value {
    json!({
        "type": "computer_20251124", "name": "computer",
        "display_width_px": width, "display_height_px": height,
    })
}

/// A folder of notes, run here.
pub fn memory() -> Value {
    json!({"type": "memory_20250818", "name": "memory"})
}
