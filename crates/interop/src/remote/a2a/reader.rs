//! What an agent says of one task.

use super::{AUTH_REQUIRED, INPUT_REQUIRED};
use crate::remote::place::{Ask, AskKind};
use crate::remote::said::Said;
use serde_json::{Value, json};
use upp::{Arguments, Media, MediaSource, ToolCall};

/// Why what an agent says can't be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unread {
    /// It refuses the call.
    #[error("it refuses: {message} ({code})")]
    Refused {
        /// The code of JSON-RPC, or A2A's.
        code: i64,
        /// What it says.
        message: String,
    },
    /// It is not what the protocol says.
    #[error("{0}")]
    Malformed(&'static str),
}

/// What a JSON-RPC answer has.
///
/// # Errors
///
/// See [`Unread`].
pub fn result(answer: &Value) -> Result<&Value, Unread> {
    if let Some(error) = answer.get("error").filter(|error| !error.is_null()) {
        let message = error.get("message").and_then(Value::as_str);
        return Err(Unread::Refused {
            code: error
                .get("code")
                .and_then(Value::as_i64)
                .unwrap_or_default(),
            message: message.unwrap_or_default().chars().take(500).collect(),
        });
    }
    let what = "the answer is no JSON-RPC response";
    answer.get("result").ok_or(Unread::Malformed(what))
}

/// How a task ended, or why it waits.
#[derive(Clone, Debug, PartialEq)]
pub enum End {
    /// It is done.
    Completed,
    /// It asks something: these are calls here.
    Asks(Vec<ToolCall>, Vec<Ask>),
    /// It failed, was rejected, or was stopped there; in words.
    Failed(String),
}

/// Reads what an agent says of one task.
#[derive(Debug)]
pub struct Reader {
    said: Said,
    /// The task.
    pub task: Option<String>,
    /// Its context.
    pub context: Option<String>,
    /// How it ended, once it has.
    pub end: Option<End>,
}

impl Reader {
    /// For an answer; `known` is what was said before it in the same conversation.
    pub fn after<'a>(known: impl IntoIterator<Item = &'a str>) -> Self {
        Self {
            said: Said::after(known),
            task: None,
            context: None,
            end: None,
        }
    }

    /// What was said so far.
    pub fn said(&mut self) -> &mut Said {
        &mut self.said
    }

    /// Takes one event of a stream, or the answer to a message.
    ///
    /// # Errors
    ///
    /// [`Unread::Malformed`].
    pub fn take(&mut self, response: &Value) -> Result<(), Unread> {
        if let Some(task) = response.get("task") {
            return self.task(task);
        }
        if let Some(message) = response.get("message") {
            self.learn(message.get("taskId"), message.get("contextId"));
            self.spoken(message);
            self.end = Some(End::Completed);
            return Ok(());
        }
        if let Some(update) = response.get("statusUpdate") {
            self.learn(update.get("taskId"), update.get("contextId"));
            return self.status(update.get("status"));
        }
        if let Some(update) = response.get("artifactUpdate") {
            self.learn(update.get("taskId"), update.get("contextId"));
            self.artifact(update);
            return Ok(());
        }
        Err(Unread::Malformed(
            "an event is neither task, message, statusUpdate nor artifactUpdate",
        ))
    }

    /// Takes a task as it stands.
    ///
    /// # Errors
    ///
    /// [`Unread::Malformed`].
    pub fn task(&mut self, task: &Value) -> Result<(), Unread> {
        if !task.get("id").is_some_and(Value::is_string) {
            return Err(Unread::Malformed("a task has no id"));
        }
        self.learn(task.get("id"), task.get("contextId"));
        let artifacts = task.get("artifacts").and_then(Value::as_array);
        for artifact in artifacts.into_iter().flatten() {
            self.whole(artifact);
        }
        self.status(task.get("status"))
    }

    fn learn(&mut self, task: Option<&Value>, context: Option<&Value>) {
        let text = |value: Option<&Value>| Some(value?.as_str()?.to_owned());
        self.task = text(task).or_else(|| self.task.take());
        self.context = text(context).or_else(|| self.context.take());
    }

    fn status(&mut self, status: Option<&Value>) -> Result<(), Unread> {
        let state = status.and_then(|status| status.get("state")?.as_str());
        let state = state.ok_or(Unread::Malformed("a task has no state"))?;
        let message = status.and_then(|status| status.get("message"));
        let words = || message.map(words).unwrap_or_default();
        match state.strip_prefix("TASK_STATE_").unwrap_or(state) {
            "SUBMITTED" => self.end = None,
            "WORKING" => {
                self.end = None;
                if let Some(message) = message {
                    self.spoken(message);
                }
            }
            "COMPLETED" => {
                if let Some(message) = message {
                    self.spoken(message);
                }
                self.end = Some(End::Completed);
            }
            "INPUT_REQUIRED" => self.asks(message, INPUT_REQUIRED),
            "AUTH_REQUIRED" => self.asks(message, AUTH_REQUIRED),
            "FAILED" => self.end = Some(End::Failed(format!("the task failed: {}", words()))),
            "REJECTED" => self.end = Some(End::Failed(format!("it won't do that: {}", words()))),
            "CANCELED" => self.end = Some(End::Failed("the task was stopped there".into())),
            _ => {
                return Err(Unread::Malformed(
                    "a task is in a state that A2A 1.0 has not",
                ));
            }
        }
        Ok(())
    }

    /// What a task asks: each call that it names, or what it says in words.
    fn asks(&mut self, message: Option<&Value>, name: &str) {
        let parts = message.and_then(|message| message.get("parts")?.as_array());
        let named = parts.into_iter().flatten();
        let named = named.filter_map(|part| part.get("data")?.get("calls")?.as_array());
        let mut calls: Vec<ToolCall> = Vec::new();
        let mut asks = Vec::new();
        for named in named.flatten() {
            let text = |field: &str| named.get(field).and_then(Value::as_str);
            let (Some(id), Some(tool)) = (text("toolCallId"), text("toolName")) else {
                continue;
            };
            let kind = match text("asks") {
                Some("approval") => AskKind::Approval,
                Some(_) | None => AskKind::Result,
            };
            let n = calls.len();
            let is_taken = calls.iter().any(|call| call.tool_call_id.as_str() == id);
            let call = if is_taken {
                format!("{id}-{n}")
            } else {
                id.to_owned()
            };
            let input = named.get("input").filter(|input| input.is_object());
            let input = input.map_or_else(|| "{}".to_owned(), Value::to_string);
            calls.push(call_of(&call, tool, &input));
            asks.push(Ask {
                call,
                id: Some(id.to_owned()),
                thread_key: text("threadKey").map(str::to_owned),
                kind,
            });
        }
        if calls.is_empty() {
            let question = message.map(words).unwrap_or_default();
            if let Some(message) = message {
                self.spoken(message);
            }
            let id = format!("{name}-{}", self.task.as_deref().unwrap_or_default());
            let input = json!({ "message": question }).to_string();
            calls.push(call_of(&id, name, &input));
            asks.push(Ask {
                call: id,
                id: None,
                thread_key: None,
                kind: AskKind::Words,
            });
        }
        self.end = Some(End::Asks(calls, asks));
    }

    /// A message as something said by itself.
    fn spoken(&mut self, message: &Value) {
        let id = message.get("messageId").and_then(Value::as_str);
        let name = format!("message {}", id.unwrap_or_default());
        self.said.whole(&name, &words(message));
        let parts = message.get("parts").and_then(Value::as_array);
        self.files(parts.into_iter().flatten());
    }

    fn artifact(&mut self, update: &Value) {
        let artifact = update.get("artifact").unwrap_or(&Value::Null);
        let goes_on = update.get("append").and_then(Value::as_bool) == Some(true);
        if !goes_on {
            return self.whole(artifact);
        }
        self.said.push(&named(artifact), &words(artifact));
        let parts = artifact.get("parts").and_then(Value::as_array);
        self.files(parts.into_iter().flatten());
    }

    fn whole(&mut self, artifact: &Value) {
        self.said.whole(&named(artifact), &words(artifact));
        let parts = artifact.get("parts").and_then(Value::as_array);
        self.files(parts.into_iter().flatten());
    }

    fn files<'a>(&mut self, parts: impl Iterator<Item = &'a Value>) {
        for part in parts {
            let text = |field: &str| part.get(field).and_then(Value::as_str);
            let source = match (text("raw"), text("url")) {
                (Some(data), _) => MediaSource::Base64 {
                    data: data.to_owned(),
                },
                (None, Some(url)) => MediaSource::Url {
                    url: url.to_owned(),
                },
                (None, None) => continue,
            };
            let kind = text("mediaType").unwrap_or("application/octet-stream");
            let media = Media::new(source, kind);
            self.said
                .file(media.with_title(text("filename").map(str::to_owned)));
        }
    }
}

fn named(artifact: &Value) -> String {
    let id = artifact.get("artifactId").and_then(Value::as_str);
    format!("artifact {}", id.unwrap_or_default())
}

/// The texts of something with parts; data as its JSON.
fn words(of: &Value) -> String {
    let parts = of.get("parts").and_then(Value::as_array);
    let texts = parts.into_iter().flatten().filter_map(|part| {
        let text = part.get("text").and_then(Value::as_str).map(str::to_owned);
        text.or_else(|| part.get("data").map(Value::to_string))
    });
    texts.collect()
}

fn call_of(id: &str, name: &str, input: &str) -> ToolCall {
    ToolCall {
        tool_call_id: id.into(),
        tool_name: name.into(),
        arguments: Arguments::from_text(input),
        after: Vec::new(),
    }
}
