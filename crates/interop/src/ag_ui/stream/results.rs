//! The results of a step's calls, in the order of the calls, as the messages of the thread have them.

use crate::ag_ui::messages::{client_results, result_id};
use crate::parts::ToolPart;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use timeline::Item;

/// The results of the calls of one step.
#[derive(Clone, Debug, Default)]
pub(super) struct Results {
    /// The positions of the calls that have no result yet.
    awaited: BTreeSet<u32>,
    /// Results that arrived before those of earlier calls, by position.
    early: BTreeMap<u32, Value>,
    /// The calls whose results the client sent itself, so that it has these messages.
    known: BTreeSet<String>,
}

impl Results {
    /// A step begins, or an attempt at it.
    pub(super) fn begin(&mut self) {
        self.awaited.clear();
        self.early.clear();
    }

    /// Ends a step. A later step may use the same call ids.
    pub(super) fn step_over(&mut self) {
        self.known.clear();
    }

    /// The run begins with these answers.
    pub(super) fn answered_by(&mut self, item: &Item) {
        let results = client_results(item).into_iter();
        self.known.extend(results.map(|(call, _)| call));
    }

    /// Accepts a stored call at this position of the step. Returns the results that can be sent.
    pub(super) fn take(&mut self, idx: u32, tool: &ToolPart) -> Vec<Value> {
        let Some(content) = tool.result_text() else {
            self.awaited.insert(idx);
            return Vec::new();
        };
        self.awaited.remove(&idx);
        let call = tool.tool_call_id.as_str();
        if !self.known.remove(call) {
            let result = json!({
                "type": "TOOL_CALL_RESULT", "messageId": result_id(call),
                "toolCallId": call, "content": content, "role": "tool",
            });
            self.early.insert(idx, result);
        }
        let Some(first) = self.awaited.first() else {
            return self.rest();
        };
        let later = self.early.split_off(first);
        let ready = std::mem::replace(&mut self.early, later);
        ready.into_values().collect()
    }

    /// The remaining results at the end of the step.
    pub(super) fn rest(&mut self) -> Vec<Value> {
        self.awaited.clear();
        std::mem::take(&mut self.early).into_values().collect()
    }
}
