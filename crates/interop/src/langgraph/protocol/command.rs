//! Commands about a thread.

use crate::langgraph::error::{ErrorKind, RequestError};
use crate::langgraph::fields::{Fields, MAX_ID};
use crate::langgraph::stream::FrameId;
use crate::langgraph::{ResumeValues, RunCreate, Speaks};
use serde_json::{Map, Value, json};

/// The protocol's commands that this server does not support, each with the alternative.
const ELSEWHERE: [(&str, &str); 8] = [
    (
        "subscription.subscribe",
        "POST /threads/{thread_id}/stream/events is the subscription",
    ),
    ("subscription.unsubscribe", "close the stream"),
    (
        "subscription.reconnect",
        "open the stream again, with since",
    ),
    ("agent.getTree", "GET /assistants/{assistant_id}/graph"),
    ("input.inject", "POST /threads/{thread_id}/state"),
    ("state.get", "GET /threads/{thread_id}/state"),
    ("state.listCheckpoints", "POST /threads/{thread_id}/history"),
    ("state.fork", "POST /threads/{thread_id}/copy"),
];
/// Maximum length of an interrupt's id in bytes: the id of a call, and the key of the sub-agent's
/// thread.
const MAX_INTERRUPT: usize = 4 * MAX_ID;
/// The most answers of a command.
const MAX_ANSWERS: usize = 1000;

/// The protocol's words for what is wrong with a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorCode {
    /// A parameter is wrong, or does not fit the current state.
    InvalidArgument,
    /// There is no such command.
    UnknownCommand,
    /// The thread, the agent or the run does not exist.
    NoSuchRun,
    /// No call is pending under this id.
    NoSuchInterrupt,
    /// The protocol has this command, but the server does not support it.
    NotSupported,
}

impl ErrorCode {
    /// The word.
    pub fn word(self) -> &'static str {
        match self {
            Self::InvalidArgument => "invalid_argument",
            Self::UnknownCommand => "unknown_command",
            Self::NoSuchRun => "no_such_run",
            Self::NoSuchInterrupt => "no_such_interrupt",
            Self::NotSupported => "not_supported",
        }
    }
}

/// A refusal of a command. Nothing of it was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandError {
    /// The command's id, if it has one.
    pub id: Option<u64>,
    /// The kind of error.
    pub code: ErrorCode,
    /// The text for people.
    pub message: String,
    /// The place in the command that is wrong, as a JSON pointer.
    pub pointer: Option<String>,
}

impl CommandError {
    /// A refusal of the command of this id.
    pub fn new(id: Option<u64>, code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            id,
            code,
            message: message.into(),
            pointer: None,
        }
    }

    /// Converts an error of the other `LangGraph` requests to this protocol's error.
    pub fn of(id: Option<u64>, error: &RequestError) -> Self {
        let code = match error.kind {
            ErrorKind::Invalid | ErrorKind::Conflict => ErrorCode::InvalidArgument,
            // What is missing has a place where it is an interrupt, and none where the path names it.
            ErrorKind::NotFound if error.pointer.is_some() => ErrorCode::NoSuchInterrupt,
            ErrorKind::NotFound => ErrorCode::NoSuchRun,
            ErrorKind::NotAllowed => ErrorCode::NotSupported,
        };
        // Where answers stand, their command says in its own way.
        let is_own = |place: &&str| !place.starts_with("/command/");
        let pointer = error.pointer.as_deref().filter(is_own).map(str::to_owned);
        Self {
            pointer,
            ..Self::new(id, code, error.message.as_str())
        }
    }

    /// The error in the protocol's form.
    pub fn to_json(&self) -> Value {
        let mut error = json!({
            "type": "error", "id": self.id, "error": self.code.word(), "message": self.message,
        });
        if let Some(pointer) = &self.pointer {
            error["pointer"] = pointer.as_str().into();
        }
        error
    }
}

/// The response to an accepted command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    /// The command's id.
    pub id: u64,
    /// The run that the command started.
    pub run_id: String,
    /// The last event before the run's own.
    pub after: FrameId,
}

impl Answered {
    /// The response in the protocol's form. A client that follows the thread after
    /// `applied_through_seq` receives the whole run.
    pub fn to_json(&self) -> Value {
        json!({
            "type": "success", "id": self.id, "result": {"run_id": self.run_id},
            "meta": {"applied_through_seq": self.after.number()},
        })
    }
}

/// A command.
#[derive(Clone, Debug, PartialEq)]
pub struct ProtocolCommand {
    /// The command's id, which the response repeats.
    pub id: u64,
    /// The run to start. `run.start` also creates the thread if there is none. `input.respond` starts
    /// a run with answers to pending calls.
    pub run: Box<RunCreate>,
}

impl ProtocolCommand {
    /// The fields that a body may have.
    pub const KNOWN: &'static [&'static str] = &["id", "method", "params"];

    /// Reads a command.
    pub fn read(body: &Value) -> Result<Self, CommandError> {
        let id = body.get("id").and_then(Value::as_u64);
        let wrong = |error: &RequestError| CommandError::of(id, error);
        let fields = Fields::closed(body, "", Self::KNOWN).map_err(|it| wrong(&it))?;
        let method = fields.text("method", MAX_ID).map_err(|it| wrong(&it))?;
        let (Some(id), Some(method)) = (id, method) else {
            let what = "expected an id, which is a whole number, and a method";
            return Err(CommandError::new(id, ErrorCode::InvalidArgument, what));
        };
        let none = json!({});
        let params = fields.get("params").unwrap_or(&none);
        let run = match method {
            "run.start" => start(params),
            "input.respond" => respond(params),
            method => {
                let known = ELSEWHERE.iter().find(|(known, _)| *known == method);
                let (code, message) = match known {
                    Some((_, elsewhere)) => (
                        ErrorCode::NotSupported,
                        format!("{method} is not taken here: {elsewhere}"),
                    ),
                    None => (
                        ErrorCode::UnknownCommand,
                        format!("there is no command {method:?}"),
                    ),
                };
                return Err(CommandError::new(Some(id), code, message));
            }
        };
        let run = Box::new(run.map_err(|error| wrong(&error))?);
        Ok(Self { id, run })
    }
}

/// Reads the run that `run.start` starts.
fn start(params: &Value) -> Result<RunCreate, RequestError> {
    let known = [
        "assistant_id",
        "assistantId",
        "input",
        "config",
        "metadata",
        "langsmith_tracer",
        "multitask_strategy",
    ];
    let fields = Fields::closed(params, "/params", &known)?;
    let mut body = fields.map().clone();
    if let Some(named) = body.remove("assistantId") {
        body.entry("assistant_id").or_insert(named);
    }
    if !body.get("assistant_id").is_some_and(Value::is_string) {
        return Err(fields.wrong("assistant_id", "expected a string"));
    }
    body.insert("if_not_exists".to_owned(), "create".into());
    read_run(&Value::Object(body))
}

/// Reads a run from the command's `params`.
fn read_run(body: &Value) -> Result<RunCreate, RequestError> {
    RunCreate::read(body).map_err(|error| RequestError {
        pointer: error.pointer.map(|place| format!("/params{place}")),
        ..error
    })
}

/// The run that continues with answers. It names no agent; the agent of the pending calls runs.
fn respond(params: &Value) -> Result<RunCreate, RequestError> {
    let known = [
        "namespace",
        "interrupt_id",
        "response",
        "responses",
        "update",
        "goto",
        "config",
        "metadata",
    ];
    let fields = Fields::closed(params, "/params", &known)?;
    let why = "an agent has no state to change and no nodes to go to here: send a message";
    fields.refuse("update", why)?;
    fields.refuse("goto", why)?;
    let mut answers = Map::new();
    if let Some(list) = fields.placed("responses", MAX_ANSWERS)? {
        for one in ["interrupt_id", "response"] {
            if fields.present(one).is_some() {
                return Err(fields.wrong(one, "expected either this or responses"));
            }
        }
        for (pointer, entry) in list {
            let fields =
                Fields::closed(entry, pointer, &["namespace", "interrupt_id", "response"])?;
            let (id, answer) = answer(&fields)?;
            if answers.insert(id, answer).is_some() {
                return Err(fields.wrong("interrupt_id", "is answered twice"));
            }
        }
        if answers.is_empty() {
            return Err(fields.wrong("responses", "expected one answer at the least"));
        }
    } else {
        answers.extend([answer(&fields)?]);
    }
    let mut body = json!({});
    for key in ["config", "metadata"] {
        if let Some(kept) = fields.get(key) {
            body[key] = kept.clone();
        }
    }
    // No agent is named: what waits has one.
    let mut run = read_run(&body)?;
    run.speaks = Speaks::LangGraph;
    run.resume = Some(ResumeValues::ById(answers));
    Ok(run)
}

fn answer(fields: &Fields<'_>) -> Result<(String, Value), RequestError> {
    let id = fields.text("interrupt_id", MAX_INTERRUPT)?;
    let id = id.ok_or_else(|| fields.wrong("interrupt_id", "expected the id of an interrupt"))?;
    let answer = fields.present("response").cloned();
    let answer = answer.ok_or_else(|| fields.wrong("response", "expected an answer"))?;
    Ok((id.to_owned(), answer))
}
