//! Limits the output of the scripted model.

use super::plan::Plan;
use super::situation::words;
use crate::model::StopReason;
use crate::settings::{NativeSettings, Settings};
use crate::tool::ToolCall;
use serde_json::{Map, Value};

const MAX_OUTPUT_TOKENS: &str = "max_output_tokens";
const PARALLEL_TOOL_CALLS: &str = "parallel_tool_calls";

/// The settings that the model supports; the others are listed as left out.
pub(super) fn settings(settings: &Settings) -> NativeSettings {
    let mut native = Settings {
        max_output_tokens: None,
        parallel_tool_calls: None,
        ..settings.clone()
    }
    .left_out();
    native.put(MAX_OUTPUT_TOKENS, settings.max_output_tokens);
    native.put(PARALLEL_TOOL_CALLS, settings.parallel_tool_calls);
    native
}

/// Cuts an answer to what these parameters allow.
pub(super) fn limit(plan: &mut Plan, params: &Map<String, Value>) {
    if params.get(PARALLEL_TOOL_CALLS) == Some(&Value::Bool(false)) {
        plan.calls.truncate(1);
    }
    let limit = params.get(MAX_OUTPUT_TOKENS).and_then(Value::as_u64);
    let Some(limit) = limit.and_then(|limit| usize::try_from(limit).ok()) else {
        return;
    };
    let mut left = limit;
    let mut is_cut = false;
    if let Some((thought, _)) = &mut plan.reasoning {
        is_cut |= shorten(thought, &mut left);
    }
    if let Some(text) = &mut plan.text {
        is_cut |= shorten(text, &mut left);
    }
    // A call that is cut off is none.
    let whole = plan.calls.iter().take_while(|call| {
        let rest = left.checked_sub(call_words(call));
        left = rest.unwrap_or_default();
        rest.is_some()
    });
    let n_whole = whole.count();
    is_cut |= n_whole < plan.calls.len();
    plan.calls.truncate(n_whole);
    if is_cut {
        plan.text = plan.text.take().filter(|text| !text.is_empty());
        plan.data = None;
        plan.stop_reason = Some(StopReason::MaxTokens);
    }
}

/// The words of a call: its tool's name and its arguments.
pub(super) fn call_words(call: &ToolCall) -> usize {
    1 + words(call.arguments.text())
}

/// Cuts a text to `left` words and subtracts the words it has from `left`. Returns whether it cut any.
fn shorten(text: &mut String, left: &mut usize) -> bool {
    let n = words(text);
    if let Some(rest) = left.checked_sub(n) {
        *left = rest;
        return false;
    }
    let mut end = 0;
    for piece in text.split_inclusive(char::is_whitespace) {
        if *left == 0 {
            break;
        }
        end += piece.len();
        *left -= usize::from(!piece.trim_end().is_empty());
    }
    text.truncate(end);
    text.truncate(text.trim_end().len());
    true
}
