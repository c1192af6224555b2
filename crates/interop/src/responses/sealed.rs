//! What stands in `encrypted_content`: texts that clients hand back unread.
//!
//! Nothing is encrypted here. Reasoning is sealed by its provider already, and goes out with that
//! provider's name; a summary is of the client's own conversation. Neither is believed when it comes
//! back: a provider refuses reasoning that it has not sealed, and a summary is something said.

/// What a summary begins with.
const SUMMARY: &str = "loomline-summary:";

/// The signature of reasoning, with whose it is.
pub(super) fn seal_reasoning(provider: Option<&str>, signature: &str) -> String {
    serde_json::json!([provider.unwrap_or_default(), signature]).to_string()
}

/// The provider and its signature; none where another server has sealed it.
pub(super) fn open_reasoning(sealed: &str) -> Option<(String, String)> {
    serde_json::from_str(sealed).ok()
}

/// A summary, as `encrypted_content` of a compaction.
pub(super) fn seal_summary(summary: &str) -> String {
    format!("{SUMMARY}{summary}")
}

/// The summary; none where another server has sealed it.
pub(super) fn open_summary(sealed: &str) -> Option<String> {
    sealed.strip_prefix(SUMMARY).map(str::to_owned)
}
