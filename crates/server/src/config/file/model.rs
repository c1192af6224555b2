//! `[models.NAME]` as typed.

use crate::config::models::CapabilityOverrides;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::num::{NonZeroU64, NonZeroUsize};
use std::path::PathBuf;
use toml::Spanned;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(
    clippy::struct_field_names,
    reason = "the fields have the names of the file"
)]
pub(in crate::config) struct Model {
    pub(in crate::config) provider: Spanned<String>,
    pub(in crate::config) model: Option<String>,
    pub(in crate::config) base_url: Option<Spanned<String>>,
    pub(in crate::config) api_key_env: Option<Spanned<String>>,
    pub(in crate::config) api_key_envs: Option<Spanned<Vec<Spanned<String>>>>,
    #[serde(default)]
    pub(in crate::config) headers: BTreeMap<String, Spanned<String>>,
    #[serde(default)]
    pub(in crate::config) headers_env: BTreeMap<String, Spanned<String>>,
    #[serde(default)]
    pub(in crate::config) params: Map<String, Value>,
    pub(in crate::config) betas: Option<Spanned<Vec<String>>>,
    pub(in crate::config) default_max_tokens: Option<Spanned<NonZeroU64>>,
    pub(in crate::config) connect_timeout_s: Option<Spanned<NonZeroU64>>,
    pub(in crate::config) headers_timeout_s: Option<Spanned<NonZeroU64>>,
    pub(in crate::config) idle_timeout_s: Option<Spanned<NonZeroU64>>,
    pub(in crate::config) retry: Option<Spanned<toml::Value>>,
    pub(in crate::config) retry_after_max_s: Option<Spanned<u64>>,
    pub(in crate::config) capabilities: Option<Spanned<CapabilityOverrides>>,
    pub(in crate::config) delay_ms: Option<Spanned<u64>>,
    pub(in crate::config) script: Option<Spanned<PathBuf>>,
    pub(in crate::config) concurrent_runs: Option<NonZeroUsize>,
}

/// `retry` as typed: the name of a strategy, or a table with the name in `strategy`.
#[derive(Deserialize)]
#[serde(tag = "strategy", rename_all = "kebab-case", deny_unknown_fields)]
#[expect(
    clippy::enum_variant_names,
    reason = "the variants have the names of the strategies"
)]
pub(in crate::config) enum Retry {
    ExponentialBackoff {
        max_attempts: Option<u32>,
        initial_delay_ms: Option<u64>,
        max_delay_ms: Option<u64>,
        jitter: Option<bool>,
    },
    LinearBackoff {
        max_attempts: Option<u32>,
        delay_ms: Option<u64>,
    },
    TokenBucket {
        capacity: Option<u32>,
        refill_rate: Option<f64>,
        max_attempts: Option<u32>,
    },
    RetryAfter {
        max_attempts: Option<u32>,
        fallback_delay_ms: Option<u64>,
    },
    None {},
}
