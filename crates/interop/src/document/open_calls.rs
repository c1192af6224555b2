//! Pending calls that the user left unanswered by posting something else.

use crate::parts::{StepResponse, ToolPart, ToolState};
use std::collections::{BTreeMap, BTreeSet};
use timeline::{Entry, ItemType, OpenCall, Reaction, StepRecord, Transcript};

/// The result text of such a call.
const SUPERSEDED: &str = "The user went on without answering.";

/// The calls that were left open and can't be answered any more, by the step that made them.
#[derive(Default)]
pub(super) struct Left {
    calls: BTreeSet<String>,
    steps: BTreeSet<String>,
}

impl Left {
    /// Finds them: a call is left if a message is posted to the agents before its answer arrives.
    pub(super) fn of(transcript: &Transcript) -> Self {
        let mut left = Self::default();
        // Call and step.
        let mut open: BTreeMap<String, String> = BTreeMap::new();
        for entry in &transcript.entries {
            match entry {
                Entry::Item(item) => {
                    if item.item_type == ItemType::Message && item.run.is_none() {
                        for (call, step) in std::mem::take(&mut open) {
                            left.calls.insert(call);
                            left.steps.insert(step);
                        }
                    }
                }
                Entry::Reaction(reaction) => follow(&mut open, reaction),
            }
        }
        left
    }

    /// Whether the call can't be answered any more.
    pub(super) fn contains(&self, call: &str) -> bool {
        self.calls.contains(call)
    }

    /// The part of a call, with an interrupted result if it can't be answered any more.
    pub(super) fn with_outcome(&self, mut tool: ToolPart, step: &StepRecord) -> ToolPart {
        let is_left =
            self.contains(&tool.tool_call_id) && self.steps.contains(step.step.id.as_str());
        if is_left && !tool.is_answered() {
            tool.state = ToolState::OutputError;
            tool.outcome = Some("interrupted".to_owned());
            tool.error_text = Some(SUPERSEDED.to_owned());
        }
        tool
    }
}

/// Updates the open calls with those of a reaction.
fn follow(open: &mut BTreeMap<String, String>, reaction: &Reaction) {
    for step in &reaction.steps {
        let said: StepResponse = step
            .response
            .as_ref()
            .and_then(|(said, _)| said.read().ok())
            .unwrap_or_default();
        if said.answers {
            for part in &step.parts {
                if let Some(tool) = ToolPart::read(&part.part).filter(ToolPart::is_answered) {
                    open.remove(&tool.tool_call_id);
                }
            }
            continue;
        }
        for call in OpenCall::list(step.step.outcome.open_calls.as_ref()) {
            open.insert(call.tool_call_id, step.step.id.to_string());
        }
    }
}
