//! Token counts and stop reasons: the log's names ⇄ the document's.

use thread::{Json, Object};
use timeline::Payload;

use super::delta::{read_object, stored};

/// Log name, document name; the first two are always written.
const COUNTS: [(&str, &str); 5] = [
    ("inputTokens", "input_tokens"),
    ("outputTokens", "output_tokens"),
    ("cacheReadTokens", "cache_read_tokens"),
    ("cacheWriteTokens", "cache_write_tokens"),
    ("reasoningTokens", "thinking_tokens"),
];

const REASONS: [(&str, &str); 5] = [
    ("end_turn", "stop"),
    ("tool_use", "tool_call"),
    ("max_tokens", "length"),
    ("content_filter", "content_filter"),
    ("error", "error"),
];

/// The document's usage of one response.
pub(super) fn exported(usage: &Payload) -> Object {
    let usage = read_object(Some(usage));
    let mut out = Object::new();
    for (place, (ours, theirs)) in COUNTS.iter().enumerate() {
        match usage.get(ours).and_then(Json::as_u64) {
            Some(0) | None if place > 1 => {}
            count => {
                out.insert(*theirs, count.unwrap_or_default());
            }
        }
    }
    let sum = |name| out.get(name).and_then(Json::as_u64).unwrap_or_default();
    let total = sum("input_tokens").saturating_add(sum("output_tokens"));
    out.with("total_tokens", total)
}

/// The log's usage of one response.
pub(super) fn imported(usage: &Object) -> Result<Payload, serde_json::Error> {
    let mut out = Object::new();
    for (ours, theirs) in COUNTS {
        let count = usage.get(theirs).and_then(Json::as_u64);
        let reasoning = || usage.get("output_reasoning_tokens").and_then(Json::as_u64);
        let count = if theirs == "thinking_tokens" {
            count.or_else(reasoning)
        } else {
            count
        };
        if let Some(count) = count {
            out.insert(ours, count);
        }
    }
    stored(&out.into())
}

/// The sum over all responses; `None` if none has usage. Only whole numbers are summed.
pub(crate) fn total(messages: &[Json]) -> Option<Object> {
    let mut sum: Option<Object> = None;
    for message in messages {
        let Some(usage) = message.get("usage").and_then(Json::as_object) else {
            continue;
        };
        let sum = sum.get_or_insert_default();
        for (name, count) in usage {
            if let Some(count) = count.as_u64() {
                let so_far = sum.get(name).and_then(Json::as_u64).unwrap_or_default();
                sum.insert(name, so_far.saturating_add(count));
            }
        }
    }
    sum.filter(|sum| !sum.is_empty())
}

/// The document's finish reason; `None` if it has no equivalent.
pub(super) fn finish_reason(stop_reason: &str) -> Option<&'static str> {
    let found = REASONS.iter().find(|(ours, _)| *ours == stop_reason);
    found.map(|(_, theirs)| *theirs)
}

/// The log's stop reason.
pub(super) fn stop_reason(finish_reason: &str) -> Option<&'static str> {
    let found = REASONS.iter().find(|(_, theirs)| *theirs == finish_reason);
    found.map(|(ours, _)| *ours)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_summed_under_their_names() {
        let message = |text: &str| Json::parse(text).unwrap();
        let messages = [
            message(r#"{"usage":{"input_tokens":3,"output_tokens":4,"cost":"0.1"}}"#),
            message(r#"{"usage":{"input_tokens":1,"audio":2}}"#),
            message("{}"),
        ];
        let sum = Json::from(total(&messages).unwrap());
        assert_eq!(
            sum.to_text(),
            r#"{"input_tokens":4,"output_tokens":4,"audio":2}"#
        );
    }

    #[test]
    fn usage_is_renamed_and_totalled() {
        let usage =
            Payload::from_text(r#"{"inputTokens":3,"outputTokens":4,"reasoningTokens":1}"#.into());
        let written = Json::from(exported(&usage.unwrap()));
        assert_eq!(
            written.to_text(),
            r#"{"input_tokens":3,"output_tokens":4,"thinking_tokens":1,"total_tokens":7}"#
        );
    }
}
