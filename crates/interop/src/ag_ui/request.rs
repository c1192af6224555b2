//! The body of a request: `RunAgentInput`.

use crate::fields::{Refusal, Wrong, check_count, check_length};
use crate::options::{ClientTool, RunOptions, TOOL_NAME, check_schema, is_tool_name, repeated};
use crate::request::{file, is_inline, is_web};
use serde_json::{Map, Value, json};
use timeline::{ANSWER, OpenCall, OpenKind, Payload};

/// The result for the model of a call that the user abandoned.
const GIVEN_UP: &str = "Nobody gave a result.";
/// Maximum number of messages of a request. Only the tool and user messages at the end are read;
/// the others are only counted.
const MAX_MESSAGES: usize = 10_000;
/// The most parts of a message that is read.
const MAX_PARTS: usize = 256;
/// The most bytes of an id.
const MAX_ID_BYTES: usize = 256;
/// The most bytes of text in one part.
const MAX_TEXT_BYTES: usize = 1 << 20;
/// The most tools, pieces of context and answers.
const MAX_ENTRIES: usize = 256;

/// Under which name an answer keeps the id of the client's message that gave it.
pub(crate) const MESSAGE_ID: &str = "loomline.message_id";

/// The name under which a run stores fields that its view must repeat.
pub(super) const ECHO: &str = "ag-ui";

/// The request of a client.
#[derive(Clone, Debug, PartialEq)]
pub struct RunInput {
    /// The thread's key.
    pub thread_id: String,
    /// The client's name of the run.
    pub run_id: String,
    /// The user's messages at the end of the list: the new ones, and earlier ones without an answer.
    pub messages: Vec<NewMessage>,
    /// The tool messages at the end of the list, among the user's.
    pub results: Vec<ToolAnswer>,
    /// Answers to interrupts.
    pub resume: Vec<InterruptAnswer>,
    /// The client's tools and context, and its state for the echo.
    pub options: RunOptions,
}

impl RunInput {
    /// The results for pending calls of tools that the client runs. A client also sends tool
    /// messages of server-side tools; those are ignored.
    pub fn results_for(&self, open: &[OpenCall]) -> Vec<&ToolAnswer> {
        let waits = |id: &str| {
            let mut open = open.iter();
            open.any(|call| call.kind == OpenKind::External && call.tool_call_id == id)
        };
        let results = self.results.iter();
        results.filter(|it| waits(&it.tool_call_id)).collect()
    }
}

/// A user's message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewMessage {
    /// The index of the message in the request, from 0.
    pub index: usize,
    /// The client's id of the message.
    pub id: String,
    /// The parts, in the log's shapes.
    pub content: Payload,
}

/// The result of a tool that the client has run.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolAnswer {
    /// The index of the message in the request, from 0.
    pub index: usize,
    /// The call.
    pub tool_call_id: String,
    /// The answer, as a part of the log's ([`timeline::Answer`]).
    pub part: Value,
}

/// An answer to an interrupt.
#[derive(Clone, Debug, PartialEq)]
pub struct InterruptAnswer {
    /// The interrupt.
    pub interrupt_id: String,
    /// The answer; `None` if the user gave up.
    pub payload: Option<Value>,
}

impl InterruptAnswer {
    /// Whether it has the result of a call.
    pub fn gives_result(&self) -> bool {
        let has = |member: &str| {
            self.payload
                .as_ref()
                .is_some_and(|it| it.get(member).is_some())
        };
        has("output") || has("errorText")
    }

    /// The result of a client's call, as a part in the log's format. If the user gave up, it is a
    /// failure.
    ///
    /// # Errors
    ///
    /// The payload has no result, or more than one.
    pub fn result(&self, tool_call_id: &str, pointer: &str) -> Result<Value, RunInputError> {
        let mut answer = json!({"type": ANSWER, "toolCallId": tool_call_id});
        let Some(payload) = &self.payload else {
            answer["errorText"] = GIVEN_UP.into();
            return Ok(answer);
        };
        match (payload.get("output"), payload.get("errorText")) {
            (Some(output), None) => answer["output"] = output.clone(),
            (None, Some(Value::String(error))) => answer["errorText"] = error.as_str().into(),
            (None | Some(_), _) => {
                let words = "an object with an \"output\", or with a string as \"errorText\"";
                return Err(expected(format!("{pointer}/payload"), words));
            }
        }
        Ok(answer)
    }

    /// The answer to the question whether a call may run, as a part of the log's. Giving up is a refusal.
    ///
    /// # Errors
    ///
    /// The payload does not say whether it may.
    pub fn approval(&self, tool_call_id: &str, pointer: &str) -> Result<Value, RunInputError> {
        let mut answer = json!({"type": ANSWER, "toolCallId": tool_call_id});
        let Some(payload) = &self.payload else {
            answer["approved"] = false.into();
            return Ok(answer);
        };
        let said = payload.get("approved").and_then(Value::as_bool);
        let approved = said.or(payload.as_bool());
        let pointer = format!("{pointer}/payload/approved");
        let approved = approved.ok_or_else(|| expected(pointer, "true or false"))?;
        answer["approved"] = approved.into();
        if approved {
            if let Some(arguments) = payload.get("editedArgs").filter(|args| args.is_object()) {
                answer["arguments"] = arguments.clone();
            }
        } else if let Some(reason) = payload.get("reason").and_then(Value::as_str) {
            answer["message"] = reason.into();
        }
        Ok(answer)
    }
}

/// An error in the body of a request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunInputError {
    /// A member is missing or of another type.
    #[error("{pointer}: expected {expected}")]
    Expected {
        /// Its JSON Pointer.
        pointer: String,
        /// The expected value.
        expected: &'static str,
    },
    /// Something is larger than allowed.
    #[error("{pointer}: at most {limit} are allowed")]
    TooLarge {
        /// Its JSON Pointer.
        pointer: String,
        /// The limit, in elements or bytes.
        limit: usize,
    },
}

impl RunInputError {
    /// The JSON Pointer of the error in the body.
    pub fn pointer(&self) -> &str {
        match self {
            Self::Expected { pointer, .. } | Self::TooLarge { pointer, .. } => pointer,
        }
    }
}

fn expected(pointer: impl Into<String>, expected: &'static str) -> RunInputError {
    let pointer = pointer.into();
    RunInputError::Expected { pointer, expected }
}

impl Refusal for RunInputError {
    fn refuse(pointer: String, wrong: Wrong<'_>) -> Self {
        match wrong {
            Wrong::Missing(what) | Wrong::Kind(what, _) => expected(pointer, what),
            Wrong::Long(_, limit) | Wrong::Many(_, limit) => Self::TooLarge { pointer, limit },
        }
    }
}

type Fields<'a> = crate::fields::Fields<'a, RunInputError>;

/// Reads the body of a request; unknown members are ignored. The cost is that of the client's new
/// messages, plus that of counting the others.
///
/// # Errors
///
/// The faulty member, with its JSON Pointer.
pub fn from_run_input(body: &Value) -> Result<RunInput, RunInputError> {
    let body = Fields::of(body, "")?;
    let messages = body.list("messages", MAX_MESSAGES)?.unwrap_or_default();
    let end = messages.iter().rev().map(role);
    let n_end = end
        .take_while(|role| matches!(role, Some("tool" | "user")))
        .count();
    check_count("/messages", n_end, MAX_ENTRIES)?;
    let first = messages.len() - n_end;
    let (mut new, mut results) = (Vec::new(), Vec::new());
    for (place, message) in messages.iter().enumerate().skip(first) {
        if role(message) == Some("tool") {
            results.push(result(message, place)?);
        } else {
            new.push(new_message(message, place)?);
        }
    }
    let resume = body.placed("resume", MAX_ENTRIES)?.unwrap_or_default();
    let resume = resume.into_iter().map(|(at, entry)| answer(entry, at));
    Ok(RunInput {
        thread_id: body.id("threadId", MAX_ID_BYTES)?,
        run_id: body.id("runId", MAX_ID_BYTES)?,
        messages: new,
        results,
        resume: resume.collect::<Result<_, _>>()?,
        options: options(&body)?,
    })
}

fn role(message: &Value) -> Option<&str> {
    message.get("role").and_then(Value::as_str)
}

fn new_message(message: &Value, place: usize) -> Result<NewMessage, RunInputError> {
    let message = Fields::of(message, format!("/messages/{place}"))?;
    Ok(NewMessage {
        index: place,
        id: message.id("id", MAX_ID_BYTES)?,
        content: content(&message)?.into(),
    })
}

/// The content of a message, as parts in the log's format.
fn content(message: &Fields<'_>) -> Result<Value, RunInputError> {
    let pointer = message.at("content");
    match message.get("content") {
        Some(Value::String(text)) => {
            check_length(&pointer, text, MAX_TEXT_BYTES)?;
            Ok(json!([{"type": "input_text", "text": text}]))
        }
        Some(Value::Array(parts)) if !parts.is_empty() => {
            check_count(&pointer, parts.len(), MAX_PARTS)?;
            let parts = parts.iter().enumerate();
            parts
                .map(|(place, part)| own_part(part, &format!("{pointer}/{place}")))
                .collect()
        }
        _ => Err(expected(
            pointer,
            "a string, or an array with at least one part",
        )),
    }
}

fn own_part(part: &Value, pointer: &str) -> Result<Value, RunInputError> {
    let member = |from: &Value, key: &str| from.get(key).and_then(Value::as_str).map(str::to_owned);
    let text = |from: &Value, path: &str, key: &str| {
        member(from, key).ok_or_else(|| expected(format!("{pointer}{path}/{key}"), "a string"))
    };
    let kind = text(part, "", "type")?;
    match kind.as_str() {
        "text" => {
            let said = text(part, "", "text")?;
            check_length(&format!("{pointer}/text"), &said, MAX_TEXT_BYTES)?;
            Ok(json!({"type": "input_text", "text": said}))
        }
        "image" | "audio" | "video" | "document" => {
            let source = part.get("source").unwrap_or(&Value::Null);
            let value = text(source, "/source", "value")?;
            let mime = member(source, "mimeType");
            match text(source, "/source", "type")?.as_str() {
                "data" => {
                    let mime = text(source, "/source", "mimeType")?;
                    let url = format!("data:{mime};base64,{value}");
                    if !is_inline(&url) {
                        let pointer = format!("{pointer}/source/value");
                        return Err(expected(pointer, "base64"));
                    }
                    Ok(file(&url, kind == "image", Some(&mime)))
                }
                "url" if is_web(&value) => {
                    // A client need not know the type, and the part says what it shows.
                    let range = match kind.as_str() {
                        "audio" => Some("audio/*"),
                        "video" => Some("video/*"),
                        _ => None,
                    };
                    Ok(file(&value, kind == "image", mime.as_deref().or(range)))
                }
                "url" => Err(expected(
                    format!("{pointer}/source/value"),
                    "an http: or https: URL",
                )),
                _ => Err(expected(
                    format!("{pointer}/source/type"),
                    "\"data\" or \"url\"",
                )),
            }
        }
        _ => Err(expected(
            format!("{pointer}/type"),
            "\"text\", \"image\", \"audio\", \"video\" or \"document\"",
        )),
    }
}

fn result(message: &Value, place: usize) -> Result<ToolAnswer, RunInputError> {
    let message = Fields::of(message, format!("/messages/{place}"))?;
    let tool_call_id = message.id("toolCallId", MAX_ID_BYTES)?;
    let mut part = json!({"type": ANSWER, "toolCallId": tool_call_id});
    if message.get("id").is_some() {
        part[MESSAGE_ID] = message.id("id", MAX_ID_BYTES)?.into();
    }
    if let Some(error) = message.get("error").and_then(Value::as_str) {
        part["errorText"] = error.into();
    } else {
        // A text stays the text it is, even one that reads as JSON: so it comes back as it came.
        part["output"] = match message.get("content").and_then(Value::as_str) {
            Some(text) => text.into(),
            None => content(&message)?,
        };
    }
    Ok(ToolAnswer {
        index: place,
        tool_call_id,
        part,
    })
}

fn answer(entry: &Value, pointer: String) -> Result<InterruptAnswer, RunInputError> {
    let entry = Fields::of(entry, pointer)?;
    let is_resolved = |status: &Value| match status.as_str() {
        Some("resolved") => Some(true),
        Some("cancelled") => Some(false),
        Some(_) | None => None,
    };
    let is_resolved = entry.expect("status", "\"resolved\" or \"cancelled\"", is_resolved)?;
    let payload = is_resolved.then(|| entry.get("payload").cloned().unwrap_or_default());
    Ok(InterruptAnswer {
        interrupt_id: entry.id("interruptId", MAX_ID_BYTES)?,
        payload,
    })
}

fn options(body: &Fields<'_>) -> Result<RunOptions, RunInputError> {
    let tools = body.placed("tools", MAX_ENTRIES)?.unwrap_or_default();
    let tools = tools.into_iter().map(|(at, tool)| client_tool(tool, at));
    let context = body.placed("context", MAX_ENTRIES)?.unwrap_or_default();
    let context = context.into_iter().map(|(at, piece)| {
        let text = |key: &str| {
            let text = piece.get(key).and_then(Value::as_str);
            text.ok_or_else(|| expected(format!("{at}/{key}"), "a string"))
        };
        Ok(format!("{}: {}", text("description")?, text("value")?))
    });
    let context = context.collect::<Result<Vec<String>, RunInputError>>()?;
    let mut echo = Map::new();
    for key in ["runId", "parentRunId", "state", "forwardedProps"] {
        echo.extend(body.get(key).map(|value| (key.to_owned(), value.clone())));
    }
    let tools: Vec<ClientTool> = tools.collect::<Result<_, _>>()?;
    if let Some(place) = repeated(&tools) {
        let pointer = format!("/tools/{place}/name");
        return Err(expected(pointer, "a name that no other tool has"));
    }
    Ok(RunOptions {
        tools,
        additional_instructions: (!context.is_empty()).then(|| context.join("\n")),
        echo: Map::from_iter([(ECHO.to_owned(), Value::Object(echo))]),
        ..RunOptions::default()
    })
}

fn client_tool(tool: &Value, pointer: String) -> Result<ClientTool, RunInputError> {
    let tool = Fields::of(tool, pointer)?;
    let object = |schema| Value::is_object(schema).then_some(schema);
    let parameters = tool.read("parameters", "a JSON Schema, an object", object)?;
    // Before it is copied: a schema that is refused may be large.
    if let Some(schema) = parameters {
        let checked = check_schema(schema, &tool.at("parameters"));
        checked.map_err(|(pointer, what)| expected(pointer, what))?;
    }
    let description = tool.get("description").and_then(Value::as_str);
    let name = tool.id("name", MAX_ID_BYTES)?;
    if !is_tool_name(&name) {
        return Err(expected(tool.at("name"), TOOL_NAME));
    }
    Ok(ClientTool {
        name,
        description: description.map(str::to_owned),
        parameters: parameters.cloned(),
        strict: None,
    })
}
