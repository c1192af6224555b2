//! One step of an answer: a response, the results of its tools, and the events around them.

use super::{call, user, vendor};
use crate::Losses;
use crate::ai_sdk::archive::{member, text_of, tool_of};
use crate::ai_sdk::chunk::some;
use jiff::Timestamp;
use thread::{Json, Object};

/// Prefix of the kind of parts that model messages do not have.
pub(crate) const CUSTOM: &str = "custom:ai-sdk.";

/// A step as it is read.
pub(super) struct Step {
    at: String,
    before: Vec<Json>,
    parts: Vec<Json>,
    returns: Vec<Json>,
    after: Vec<Json>,
}

impl Step {
    pub(super) fn new(at: &str) -> Self {
        Self {
            at: at.to_owned(),
            before: Vec::new(),
            parts: Vec::new(),
            returns: Vec::new(),
            after: Vec::new(),
        }
    }

    /// An error that the stream reported.
    pub(super) fn error(&mut self, text: &str) {
        let data = Object::new().with("message", text);
        let event = event("data-tp-error", &data.into(), &self.at);
        self.after.push(event.into());
    }

    fn event(&mut self, event: Object) {
        if self.parts.is_empty() {
            self.before.push(event.into());
        } else {
            self.after.push(event.into());
        }
    }

    /// Reads a part. Returns whether it was dropped because it is incomplete.
    pub(super) fn part(&mut self, part: &Json, at: &str, losses: &mut Losses) -> bool {
        let kind = text_of(part, "type");
        let is_open = matches!(text_of(part, "state"), "streaming" | "input-streaming");
        if is_open && (matches!(kind, "text" | "reasoning") || tool_of(part).is_some()) {
            losses.push(at, "a part that was begun and never ended");
            return true;
        }
        if tool_of(part).is_some() {
            self.call(part, at, losses);
            return false;
        }
        match kind {
            "text" => {
                if some(part, "citations").is_some() {
                    losses.push(at, "citations");
                }
                let text = Object::new().with("content", text_of(part, "text"));
                self.push_content(text, "text", part, at, losses);
            }
            "reasoning" => {
                let text = Object::new().with("content", text_of(part, "text"));
                self.push_content(text, "thinking", part, at, losses);
            }
            "file" => {
                let mut file = Object::new().with("content", user::file(part));
                if let Some(name) = some(part, "filename") {
                    file.insert("filename", name.clone());
                }
                self.push_content(file, "file", part, at, losses);
            }
            "source-url" | "source-document" => {
                let mut data = part.as_object().cloned().unwrap_or_default();
                data.remove("type");
                let name = kind.replace('-', ".");
                self.event(event(&name, &data.into(), &self.at));
            }
            _ if kind.starts_with("data-") => {
                let data = part.get("data").cloned().unwrap_or_default();
                let event = event(kind, &data, &self.at);
                self.event(event.with_some("id", part.get("id").cloned()));
            }
            _ => {
                losses.push(
                    at,
                    "a part of a kind that no model message has, carried as it is",
                );
                let whole = Object::new()
                    .with("part", part.clone())
                    .with("part_kind", format!("{CUSTOM}{kind}"));
                self.parts.push(whole.into());
            }
        }
        false
    }

    fn push_content(
        &mut self,
        said: Object,
        kind: &str,
        part: &Json,
        at: &str,
        losses: &mut Losses,
    ) {
        let mut said = said.with("part_kind", kind);
        let metadata = part.get("providerMetadata");
        vendor::put(&mut said, metadata, &member(at, "providerMetadata"), losses);
        self.parts.push(said.into());
    }

    fn call(&mut self, part: &Json, at: &str, losses: &mut Losses) {
        let Some((call, answer)) = call::call(part, &self.at, at, losses) else {
            return;
        };
        self.parts.push(call.into());
        match answer {
            Some(answer) if answer.get_str("part_kind") == Some("tool-return") => {
                self.returns.push(answer.into());
            }
            Some(answer) => self.parts.push(answer.into()),
            None => {}
        }
    }

    /// The messages of the step, in order.
    pub(super) fn into_messages(self) -> Vec<Json> {
        let mut messages = self.before;
        if !self.parts.is_empty() {
            let response = Object::new()
                .with("parts", Json::Array(self.parts))
                .with("timestamp", self.at.as_str())
                .with("kind", "response");
            messages.push(response.into());
        }
        if !self.returns.is_empty() {
            messages.push(request(self.returns, &self.at));
        }
        messages.extend(self.after);
        messages
    }
}

/// A request with what tools returned.
pub(super) fn request(returns: Vec<Json>, at: &str) -> Json {
    let request = Object::new()
        .with("parts", Json::Array(returns))
        .with("timestamp", at)
        .with("kind", "request");
    request.into()
}

/// A system message; the event's own instant counts where it has one.
pub(super) fn event(name: &str, data: &Json, at: &str) -> Object {
    let own = data.get("timestamp").and_then(Json::as_str);
    let own = own.filter(|text| text.parse::<Timestamp>().is_ok());
    Object::new()
        .with("message_type", "system")
        .with("timestamp", own.unwrap_or(at))
        .with("event_type", name)
        .with("event_data", data.clone())
}
