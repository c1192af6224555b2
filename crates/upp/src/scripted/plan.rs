//! Plans one answer of the scripted model. Pure: it reads only the request.

use super::arguments::from_text;
use super::check::accepts;
use super::instance::Instances;
use super::limit;
use super::prompt::{self, Action, Failure};
use super::script::{Script, ScriptTurn};
use super::situation::{Situation, words};
use super::work::WorkBudget;
use crate::error::{Code, Error};
use crate::message::{Message, Messages};
use crate::model::{Request, StopReason, ToolChoice};
use crate::tool::{Arguments, Tool, ToolCall, ToolCallId};
use crate::usage::CycleUsage;
use serde_json::Value;
use std::time::Duration;

const WORDS: &[&str] = &[
    "the", "loom", "weaves", "a", "thread", "of", "words", "and", "each", "turn", "adds", "one",
    "more", "row", "until", "cloth", "is", "done",
];

/// One answer, ready to be streamed.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) reasoning: Option<(String, String)>,
    pub(super) text: Option<String>,
    pub(super) calls: Vec<ToolCall>,
    pub(super) data: Option<Value>,
    pub(super) usage: CycleUsage,
    pub(super) stop_reason: Option<StopReason>,
    pub(super) delay: Option<Duration>,
    /// The failure and the number of deltas before it; `None` is after the last one.
    pub(super) failure: Option<(Option<usize>, Error)>,
}

/// Decides the answer to `request`.
pub(super) fn plan(
    request: &Request,
    script: Option<&Script>,
    slow: Duration,
) -> Result<Plan, Error> {
    let situation = Situation::of(&request.messages);
    let mut plan = match script {
        Some(script) => scripted(request, &situation, script)?,
        None => prompted(request, &situation, slow)?,
    };
    limit::limit(&mut plan, &request.params);
    count(&mut plan, &situation);
    Ok(plan)
}

fn refused(code: Code, message: impl Into<String>) -> Error {
    Error::new(code, super::PROVIDER, message)
}

fn count(plan: &mut Plan, situation: &Situation) {
    if plan.usage != CycleUsage::default() {
        return;
    }
    let reasoning = plan.reasoning.as_ref().map_or(0, |(text, _)| words(text));
    let text = plan.text.as_deref().map_or(0, words);
    let calls: usize = plan.calls.iter().map(limit::call_words).sum();
    plan.usage.input_tokens = situation.words() as u64;
    plan.usage.output_tokens = (reasoning + text + calls) as u64;
    plan.usage.reasoning_tokens = reasoning as u64;
}

fn scripted(request: &Request, situation: &Situation, script: &Script) -> Result<Plan, Error> {
    let index = if script.per_turn {
        situation.rounds
    } else {
        assistant_messages(&request.messages)
    };
    let Some(turn) = script.turn(index) else {
        return Err(refused(
            Code::InvalidRequest,
            format!(
                "no scripted turn at index {index}; the script has {}",
                script.turns.len()
            ),
        ));
    };
    let data = match (&request.structure, &turn.text) {
        (Some(_), Some(text)) if turn.tool_calls.is_empty() => serde_json::from_str(text).ok(),
        (Some(_) | None, _) => None,
    };
    Ok(Plan {
        reasoning: turn
            .reasoning
            .as_ref()
            .map(|text| (text.clone(), signature(text))),
        text: turn.text.clone(),
        calls: scripted_calls(request, &situation.text, turn),
        data,
        usage: turn.usage.clone().unwrap_or_default(),
        stop_reason: turn.stop_reason.clone(),
        delay: turn.delay_ms.map(Duration::from_millis),
        failure: turn.error.as_ref().map(|failure| {
            let mut error = refused(failure.code, failure.message.clone());
            error.retry_after = failure.retry_after_ms.map(Duration::from_millis);
            (None, error)
        }),
    })
}

fn assistant_messages(messages: &Messages) -> usize {
    messages
        .iter()
        .filter(|message| matches!(message, Message::Assistant(_)))
        .count()
}

fn scripted_calls(request: &Request, text: &str, turn: &ScriptTurn) -> Vec<ToolCall> {
    turn.tool_calls
        .iter()
        .enumerate()
        .map(|(index, call)| {
            let arguments = match &call.arguments {
                Value::String(text) => Arguments::from_text(text),
                Value::Null => Arguments::from_text("{}"),
                value
                @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
                    Arguments::from_value(value)
                }
            };
            let id = call.id.as_deref().map(ToolCallId::from);
            ToolCall {
                tool_call_id: id.unwrap_or_else(|| call_id(request, text, index)),
                tool_name: call.name.as_str().into(),
                arguments,
                after: call.after.iter().map(|id| id.as_str().into()).collect(),
            }
        })
        .collect()
}

fn prompted(request: &Request, situation: &Situation, slow: Duration) -> Result<Plan, Error> {
    let (delay, text) = prompt::slow(&situation.text, slow);
    let mut plan = Plan {
        delay,
        ..Plan::default()
    };
    if prompt::has_word(text, "think") || prompt::has_word(text, "reason") {
        let start: Vec<&str> = text.split_whitespace().take(12).collect();
        let thought = format!("Thinking about: {}", start.join(" "));
        let signature = signature(&thought);
        plan.reasoning = Some((thought, signature));
    }
    match next(request, situation, text)? {
        Next::Fail(failure) => {
            plan.failure = Some((Some(failure.after.unwrap_or(0)), error_of(failure)));
            plan.text = Some(talk(text, situation));
        }
        Next::Call(calls) => plan.calls = calls,
        Next::Answer => {
            if let Some(schema) = &request.structure {
                let data = structured(schema, text);
                plan.text = Some(data.to_string());
                plan.data = Some(data);
            } else {
                plan.text = Some(talk(text, situation));
            }
        }
    }
    Ok(plan)
}

enum Next {
    Call(Vec<ToolCall>),
    Fail(Failure),
    Answer,
}

fn next(request: &Request, situation: &Situation, text: &str) -> Result<Next, Error> {
    let tools: &[Tool] = if request.tool_choice == ToolChoice::None {
        &[]
    } else {
        &request.tools
    };
    let answered = !situation.results.is_empty();
    if let ToolChoice::Tool(name) = &request.tool_choice {
        let Some(tool) = tools.iter().find(|tool| tool.name == *name) else {
            return Err(refused(
                Code::InvalidRequest,
                format!("the tool choice names '{name}', which is not among the tools"),
            ));
        };
        if answered {
            return Ok(Next::Answer);
        }
        if let Some(failure) = prompt::failure(text) {
            return Ok(Next::Fail(failure));
        }
        let rest = prompt::mentions(text, std::slice::from_ref(tool))
            .first()
            .map_or(text, |mention| mention.rest);
        return Ok(Next::Call(vec![call(request, text, 0, tool, rest)]));
    }
    if let Some(action) = prompt::actions(text, tools)
        .into_iter()
        .nth(situation.rounds)
    {
        return Ok(match action {
            Action::Fail(failure) => Next::Fail(failure),
            Action::Call(mentions) => Next::Call(
                mentions
                    .into_iter()
                    .enumerate()
                    .map(|(index, mention)| call(request, text, index, mention.tool, mention.rest))
                    .collect(),
            ),
        });
    }
    if request.tool_choice == ToolChoice::Required && !answered {
        let Some(tool) = tools.first() else {
            return Err(refused(
                Code::InvalidRequest,
                "a tool call is required, but there are no tools",
            ));
        };
        return Ok(Next::Call(vec![call(request, text, 0, tool, text)]));
    }
    Ok(Next::Answer)
}

fn call(request: &Request, text: &str, index: usize, tool: &Tool, rest: &str) -> ToolCall {
    ToolCall {
        tool_call_id: call_id(request, text, index),
        tool_name: tool.name.as_str().into(),
        arguments: Arguments::from_value(&from_text(&tool.parameters, rest)),
        after: Vec::new(),
    }
}

fn talk(text: &str, situation: &Situation) -> String {
    let Some(count) = prompt::word_count(text) else {
        return situation.answer();
    };
    let said: Vec<&str> = WORDS.iter().copied().cycle().take(count).collect();
    said.join(" ")
}

/// A valid object from the text, else an object from the text's values and made-up ones.
fn structured(schema: &Value, text: &str) -> Value {
    let work = WorkBudget::new();
    let mut rest = text;
    while let Some(found) = rest.find('{').and_then(|at| rest.get(at..)) {
        let Some((object, length)) = prompt::object_at(found) else {
            rest = found.get(1..).unwrap_or_default();
            continue;
        };
        let object = Value::Object(object);
        if accepts(&work, schema, schema, &object) {
            return object;
        }
        rest = found.get(length..).unwrap_or_default();
    }
    let made = from_text(schema, "");
    if made.is_object() {
        from_text(schema, text)
    } else {
        Instances::of(&WorkBudget::new(), schema).value(schema, "", 0)
    }
}

fn error_of(failure: Failure) -> Error {
    let mut error = refused(failure.code, "the prompt asked to fail");
    if failure.code == Code::RateLimited {
        error.retry_after = Some(Duration::from_secs(1));
    }
    error
}

fn signature(text: &str) -> String {
    format!("scripted-{:016x}", mixed(fnv(text)))
}

/// An id that is equal for equal requests and different for each call of a thread. It mixes the position
/// of the answer in the history with that of the call in the answer.
fn call_id(request: &Request, text: &str, index: usize) -> ToolCallId {
    let place = ((request.messages.len() as u64) << 20) | (index as u64 & 0xF_FFFF);
    let id = format!("call_{:016x}", mixed(place) ^ mixed(fnv(text)));
    ToolCallId::from(id.as_str())
}

/// FNV-1a.
fn fnv(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// The finaliser of `SplitMix64`, which is one to one.
fn mixed(seed: u64) -> u64 {
    let seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let seed = (seed ^ (seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let seed = (seed ^ (seed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    seed ^ (seed >> 31)
}
