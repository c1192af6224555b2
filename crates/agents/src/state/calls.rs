//! The calls at the end of a conversation, and their results.

use super::AgentState;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use upp::{Message, MessageOptions, ToolCall, ToolCallId, ToolResult, ToolResultMessage};

impl AgentState {
    /// Whether there are any [`open_calls`](Self::open_calls).
    pub(crate) fn has_open_calls(&self) -> bool {
        match self.messages.last() {
            Some(Message::Assistant(message)) => !message.tool_calls.is_empty(),
            Some(Message::User(_)) | None => false,
            Some(Message::ToolResult(answered)) => {
                !self.is_answered_by(answered) && !self.open_calls().is_empty()
            }
        }
    }

    /// Whether the last message has the results of the response directly before it, in the order of
    /// its calls: the usual end of a round.
    fn is_answered_by(&self, answered: &ToolResultMessage) -> bool {
        let before = self.messages.len().checked_sub(2);
        match before.and_then(|at| self.messages.get(at)) {
            Some(Message::Assistant(asked)) => is_in_order(&asked.tool_calls, &answered.results),
            Some(Message::User(_) | Message::ToolResult(_)) | None => false,
        }
    }

    /// The calls of the last response that have no result in the following messages of results, in
    /// call order. None if another message follows.
    ///
    /// A run in this state continues with the tools, not with the model.
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

    /// The results of the last response's calls, in call order: the message that has them or, if
    /// several messages have them, a new one.
    pub(crate) fn observed(&self) -> Arc<ToolResultMessage> {
        if let Some(Message::ToolResult(message)) = self.messages.last()
            && self.is_answered_by(message)
        {
            return Arc::clone(message);
        }
        let (calls, results) = self.last_round();
        let results = matched(calls, results).into_values().cloned().collect();
        Arc::new(ToolResultMessage::new(results, MessageOptions::default()))
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

/// Whether each call has one result, in the order of the calls: the usual end of a round.
pub(crate) fn is_in_order(calls: &[ToolCall], results: &[ToolResult]) -> bool {
    let mut pairs = calls.iter().zip(results);
    calls.len() == results.len()
        && pairs.all(|(call, result)| call.tool_call_id == result.tool_call_id)
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
