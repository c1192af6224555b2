//! The format of `encrypted_content`: texts that clients send back without reading them.
//!
//! The server encrypts nothing. Reasoning is already sealed by its provider and goes out with that
//! provider's name. A summary is of the client's own conversation. The server trusts neither when
//! it comes back: a provider refuses reasoning that it has not sealed, and a summary counts as a
//! message.

/// The prefix of a summary.
const SUMMARY: &str = "loomline-summary:";

/// The signature of reasoning, with its provider.
pub(super) fn seal_reasoning(provider: Option<&str>, signature: &str) -> String {
    serde_json::json!([provider.unwrap_or_default(), signature]).to_string()
}

/// The provider and its signature; `None` if another server wrote the text.
pub(super) fn open_reasoning(sealed: &str) -> Option<(String, String)> {
    serde_json::from_str(sealed).ok()
}

/// A summary, as `encrypted_content` of a compaction.
pub(super) fn seal_summary(summary: &str) -> String {
    format!("{SUMMARY}{summary}")
}

/// The summary; `None` if another server wrote the text.
pub(super) fn open_summary(sealed: &str) -> Option<String> {
    sealed.strip_prefix(SUMMARY).map(str::to_owned)
}
