//! The texts, reasonings and calls of a step, as messages.

use crate::ag_ui::messages::{arguments, reasoning_id, text_id};
use crate::parts::ToolPart;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use timeline::{BlockKind, StepId};

/// The messages and calls that a step has started.
#[derive(Clone, Debug, Default)]
pub(super) struct Blocks {
    step: String,
    /// The number of resets of the step.
    attempt: u32,
    n_texts: usize,
    n_reasonings: usize,
    /// The messages that are open, by their blocks.
    open: BTreeMap<(BlockKind, String), String>,
    /// The calls of the step.
    calls: BTreeSet<String>,
    /// The arguments so far of the calls that are open.
    open_calls: BTreeMap<String, String>,
}

impl Blocks {
    pub(super) fn start_step(&mut self, step: &StepId) {
        self.step = step.to_string();
        (self.attempt, self.n_texts, self.n_reasonings) = (0, 0, 0);
        // Some models give the calls of every step the same ids.
        self.calls.clear();
    }

    /// Closes the messages of a dead attempt. The next attempt begins its own.
    pub(super) fn reset(&mut self, out: &mut Vec<Value>) {
        self.close(out);
        self.attempt += 1;
        self.n_texts = 0;
        self.calls.clear();
    }

    /// Closes all open messages and calls; a run must end without open ones.
    pub(super) fn close(&mut self, out: &mut Vec<Value>) {
        let open = std::mem::take(&mut self.open);
        for kind in [BlockKind::Text, BlockKind::Reasoning] {
            for (_, id) in open.iter().filter(|((it, _), _)| *it == kind) {
                end(kind, id, out);
            }
        }
        for call in std::mem::take(&mut self.open_calls).into_keys() {
            out.push(json!({"type": "TOOL_CALL_END", "toolCallId": call}));
        }
    }

    /// Appends to a text or reasoning. The first non-empty piece starts its message.
    pub(super) fn delta(
        &mut self,
        kind: BlockKind,
        block: &str,
        delta: &str,
        out: &mut Vec<Value>,
    ) {
        if delta.is_empty() {
            return;
        }
        let key = (kind, block.to_owned());
        if !self.open.contains_key(&key) {
            let id = self.start(kind, out);
            self.open.insert(key.clone(), id);
        }
        let event_type = match kind {
            BlockKind::Text => "TEXT_MESSAGE_CONTENT",
            BlockKind::Reasoning => "REASONING_MESSAGE_CONTENT",
        };
        let id = self.open.get(&key);
        out.push(json!({"type": event_type, "messageId": id, "delta": delta}));
    }

    fn start(&mut self, kind: BlockKind, out: &mut Vec<Value>) -> String {
        let (id, n, event_type, role) = match kind {
            BlockKind::Text => {
                let id = text_id(&self.step, self.n_texts, self.attempt);
                (id, &mut self.n_texts, "TEXT_MESSAGE_START", "assistant")
            }
            BlockKind::Reasoning => {
                let id = reasoning_id(&self.step, self.n_reasonings);
                out.push(json!({"type": "REASONING_START", "messageId": id}));
                let n = &mut self.n_reasonings;
                (id, n, "REASONING_MESSAGE_START", "reasoning")
            }
        };
        *n += 1;
        out.push(json!({"type": event_type, "messageId": id, "role": role}));
        id
    }

    pub(super) fn end(&mut self, kind: BlockKind, block: &str, out: &mut Vec<Value>) {
        if let Some(id) = self.open.remove(&(kind, block.to_owned())) {
            end(kind, &id, out);
        }
    }

    pub(super) fn start_call(&mut self, call: &str, tool: &str, out: &mut Vec<Value>) {
        if self.calls.insert(call.to_owned()) {
            self.open_calls.insert(call.to_owned(), String::new());
            let parent = text_id(&self.step, 0, self.attempt);
            out.push(json!({
                "type": "TOOL_CALL_START", "toolCallId": call, "toolCallName": tool,
                "parentMessageId": parent,
            }));
        }
    }

    /// Appends to the arguments of a call. An empty delta causes no event.
    pub(super) fn call_delta(&mut self, call: &str, delta: &str, out: &mut Vec<Value>) {
        if let Some(known) = self.open_calls.get_mut(call).filter(|_| !delta.is_empty()) {
            known.push_str(delta);
            out.push(json!({"type": "TOOL_CALL_ARGS", "toolCallId": call, "delta": delta}));
        }
    }

    /// Completes the arguments of a call by sending the rest of them. Returns false if the streamed
    /// arguments differ.
    pub(super) fn end_call(&mut self, tool: &ToolPart, out: &mut Vec<Value>) -> bool {
        let call = tool.tool_call_id.as_str();
        self.start_call(call, tool.tool_name(), out);
        let Some(known) = self.open_calls.get(call) else {
            return true;
        };
        let rest = arguments(tool).strip_prefix(known.as_str());
        self.call_delta(call, rest.unwrap_or_default(), out);
        self.open_calls.remove(call);
        out.push(json!({"type": "TOOL_CALL_END", "toolCallId": call}));
        rest.is_some()
    }
}

fn end(kind: BlockKind, id: &str, out: &mut Vec<Value>) {
    match kind {
        BlockKind::Text => out.push(json!({"type": "TEXT_MESSAGE_END", "messageId": id})),
        BlockKind::Reasoning => {
            out.push(json!({"type": "REASONING_MESSAGE_END", "messageId": id}));
            out.push(json!({"type": "REASONING_END", "messageId": id}));
        }
    }
}
