//! The chunks of a message's stream.

use super::{text_of, tool_of};
use crate::ai_sdk::chunk::{Major, is_set, some};
use thread::{Json, Object};

/// Chunks from which a client of `major` builds the message, but for the end of the stream.
pub(super) fn chunks(message: &Json, major: Major) -> Vec<Json> {
    let id = Some(text_of(message, "id")).filter(|id| !id.is_empty());
    let start = chunk("start")
        .with_some("messageId", id)
        .with_some("messageMetadata", some(message, "metadata").cloned());
    let mut writer = Writer {
        major,
        chunks: vec![start.into()],
        in_step: false,
    };
    let parts = super::parts_of(message);
    for (place, part) in parts.iter().enumerate() {
        writer.part(part, place);
    }
    // A client shows a step that begins only with the next thing to show.
    let begins = parts.last().map(|part| text_of(part, "type")) == Some("step-start");
    if let Some(metadata) =
        some(message, "metadata").filter(|known| begins && known.as_object().is_some())
    {
        let again = chunk("message-metadata").with("messageMetadata", metadata.clone());
        writer.push(again);
    }
    writer.end_step();
    writer.chunks
}

fn chunk(kind: &str) -> Object {
    Object::new().with("type", kind)
}

struct Writer {
    major: Major,
    chunks: Vec<Json>,
    in_step: bool,
}

impl Writer {
    fn push(&mut self, chunk: Object) {
        self.chunks.push(chunk.into());
    }

    fn end_step(&mut self) {
        if std::mem::take(&mut self.in_step) {
            self.push(chunk("finish-step"));
        }
    }

    fn part(&mut self, part: &Json, place: usize) {
        if tool_of(part).is_some() {
            self.call(part);
            return;
        }
        match text_of(part, "type") {
            "step-start" => {
                self.end_step();
                self.in_step = true;
                self.push(chunk("start-step"));
            }
            kind @ ("text" | "reasoning") => self.block(part, kind, place),
            _ => {
                if let Some(part) = part.as_object() {
                    self.push(part.clone());
                }
            }
        }
    }

    fn block(&mut self, part: &Json, kind: &str, place: usize) {
        let id = match some(part, "id").and_then(Json::as_str) {
            Some(id) => id.to_owned(),
            None => format!("{}{place}", if kind == "text" { "t" } else { "r" }),
        };
        let named = |name: &str| chunk(&format!("{kind}-{name}")).with("id", id.as_str());
        let metadata = some(part, "providerMetadata").cloned();
        self.push(named("start").with_some("providerMetadata", metadata));
        let text = text_of(part, "text");
        if !text.is_empty() {
            self.push(named("delta").with("delta", text));
        }
        if text_of(part, "state") != "streaming" {
            let citations = some(part, "citations").cloned();
            self.push(named("end").with_some("citations", citations));
        }
    }

    fn call(&mut self, part: &Json) {
        let id = text_of(part, "toolCallId");
        let name = tool_of(part).unwrap_or_default();
        let dynamic = text_of(part, "type") == "dynamic-tool";
        let of_call = |kind: &str| chunk(kind).with("toolCallId", id);
        let member = |key: &str| some(part, key).cloned();
        let begun = |kind: &str| {
            of_call(kind)
                .with("toolName", name)
                .with_some("providerExecuted", member("providerExecuted"))
                .with_some("dynamic", dynamic.then_some(true))
                .with_some("title", member("title"))
                .with_some("toolMetadata", member("toolMetadata"))
                .with_some("providerMetadata", member("callProviderMetadata"))
        };
        let state = text_of(part, "state");
        let raw = part.get("rawInput");
        let is_error = state == "output-error";
        if is_error && raw.is_some() && self.major < Major::V7 {
            let refused = begun("tool-input-error")
                .with("input", raw.cloned().unwrap_or_default())
                .with("errorText", text_of(part, "errorText"));
            self.push(refused);
            return;
        }
        if state == "input-streaming" || (is_error && raw.is_some()) {
            let encoding = member("inputEncoding");
            self.push(begun("tool-input-start").with_some("inputEncoding", encoding));
            let text = match (raw.and_then(Json::as_str), part.get("input")) {
                (Some(raw), _) => Some(raw.to_owned()),
                (None, Some(input)) => Some(input.to_text()),
                (None, None) => None,
            };
            if let Some(text) = text {
                self.push(of_call("tool-input-delta").with("inputTextDelta", text));
            }
        } else if is_error && part.get("input").is_none() {
            let refused = begun("tool-input-error")
                .with("input", Json::Null)
                .with("errorText", text_of(part, "errorText"));
            self.push(refused);
            return;
        } else {
            let input = part.get("input").cloned().unwrap_or_default();
            self.push(begun("tool-input-available").with("input", input));
        }
        if let Some(approval) = some(part, "approval").filter(|_| self.major > Major::V5) {
            self.approval(part, approval, state);
        }
        let answered = |kind: &str| {
            of_call(kind)
                .with_some("providerExecuted", member("providerExecuted"))
                .with_some("dynamic", dynamic.then_some(true))
                .with_some("providerMetadata", member("resultProviderMetadata"))
        };
        match state {
            "output-available" => {
                let output = part.get("output").cloned().unwrap_or_default();
                let preliminary = is_set(part, "preliminary").then_some(true);
                let given = answered("tool-output-available").with("output", output);
                self.push(given.with_some("preliminary", preliminary));
            }
            "output-error" => {
                let text = text_of(part, "errorText");
                self.push(answered("tool-output-error").with("errorText", text));
            }
            "output-denied" if self.major > Major::V5 => self.push(of_call("tool-output-denied")),
            _ => {}
        }
    }

    fn approval(&mut self, part: &Json, approval: &Json, state: &str) {
        let id = text_of(approval, "id");
        let member = |key: &str| some(approval, key).cloned();
        let automatic = is_set(approval, "isAutomatic").then_some(true);
        let request = chunk("tool-approval-request")
            .with("approvalId", id)
            .with("toolCallId", text_of(part, "toolCallId"))
            .with_some("approvalDescriptor", member("descriptor"))
            .with_some(
                "inputSchemaInput",
                approval.get("inputSchemaInput").cloned(),
            )
            .with_some("reason", member("requestReason"))
            .with_some("isAutomatic", automatic)
            .with_some("signature", member("signature"));
        self.push(request);
        if let Some(approved) = member("approved").filter(|_| self.major >= Major::V7)
            && state != "approval-requested"
        {
            let response = chunk("tool-approval-response")
                .with("approvalId", id)
                .with("approved", approved)
                .with_some("reason", member("reason"));
            self.push(response);
        }
    }
}
