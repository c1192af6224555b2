//! The usage of a response.

use serde::Deserialize;
use serde_json::{Value, json};

/// Tokens of one model call or of several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Tokens {
    /// All tokens of the prompts, cached ones included.
    pub input_tokens: u64,
    /// Tokens the model wrote, reasoning included.
    pub output_tokens: u64,
    /// Input tokens read from a cache.
    pub cache_read_tokens: u64,
    /// Prompt tokens that were written to a cache.
    pub cache_write_tokens: u64,
    /// Output tokens spent on reasoning.
    pub reasoning_tokens: u64,
}

impl Tokens {
    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
            cache_read_tokens: self
                .cache_read_tokens
                .saturating_add(other.cache_read_tokens),
            cache_write_tokens: self
                .cache_write_tokens
                .saturating_add(other.cache_write_tokens),
            reasoning_tokens: self.reasoning_tokens.saturating_add(other.reasoning_tokens),
        }
    }

    /// Reads an object `usage`; missing counts are 0.
    pub(super) fn of(usage: &Value) -> Self {
        let number = |value: &Value| value.as_u64().unwrap_or_default();
        let read = &usage["input_tokens_details"];
        Self {
            input_tokens: number(&usage["input_tokens"]),
            output_tokens: number(&usage["output_tokens"]),
            cache_read_tokens: number(&read["cached_tokens"]),
            cache_write_tokens: number(&read["cache_write_tokens"]),
            reasoning_tokens: number(&usage["output_tokens_details"]["reasoning_tokens"]),
        }
    }

    /// The object `usage`.
    pub(super) fn object(self) -> Value {
        json!({
            "input_tokens": self.input_tokens,
            "input_tokens_details": {
                "cached_tokens": self.cache_read_tokens,
                "cache_write_tokens": self.cache_write_tokens,
            },
            "output_tokens": self.output_tokens,
            "output_tokens_details": {"reasoning_tokens": self.reasoning_tokens},
            "total_tokens": self.input_tokens.saturating_add(self.output_tokens),
        })
    }
}
