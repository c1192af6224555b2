//! The details of a step: input, output, tokens, attempts, errors.

use super::console_run::ConsoleRun;
use crate::chat::message_text;
use crate::elements::{badge, fact, short_text, travel};
use crate::json;
use crate::time;
use crate::words::{counted, outcome_words};
use interop::parts::{EventPart, ReasoningPart, StepResponse, TextPart, ToolPart, is_prompt};
use interop::run::{Attempt, AttemptEnd, StepTimes};
use maud::{Markup, html};
use std::collections::BTreeMap;
use timeline::{ItemType, Payload, StepRecord, StepStatus};

/// The details of the step at a position of its run.
pub(super) fn step_details(
    run: &ConsoleRun<'_>,
    (at, record): (usize, &StepRecord),
    times: Option<&StepTimes>,
) -> Markup {
    let response = record.response.as_ref();
    let response: Option<StepResponse> = response.and_then(|(it, _)| it.read().ok());
    let response = response.unwrap_or_default();
    let (state, words) = match record.step.status {
        StepStatus::Running => ("running", "running"),
        StepStatus::Completed => ("ok", "done"),
        StepStatus::Failed => ("error", "failed"),
    };
    let travels = times.filter(|_| run.seq.is_some());
    html! {
        details class="data" id={ "step-" (record.step.iteration) } {
            summary {
                "Step " (record.step.iteration)
                @if let Some(model) = &response.model { span class="quiet" { (json::visible(model)) } }
                @if let Some(ended) = record.ended_at { span class="quiet" { (time::between(record.step.created_at, ended)) } }
                (badge((state, words)))
                @if record.n_resets > 0 { (badge(("waits", &format!("{} voided", counted(record.n_resets, "attempt"))))) }
            }
            div class="io" {
                (facts(&response))
                @if let Some(error) = &record.step.outcome.error_text {
                    span class="label" { "Error" }
                    pre class="error" tabindex="0" dir="auto" { (short_text(error)) }
                }
                @if let Some(why) = &record.step.outcome.cut_short { p class="note" { "Ended before the agent was done: " (json::visible(why)) } }
                (input(run, at, record))
                (output(record))
                @if let Some(times) = times { (attempts(times)) }
                @if let Some(times) = travels {
                    span class="label" { "Before the step" }
                    div class="buttons" { (travel(run.thread_key, times.first_seq.0.saturating_sub(1).max(1))) }
                    span class="label" { "After the step" }
                    div class="buttons" { (travel(run.thread_key, times.last_seq.0)) }
                }
            }
        }
    }
}

fn facts(response: &StepResponse) -> Markup {
    let usage: Option<BTreeMap<String, serde_json::Value>> =
        response.usage.as_ref().and_then(|usage| usage.read().ok());
    let usage = usage.unwrap_or_default();
    let counts = usage.iter().filter_map(|(name, count)| {
        let count = count.as_u64().filter(|count| *count > 0)?;
        Some((name, count))
    });
    let texts = [
        ("Provider", response.provider.as_deref()),
        ("Model", response.model.as_deref()),
        ("Stop reason", response.stop_reason.as_deref()),
        ("Response", response.response_id.as_deref()),
    ];
    html! {
        dl class="facts" {
            @for (name, text) in texts {
                @if let Some(text) = text { (fact(name, &html! { (json::visible(text)) })) }
            }
            @for (name, count) in counts { (fact(&json::visible(name), &html! { (count) })) }
        }
    }
}

/// The new input of a step: the trigger for the first one, then the results of the step before.
fn input(run: &ConsoleRun<'_>, at: usize, record: &StepRecord) -> Markup {
    let before = at.checked_sub(1).and_then(|at| run.reaction.steps.get(at));
    let prompts = record.parts.iter().filter(|part| is_prompt(&part.part));
    html! {
        span class="label" { "New input" }
        @match before {
            Some(before) => {
                @let tools: Vec<ToolPart> = before.parts.iter().filter_map(|part| ToolPart::read(&part.part)).collect();
                @if tools.is_empty() { p class="quiet" { "The previous step called no tool." } }
                @for tool in &tools { (result(tool)) }
            }
            None => (trigger(run)),
        }
        @for prompt in prompts {
            span class="label" { "Prompt of the strategy" }
            pre tabindex="0" dir="auto" { (short_text(&prompt.part.str_field("text").unwrap_or_else(|| prompt.part.text().to_owned()))) }
        }
    }
}

fn trigger(run: &ConsoleRun<'_>) -> Markup {
    let content = run.trigger.content.as_ref();
    let text = content.map(message_text).filter(|text| !text.is_empty());
    let other = content.map(Payload::text).unwrap_or_default();
    let is_answer = run.trigger.item_type == ItemType::ActionResult;
    html! {
        @if is_answer { p class="quiet" { "Answers to calls of the previous run:" } }
        pre tabindex="0" dir="auto" { (short_text(text.as_deref().unwrap_or(other))) }
    }
}

fn result(tool: &ToolPart) -> Markup {
    let name = json::visible(tool.tool_name());
    html! {
        @match tool.result_text() {
            Some(text) => {
                p { "Result of " code { (name) } }
                pre tabindex="0" dir="auto" { (short_text(&text)) }
            }
            None => p { code { (name) } " has no result." },
        }
    }
}

fn output(record: &StepRecord) -> Markup {
    let half = interop::parts::cut_off_parts(record);
    let parts = record.parts.iter().map(|part| &part.part);
    let parts: Vec<&Payload> = parts.filter(|part| !is_prompt(part)).collect();
    html! {
        span class="label" { "Output" }
        @if parts.is_empty() && half.is_empty() { p class="quiet" { "No output." } }
        @for part in parts { (part_html(part)) }
        @if !half.is_empty() { p class="quiet" { "Streamed before the step ended:" } }
        @for part in &half { (part_html(part)) }
    }
}

fn part_html(part: &Payload) -> Markup {
    if let Some(tool) = ToolPart::read(part) {
        let outcome = tool.outcome.as_deref();
        return html! {
            p {
                "Call of " code { (json::visible(tool.tool_name())) }
                @if let Some(millis) = tool.duration_ms { " · " (interop::run::duration_text(millis)) }
                @if let Some(outcome) = outcome { " · " (json::visible(outcome_words(outcome))) }
            }
            pre tabindex="0" dir="auto" { (short_text(tool.arguments())) }
            (result(&tool))
        };
    }
    if let Some(event) = EventPart::read(part) {
        return html! {
            p { code { (json::visible(&event.part_type)) } }
            pre tabindex="0" { (short_text(event.data.text())) }
        };
    }
    let name = part.str_field("type").unwrap_or_default();
    let text = match name.as_str() {
        "output_text" => part.read::<TextPart>().ok().map(|part| part.text),
        "reasoning" => part.read::<ReasoningPart>().ok().map(|part| part.text),
        _ => None,
    };
    html! {
        @match text {
            Some(text) if name == "reasoning" => {
                p class="quiet" { "Reasoning" }
                div class="plain quiet" dir="auto" { (short_text(&text)) }
            }
            Some(text) => div class="plain" dir="auto" { (short_text(&text)) },
            None => {
                p { code { (json::visible(&name)) } }
                pre tabindex="0" { (short_text(part.text())) }
            }
        }
    }
}

fn attempts(times: &StepTimes) -> Markup {
    html! {
        span class="label" { "Attempts" }
        ol class="attempts" { @for attempt in &times.attempts { li { (attempt_words(attempt)) } } }
    }
}

fn attempt_words(attempt: &Attempt) -> Markup {
    html! {
        (time::exact(attempt.started))
        @match attempt.ended {
            None => " · running",
            Some((at, reason)) => {
                " · " (time::between(attempt.started, at)) " · "
                @match reason {
                    AttemptEnd::Completed => "the model answered",
                    AttemptEnd::Failed => "failed or stopped",
                    AttemptEnd::Restarted => "voided: the process stopped",
                    AttemptEnd::Retried => "voided: the model was called again",
                }
            }
        }
        @if let Some(first) = attempt.first_chunk { " · first token after " (time::between(attempt.started, first)) }
        " · " (counted(attempt.n_chunks, "chunk"))
    }
}
