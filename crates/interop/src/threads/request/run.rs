//! `POST …/runs` and `POST /threads/runs`.

use super::message::CreateMessage;
use super::thread::CreateThread;
use crate::options::{AnswerFormat, RunOptions, RunToolChoice};
use crate::threads::assistant::{Assistant, MAX_INSTRUCTIONS};
use crate::threads::error::RequestError;
use crate::threads::fields::{Fields, MAX_ID, wrong};
use crate::threads::metadata::{Carrier, Metadata, NAMESPACE};
use crate::threads::run::{EXPIRES_AFTER, RunEcho};
use crate::threads::tools::{self, AssistantTool};
use crate::{Converted, Losses};
use serde_json::{Value, json};
use std::time::Duration;

const MAX_TOOLS: usize = 20;
const MIN_TOKENS: u64 = 256;
const TRUNCATIONS: &[&str] = &["auto", "last_messages"];

/// Settings of a run that replace those of its assistant.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunOverrides {
    /// The model's name.
    pub model: Option<String>,
    /// In the place of the assistant's.
    pub instructions: Option<String>,
    /// After the instructions.
    pub additional_instructions: Option<String>,
    /// In the place of the assistant's.
    pub tools: Option<Vec<AssistantTool>>,
    /// 0 to 2.
    pub temperature: Option<f64>,
    /// 0 to 1.
    pub top_p: Option<f64>,
    /// At least 256.
    pub max_prompt_tokens: Option<u64>,
    /// At least 256.
    pub max_completion_tokens: Option<u64>,
    /// The client's value.
    pub truncation_strategy: Option<Value>,
    /// The client's value, and its decoded form.
    pub tool_choice: Option<(Value, RunToolChoice)>,
    /// Whether the model may call several tools at once.
    pub parallel_tool_calls: Option<bool>,
    /// The client's value, and its decoded form.
    pub response_format: Option<(Value, Option<AnswerFormat>)>,
    /// How much the model reasons.
    pub reasoning_effort: Option<String>,
}

impl RunOverrides {
    fn of(fields: &Fields<'_>) -> Result<Self, RequestError> {
        let text = |key: &str, max| {
            let text = fields.text(key, max)?;
            Ok::<_, RequestError>(text.map(str::to_owned))
        };
        let tokens = |key: &str| fields.whole(key, MIN_TOKENS, "an integer of at least 256");
        Ok(Self {
            model: text("model", MAX_ID)?,
            instructions: text("instructions", MAX_INSTRUCTIONS)?,
            additional_instructions: text("additional_instructions", MAX_INSTRUCTIONS)?,
            tools: tools::tools(fields, MAX_TOOLS)?,
            temperature: fields.number("temperature", 2.0, "a number from 0 to 2")?,
            top_p: fields.number("top_p", 1.0, "a number from 0 to 1")?,
            max_prompt_tokens: tokens("max_prompt_tokens")?,
            max_completion_tokens: tokens("max_completion_tokens")?,
            truncation_strategy: truncation(fields)?,
            tool_choice: tools::tool_choice(fields)?,
            parallel_tool_calls: fields.flag("parallel_tool_calls")?,
            response_format: tools::response_format(fields)?,
            reasoning_effort: fields
                .word("reasoning_effort", tools::EFFORTS)?
                .map(str::to_owned),
        })
    }
}

/// The member `truncation_strategy`, with both of its members.
fn truncation(fields: &Fields<'_>) -> Result<Option<Value>, RequestError> {
    let Some(strategy) = fields.object("truncation_strategy")? else {
        return Ok(None);
    };
    let kind = strategy.kind(TRUNCATIONS)?;
    let last = strategy.whole("last_messages", 1, "an integer of at least 1")?;
    if kind == "last_messages" && last.is_none() {
        return Err(strategy.missing("last_messages"));
    }
    Ok(Some(json!({"type": kind, "last_messages": last})))
}

/// A run that is to be made.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateRun {
    /// The assistant that runs.
    pub assistant_id: String,
    /// Whether the answer is a stream.
    pub stream: bool,
    /// Messages to post before the run starts.
    pub additional_messages: Vec<CreateMessage>,
    /// The client's metadata.
    pub metadata: Metadata,
    /// The settings that replace the assistant's.
    pub overrides: RunOverrides,
    /// Time after which the run expires, including waits for the client, in whole seconds. A server
    /// with a shorter limit sets it here.
    pub time: Duration,
}

impl CreateRun {
    /// Reads the body.
    pub fn read(body: &Value) -> Result<Self, RequestError> {
        Self::of(&Fields::of(body, "")?)
    }

    fn of(fields: &Fields<'_>) -> Result<Self, RequestError> {
        Ok(Self {
            assistant_id: fields.required("assistant_id", MAX_ID)?.to_owned(),
            stream: fields.flag("stream")?.unwrap_or_default(),
            additional_messages: CreateMessage::list(fields, "additional_messages")?,
            metadata: Metadata::read(fields, Carrier::Other)?.unwrap_or_default(),
            overrides: RunOverrides::of(fields)?,
            time: Duration::from_secs(EXPIRES_AFTER),
        })
    }

    /// The options of the run, with the values that its object returns to clients. The losses list the
    /// client's options that no agent supports.
    pub fn options(&self, assistant: &Assistant) -> Converted<RunOptions> {
        let mut losses = Losses::default();
        let asked = &self.overrides;
        let is_stored = assistant.agent.is_none();
        // A configured agent has these already.
        let of_stored = |own: &Option<String>| own.clone().filter(|_| is_stored);
        let own_tools = is_stored.then_some(&assistant.tools);
        let tools = asked.tools.as_ref().or(own_tools);
        let format = asked.response_format.clone();
        let format = format.or_else(|| own_format(assistant).filter(|_| is_stored));
        let unmet = [
            ("max_prompt_tokens", asked.max_prompt_tokens.is_some()),
            ("truncation_strategy", truncates(asked)),
        ];
        for (member, _) in unmet.into_iter().filter(|(_, is_asked)| *is_asked) {
            losses.push(format!("/{member}"), "a limit of what the model is sent");
        }
        let mut options = RunOptions {
            model: asked
                .model
                .clone()
                .or_else(|| is_stored.then(|| assistant.model.clone())),
            instructions: asked
                .instructions
                .clone()
                .or_else(|| of_stored(&assistant.instructions)),
            additional_instructions: asked.additional_instructions.clone(),
            tools: tools
                .map(|tools| tools::client_tools(tools))
                .unwrap_or_default(),
            only_these_tools: tools.is_some(),
            tool_choice: asked.tool_choice.as_ref().map(|(_, choice)| choice.clone()),
            parallel_tool_calls: asked.parallel_tool_calls,
            temperature: asked
                .temperature
                .or(assistant.temperature.filter(|_| is_stored)),
            top_p: asked.top_p.or(assistant.top_p.filter(|_| is_stored)),
            max_run_output_tokens: asked.max_completion_tokens,
            reasoning_effort: asked
                .reasoning_effort
                .clone()
                .or_else(|| of_stored(&assistant.reasoning_effort)),
            format: format.as_ref().and_then(|(_, format)| format.clone()),
            ..RunOptions::default()
        };
        let echo = self.echo(assistant, format.map(|(format, _)| format));
        if let Ok(echo) = serde_json::to_value(&echo) {
            options.echo.insert(NAMESPACE.to_owned(), echo);
        }
        losses.with(options)
    }

    fn echo(&self, assistant: &Assistant, response_format: Option<Value>) -> RunEcho {
        let asked = &self.overrides;
        let instructions = asked.instructions.as_ref();
        let instructions = instructions.or(assistant.instructions.as_ref());
        let parts = [instructions, asked.additional_instructions.as_ref()];
        let parts: Vec<&str> = parts.into_iter().flatten().map(String::as_str).collect();
        let model = asked.model.as_ref().unwrap_or(&assistant.model);
        let tools = asked.tools.as_ref().unwrap_or(&assistant.tools);
        RunEcho {
            assistant_id: Some(assistant.id.clone()),
            model: Some(model.clone()),
            instructions: Some(parts.join("\n")),
            tools: tools.clone(),
            metadata: self.metadata.clone(),
            temperature: asked.temperature.or(assistant.temperature),
            top_p: asked.top_p.or(assistant.top_p),
            max_prompt_tokens: asked.max_prompt_tokens,
            max_completion_tokens: asked.max_completion_tokens,
            truncation_strategy: asked.truncation_strategy.clone(),
            tool_choice: asked.tool_choice.as_ref().map(|(value, _)| value.clone()),
            parallel_tool_calls: asked.parallel_tool_calls,
            response_format,
            expires_after: Some(self.time.as_secs()),
        }
    }
}

fn truncates(asked: &RunOverrides) -> bool {
    let strategy = asked.truncation_strategy.as_ref();
    strategy.is_some_and(|strategy| strategy["type"] == "last_messages")
}

/// The form of answers that an assistant was made with; it was checked then.
fn own_format(assistant: &Assistant) -> Option<(Value, Option<AnswerFormat>)> {
    let kept = json!({"response_format": assistant.response_format.as_ref()?});
    tools::response_format(&Fields::of(&kept, "").ok()?).ok()?
}

/// `POST /threads/runs`.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateThreadAndRun {
    /// The thread.
    pub thread: CreateThread,
    /// The run.
    pub run: CreateRun,
}

impl CreateThreadAndRun {
    /// Reads the body.
    pub fn read(body: &Value) -> Result<Self, RequestError> {
        let fields = Fields::of(body, "")?;
        if let Some(value) = fields.get("additional_messages") {
            // They stand in the thread here; taken silently they would be lost.
            let pointer = fields.at("additional_messages");
            return Err(wrong(pointer, "nothing: messages are in \"thread\"", value));
        }
        let thread = fields.object("thread")?;
        let thread = thread.map(|thread| CreateThread::of(&thread)).transpose()?;
        let mut thread = thread.unwrap_or_default();
        let resources = tools::tool_resources(&fields)?;
        thread.tool_resources = thread.tool_resources.or(resources);
        let run = CreateRun::of(&fields)?;
        Ok(Self { thread, run })
    }
}
