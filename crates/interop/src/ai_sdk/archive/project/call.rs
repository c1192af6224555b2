//! Calls and their answers as one part.

use super::answers::PartAddress;
use super::part::provider;
use super::{Writer, text};
use crate::ai_sdk::chunk::Major;
use crate::ai_sdk::partial_json::PartialJson;
use thread::{Json, Object};

impl Writer<'_, '_> {
    pub(super) fn call(&mut self, call: &Object, at: PartAddress, pointer: &str) {
        const CARRIED: [&str; 8] = [
            "part_kind",
            "tool_name",
            "args",
            "tool_call_id",
            "id",
            "provider_name",
            "provider_details",
            "timestamp",
        ];
        let builtin = call.get_str("part_kind") == Some("builtin-tool-call");
        self.lose_rest(call, &CARRIED, pointer, "a call");
        let name = call.get_str("tool_name").unwrap_or_default();
        let id = call.get_str("tool_call_id").unwrap_or_default();
        let answer = self.answers.to(at);
        let (input, raw) = self.input(call, pointer);
        let mut part = Object::new()
            .with("type", format!("tool-{name}"))
            .with("toolCallId", id)
            .with("state", "input-available");
        match (answer, input) {
            (None, None) => {
                let mut partial = PartialJson::new(Major::NEWEST);
                partial.push(&raw);
                part.insert("state", "input-streaming");
                part = part
                    .with_some("input", partial.value().0)
                    .with("rawInput", raw);
            }
            (Some(_), None) => {
                self.lost(pointer.to_owned(), "arguments that are no JSON, as such");
                part.insert("input", raw);
            }
            (_, Some(input)) => {
                part.insert("input", input);
            }
        }
        if let Some(answer) = answer {
            self.answer(&mut part, answer, id, pointer);
        }
        if builtin {
            part.insert("providerExecuted", true);
        }
        if let Some(metadata) = provider(call) {
            part.insert("callProviderMetadata", metadata);
        }
        self.parts.push(part.into());
    }

    /// The arguments as a value, or `None` and their text where that is no JSON.
    fn input(&mut self, call: &Object, pointer: &str) -> (Option<Json>, String) {
        match call.get("args") {
            Some(Json::String(text)) if text.trim().is_empty() => {
                (Some(Object::new().into()), String::new())
            }
            Some(Json::String(text)) => {
                let input = Json::parse(text).ok();
                if input.as_ref().is_some_and(|input| input.to_text() != *text) {
                    self.lost(format!("{pointer}/args"), "how arguments are spelled");
                }
                (input, text.clone())
            }
            None | Some(Json::Null) => (Some(Object::new().into()), String::new()),
            Some(args) => (Some(args.clone()), String::new()),
        }
    }

    /// Adds the result of the call to its part. A failed or denied call holds only a text; other
    /// content becomes its JSON text.
    fn answer(&mut self, part: &mut Object, answer: &Json, id: &str, pointer: &str) {
        const CARRIED: [&str; 5] = [
            "part_kind",
            "tool_name",
            "content",
            "tool_call_id",
            "status",
        ];
        let content = answer.get("content").cloned().unwrap_or_default();
        let told = || {
            let text = content.as_str().map(str::to_owned);
            text.unwrap_or_else(|| content.to_text())
        };
        let pointer = format!("{pointer}/answer");
        let outcome = text(answer, "outcome");
        let status = text(answer, "status");
        let retried = text(answer, "part_kind") == "retry-prompt";
        let failed = matches!(outcome, "failed" | "retried")
            || matches!(status, "error" | "validation_error");
        if outcome == "denied" {
            let approval = Object::new()
                .with("id", id)
                .with("approved", false)
                .with("reason", told());
            part.insert("state", "output-denied");
            part.insert("approval", approval);
        } else if retried || failed {
            part.insert("state", "output-error");
            part.insert("errorText", told());
        } else {
            part.insert("state", "output-available");
            part.insert("output", content.clone());
        }
        if let Some(answer) = answer.as_object() {
            let plain = matches!(outcome, "success" | "failed" | "denied");
            let mut carried = CARRIED.to_vec();
            if plain {
                carried.push("outcome");
            }
            self.lose_rest(answer, &carried, &pointer, "what a tool returned");
        }
    }
}
