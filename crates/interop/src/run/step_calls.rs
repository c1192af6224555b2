//! The tool calls of a step with their sub-agents, for views of a run's times.

use super::timing::CallTimes;
use crate::parts::{EventPart, ToolPart};
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use timeline::{OpenCall, StepRecord};

/// A sub-agent that a call started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartedSubagent {
    /// The id of its thread.
    pub thread_id: String,
    /// Its type, which is the name of the tool that started it.
    pub agent: String,
    /// When it started.
    pub started: Timestamp,
    /// When its thread ended, if the step has that.
    pub ended: Option<Timestamp>,
}

/// The tool calls of a step, read once.
#[derive(Clone, Debug)]
pub struct StepCalls {
    tools: BTreeMap<String, ToolPart>,
    /// The sub-agents, by the ids of the calls that started them.
    subagents: BTreeMap<String, Vec<StartedSubagent>>,
    /// The ids of the calls that the step left open.
    open: BTreeSet<String>,
    ended_at: Option<Timestamp>,
}

impl StepCalls {
    /// Reads the parts of a step.
    pub fn of(record: &StepRecord) -> Self {
        let open = OpenCall::list(record.step.outcome.open_calls.as_ref());
        let mut calls = Self {
            tools: BTreeMap::new(),
            subagents: BTreeMap::new(),
            open: open.into_iter().map(|call| call.tool_call_id).collect(),
            ended_at: record.ended_at,
        };
        let mut ends = BTreeMap::new();
        for part in &record.parts {
            if let Some(tool) = ToolPart::read(&part.part) {
                let id = tool.tool_call_id.clone();
                calls.tools.entry(id).or_insert(tool);
            } else if let Some(event) = EventPart::read(&part.part) {
                let field = |name| event.data.str_field(name).unwrap_or_default();
                if event.part_type == EventPart::THREAD_SPAWN {
                    let started = calls.subagents.entry(field("tool_call_id")).or_default();
                    started.push(StartedSubagent {
                        thread_id: field("spawned_thread_id"),
                        agent: field("subagent_type"),
                        started: part.created_at,
                        ended: None,
                    });
                } else if event.part_type == EventPart::THREAD_END {
                    ends.entry(field("thread_id")).or_insert(part.created_at);
                }
            }
        }
        for subagent in calls.subagents.values_mut().flatten() {
            subagent.ended = ends.get(&subagent.thread_id).copied();
        }
        calls
    }

    /// The part of a call.
    pub fn tool(&self, call: &CallTimes) -> Option<&ToolPart> {
        self.tools.get(&call.tool_call_id)
    }

    /// Whether the step left the call open.
    pub fn is_open(&self, call: &CallTimes) -> bool {
        self.open.contains(&call.tool_call_id)
    }

    /// When the call ended. A call without a result ends with its step.
    pub fn end(&self, call: &CallTimes) -> Option<Timestamp> {
        call.ended.or(self.ended_at)
    }

    /// The sub-agents that the call started, in order.
    pub fn subagents(&self, call: &CallTimes) -> &[StartedSubagent] {
        self.subagents
            .get(&call.tool_call_id)
            .map_or(&[], Vec::as_slice)
    }

    /// When the step ended.
    pub fn ended_at(&self) -> Option<Timestamp> {
        self.ended_at
    }
}
