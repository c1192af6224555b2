//! The artifact, sent in chunks.

use super::super::message::of_agent;
use super::super::state::TaskState;
use super::super::task::artifact_of;
use super::TaskView;
use jiff::Timestamp;
use serde_json::{Value, json};
use timeline::StepId;

impl TaskView {
    /// The attempt at the step failed. The next attempt replaces its answer.
    pub(super) fn reset(&mut self) {
        self.unsent = None;
        self.parts.clear();
        self.is_stale |= std::mem::take(&mut self.has_begun);
    }

    /// Adds to the step's answer.
    pub(super) fn add(&mut self, part: Value) {
        self.send_unsent(false);
        match (self.parts.last_mut(), part["text"].as_str()) {
            (Some(Value::Object(last)), Some(more)) if last.contains_key("text") => {
                if let Some(Value::String(text)) = last.get_mut("text") {
                    text.push_str(more);
                }
            }
            _ => self.parts.push(part.clone()),
        }
        self.unsent = Some(vec![part]);
    }

    fn send_unsent(&mut self, is_last: bool) {
        if let Some(parts) = self.unsent.take() {
            self.send(&parts, is_last);
        }
    }

    /// Sends the rest of the step's answer. If a failed attempt had an answer and this attempt has
    /// none, the previous answer is the artifact again.
    pub(super) fn send_rest(&mut self, is_last: bool) {
        self.send_unsent(is_last);
        if self.is_stale {
            let mut former = self.former.clone();
            if former.is_empty() {
                former.push(json!({ "text": "" }));
            }
            self.send(&former, is_last);
        }
    }

    fn send(&mut self, parts: &[Value], is_last: bool) {
        self.is_stale = false;
        let update = json!({
            "taskId": self.id, "contextId": self.context_id, "artifact": artifact_of(parts),
            "append": std::mem::replace(&mut self.has_begun, true), "lastChunk": is_last,
        });
        self.out.push(json!({ "artifactUpdate": update }));
    }

    /// Sends the step's answer as a message: another step follows, so it was not the last.
    pub(super) fn complete_answer(&mut self, at: Timestamp) {
        self.send_rest(false);
        self.has_begun = false;
        let parts = std::mem::take(&mut self.parts);
        if parts.is_empty() {
            return;
        }
        self.former.clone_from(&parts);
        let step = self.step.as_ref().map(StepId::as_str).unwrap_or_default();
        let message = of_agent(step, &self.id, &self.context_id, &parts);
        self.update(TaskState::Working, at, Some(message));
    }
}
