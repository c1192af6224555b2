//! The parts of the running step, and where its calls are among them.

use agents::SubagentExecutionTrace;
use interop::model;
use interop::parts::ToolPart;
use std::collections::{BTreeMap, BTreeSet};
use timeline::Payload;
use upp::{ToolCall, ToolCallId, ToolExecution, UserMessage};

/// The parts of the running step.
#[derive(Default)]
pub(in crate::agent) struct Parts {
    /// By their positions in the log, without parts from other sources.
    list: BTreeMap<u32, Payload>,
    /// Whether the log has the step's answer.
    is_answered: bool,
    /// The prompts that the strategy added in this step.
    prompts: Vec<Payload>,
    /// The position of each call's part, by the call's position in its response.
    slots: BTreeMap<usize, u32>,
    /// The parts of calls without a result.
    open: BTreeSet<u32>,
    /// The calls of an earlier response that this step works on.
    calls: Vec<ToolCall>,
    /// Traces of sub-agents whose calls have no result yet.
    traces: BTreeMap<ToolCallId, Vec<SubagentExecutionTrace>>,
}

impl Parts {
    /// The parts of a step whose model has answered, with the positions of its calls.
    pub(super) fn answered(list: Vec<Payload>) -> Self {
        let mut parts = Self {
            is_answered: true,
            ..Self::default()
        };
        let tools = list.iter().zip(0u32..).filter_map(|(part, idx)| {
            let tool = ToolPart::read(part)?;
            Some((idx, tool.is_answered()))
        });
        for (position, (idx, is_answered)) in tools.enumerate() {
            parts.slots.insert(position, idx);
            if !is_answered {
                parts.open.insert(idx);
            }
        }
        parts.list = placed(list);
        parts
    }

    /// The parts of a step that answers calls of an earlier response.
    pub(super) fn of_calls(calls: Vec<ToolCall>, list: Vec<Payload>) -> Self {
        let mut parts = Self::answered(Vec::new());
        for (part, idx) in list.iter().zip(0u32..) {
            let Some(tool) = ToolPart::read(part) else {
                continue;
            };
            let is_its = |call: &ToolCall| call.tool_call_id.as_str() == tool.tool_call_id;
            if let Some(position) = calls.iter().position(is_its) {
                parts.slots.insert(position, idx);
            }
            if !tool.is_answered() {
                parts.open.insert(idx);
            }
        }
        parts.list = placed(list);
        parts.calls = calls;
        parts
    }

    /// The parts with their positions, in order.
    pub(super) fn list(&self) -> impl Iterator<Item = (u32, &Payload)> {
        self.list.iter().map(|(idx, part)| (*idx, part))
    }

    /// The calls of the step's own answer.
    pub(super) fn made(&self) -> impl Iterator<Item = ToolPart> {
        let own = self.slots.values().filter(|_| self.calls.is_empty());
        own.filter_map(|idx| ToolPart::read(self.list.get(idx)?))
    }

    /// The calls of an earlier response that this step works on.
    pub(super) fn earlier(&self) -> &[ToolCall] {
        &self.calls
    }

    pub(super) fn is_answered(&self) -> bool {
        self.is_answered
    }

    pub(super) fn prompt(&mut self, message: &UserMessage) {
        // What has its answer has its prompts, too.
        if !self.is_answered {
            self.prompts.extend(model::prompt_part(message));
        }
    }

    /// Sets the step's parts: the prompts, then the parts of the model's response. Returns them.
    pub(super) fn take_answer(&mut self, said: Vec<Payload>) -> Vec<Payload> {
        let mut list = std::mem::take(&mut self.prompts);
        list.extend(said);
        *self = Self::answered(list.clone());
        list
    }

    pub(super) fn put(&mut self, idx: u32, part: Payload) {
        if ToolPart::read(&part).is_some_and(|tool| tool.is_answered()) {
            self.open.remove(&idx);
        }
        self.list.insert(idx, part);
    }

    /// The missing part of the call at this position; none if it exists.
    pub(super) fn missing(&self, position: usize) -> Result<Option<Payload>, serde_json::Error> {
        if self.slots.contains_key(&position) {
            return Ok(None);
        }
        let call = self.calls.get(position);
        let part = call.map(|call| super::super::answers::part_of(call).write());
        part.transpose()
    }

    /// Records that the part of the call at this position is written.
    pub(super) fn put_call(&mut self, position: usize, idx: u32, part: Payload) {
        self.list.insert(idx, part);
        self.slots.insert(position, idx);
        self.open.insert(idx);
    }

    pub(super) fn trace(&mut self, trace: SubagentExecutionTrace) {
        let call = trace.parent_tool_call_id.clone();
        self.traces.entry(call).or_default().push(trace);
    }

    /// Records the result of the call at this position. Returns the part's index, the part, and the
    /// number of calls without a result.
    pub(super) fn end(
        &mut self,
        position: usize,
        execution: &ToolExecution,
    ) -> Result<Option<(u32, Payload, usize)>, serde_json::Error> {
        let Some(idx) = self.slots.get(&position).copied() else {
            return Ok(None);
        };
        let Some(slot) = self.list.get_mut(&idx) else {
            return Ok(None);
        };
        let mut part = model::with_result(slot, execution)?;
        if let Some(traces) = self.traces.remove(&execution.tool_call_id)
            && let Some(mut tool) = ToolPart::read(&part)
        {
            tool.subagents = Some(Payload::write(&traces)?);
            part = tool.write()?;
        }
        *slot = part.clone();
        self.open.remove(&idx);
        Ok(Some((idx, part, self.open.len())))
    }
}

fn placed(list: Vec<Payload>) -> BTreeMap<u32, Payload> {
    (0..).zip(list).collect()
}
