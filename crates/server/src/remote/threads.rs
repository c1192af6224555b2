//! A remote agent with a Threads API: one remote thread for each thread of this server, and one run for
//! each answer.

use super::call::{self, Breaks, Notes, Opening, Poll, Step, done};
use super::client::{Answered, Ask, Client};
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use interop::remote::threads::{RunEnd, RunEventError, RunReader, is_of, outputs, run};
use interop::remote::{RemotePosition, RemoteQuestion as Asked};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;
use upp::{Code, CycleUsage, Error, Request, StopReason, ToolCall};

/// Number of the thread's last runs that are searched for a run whose id a crash lost.
const LOOKED_AT: usize = 20;

/// The note of a call: the remote thread, whether a request was sent, then the run's id.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Note {
    #[serde(skip_serializing_if = "Option::is_none")]
    thread: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    sent: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    call: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<String>,
}

impl Note {
    fn of_run(&self, run: &str) -> Self {
        Self {
            call: None,
            run: Some(run.to_owned()),
            ..self.clone()
        }
    }
}

/// The request that starts the answer.
enum Begin {
    /// A run of its own.
    Run(Value),
    /// The answers to a run's calls.
    Outputs { run: String, body: Value },
}

/// One answer.
pub(super) struct RunCall {
    client: Arc<Client>,
    notes: Notes,
    note: Note,
    begin: Begin,
    /// The run whose pending calls are withdrawn before a new message is posted.
    withdraws: Option<String>,
    reader: RunReader,
    opening: Opening,
    events: Option<BoxStream<'static, Result<String, Error>>>,
    breaks: Breaks,
    poll: Poll,
    /// Whether an earlier attempt has sent a request.
    was_sent: bool,
}

impl RunCall {
    pub(super) fn new(client: Arc<Client>, request: &Request) -> Result<Self, Error> {
        let notes = Notes::of(request);
        let news = call::new_messages(&client, request, &notes)?;
        let place = news.position.as_ref();
        let mut note: Note = notes.read().unwrap_or_default();
        if note.thread.is_none() {
            note.thread = place.and_then(|place| place.context.clone());
        }
        let asked = place
            .filter(|place| !place.asks.is_empty())
            .and_then(|place| place.run.clone());
        let assistant = client.config.agent.as_deref().unwrap_or_default();
        let mut params = (*request.params).clone();
        if let Some(system) = &request.system {
            params.insert("additional_instructions".to_owned(), (**system).into());
        }
        let mut withdraws = None;
        let begin = match asked {
            Some(run) if !news.superseded && !news.results.is_empty() => Begin::Outputs {
                run,
                body: outputs(&news),
            },
            asked => {
                withdraws = asked;
                Begin::Run(run(assistant, &notes.key, &news, &request.tools, &params))
            }
        };
        Ok(Self {
            was_sent: note.sent,
            begin,
            withdraws,
            reader: RunReader::of(&news),
            note,
            notes,
            opening: Opening::default(),
            events: None,
            breaks: Breaks::default(),
            poll: Poll::default(),
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
        let idle = self.client.config.idle_timeout;
        let Ok(event) = tokio::time::timeout(idle, events.next()).await else {
            return self.silent();
        };
        match event {
            Some(Ok(data)) if data == "[DONE]" => {
                if self.note.run.is_none() {
                    let text = "the stream ended before it said which run it is";
                    return Err(self.client.invalid(text));
                }
                // Whatever is missing is asked for.
                self.events = None;
                Ok(self.next_step())
            }
            Some(Ok(data)) => {
                let value = serde_json::from_str(&data).map_err(|cause| {
                    self.client.invalid("an event is not JSON").caused_by(cause)
                })?;
                self.breaks.recovered();
                self.take(&value).await?;
                Ok(self.next_step())
            }
            Some(Err(error)) => self.again(error).await,
            None => {
                let text = "the stream ended before the run did";
                let error = self.client.error(Code::NetworkError, text);
                self.again(error).await
            }
        }
    }

    /// Switches from the stream to polling when no event but keep-alives arrives. The remote run may
    /// wait for a person, and the stream does not report when it expires.
    fn silent(&mut self) -> Result<Step, Error> {
        if self.note.run.is_none() {
            let text = "nothing came for too long, not even which run it is";
            return Err(self.client.error(Code::Timeout, text));
        }
        self.events = None;
        Ok(self.next_step())
    }

    fn next_step(&mut self) -> Step {
        Step::Events(self.reader.text().take_events())
    }

    /// Starts the run, or attaches to the one that was started.
    async fn open(&mut self) -> Result<(), Error> {
        if let Some(run) = self.note.run.clone() {
            return self.attach(&run).await;
        }
        let thread = self.thread().await?;
        if self.opening.is_sent() {
            return self.tell(&thread).await;
        }
        if std::mem::take(&mut self.was_sent)
            && let Some(run) = self.found(&thread).await?
        {
            self.name(&run).await?;
            return self.attach(&run).await;
        }
        if let Some(run) = self.withdraws.take() {
            let path = format!("/threads/{thread}/runs/{run}/cancel");
            if let Err(error) = self.client.json(Ask::post(&path, &json!({}))).await {
                // It may be over by now; if it is not, the thread is still locked, and says so.
                tracing::debug!(error = %error, "a question elsewhere could not be withdrawn");
            }
        }
        if !self.note.sent {
            self.note.sent = true;
            self.note.call = Some(self.notes.key.clone());
            self.notes.write(&self.note).await?;
        }
        self.tell(&thread).await
    }

    /// Sends the request that starts the answer.
    async fn tell(&mut self, thread: &str) -> Result<(), Error> {
        let (path, body) = match &self.begin {
            Begin::Run(body) => (format!("/threads/{thread}/runs"), body),
            Begin::Outputs { run, body } => (
                format!("/threads/{thread}/runs/{run}/submit_tool_outputs"),
                body,
            ),
        };
        let request = || {
            let key = Some(self.notes.key.clone());
            self.client.position(path, body.to_string(), key)
        };
        match self.opening.answered(request).await {
            Err(error) => Err(self.unsent(error, thread).await),
            Ok(Answered::Events(events)) => {
                self.events = Some(events);
                Ok(())
            }
            Ok(Answered::Whole(text)) => {
                let value: Value = serde_json::from_str(&text).map_err(|cause| {
                    self.client
                        .invalid("the answer is not JSON")
                        .caused_by(cause)
                })?;
                self.take(&value).await
            }
        }
    }

    /// The error of a request that failed. A busy thread has the status of a permanent error, but is not
    /// one.
    async fn unsent(&mut self, error: Error, thread: &str) -> Error {
        let begins = matches!(self.begin, Begin::Run(_));
        if begins && call::is_final(&error) && self.is_busy(thread).await {
            return error;
        }
        call::unsent(error)
    }

    /// Whether the thread's last run is still active, or its state is unknown.
    async fn is_busy(&mut self, thread: &str) -> bool {
        let path = format!("/threads/{thread}/runs?order=desc&limit=1");
        let Ok(list) = self.client.json(Ask::get(&path)).await else {
            return true;
        };
        let runs = list.get("data").and_then(Value::as_array);
        runs.into_iter().flatten().any(|run| {
            let mut reader = RunReader::default();
            reader.take(run).is_err() || matches!(reader.end, None | Some(RunEnd::Asks(..)))
        })
    }

    /// The remote thread; created for the first answer.
    async fn thread(&mut self) -> Result<String, Error> {
        if let Some(thread) = &self.note.thread {
            return Ok(thread.clone());
        }
        // Each agent has a thread of its own, also where two are on one server.
        let key = format!("{}:{}:thread", self.notes.conversation, self.client.agent);
        let made = self
            .client
            .json(Ask::post("/threads", &json!({})).with_key(&key));
        let made = made.await?;
        let id = made.get("id").and_then(Value::as_str);
        let id = id.ok_or_else(|| self.client.invalid("a thread has no id"))?;
        self.note.thread = Some(id.to_owned());
        self.notes.write(&self.note).await?;
        Ok(id.to_owned())
    }

    /// The run that an earlier attempt of this call has started or continued.
    async fn found(&mut self, thread: &str) -> Result<Option<String>, Error> {
        match &self.begin {
            Begin::Run(_) => {
                let path = format!("/threads/{thread}/runs?order=desc&limit={LOOKED_AT}");
                let list = self.client.json(Ask::get(&path)).await?;
                let runs = list.get("data").and_then(Value::as_array);
                let mut runs = runs.into_iter().flatten();
                let run = runs.find(|run| is_of(run, &self.notes.key));
                Ok(run.and_then(|run| Some(run.get("id")?.as_str()?.to_owned())))
            }
            Begin::Outputs { run, .. } => {
                let path = format!("/threads/{thread}/runs/{run}");
                let object = self.client.json(Ask::get(&path)).await?;
                let mut reader = RunReader::default();
                reader.take(&object).map_err(|error| self.unread(&error))?;
                let place = self.asked();
                // While it asks the same, nothing of the answer has come.
                let waits = match &reader.end {
                    Some(RunEnd::Asks(_, asks)) => asks.iter().any(|ask| place.contains(&ask.call)),
                    Some(
                        RunEnd::Completed
                        | RunEnd::Incomplete(_)
                        | RunEnd::Failed(_)
                        | RunEnd::Rejected(_)
                        | RunEnd::Expired(_)
                        | RunEnd::Limited(_),
                    )
                    | None => false,
                };
                Ok((!waits).then(|| run.clone()))
            }
        }
    }

    /// The ids of the answered calls.
    fn asked(&self) -> Vec<String> {
        let Begin::Outputs { body, .. } = &self.begin else {
            return Vec::new();
        };
        let outputs = body.get("tool_outputs").and_then(Value::as_array);
        let ids = outputs.into_iter().flatten();
        ids.filter_map(|output| Some(output.get("tool_call_id")?.as_str()?.to_owned()))
            .collect()
    }

    /// Follows a run by polling, because this protocol can't resume a stream.
    async fn attach(&mut self, run: &str) -> Result<(), Error> {
        self.poll.pause().await;
        let thread = self.thread().await?;
        let path = format!("/threads/{thread}/runs/{run}");
        let object = self.client.json(Ask::get(&path)).await?;
        let mut reader = RunReader::default();
        reader.take(&object).map_err(|error| self.unread(&error))?;
        if reader.end.is_none() {
            return Ok(());
        }
        let path = format!("/threads/{thread}/messages?order=asc&limit=100&run_id={run}");
        let said = self.client.json(Ask::get(&path)).await?;
        self.take(&said).await?;
        self.take(&object).await
    }

    async fn take(&mut self, object: &Value) -> Result<(), Error> {
        let taken = self.reader.take(object);
        taken.map_err(|error| self.unread(&error))?;
        if self.note.run.is_none()
            && let Some(run) = self.reader.run.clone()
        {
            self.name(&run).await?;
        }
        Ok(())
    }

    /// Notes the run's id.
    async fn name(&mut self, run: &str) -> Result<(), Error> {
        let note = self.note.of_run(run);
        self.notes.write(&note).await?;
        self.note = note;
        Ok(())
    }

    fn unread(&self, error: &RunEventError) -> Error {
        let code = match error {
            RunEventError::Failed(_) => Code::ProviderError,
            RunEventError::Malformed(_) => Code::InvalidResponse,
        };
        self.client.error(code, &error.to_string())
    }

    async fn again(&mut self, error: Error) -> Result<Step, Error> {
        self.events = None;
        if self.note.run.is_none() {
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
            Some(RunEnd::Completed) => Ok(self.done(Vec::new(), Vec::new(), StopReason::EndTurn)),
            Some(RunEnd::Incomplete(why)) => {
                Ok(self.done(Vec::new(), Vec::new(), StopReason::Other(why)))
            }
            Some(RunEnd::Asks(calls, asks)) => Ok(self.done(calls, asks, StopReason::EndTurn)),
            Some(RunEnd::Failed(why)) => Err(self.client.error(Code::ProviderError, &why)),
            Some(RunEnd::Rejected(why)) => {
                let error = self.client.error(Code::ContentFiltered, &why);
                Err(call::for_good(error))
            }
            Some(RunEnd::Expired(why)) => Err(self.client.error(Code::Timeout, &why)),
            Some(RunEnd::Limited(why)) => Err(self.client.error(Code::RateLimited, &why)),
            None => Err(self.client.invalid("something follows the answer")),
        }
    }

    fn done(&mut self, calls: Vec<ToolCall>, asks: Vec<Asked>, reason: StopReason) -> Step {
        let place = RemotePosition {
            agent: self.client.agent.clone(),
            at: self.client.at.as_text().to_owned(),
            conversation: self.notes.conversation.clone(),
            context: self.note.thread.clone(),
            run: self.note.run.clone(),
            texts: call::question_texts(&asks, self.reader.names()),
            asks,
        };
        let content = self.reader.text().content();
        let mut step = done(&self.client, place, content, calls, reason);
        if let (Step::Done(response), Some((input, output))) = (&mut step, self.reader.usage) {
            response.usage = CycleUsage {
                input_tokens: input,
                output_tokens: output,
                ..CycleUsage::default()
            };
        }
        step
    }
}

impl call::RemoteCall for RunCall {
    fn next(&mut self) -> BoxFuture<'_, Result<Step, Error>> {
        Box::pin(self.step())
    }

    fn is_unnamed(&self) -> bool {
        let is_sent = self.opening.is_sent() || self.events.is_some() || self.reader.run.is_some();
        self.note.run.is_none() && is_sent
    }

    fn position(&self) -> Option<Value> {
        let note = self.note.of_run(self.reader.run.as_deref()?);
        serde_json::to_value(note).ok()
    }
}

/// Cancels a run that is no longer needed.
pub(super) async fn cancel(client: &Client, note: &Value) -> Result<(), Error> {
    let note = Note::deserialize(note).unwrap_or_default();
    let (Some(thread), Some(run)) = (note.thread, note.run) else {
        return Ok(());
    };
    let path = format!("/threads/{thread}/runs/{run}/cancel");
    client.json(Ask::post(&path, &json!({}))).await.map(drop)
}
