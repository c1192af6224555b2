//! Comparison of a call that a client sends with the stored one.

use super::super::left::{LEFT, waits};
use super::same::is_same;
use super::text;
use serde_json::Value;

/// Compares a call with the stored one. `external` is whether the client or another party runs it.
pub(super) fn compare(stored: &Value, sent: &Value, external: bool) -> Result<(), String> {
    let id = text(stored, "toolCallId").unwrap_or_default();
    if name(stored) != name(sent) {
        return Err(format!("the call {id:?} is one of another tool"));
    }
    let state = text(sent, "state").unwrap_or_default();
    // What streams is repaired until it is whole, and what is no object is spelled by versions.
    let told = sent.get("input").filter(|_| state != "input-streaming");
    if let Some((input, told)) = stored.get("input").filter(|it| it.is_object()).zip(told)
        && !is_same(input, told)
    {
        return Err(format!("the call {id:?} has another input"));
    }
    let of = Call {
        id,
        stored,
        external,
    };
    match state {
        "input-streaming" | "input-available" => Ok(()),
        "approval-requested" => of.asked(sent),
        "approval-responded" => of.responded(sent),
        "output-available" if sent.get("preliminary") == Some(&Value::Bool(true)) => Ok(()),
        "output-available" => of.has_output(sent),
        "output-error" => of.has_failed(sent),
        "output-denied" => of.was_denied(),
        _ => Err(format!("the call {id:?} has the state {state:?}")),
    }
}

/// The tool, whether a client knows it or not.
fn name(part: &Value) -> Option<&str> {
    match text(part, "type")? {
        "dynamic-tool" => text(part, "toolName"),
        kind => kind.strip_prefix("tool-"),
    }
}

struct Call<'a> {
    id: &'a str,
    stored: &'a Value,
    external: bool,
}

impl Call<'_> {
    fn state(&self) -> &str {
        text(self.stored, "state").unwrap_or_default()
    }

    /// The approval or denial of the call, if the part has one.
    fn approved(&self) -> Option<bool> {
        let approved = self
            .stored
            .pointer("/approval/approved")
            .and_then(Value::as_bool);
        match self.state() {
            "output-denied" => Some(false),
            _ => approved,
        }
    }

    /// Whether a client may have put the result in.
    fn is_for_client(&self) -> bool {
        self.external && self.state() == "input-available"
    }

    fn asked(&self, sent: &Value) -> Result<(), String> {
        let id = self.id;
        let known = self.stored.pointer("/approval/id");
        let told = sent.pointer("/approval/id");
        let is_same_question = known.is_none() || known == told;
        // Who is asked by a sub-agent's call is told by the sub-agent's.
        let was_asked = known.is_some() || self.state() == "output-denied";
        if was_asked && is_same_question {
            return Ok(());
        }
        Err(format!(
            "nobody was asked so whether the call {id:?} may run"
        ))
    }

    fn responded(&self, sent: &Value) -> Result<(), String> {
        self.asked(sent)?;
        let id = self.id;
        let told = sent.pointer("/approval/approved").and_then(Value::as_bool);
        match self.approved() {
            None => Ok(()),
            known if known == told => Ok(()),
            Some(true) => Err(format!("the call {id:?} was allowed")),
            Some(false) => Err(format!("the call {id:?} was denied")),
        }
    }

    fn has_output(&self, sent: &Value) -> Result<(), String> {
        let id = self.id;
        let null = &Value::Null;
        let output = |part: &Value| part.get("output").unwrap_or(null).clone();
        match self.state() {
            "output-available" if is_same(&output(self.stored), &output(sent)) => Ok(()),
            "output-available" => Err(format!("the call {id:?} has another result")),
            _ if self.is_for_client() => Ok(()),
            _ => Err(format!("the call {id:?} has no such result")),
        }
    }

    fn has_failed(&self, sent: &Value) -> Result<(), String> {
        let id = self.id;
        match self.state() {
            "output-error" if text(self.stored, "errorText") == text(sent, "errorText") => Ok(()),
            // The client was told so when it loaded the chat.
            state if waits(state) && text(sent, "errorText") == Some(LEFT) => Ok(()),
            // Clients of `ai` 5 know no denials.
            "output-denied" => Ok(()),
            _ if self.is_for_client() => Ok(()),
            _ => Err(format!("the call {id:?} has not failed so")),
        }
    }

    fn was_denied(&self) -> Result<(), String> {
        match self.approved() {
            Some(false) => Ok(()),
            Some(true) | None => Err(format!("the call {:?} was not denied", self.id)),
        }
    }
}
