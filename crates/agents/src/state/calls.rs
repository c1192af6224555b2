//! The calls at the end of a conversation and what answers them.

use super::AgentState;
use std::collections::{BTreeMap, VecDeque};
use upp::{Message, ToolCall, ToolCallId, ToolResult};

impl AgentState {
    /// The calls of the last response that have no result in the messages of results after it, in
    /// call order; none if anything else was said since.
    ///
    /// A run that stands here continues with the tools, not with the model.
    pub fn open_calls(&self) -> Vec<&ToolCall> {
        let (calls, results) = self.last_round();
        if results.is_empty() {
            return calls.iter().collect();
        }
        let matched = matched(calls, results);
        (0..)
            .zip(calls)
            .filter(|(at, _)| !matched.contains_key(at))
            .map(|(_, call)| call)
            .collect()
    }

    /// The calls of the response the conversation ends with, and the results that follow it.
    pub(crate) fn last_round(&self) -> (&[ToolCall], Vec<&ToolResult>) {
        let mut messages = Vec::new();
        for at in (0..self.messages.len()).rev() {
            match self.messages.get(at) {
                Some(Message::ToolResult(message)) => messages.push(message),
                Some(Message::Assistant(message)) => {
                    let results = messages.iter().rev().flat_map(|it| &it.results);
                    return (&message.tool_calls, results.collect());
                }
                Some(Message::User(_)) | None => break,
            }
        }
        (&[], Vec::new())
    }
}

/// The result of each call that has one, by the call's position. Where an id repeats, the first
/// result is the first call's.
pub(crate) fn matched<'a>(
    calls: &[ToolCall],
    results: impl IntoIterator<Item = &'a ToolResult>,
) -> BTreeMap<usize, &'a ToolResult> {
    let mut by_id: BTreeMap<&ToolCallId, VecDeque<&ToolResult>> = BTreeMap::new();
    for result in results {
        by_id
            .entry(&result.tool_call_id)
            .or_default()
            .push_back(result);
    }
    (0..)
        .zip(calls)
        .filter_map(|(at, call)| {
            let result = by_id.get_mut(&call.tool_call_id)?.pop_front()?;
            Some((at, result))
        })
        .collect()
}
