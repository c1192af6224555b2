//! Progress of a run, as text.

use crate::parts::{ToolPart, ToolState};
use crate::run::{RunEvent, RunFold, RunPart, RunSelector};
use std::collections::BTreeMap;
use timeline::{BlockKind, Chunk, ItemId, Record};

/// Reports the text of a run and its tool calls, as progress messages.
#[derive(Clone, Debug)]
pub struct ProgressView {
    fold: RunFold,
    /// The names of the tools that were called, by their calls.
    calls: BTreeMap<String, String>,
}

impl ProgressView {
    /// The progress of the run that answers this item. Without one, that of the next run that
    /// begins, which continues after a sub-agent's answer.
    pub fn new(trigger: Option<ItemId>) -> Self {
        let run = match trigger {
            Some(trigger) => RunSelector::answering(trigger),
            None => RunSelector::running(None),
        };
        Self {
            fold: RunFold::new(run).with_blocks(),
            calls: BTreeMap::new(),
        }
    }

    /// The messages of one record: pieces of the answer, and the tools that were called or have
    /// answered.
    pub fn messages(&mut self, record: &Record) -> Vec<String> {
        let mut messages = Vec::new();
        for event in self.fold.events(record) {
            if let RunEvent::Chunk(Chunk::BlockDelta { kind, text, .. }) = &event
                && *kind == BlockKind::Text
                && !text.is_empty()
            {
                messages.push(text.clone().into_owned());
            }
            if let RunEvent::Part {
                part: RunPart::Tool(tool),
                is_new,
                is_known,
                ..
            } = &event
            {
                messages.extend((*is_new && !is_known).then(|| self.call(tool)).flatten());
                messages.extend(self.state(tool, *is_known));
            }
        }
        messages
    }

    fn call(&mut self, tool: &ToolPart) -> Option<String> {
        // Arguments that are no object are not run.
        tool.input_object()?;
        let (call, name) = (tool.tool_call_id.clone(), tool.tool_name());
        self.calls.insert(call, name.to_owned());
        Some(format!("{name} is called"))
    }

    fn state(&self, tool: &ToolPart, is_known: bool) -> Option<String> {
        let state = match tool.state {
            ToolState::InputAvailable => return None,
            ToolState::ApprovalResponded if is_known => return None,
            ToolState::ApprovalRequested | ToolState::ApprovalResponded => {
                tool.approval.as_ref()?;
                "waits for approval"
            }
            ToolState::OutputAvailable => "has answered",
            ToolState::OutputError if tool.is_denied() => "was not allowed",
            ToolState::OutputError => "has failed",
        };
        let name = self.calls.get(&tool.tool_call_id);
        let name = name.map_or("a tool", String::as_str);
        Some(format!("{name} {state}"))
    }
}
