//! The body of `POST /responses`.

use super::echo::Echo;
use super::error::RequestError;
use super::fields::{Fields, invalid, metadata, unsupported, wrong};
use super::include::ListOptions;
use super::item::{InputContent, InputItem, input};
use super::tools;
use crate::ids::{CONVERSATION, read_response_id};
use crate::options::RunOptions;
use crate::{Converted, Losses};
use serde_json::Value;

/// The value of `include` that asks for items beyond the specification.
pub const EXTENSIONS: &str = "loomline:items";

/// The most characters of instructions.
const MAX_INSTRUCTIONS: usize = 10_485_760;

/// The response or conversation that a request continues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Continues {
    /// Nothing: it brings its past with it, and begins a thread.
    Nothing,
    /// The history up to a response, including the response.
    Response {
        /// The response's id, as the request has it.
        id: String,
        /// The thread of the response.
        thread: String,
        /// The first execution of the response.
        execution: String,
    },
    /// A conversation, in its current state.
    Conversation {
        /// The id of the conversation, as the request spells it.
        id: String,
        /// The id or the key of the thread.
        thread: String,
    },
}

/// A request for a response, read and checked.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateRequest {
    /// The response or conversation that the request continues.
    pub continues: Continues,
    /// The input items, in order.
    pub input: Vec<InputItem>,
    /// The options of the run, including the fields that the response must repeat.
    pub options: RunOptions,
    /// Whether the answer is a stream of events.
    pub stream: bool,
    /// Whether the server answers at once and generates the response afterwards.
    pub background: bool,
    /// Whether the response can be retrieved later.
    pub store: bool,
    /// The member of the body that has the input: a JSON pointer.
    pub input_at: &'static str,
}

impl CreateRequest {
    /// Reads the body of a request over HTTP. Unknown members are ignored; the losses are options
    /// that the server can't apply.
    pub fn read(body: &Value) -> Result<Converted<Self>, RequestError> {
        let read = Self::read_to_count(body)?;
        let asked = &read.value;
        let says_nothing = asked.input.is_empty() && asked.continues == Continues::Nothing;
        if says_nothing && !asked.options.without_model {
            return Err(Fields::of(body, "")?.missing("input"));
        }
        Ok(read)
    }

    /// Reads a request that may be empty, because only its tokens are counted.
    pub(super) fn read_to_count(body: &Value) -> Result<Converted<Self>, RequestError> {
        let fields = Fields::of(body, "")?;
        let mut losses = Losses::default();
        let continues = continues(&fields)?;
        let mut options = RunOptions::default();
        let mut echo = Echo::default();
        run_options(&fields, &mut options, &mut echo)?;
        sampling(&fields, &mut options, &mut echo)?;
        included(&fields, &mut echo, &mut losses)?;
        unheeded(&fields, &mut echo, &mut losses)?;
        let (previous, conversation) = match &continues {
            Continues::Nothing => (None, None),
            Continues::Response { id, .. } => (Some(id.as_str()), None),
            Continues::Conversation { id, .. } => (None, Some(id.clone())),
        };
        echo.set("previous_response_id", previous);
        echo.conversation = conversation.is_some();
        let store = fields.flag("store")?;
        // What is not stored is made on a thread that is nobody's conversation.
        echo.conversation_id = conversation.filter(|_| store == Some(false));
        let background = fields.flag("background")?;
        echo.set("store", store.unwrap_or(true));
        echo.set("background", background.unwrap_or(false));
        echo.keep(&mut options);
        options.without_model = fields.flag("generate")? == Some(false);
        let input = input(&fields, "input")?;
        if options.without_model {
            check_prepared(&input)?;
        }
        let request = Self {
            continues,
            input,
            options,
            stream: fields.flag("stream")?.unwrap_or(false),
            background: background.unwrap_or(false),
            store: store.unwrap_or(true),
            input_at: "/input",
        };
        Ok(losses.with(request))
    }

    /// Reads a client's WebSocket message: `{"type": "response.create", …}`. It has no options for
    /// the transport, because the answer is always a stream.
    pub fn read_socket(message: &Value) -> Result<Converted<Self>, RequestError> {
        let fields = Fields::of(message, "")?;
        match fields.required("type", 256)? {
            "response.create" => {}
            kind => {
                let message = format!("messages of type {kind:?} are not understood");
                return Err(unsupported("/type", &message));
            }
        }
        for key in ["stream", "stream_options", "background"] {
            if fields.get(key).is_some() {
                return Err(invalid(fields.at(key), "it can't be said over a WebSocket"));
            }
        }
        Self::read(message).map(|read| {
            read.map(|request| Self {
                stream: true,
                ..request
            })
        })
    }

    /// The ids of the items that the input references, with their pointers, for
    /// [`CreateRequest::thread_input`].
    pub fn references(&self) -> impl Iterator<Item = (&str, &str)> {
        super::thread_input::references(&self.input)
    }
}

/// Refuses approvals in a request that generates nothing (`generate: false`): an approved call may
/// need a model.
fn check_prepared(input: &[InputItem]) -> Result<(), RequestError> {
    let is_leave = |item: &&InputItem| matches!(item.content, InputContent::Approval { .. });
    match input.iter().find(is_leave) {
        Some(leave) => {
            let message = "leave for a call is given to a response that is generated";
            Err(unsupported(leave.pointer.as_str(), message))
        }
        None => Ok(()),
    }
}

/// Reads which response or conversation a request continues.
pub(super) fn continues(fields: &Fields<'_>) -> Result<Continues, RequestError> {
    let previous = fields.text("previous_response_id", 1_024)?;
    let conversation = match fields.get("conversation") {
        None => None,
        Some(Value::String(_)) => fields.text("conversation", 1_024)?.map(str::to_owned),
        Some(value @ Value::Object(_)) => {
            let named = Fields::of(value, fields.at("conversation"))?;
            Some(named.required("id", 1_024)?.to_owned())
        }
        Some(_) => {
            return Err(wrong(
                fields.at("conversation"),
                "an id, or an object with an \"id\"",
            ));
        }
    };
    match (previous, conversation) {
        (None, None) => Ok(Continues::Nothing),
        (Some(id), None) => {
            let (thread, execution) = read_response_id(id)
                .ok_or_else(|| RequestError::previous_response_not_found(id))?;
            Ok(Continues::Response {
                id: id.to_owned(),
                thread,
                execution,
            })
        }
        (None, Some(id)) => Ok(Continues::Conversation {
            thread: CONVERSATION.read(&id).into_owned(),
            id,
        }),
        (Some(_), Some(_)) => {
            let message = "only one of \"previous_response_id\" and \"conversation\" can be given";
            Err(invalid(fields.at("conversation"), message))
        }
    }
}

fn run_options(
    fields: &Fields<'_>,
    options: &mut RunOptions,
    echo: &mut Echo,
) -> Result<(), RequestError> {
    let model = fields.text("model", 256)?.filter(|model| !model.is_empty());
    options.model = model.map(str::to_owned);
    echo.model.clone_from(&options.model);
    options.instructions = fields
        .text("instructions", MAX_INSTRUCTIONS)?
        .map(str::to_owned);
    echo.set("instructions", options.instructions.clone());
    options.tools = tools::tools(fields)?;
    echo.set(
        "tools",
        options
            .tools
            .iter()
            .map(tools::tool_echo)
            .collect::<Vec<_>>(),
    );
    let (choice, said) = tools::tool_choice(fields)?;
    options.tool_choice = choice;
    echo.set("tool_choice", said);
    options.parallel_tool_calls = fields.flag("parallel_tool_calls")?;
    echo.set(
        "parallel_tool_calls",
        options.parallel_tool_calls.unwrap_or(true),
    );
    options.max_tool_calls = fields.count("max_tool_calls", 1, u64::MAX)?;
    echo.set("max_tool_calls", options.max_tool_calls);
    let (format, text) = tools::text(fields)?;
    options.format = format;
    echo.set("text", text);
    reasoning(fields, options, echo)?;
    echo.set("metadata", metadata(fields, "metadata")?);
    Ok(())
}

fn reasoning(
    fields: &Fields<'_>,
    options: &mut RunOptions,
    echo: &mut Echo,
) -> Result<(), RequestError> {
    let Some(reasoning) = fields.object("reasoning")? else {
        return Ok(());
    };
    let efforts = ["none", "minimal", "low", "medium", "high", "xhigh"];
    let summaries = ["auto", "concise", "detailed"];
    let effort = reasoning.word("effort", &efforts)?;
    let summary = match reasoning.word("summary", &summaries)? {
        None => reasoning.word("generate_summary", &summaries)?,
        given => given,
    };
    options.reasoning_effort = effort.map(str::to_owned);
    options.reasoning_summary = summary.map(str::to_owned);
    echo.summary = summary.is_some();
    echo.set(
        "reasoning",
        serde_json::json!({"effort": effort, "summary": summary}),
    );
    Ok(())
}

fn sampling(
    fields: &Fields<'_>,
    options: &mut RunOptions,
    echo: &mut Echo,
) -> Result<(), RequestError> {
    options.temperature = fields.number("temperature", 0.0, 2.0)?;
    options.top_p = fields.number("top_p", 0.0, 1.0)?;
    options.presence_penalty = fields.number("presence_penalty", -2.0, 2.0)?;
    options.frequency_penalty = fields.number("frequency_penalty", -2.0, 2.0)?;
    // No answer may be longer, whatever the agent has, nor all of them together.
    options.max_output_tokens = fields.count("max_output_tokens", 16, u64::MAX)?;
    options.max_run_output_tokens = options.max_output_tokens;
    options.tokens_begin_here = options.max_output_tokens.is_some();
    let numbers = [
        ("temperature", options.temperature),
        ("top_p", options.top_p),
        ("presence_penalty", options.presence_penalty),
        ("frequency_penalty", options.frequency_penalty),
    ];
    for (member, number) in numbers {
        if let Some(number) = number {
            echo.set(member, number);
        }
    }
    echo.set("max_output_tokens", options.max_output_tokens);
    Ok(())
}

fn included(fields: &Fields<'_>, echo: &mut Echo, losses: &mut Losses) -> Result<(), RequestError> {
    let mut options = ListOptions::default();
    for (at, value) in fields.placed("include", 64)?.unwrap_or_default() {
        let value = value.as_str();
        let value = value.ok_or_else(|| wrong(at.as_str(), "a string"))?;
        if !options.include(value, &at)? {
            losses.push(at, format!("{value:?} is not kept"));
        }
    }
    echo.encrypted_reasoning = options.encrypted_reasoning;
    echo.extensions = options.extensions;
    Ok(())
}

/// Reads fields that are validated and echoed, but have no effect.
fn unheeded(fields: &Fields<'_>, echo: &mut Echo, losses: &mut Losses) -> Result<(), RequestError> {
    if let Some(word) = fields.word("truncation", &["auto", "disabled"])? {
        echo.set("truncation", word);
    }
    let text = fields.get("text").and_then(Value::as_object);
    if text.is_some_and(|text| text.get("verbosity").is_some_and(|it| !it.is_null())) {
        let what = "how much an answer says is left to the model";
        losses.push("/text/verbosity", what);
    }
    let tiers = ["auto", "default", "flex", "scale", "priority"];
    if let Some(tier) = fields.word("service_tier", &tiers)?
        && tier != "auto"
        && tier != "default"
    {
        losses.push(fields.at("service_tier"), "there is one tier, \"default\"");
    }
    if let Some(count) = fields.count("top_logprobs", 0, 20)? {
        if count > 0 {
            losses.push(fields.at("top_logprobs"), "log probabilities are not kept");
        }
        echo.set("top_logprobs", count);
    }
    for (key, limit) in [
        ("safety_identifier", 64),
        ("prompt_cache_key", 64),
        ("user", 512),
    ] {
        if let Some(text) = fields.text(key, limit)? {
            echo.set(key, text);
        }
    }
    if let Some(word) = fields.word("prompt_cache_retention", &["in_memory", "in-memory", "24h"])? {
        echo.set("prompt_cache_retention", word);
    }
    if let Some(options) = fields.object("stream_options")? {
        // Padding against guesses at the length of tokens: the log's pieces are no tokens.
        options.flag("include_obfuscation")?;
    }
    if fields.get("prompt").is_some() {
        let message = "prompts are not kept here; send their text as \"instructions\"";
        return Err(unsupported(fields.at("prompt"), message));
    }
    if fields.get("context_management").is_some() {
        losses.push(fields.at("context_management"), "the server's own is used");
    }
    Ok(())
}
