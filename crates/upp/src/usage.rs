//! Token counts (UPP §7).

use crate::shared_json::SharedJson;
use serde::{Deserialize, Serialize};

/// The usage of one model call, in tokens.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CycleUsage {
    /// All tokens of the prompt, cached or not. The two counts of cached tokens are disjoint parts of
    /// it. Counts of providers that count otherwise are converted.
    pub input_tokens: u64,
    /// Tokens the model wrote, reasoning included.
    pub output_tokens: u64,
    /// Prompt tokens that were read from the provider's cache.
    pub cache_read_tokens: u64,
    /// Prompt tokens that were written to the provider's cache.
    pub cache_write_tokens: u64,
    /// Output tokens spent on reasoning, if the provider reports them.
    #[serde(skip_serializing_if = "is_zero")]
    pub reasoning_tokens: u64,
    /// The provider's own usage object, untouched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw: Option<SharedJson>,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// The usage of a whole turn: the sum over its cycles, and each of them (UPP §7).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TokenUsage {
    /// Sum of the prompt tokens.
    pub input_tokens: u64,
    /// Sum of the written tokens.
    pub output_tokens: u64,
    /// `input_tokens + output_tokens`.
    pub total_tokens: u64,
    /// Sum of the prompt tokens read from a cache.
    pub cache_read_tokens: u64,
    /// Sum of the prompt tokens written to a cache.
    pub cache_write_tokens: u64,
    /// One entry a model call, in order.
    #[serde(deserialize_with = "crate::message::or_default")]
    pub cycles: Vec<CycleUsage>,
}

impl TokenUsage {
    /// Adds one model call.
    pub fn push(&mut self, cycle: CycleUsage) {
        self.input_tokens = self.input_tokens.saturating_add(cycle.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(cycle.output_tokens);
        self.total_tokens = self.input_tokens.saturating_add(self.output_tokens);
        self.cache_read_tokens = self
            .cache_read_tokens
            .saturating_add(cycle.cache_read_tokens);
        self.cache_write_tokens = self
            .cache_write_tokens
            .saturating_add(cycle.cache_write_tokens);
        self.cycles.push(cycle);
    }
}
