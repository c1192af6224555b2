//! A remote agent with A2A: a message starts a task in the conversation's context, or answers a task.

use super::call::{self, Breaks, Notes, Opening, Poll, Step, done};
use super::client::{Answered, Ask, Client};
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use interop::remote::a2a::{
    ObjectError, TaskEnd, TaskReader, UNSUPPORTED, call, is_final, message, parts, result,
};
use interop::remote::{RemotePosition, RemoteQuestion as Asked};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;
use upp::{Code, Error, Request, StopReason, ToolCall};

/// The note of a call: first the message's id, then the task's.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Note {
    #[serde(skip_serializing_if = "Option::is_none")]
    call: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    task: Option<String>,
}

impl Note {
    fn of(task: &str) -> Self {
        Self {
            call: None,
            task: Some(task.to_owned()),
        }
    }
}

/// One answer.
pub(super) struct TaskCall {
    client: Arc<Client>,
    notes: Notes,
    /// The parameters of the call that sends the message.
    message: Value,
    /// The task that the message answers, with the answered calls.
    answers: Option<(String, Vec<Asked>)>,
    /// The task that is cancelled before a new message is posted, because its questions remain
    /// unanswered.
    withdraws: Option<String>,
    reader: TaskReader,
    opening: Opening,
    events: Option<BoxStream<'static, Result<String, Error>>>,
    note: Option<Note>,
    breaks: Breaks,
    poll: Poll,
    /// Whether the agent supports streaming, as far as known.
    streams: bool,
}

impl TaskCall {
    pub(super) fn new(client: Arc<Client>, request: &Request) -> Result<Self, Error> {
        if !request.tools.is_empty() {
            let text = "it speaks A2A, which has no way to give it tools";
            return Err(client.error(Code::InvalidRequest, text));
        }
        let notes = Notes::of(request);
        let news = call::new_messages(&client, request, &notes)?;
        let place = news.position.as_ref();
        let asked = place
            .filter(|place| !place.asks.is_empty())
            .and_then(|place| place.run.clone());
        let (answers, withdraws) = match asked {
            Some(task) if news.superseded || news.results.is_empty() => (None, Some(task)),
            asked => (asked, None),
        };
        // So that a message that is sent again is known to be in the same context.
        let own = client.config.repeatable;
        // Each agent has a context of its own, also where two are on one server.
        let own = own.then(|| format!("loomline-{}-{}", client.agent, notes.conversation));
        let context = place.and_then(|place| place.context.clone()).or(own);
        let id = format!("loomline-{}", notes.key);
        let message = message(&id, context.as_deref(), answers.as_deref(), &parts(&news));
        let asks = place.map(|place| place.asks.clone()).unwrap_or_default();
        Ok(Self {
            message,
            answers: answers.map(|task| (task, asks)),
            withdraws,
            reader: TaskReader::of(&news),
            opening: Opening::default(),
            events: None,
            note: notes.read(),
            notes,
            breaks: Breaks::default(),
            poll: Poll::default(),
            streams: true,
            client,
        })
    }

    async fn step(&mut self) -> Result<Step, Error> {
        if self.reader.end.is_some() {
            return self.ended();
        }
        let Some(events) = &mut self.events else {
            let opened = self.open().await;
            return match opened {
                Ok(()) => Ok(self.next_step()),
                Err(error) => self.again(error).await,
            };
        };
        match events.next().await {
            Some(Ok(data)) => {
                self.event(&data).await?;
                Ok(self.next_step())
            }
            Some(Err(error)) => self.again(error).await,
            None => {
                let text = "the stream ended before the task did";
                let error = self.client.error(Code::NetworkError, text);
                self.again(error).await
            }
        }
    }

    fn task(&self) -> Option<&str> {
        self.note.as_ref()?.task.as_deref()
    }

    fn next_step(&mut self) -> Step {
        Step::Events(self.reader.text().take_events())
    }

    /// Sends the message, or finds the task that it started.
    async fn open(&mut self) -> Result<(), Error> {
        if let Some(task) = self.task().map(str::to_owned) {
            return self.attach(&task).await;
        }
        if self.opening.is_sent() {
            return self.tell().await;
        }
        if self.note.is_some()
            && let Some((task, asks)) = self.answers.clone()
        {
            // A task that is answered is at work, and takes no message, not even the same again.
            if !self.waits(&task, &asks).await? {
                let note = Note::of(&task);
                self.notes.write(&note).await?;
                self.note = Some(note);
                return self.attach(&task).await;
            }
        } else if self.note.is_some() && !self.client.config.repeatable {
            let text = "the connection was lost before it said which task it had begun, and it has no way to find \
                out; it may have run";
            return Err(self.client.error(Code::ProviderError, text));
        }
        if let Some(task) = self.withdraws.take() {
            let params = json!({ "id": task });
            if let Err(error) = self.asked("CancelTask", &params).await {
                // It may be over by now; if it is not, the agent says so to the message.
                tracing::debug!(error = %error, "a question elsewhere could not be withdrawn");
            }
        }
        if self.note.is_none() {
            let note = Note {
                call: Some(self.notes.key.clone()),
                task: None,
            };
            self.notes.write(&note).await?;
            self.note = Some(note);
        }
        self.tell().await
    }

    /// Sends the message.
    async fn tell(&mut self) -> Result<(), Error> {
        let message = self.message.clone();
        let sent = self.send("SendStreamingMessage", message).await;
        sent.map_err(|failed| failed.of_message(&self.client, self.answers.is_some()))
    }

    /// Sends a call with a streamed response; without a stream if the agent does not support streaming.
    async fn send(&mut self, method: &str, params: Value) -> Result<(), Failed> {
        if self.streams {
            match self.stream(method, &params).await {
                Err(Failed::Refused(UNSUPPORTED, _)) => self.streams = false,
                streamed => return streamed,
            }
        }
        if method == "SendStreamingMessage" {
            let mut params = params;
            params["configuration"] = json!({"returnImmediately": true});
            return self.stream("SendMessage", &params).await;
        }
        self.poll.pause().await;
        let task = self.call("GetTask", &params).await?;
        let taken = self.take(&json!({ "task": task })).await;
        taken.map_err(Failed::Error)
    }

    async fn stream(&mut self, method: &str, params: &Value) -> Result<(), Failed> {
        let body = || call(method, &self.notes.key, params).to_string();
        let request = || self.client.position(String::new(), body(), None);
        let answered = self.opening.answered(request).await;
        match answered.map_err(Failed::Error)? {
            Answered::Events(events) => {
                self.events = Some(events);
                Ok(())
            }
            Answered::Whole(text) => {
                let value = parsed(&self.client, &text).map_err(Failed::Error)?;
                let result = self.result(&value)?;
                self.take(result).await.map_err(Failed::Error)
            }
        }
    }

    /// Attaches to a started task: reads its state, then subscribes to it.
    async fn attach(&mut self, task: &str) -> Result<(), Error> {
        let params = json!({ "id": task });
        let found = self.asked("GetTask", &params).await?;
        self.take(&json!({ "task": found })).await?;
        if self.reader.end.is_some() {
            return Ok(());
        }
        let sent = self.send("SubscribeToTask", params).await;
        sent.map_err(|failed| failed.error(&self.client))
    }

    /// Whether a task still waits for these answers.
    async fn waits(&mut self, task: &str, asks: &[Asked]) -> Result<bool, Error> {
        let found = self.asked("GetTask", &json!({ "id": task })).await?;
        let mut reader = TaskReader::default();
        let read = reader.task(&found);
        read.map_err(|error| unread(&self.client, &error))?;
        Ok(match &reader.end {
            Some(TaskEnd::Asks(_, open)) => open.iter().any(|ask| asks.contains(ask)),
            Some(TaskEnd::Completed | TaskEnd::Failed(_) | TaskEnd::Rejected(_)) | None => false,
        })
    }

    async fn call(&mut self, method: &str, params: &Value) -> Result<Value, Failed> {
        let body = call(method, &self.notes.key, params);
        let answer = self.client.json(Ask::post("", &body)).await;
        let answer = answer.map_err(Failed::Error)?;
        self.result(&answer).cloned()
    }

    /// Makes a call other than sending a message.
    async fn asked(&mut self, method: &str, params: &Value) -> Result<Value, Error> {
        let called = self.call(method, params).await;
        called.map_err(|failed| failed.error(&self.client))
    }

    fn result<'a>(&self, answer: &'a Value) -> Result<&'a Value, Failed> {
        result(answer).map_err(|error| match error {
            ObjectError::Refused { code, message } => Failed::Refused(code, message),
            ObjectError::Malformed(_) => Failed::Error(unread(&self.client, &error)),
        })
    }

    async fn event(&mut self, data: &str) -> Result<(), Error> {
        let value = parsed(&self.client, data)?;
        let result = result(&value).map_err(|error| unread(&self.client, &error))?;
        self.breaks.recovered();
        if let Some(task) = self.task().map(str::to_owned)
            && self.reader.wants_task(result)
        {
            let found = self.asked("GetTask", &json!({ "id": task })).await?;
            return self.take(&json!({ "task": found })).await;
        }
        self.take(result).await
    }

    /// Reads an event of the task, and notes the task's id once it is known.
    async fn take(&mut self, response: &Value) -> Result<(), Error> {
        let taken = self.reader.take(response);
        taken.map_err(|error| unread(&self.client, &error))?;
        if self.task().is_none()
            && let Some(task) = &self.reader.task
        {
            let note = Note::of(task);
            self.notes.write(&note).await?;
            self.note = Some(note);
        }
        Ok(())
    }

    async fn again(&mut self, error: Error) -> Result<Step, Error> {
        self.events = None;
        if self.task().is_none() {
            return Err(error);
        }
        self.breaks.pause(error).await?;
        Ok(self.next_step())
    }

    fn ended(&mut self) -> Result<Step, Error> {
        let rest = self.reader.text().take_events();
        if !rest.is_empty() {
            return Ok(Step::Events(rest));
        }
        match self.reader.end.take() {
            Some(TaskEnd::Completed) => Ok(self.done(Vec::new(), Vec::new())),
            Some(TaskEnd::Asks(calls, asks)) => Ok(self.done(calls, asks)),
            Some(TaskEnd::Failed(why)) => Err(self.client.error(Code::ProviderError, &why)),
            Some(TaskEnd::Rejected(why)) => {
                let error = self.client.error(Code::ContentFiltered, &why);
                Err(call::for_good(error))
            }
            None => Err(self.client.invalid("something follows the answer")),
        }
    }

    fn done(&mut self, calls: Vec<ToolCall>, asks: Vec<Asked>) -> Step {
        let place = RemotePosition {
            agent: self.client.agent.clone(),
            at: self.client.at.as_text().to_owned(),
            conversation: self.notes.conversation.clone(),
            context: self.reader.context.clone(),
            run: self.reader.task.clone(),
            texts: call::question_texts(&asks, self.reader.names()),
            asks,
        };
        let content = self.reader.text().content();
        done(&self.client, place, content, calls, StopReason::EndTurn)
    }
}

impl call::RemoteCall for TaskCall {
    fn next(&mut self) -> BoxFuture<'_, Result<Step, Error>> {
        Box::pin(self.step())
    }

    fn is_unnamed(&self) -> bool {
        let is_sent = self.opening.is_sent() || self.events.is_some() || self.reader.task.is_some();
        self.task().is_none() && is_sent
    }

    fn position(&self) -> Option<Value> {
        serde_json::to_value(Note::of(self.reader.task.as_deref()?)).ok()
    }
}

/// Why a call has no result.
enum Failed {
    /// The agent refused the call, with this code.
    Refused(i64, String),
    Error(Error),
}

impl Failed {
    fn error(self, client: &Client) -> Error {
        match self {
            Self::Refused(code, message) => unread(client, &ObjectError::Refused { code, message }),
            Self::Error(error) => error,
        }
    }

    /// The error for the message; `answers` if the message answers a task's questions.
    fn of_message(self, client: &Client, answers: bool) -> Error {
        match self {
            Self::Refused(code, _) if is_final(code, answers) => call::for_good(self.error(client)),
            Self::Refused(..) => self.error(client),
            Self::Error(error) => call::unsent(error),
        }
    }
}

fn unread(client: &Client, error: &ObjectError) -> Error {
    let code = match error {
        ObjectError::Refused { .. } => Code::InvalidRequest,
        ObjectError::Malformed(_) => Code::InvalidResponse,
    };
    client.error(code, &error.to_string())
}

fn parsed(client: &Client, text: &str) -> Result<Value, Error> {
    serde_json::from_str(text)
        .map_err(|cause| client.invalid("an event is not JSON").caused_by(cause))
}

/// Cancels a task that is no longer needed.
pub(super) async fn cancel(client: &Client, note: &Value) -> Result<(), Error> {
    let Some(task) = note.get("task").and_then(Value::as_str) else {
        return Ok(());
    };
    let body = call("CancelTask", "cancel", &json!({ "id": task }));
    let answer = client.json(Ask::post("", &body)).await?;
    match result(&answer) {
        Ok(_) => Ok(()),
        Err(error) => Err(unread(client, &error)),
    }
}
