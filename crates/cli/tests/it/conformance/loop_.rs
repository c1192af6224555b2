//! The loop strategy: what a conversation is after a run.

use super::cases::{Block, Case, compare};
use super::tools;
use agents::{Agent, AgentError, AgentOptions, AgentState, Limit, Loop};
use std::num::NonZeroU32;
use std::sync::Arc;
use upp::{AssistantContent, Message, Script, Scripted, UserContent};

pub(crate) fn check(case: &Case) -> Result<(), String> {
    tools::wait(run(case))
}

async fn run(case: &Case) -> Result<(), String> {
    let mut model = Scripted::new();
    let mut last = Ok(AgentState::initial());
    let mut n_checks = 0;
    for block in &case.blocks {
        match block.info().as_slice() {
            ["json", "script"] => {
                let script = Script::from_json(&block.text).map_err(|error| told(&error))?;
                model = Scripted::with_script(script);
            }
            ["prompt", ..] => {
                let agent = agent(&model, block)?;
                let state = last.map_err(|error: AgentError| told(&error))?;
                let streamed = agent
                    .stream(block.text.as_str(), state.clone())
                    .result()
                    .await;
                let result = agent.generate(block.text.as_str(), state).await;
                if streamed.is_ok() != result.is_ok() {
                    return Err("stream and generate end differently".into());
                }
                last = result.map(|result| result.state);
            }
            ["messages"] => {
                n_checks += 1;
                let state = last.as_ref().map_err(|error| told(error))?;
                compare(&block.lines(), &messages(state))?;
            }
            ["error"] => {
                n_checks += 1;
                let found = last.as_ref().err().map(kind);
                compare(&block.lines(), &found.into_iter().collect::<Vec<_>>())?;
            }
            _ => return Err(block.unknown()),
        }
    }
    if n_checks == 0 {
        return Err("the case checks nothing".into());
    }
    Ok(())
}

fn agent(model: &Scripted, prompt: &Block) -> Result<Agent, String> {
    let mut options = AgentOptions::new("demo", Arc::new(model.clone()));
    options.tools = tools::all();
    if let Some(rounds) = prompt.number("rounds")? {
        let limit = NonZeroU32::new(rounds).ok_or("a limit is not 0")?;
        options.execution = Arc::new(Loop {
            max_iterations: Limit::AtMost(limit),
        });
    }
    Agent::new(options).map_err(|error| told(&error))
}

fn messages(state: &AgentState) -> Vec<String> {
    state.messages().iter().flat_map(lines).collect()
}

fn lines(message: &Message) -> Vec<String> {
    match message {
        Message::User(message) => {
            let text = message.content.iter().map(|block| match block {
                UserContent::Text { text } => format!("user: {text}"),
                other => format!("user: {other:?}"),
            });
            text.collect()
        }
        Message::Assistant(message) => {
            let content = message.content.iter().map(|block| match block {
                AssistantContent::Text { text } => format!("assistant: {text}"),
                other => format!("assistant: {other:?}"),
            });
            let calls = message.tool_calls.iter().map(|call| {
                format!(
                    "assistant: call {} {}",
                    call.tool_name,
                    call.arguments.text()
                )
            });
            content.chain(calls).collect()
        }
        Message::ToolResult(message) => {
            let results = message.results.iter().map(|result| {
                let value = match result.result.as_str() {
                    Some(text) => text.to_owned(),
                    None => result.result.to_string(),
                };
                let error = if result.is_error { "error " } else { "" };
                format!("tool: {error}{value}")
            });
            results.collect()
        }
    }
}

fn kind(error: &AgentError) -> String {
    match error {
        AgentError::Model(error) => format!("model {:?}", error.code),
        other => told(other),
    }
}

fn told(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    text
}
