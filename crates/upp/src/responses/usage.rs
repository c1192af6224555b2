//! The usage of an answer.

use crate::usage::CycleUsage;
use serde_json::Value;

/// The counts of the provider's usage object.
pub(super) fn counts(raw: Value) -> CycleUsage {
    let count = |pointer: &str| raw.pointer(pointer).and_then(Value::as_u64).unwrap_or(0);
    let input = count("/input_tokens");
    let output = count("/output_tokens");
    let reasoning = count("/output_tokens_details/reasoning_tokens");
    let apart = input.saturating_add(output).saturating_add(reasoning);
    let is_apart = reasoning > 0 && count("/total_tokens") == apart;
    CycleUsage {
        input_tokens: input,
        output_tokens: output.saturating_add(if is_apart { reasoning } else { 0 }),
        cache_read_tokens: count("/input_tokens_details/cached_tokens"),
        cache_write_tokens: count("/input_tokens_details/cache_write_tokens"),
        reasoning_tokens: reasoning,
        raw: Some(raw.into()),
    }
}
