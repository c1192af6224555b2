//! What an agent says, as the artifact that a stream sends piece by piece.

use super::super::message::of_agent;
use super::super::part::shown_file;
use super::super::state::TaskState;
use super::super::task::artifact_of;
use super::TaskView;
use jiff::Timestamp;
use serde_json::{Value, json};
use timeline::StepId;

impl TaskView {
    /// What a step says.
    pub(super) fn heard(&mut self, chunk: &Value) {
        let text = |key: &str| chunk.get(key).and_then(Value::as_str);
        match text("type") {
            Some("text-delta") => {
                if let Some(delta) = text("delta").filter(|delta| !delta.is_empty()) {
                    self.say(json!({ "text": delta }));
                }
            }
            Some("file") => {
                if let Some(url) = text("url") {
                    self.say(shown_file(url, text("mediaType")));
                }
            }
            // What a dead attempt said is replaced by what comes.
            Some("reset-step") => {
                self.held = None;
                self.said.clear();
                self.is_stale |= std::mem::take(&mut self.has_begun);
            }
            _ => {}
        }
    }

    fn say(&mut self, part: Value) {
        self.send_held(false);
        match (self.said.last_mut(), part["text"].as_str()) {
            (Some(Value::Object(last)), Some(more)) if last.contains_key("text") => {
                if let Some(Value::String(text)) = last.get_mut("text") {
                    text.push_str(more);
                }
            }
            _ => self.said.push(part.clone()),
        }
        self.held = Some(vec![part]);
    }

    fn send_held(&mut self, is_last: bool) {
        if let Some(parts) = self.held.take() {
            self.send(&parts, is_last);
        }
    }

    /// Ends what the step says. Where a dead attempt had said something and this one has not, the artifact is
    /// again what was said before.
    pub(super) fn settle(&mut self, is_last: bool) {
        self.send_held(is_last);
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

    /// Another step follows, so what the one before said was not the last.
    pub(super) fn on_its_way(&mut self, at: Timestamp) {
        self.settle(false);
        self.has_begun = false;
        let parts = std::mem::take(&mut self.said);
        if parts.is_empty() {
            return;
        }
        self.former.clone_from(&parts);
        let step = self.step.as_ref().map(StepId::as_str).unwrap_or_default();
        let message = of_agent(step, &self.id, &self.context_id, &parts);
        self.update(TaskState::Working, at, Some(message));
    }
}
