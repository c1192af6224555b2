//! `[web]` as typed.

use serde::Deserialize;
use std::num::NonZeroU64;
use toml::Spanned;

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(in crate::config) struct Web {
    pub(in crate::config) enabled: Option<bool>,
    pub(in crate::config) console: Option<bool>,
    pub(in crate::config) name: Option<Spanned<String>>,
    pub(in crate::config) starters: Option<Vec<Spanned<toml::Value>>>,
    pub(in crate::config) session_hours: Option<Spanned<NonZeroU64>>,
    pub(in crate::config) embed_origins: Vec<Spanned<String>>,
}

/// A first message as typed: its text, or a table with the text in `text`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::config) struct StarterTable {
    pub(in crate::config) text: String,
    pub(in crate::config) label: Option<String>,
    pub(in crate::config) agent: Option<String>,
}
