//! The metadata of a run: the agent, the model, the usage, and the times.

use crate::parts::StepResponse;
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use timeline::{Execution, ExecutionStatus, Interruption, Reaction};

/// The counts of usage: our name in a log, and the name in a message's metadata.
const USAGE: [(&str, &str); 5] = [
    ("inputTokens", "inputTokens"),
    ("outputTokens", "outputTokens"),
    ("cacheReadTokens", "cachedInputTokens"),
    ("cacheWriteTokens", "cacheWriteTokens"),
    ("reasoningTokens", "reasoningTokens"),
];

/// The tokens of an execution, summed over its steps, by their names in the log. Counts of zero are left
/// out.
pub fn usage_of(reaction: &Reaction) -> BTreeMap<&'static str, u64> {
    let mut sums = [0; USAGE.len()];
    for step in &reaction.steps {
        let response = step.response.as_ref();
        if let Some(response) = response.and_then(|(response, _)| response.read().ok()) {
            add_usage(&mut sums, &response);
        }
    }
    let counted = sums.into_iter().zip(USAGE).filter(|(sum, _)| *sum > 0);
    counted.map(|(sum, (ours, _))| (ours, sum)).collect()
}

fn add_usage(sums: &mut [u64; USAGE.len()], response: &StepResponse) {
    let usage: Option<Map<String, Value>> = response.usage.as_ref().and_then(|it| it.read().ok());
    let usage = usage.unwrap_or_default();
    for (sum, (ours, _)) in sums.iter_mut().zip(USAGE) {
        let count = usage.get(ours).and_then(Value::as_u64);
        *sum = sum.saturating_add(count.unwrap_or_default());
    }
}

/// The metadata of a run so far, summed over its executions, as clients get it with its message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RunMetadata {
    created_at: Option<Timestamp>,
    agent: Option<String>,
    model: Option<String>,
    usage: [u64; USAGE.len()],
    finish_reason: Option<&'static str>,
}

impl RunMetadata {
    /// The metadata of a run that begins. It began when its first execution did.
    pub(crate) fn begin(&mut self, at: Timestamp) -> Value {
        let at = *self.created_at.get_or_insert(at);
        json!({"createdAt": at.to_string()})
    }

    /// Records the start of an execution.
    pub(crate) fn execution(&mut self, execution: &Execution) {
        self.created_at.get_or_insert(execution.created_at);
        let run = execution.run.as_ref();
        if let Some(agent) = run.and_then(|run| run.str_field("agent")) {
            self.agent = Some(agent);
        }
        self.finish_reason = None;
    }

    /// Records an answer of the model.
    pub(crate) fn response(&mut self, response: &StepResponse) {
        self.finish_reason = response.stop_reason.as_deref().map(|word| match word {
            "end_turn" => "stop",
            "max_tokens" => "length",
            "content_filter" => "content-filter",
            "tool_use" => "tool-calls",
            "error" => "error",
            _ => "other",
        });
        if let Some(model) = &response.model {
            self.model = Some(model.clone());
        }
        add_usage(&mut self.usage, response);
    }

    /// The model's stop reason.
    pub(crate) fn finish_reason(&self) -> &'static str {
        self.finish_reason.unwrap_or("stop")
    }

    /// The metadata of a run that ended.
    pub(crate) fn end(
        &self,
        to: ExecutionStatus,
        why: Option<&Interruption>,
        at: Timestamp,
    ) -> Value {
        let reason = if to == ExecutionStatus::Completed {
            self.finish_reason()
        } else if why.is_some_and(|why| why.reason == Interruption::USER_CANCELLED) {
            "other"
        } else {
            "error"
        };
        let mut metadata = Map::new();
        if let Some(agent) = &self.agent {
            metadata.insert("agent".to_owned(), agent.as_str().into());
        }
        if let Some(model) = &self.model {
            metadata.insert("model".to_owned(), model.as_str().into());
        }
        let counted = self.usage.iter().zip(USAGE).filter(|(sum, _)| **sum > 0);
        let usage: Map<String, Value> = counted
            .map(|(sum, (_, theirs))| (theirs.to_owned(), (*sum).into()))
            .collect();
        if !usage.is_empty() {
            metadata.insert("usage".to_owned(), Value::Object(usage));
        }
        metadata.insert("finishReason".to_owned(), reason.into());
        metadata.insert("finishedAt".to_owned(), at.to_string().into());
        Value::Object(metadata)
    }
}
