//! `threads show`: a conversation as text.

use super::missing;
use crate::args::Whose;
use crate::error::CliError;
use crate::output::{BOLD, DIM, Output, TOOL, clean};
use crate::store::{Reach, StoreLocation};
use interop::ag_ui::was_cut_off;
use interop::parts::{ToolPart, ToolState, cut_off_parts};
use runtime::Filter;
use serde_json::{Value, json};
use server::OpenMode;
use std::collections::BTreeMap;
use timeline::{ANSWER, Entry, Item, Payload, Reaction, Role, StepRecord, Transcript};

pub(super) async fn show(
    place: &StoreLocation,
    whose: &Whose,
    key: &str,
    output: &Output,
) -> Result<(), CliError> {
    let reach = place.reach(whose, OpenMode::ReadOnly).await?;
    let mut transcript = read(&reach, key, Filter::Facts).await?;
    if was_cut_off(&transcript) {
        transcript = read(&reach, key, Filter::All).await?;
    }
    let last = LastParts::of(&transcript);
    let is_reaction = |entry: &Entry| matches!(entry, Entry::Reaction(_));
    let newest = transcript.entries.iter().rposition(is_reaction);
    for (n, entry) in transcript.entries.iter().enumerate() {
        match entry {
            Entry::Item(item) => show_item(item, output)?,
            Entry::Reaction(reaction) => {
                show_reaction(reaction, (&last, Some(n) == newest), output)?;
            }
        }
    }
    Ok(())
}

async fn read(reach: &Reach, key: &str, filter: Filter) -> Result<Transcript, CliError> {
    match reach {
        Reach::Server(client) => client.transcript(key, filter).await,
        Reach::Store(app, tenant) => {
            let found = app.runtime(tenant).transcript(tenant, key, filter).await;
            found.map_err(|error| missing(error, key))
        }
    }
}

/// The last part of each tool call. A continued run repeats a call that waited.
struct LastParts(BTreeMap<String, Payload>);

impl LastParts {
    fn of(transcript: &Transcript) -> Self {
        let mut last = BTreeMap::new();
        for entry in &transcript.entries {
            let Entry::Reaction(reaction) = entry else {
                continue;
            };
            for part in reaction.steps.iter().flat_map(|step| &step.parts) {
                if let Some(tool) = ToolPart::read(&part.part) {
                    last.insert(tool.tool_call_id, part.part.clone());
                }
            }
        }
        Self(last)
    }

    /// Whether the part has no result, and a later part of the same call exists.
    fn is_outdated(&self, tool: &ToolPart, part: &Payload) -> bool {
        match tool.state {
            ToolState::OutputAvailable | ToolState::OutputError => return false,
            ToolState::InputAvailable
            | ToolState::ApprovalRequested
            | ToolState::ApprovalResponded => {}
        }
        let last = self.0.get(&tool.tool_call_id);
        last.is_some_and(|last| last.text() != part.text())
    }
}

fn show_item(item: &Item, output: &Output) -> Result<(), CliError> {
    let content = item
        .content
        .as_ref()
        .map(Payload::value)
        .unwrap_or_default();
    output.value(&serde_json::to_value(item).unwrap_or_default())?;
    let author = match item.role {
        Some(Role::Assistant) => "assistant",
        Some(Role::System) => "system",
        Some(Role::Developer) => "developer",
        Some(Role::User) | None => "user",
    };
    output.line(&format!("{BOLD}{author}{BOLD:#}  {}", text_of(&content)))
}

fn show_reaction(
    reaction: &Reaction,
    (last, is_newest): (&LastParts, bool),
    output: &Output,
) -> Result<(), CliError> {
    let agent = runtime::Run::of(reaction.execution.run.as_ref())
        .agent
        .map_or_else(|| "agent".into(), |agent| clean(&agent));
    let of_step = |step: &StepRecord| {
        let stored = step.parts.iter().map(|part| part.part.clone());
        stored.chain(cut_off_parts(step)).collect::<Vec<_>>()
    };
    for part in reaction.steps.iter().flat_map(of_step) {
        let value = part.value();
        output.value(&json!({"executionId": reaction.execution.id, "part": value}))?;
        let line = match ToolPart::read(&part) {
            Some(tool) if last.is_outdated(&tool, &part) => continue,
            Some(tool) => tool_line(&tool, is_newest),
            None if value["type"] == "reasoning" => format!("{DIM}{}{DIM:#}", text_of(&value)),
            None => text_of(&value),
        };
        output.line(&format!("{BOLD}{agent}{BOLD:#}  {line}"))?;
    }
    let Some(why) = &reaction.execution.interruption else {
        return Ok(());
    };
    output.value(&json!({"executionId": reaction.execution.id, "interruption": why}))?;
    let detail = why.detail.as_ref().map(|detail| format!(": {detail}"));
    output.line(&format!(
        "{DIM}ended early, {}{}{DIM:#}",
        clean(&why.reason),
        clean(&detail.unwrap_or_default())
    ))
}

/// A call and its result. Calls wait in the newest reaction only.
fn tool_line(tool: &ToolPart, is_newest: bool) -> String {
    let result = match (&tool.error_text, &tool.output, tool.state) {
        (Some(error), ..) => Value::from(error.as_str()).to_string(),
        (None, Some(output), _) => output.value().to_string(),
        // A result that is null is read as none.
        (None, None, ToolState::OutputAvailable) => "null".to_owned(),
        (None, None, ToolState::ApprovalRequested) if is_newest => {
            "waits for an approval".to_owned()
        }
        (None, None, ToolState::ApprovalRequested) => "withdrawn".to_owned(),
        (None, None, ToolState::OutputError) => "failed".to_owned(),
        (None, None, ToolState::InputAvailable | ToolState::ApprovalResponded) => {
            "no result yet".to_owned()
        }
    };
    let outcome = match tool.outcome.as_deref() {
        Some(outcome @ ("denied" | "interrupted")) => format!("{outcome}: "),
        Some(_) | None => String::new(),
    };
    let input = tool.input.as_ref().map(|input| input.value().to_string());
    let input = input.unwrap_or_else(|| tool.arguments().to_owned());
    let (name, input) = (clean(tool.tool_name()), clean(&input));
    format!("{TOOL}{name}{TOOL:#} {input} → {outcome}{}", clean(&result))
}

/// The text in a content or a part.
fn text_of(content: &Value) -> String {
    let text = match content {
        Value::Array(parts) => parts.iter().map(text_of).collect::<Vec<_>>().join(" "),
        Value::Object(part) => match part.get("text").and_then(Value::as_str) {
            Some(text) => text.to_owned(),
            None if content["type"] == ANSWER => answer_text(content),
            None => format!("[{}]", content["type"].as_str().unwrap_or("part")),
        },
        Value::String(text) => text.clone(),
        Value::Null | Value::Bool(_) | Value::Number(_) => String::new(),
    };
    clean(&text)
}

/// The decision or the result of an answer to a call.
fn answer_text(answer: &Value) -> String {
    let call = answer["toolCallId"].as_str().unwrap_or_default();
    let decision = match answer["approved"].as_bool() {
        Some(true) => "approved",
        Some(false) => "denied",
        None => "answered",
    };
    format!("[{decision} {call}]")
}
