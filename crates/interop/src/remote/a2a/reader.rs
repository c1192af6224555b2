//! Reads a remote agent's output for one A2A task.

use super::object::{ObjectError, name_of, named, named_in, words};
use super::{AUTH_REQUIRED, INPUT_REQUIRED};
use crate::remote::delta::News;
use crate::remote::position::{AskKind, RemoteQuestion};
use crate::remote::text_pieces::TextPieces;
use serde_json::{Value, json};
use upp::{Arguments, Media, MediaSource, ToolCall};

/// How a task ended, or why it waits.
#[derive(Clone, Debug, PartialEq)]
pub enum TaskEnd {
    /// The task is complete.
    Completed,
    /// The remote agent has questions. Each becomes a pending call in the local thread.
    Asks(Vec<ToolCall>, Vec<RemoteQuestion>),
    /// The task failed or was canceled. The text is the reason.
    Failed(String),
    /// The remote agent rejected the task. The text is the reason.
    Rejected(String),
}

/// Reads a remote agent's output for one task.
///
/// The artifact holds the text that the remote agent is writing. When the agent starts another text,
/// it sends the finished one again as a message. A text therefore has the name of its artifact until a
/// message with equal text closes it. From then on it has the name of that message.
///
/// After a reconnect the reader gets the whole task, and the stream may repeat earlier texts. The
/// reader streams nothing until the last closed text was repeated or something new arrives.
#[derive(Debug, Default)]
pub struct TaskReader {
    said: TextPieces,
    /// The names of the task's texts in earlier answers, and the last text of the last answer.
    earlier: (Vec<String>, Option<String>),
    /// The name of the artifact whose text no message has closed yet.
    open: Option<String>,
    /// The name of the message that ends the repetition of earlier texts.
    awaits: Option<String>,
    /// Whether an artifact update without `append` arrived after the last whole task.
    is_begun: bool,
    /// How many times the whole task was read.
    n_wholes: u32,
    /// The id of the task, once it is known.
    pub task: Option<String>,
    /// The id of the task's context, once it is known.
    pub context: Option<String>,
    /// How the task ended or why it waits; `None` while it runs.
    pub end: Option<TaskEnd>,
}

impl TaskReader {
    /// A reader for the next answer. If `news` answers a task's questions, the task continues, and the
    /// reader recognizes its earlier texts.
    pub fn of(news: &News<'_>) -> Self {
        let text = news.texts.last().map(|&text| text.to_owned());
        Self {
            earlier: (news.names().to_vec(), text),
            ..Self::default()
        }
    }

    /// The names of the task's texts, in this answer and in earlier ones.
    pub fn names(&self) -> Vec<String> {
        let own = self.said.names().map(str::to_owned);
        self.earlier.0.iter().cloned().chain(own).collect()
    }

    /// The output of this answer so far.
    pub fn text(&mut self) -> &mut TextPieces {
        &mut self.said
    }

    /// Whether the caller must read the whole task instead of this stream event.
    ///
    /// This is so if the task ends or waits after a reconnect, because the client may have missed
    /// events. It is also so if an `INPUT_REQUIRED` status has no data part that could name the calls.
    pub fn wants_task(&self, response: &Value) -> bool {
        let status = response.get("statusUpdate").and_then(|it| it.get("status"));
        let state = status.and_then(|status| status.get("state")?.as_str());
        let state = state.and_then(|state| state.strip_prefix("TASK_STATE_"));
        let parts = status.and_then(|status| status.get("message")?.get("parts")?.as_array());
        let has_data = parts
            .into_iter()
            .flatten()
            .any(|part| part.get("data").is_some());
        match state {
            None | Some("SUBMITTED" | "WORKING") => false,
            Some("INPUT_REQUIRED") => self.n_wholes > 1 || !has_data,
            Some(_) => self.n_wholes > 1,
        }
    }

    /// Reads one stream event, or the response to a sent message.
    ///
    /// # Errors
    ///
    /// [`ObjectError::Malformed`] if the response does not conform to A2A 1.0.
    pub fn take(&mut self, response: &Value) -> Result<(), ObjectError> {
        if let Some(task) = response.get("task") {
            return self.task(task);
        }
        if let Some(message) = response.get("message") {
            self.learn(message.get("taskId"), message.get("contextId"));
            self.spoken(message);
            self.end = Some(TaskEnd::Completed);
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
        Err(ObjectError::Malformed(
            "an event is neither task, message, statusUpdate nor artifactUpdate",
        ))
    }

    /// Reads a whole task: its history, its artifacts and its status.
    ///
    /// # Errors
    ///
    /// [`ObjectError::Malformed`] if the task has no id, no state or an unknown state.
    pub fn task(&mut self, task: &Value) -> Result<(), ObjectError> {
        if !task.get("id").is_some_and(Value::is_string) {
            return Err(ObjectError::Malformed("a task has no id"));
        }
        self.learn(task.get("id"), task.get("contextId"));
        let list = |field: &str| task.get(field).and_then(Value::as_array);
        let history = list("history").into_iter().flatten();
        let is_agents = |it: &&Value| it.get("role").and_then(Value::as_str) == Some("ROLE_AGENT");
        let history: Vec<&Value> = history.filter(is_agents).collect();
        let own = history.get(self.earlier.0.len()..).unwrap_or_default();
        let names: Vec<String> = own.iter().map(|message| name_of(message)).collect();
        let n_missed = own
            .iter()
            .filter(|message| self.read_message(message))
            .count();
        if n_missed > 0 {
            for name in &names {
                self.said.put_last(name);
            }
        }
        for artifact in list("artifacts").into_iter().flatten() {
            self.read_artifact(artifact, history.len(), &names);
        }
        self.is_begun = false;
        self.n_wholes = self.n_wholes.saturating_add(1);
        self.awaits = self.closed().last().map(str::to_owned);
        self.said.holds = self.awaits.is_some();
        self.status(task.get("status"))
    }

    /// The names of all texts but the open artifact's, in order.
    fn closed(&self) -> impl DoubleEndedIterator<Item = &str> {
        let open = self.open.as_deref();
        self.said.names().filter(move |name| Some(*name) != open)
    }

    /// Ends the repetition of earlier texts. The reader streams all that follows.
    fn release(&mut self) {
        self.awaits = None;
        self.said.holds = false;
    }

    fn learn(&mut self, task: Option<&Value>, context: Option<&Value>) {
        let text = |value: Option<&Value>| Some(value?.as_str()?.to_owned());
        self.task = text(task).or_else(|| self.task.take());
        self.context = text(context).or_else(|| self.context.take());
    }

    fn status(&mut self, status: Option<&Value>) -> Result<(), ObjectError> {
        let state = status.and_then(|status| status.get("state")?.as_str());
        let state = state.ok_or(ObjectError::Malformed("a task has no state"))?;
        let message = status.and_then(|status| status.get("message"));
        let why = || {
            let words = message.map(words).filter(|words| !words.is_empty());
            words.unwrap_or_else(|| "it does not say why".to_owned())
        };
        if !matches!(
            state,
            "TASK_STATE_SUBMITTED" | "TASK_STATE_WORKING" | "SUBMITTED" | "WORKING"
        ) {
            self.release();
        }
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
                self.end = Some(TaskEnd::Completed);
            }
            "INPUT_REQUIRED" => self.read_requests(message, INPUT_REQUIRED),
            "AUTH_REQUIRED" => self.read_requests(message, AUTH_REQUIRED),
            "FAILED" => self.end = Some(TaskEnd::Failed(format!("the task failed: {}", why()))),
            "REJECTED" => {
                self.end = Some(TaskEnd::Rejected(format!("it rejects the task: {}", why())));
            }
            "CANCELED" => self.end = Some(TaskEnd::Failed("the task was stopped there".into())),
            _ => {
                return Err(ObjectError::Malformed(
                    "a task is in a state that A2A 1.0 has not",
                ));
            }
        }
        Ok(())
    }

    /// Whether the texts of this answer contain all these AITP requests. If so, the local thread has the
    /// requests already and needs no pending calls for them. False if there are no requests.
    fn has_asked(&self, requests: &[&Value]) -> bool {
        let said: Vec<Value> = self
            .said
            .names()
            .filter_map(|name| serde_json::from_str(self.said.get(name)?).ok())
            .collect();
        let mut asked = requests.iter().map(|request| request.get("request"));
        !requests.is_empty() && asked.all(|asked| asked.is_some_and(|it| said.contains(it)))
    }

    /// Reads the questions of a waiting task. Each call that the message names becomes a pending call.
    /// If it names none, the text of the message becomes one pending call with the tool name `name`.
    fn read_requests(&mut self, message: Option<&Value>, name: &str) {
        let requests = named_in(message, "requests");
        if self.has_asked(&requests) {
            self.end = Some(TaskEnd::Completed);
            return;
        }
        let mut calls: Vec<ToolCall> = Vec::new();
        let mut asks = Vec::new();
        for named in named_in(message, "calls") {
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
            asks.push(RemoteQuestion {
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
            asks.push(RemoteQuestion {
                call: id,
                id: None,
                thread_key: None,
                kind: AskKind::Words,
            });
        }
        self.end = Some(TaskEnd::Asks(calls, asks));
    }

    /// Reads a message of the stream. It closes the open artifact if their texts are equal; otherwise
    /// it is a text of its own. A known message is a repetition and adds nothing.
    fn spoken(&mut self, message: &Value) {
        let name = name_of(message);
        if self.is_known(&name) {
            // It was told again, and the artifact before it.
            if self.is_begun
                && self.awaits.is_some()
                && let Some(open) = &self.open
            {
                self.said.begin(open);
            }
            if self.awaits.as_ref() == Some(&name) {
                self.release();
            }
            return;
        }
        self.release();
        let words = words(message);
        let open = self.open.as_deref().and_then(|open| self.said.get(open));
        if open == Some(&*words) {
            self.close(&name);
        }
        self.said.whole(&name, &words);
        self.files(message);
    }

    /// Reads a message of the task's history, and returns whether it is new. It closes the open artifact
    /// if its text begins with the artifact's. Otherwise it is a text that the client missed.
    fn read_message(&mut self, message: &Value) -> bool {
        let name = name_of(message);
        if self.is_known(&name) {
            return false;
        }
        let words = words(message);
        let open = self.open.as_deref().and_then(|open| self.said.get(open));
        if open.is_some_and(|open| words.starts_with(open)) {
            self.close(&name);
        }
        self.said.whole(&name, &words);
        self.files(message);
        true
    }

    fn is_known(&self, name: &str) -> bool {
        self.said.get(name).is_some() || self.earlier.0.iter().any(|known| known == name)
    }

    /// Renames the open artifact's text to the message `name`. Its later output is a new text.
    fn close(&mut self, name: &str) {
        if let Some(open) = self.open.take() {
            self.said.rename(&open, name);
        }
    }

    fn artifact(&mut self, update: &Value) {
        let artifact = update.get("artifact").unwrap_or(&Value::Null);
        let goes_on = update.get("append").and_then(Value::as_bool) == Some(true);
        let name = named(artifact);
        if !goes_on {
            self.said.begin(&name);
            self.is_begun = true;
        } else if !self.is_begun {
            // It goes on from how the task stood.
            self.release();
        }
        self.said.push(&name, &words(artifact));
        self.open = Some(name);
        self.files(artifact);
    }

    /// Reads an artifact of a whole task. `n_told` is the number of the agent's messages in the history;
    /// `names` are those of this answer.
    ///
    /// If the history lacks a message for the last closed text and the artifact equals that text, the
    /// artifact only repeats it and adds nothing.
    fn read_artifact(&mut self, artifact: &Value, n_told: usize, names: &[String]) {
        let (name, words) = (named(artifact), words(artifact));
        let n_closed = self.closed().count();
        let closed = |said: &&str| !names.iter().any(|name| name == said);
        let closed = self.closed().rfind(closed).map(str::to_owned);
        let text = match &closed {
            Some(closed) => self.said.get(closed),
            None => self.earlier.1.as_deref().filter(|_| n_closed == 0),
        };
        let is_told = n_told < self.earlier.0.len() + n_closed && text == Some(&*words);
        if is_told && self.open.as_ref() != Some(&name) {
            if let Some(closed) = &closed {
                self.said.put_last(closed);
            }
            return;
        }
        self.said.whole(&name, &words);
        self.said.put_last(&name);
        self.open = Some(name);
        self.files(artifact);
    }

    /// Adds the files of an artifact or a message to the output.
    fn files(&mut self, of: &Value) {
        let parts = of.get("parts").and_then(Value::as_array);
        for part in parts.into_iter().flatten() {
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

fn call_of(id: &str, name: &str, input: &str) -> ToolCall {
    ToolCall {
        tool_call_id: id.into(),
        tool_name: name.into(),
        arguments: Arguments::from_text(input),
        after: Vec::new(),
    }
}
