//! A remote agent with a Responses API. It stores the conversation: each request continues the last
//! response.

use super::call::{self, Breaks, Notes, Opening, Step};
use super::client::{Answered, Ask, Client};
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use interop::remote::responses::{OwnCalls, is_visible, params, position_of};
use interop::remote::{AskKind, RemotePosition, RemoteQuestion as Asked};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;
use upp::{
    AssistantMessage, Code, Codec, CodecProgress, Decoder, Error, Message, MessageOptions,
    Messages, Request, Response, Responses, StopReason, StreamEvent, ToolResultMessage,
};

const PATH: &str = "/responses";

/// The note of a call: first the call's key, then the id of its response.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Note {
    #[serde(skip_serializing_if = "Option::is_none")]
    call: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response: Option<String>,
}

impl Note {
    fn of(response: &str) -> Self {
        Self {
            call: None,
            response: Some(response.to_owned()),
        }
    }
}

/// One answer.
pub(super) struct ResponseCall {
    client: Arc<Client>,
    notes: Notes,
    body: String,
    /// Until the answer is whole.
    decoder: Option<Box<dyn Decoder>>,
    /// Decodes the response in the last event.
    last: Option<Box<dyn Decoder>>,
    own: OwnCalls,
    opening: Opening,
    events: Option<BoxStream<'static, Result<String, Error>>>,
    note: Option<Note>,
    /// The response's id, before it is noted.
    response: Option<String>,
    /// The sequence number of the last event.
    seen: Option<u64>,
    breaks: Breaks,
    /// The whole answer, before it is returned.
    done: Option<Box<Response>>,
}

impl ResponseCall {
    pub(super) fn new(client: Arc<Client>, request: &Request) -> Result<Self, Error> {
        let notes = Notes::of(request);
        let news = call::new_messages(&client, request, &notes)?;
        let previous = news
            .position
            .as_ref()
            .and_then(|place| place.run.as_deref());
        let mut messages = Messages::new();
        // Where something else was said in the place of answers, the calls are left there, too.
        if !news.superseded && !news.results.is_empty() {
            let results = news.results.iter().map(|&result| result.clone());
            let message = ToolResultMessage::new(results.collect(), MessageOptions::default());
            messages.push_back_mut(Message::from(message));
        }
        for message in &news.messages {
            messages.push_back_mut(input_message(message));
        }
        let params = params(&request.params, client.config.background, previous);
        let agent = client.config.agent.clone().unwrap_or_default();
        let protocol = client.config.protocol.as_str();
        let codec = Responses::host(protocol, &*client.config.url, agent);
        let codec = codec.with_encrypted_reasoning(false);
        let asked = Request {
            messages,
            params: Arc::new(params),
            ..request.clone()
        };
        let encoded = codec.encode(&asked).map_err(call::for_good)?;
        let mut body: Value = serde_json::from_str(&encoded.body)
            .map_err(|cause| client.invalid("the request is no JSON").caused_by(cause))?;
        if client.config.agent.is_none()
            && let Some(fields) = body.as_object_mut()
        {
            fields.shift_remove("model");
        }
        Ok(Self {
            note: notes.read(),
            notes,
            body: body.to_string(),
            decoder: Some(codec.decoder(&asked)),
            last: Some(codec.decoder(&asked)),
            own: OwnCalls::default(),
            opening: Opening::default(),
            events: None,
            response: None,
            seen: None,
            breaks: Breaks::default(),
            done: None,
            client,
        })
    }

    async fn step(&mut self) -> Result<Step, Error> {
        if let Some(response) = self.done.take() {
            return match &response.stop_reason {
                StopReason::Other(why) => Err(self.cut_off(why)),
                StopReason::EndTurn
                | StopReason::MaxTokens
                | StopReason::ToolUse
                | StopReason::ContentFilter
                | StopReason::Error => Ok(Step::Done(Box::new(self.answer(*response)))),
            };
        }
        let Some(events) = &mut self.events else {
            let opened = self.open().await;
            return match opened {
                Ok(step) => Ok(step),
                Err(error) if self.id().is_some() => self.again(error).await,
                Err(error) => Err(error),
            };
        };
        match events.next().await {
            Some(Ok(data)) if data == "[DONE]" => {
                self.events = None;
                self.broke("the stream ended before the response did").await
            }
            Some(Ok(data)) => self.event(&data).await,
            Some(Err(error)) => self.again(error).await,
            None => self.broke("the stream broke off").await,
        }
    }

    fn id(&self) -> Option<&str> {
        self.note.as_ref()?.response.as_deref()
    }

    /// Starts the response, or reconnects to the one that was started.
    async fn open(&mut self) -> Result<Step, Error> {
        let answered = match (&self.note, self.id()) {
            (_, Some(id)) => {
                let after = self.seen.map(|seen| format!("&starting_after={seen}"));
                let path = format!("{PATH}/{id}?stream=true{}", after.unwrap_or_default());
                self.client.stream(Ask::get(&path)).await?
            }
            (Some(_), None) if !self.opening.is_sent() && !self.client.config.repeatable => {
                let text = "the connection was lost before it said what it had begun, and it has no way to find out; \
                    it may have run";
                return Err(self.client.error(Code::ProviderError, text));
            }
            (Some(_) | None, None) => {
                if self.note.is_none() {
                    let note = Note {
                        call: Some(self.notes.key.clone()),
                        response: None,
                    };
                    self.notes.write(&note).await?;
                    self.note = Some(note);
                }
                let (body, key) = (&self.body, &self.notes.key);
                let request = || {
                    let key = Some(key.clone());
                    self.client.position(PATH.to_owned(), body.clone(), key)
                };
                let answered = self.opening.answered(request).await;
                answered.map_err(call::unsent)?
            }
        };
        match answered {
            Answered::Events(events) => {
                self.events = Some(events);
                Ok(Step::Events(Vec::new()))
            }
            Answered::Whole(text) => {
                let value = self.parsed(&text)?;
                self.own.see(&value);
                self.learn(&value).await?;
                let status = value.get("status").and_then(Value::as_str);
                if matches!(status, Some("queued" | "in_progress")) {
                    let text = "it works in the background and does not stream";
                    return Err(self.client.error(Code::NetworkError, text));
                }
                self.read(|decoder| decoder.whole(&text))
            }
        }
    }

    async fn event(&mut self, data: &str) -> Result<Step, Error> {
        if data.trim().is_empty() {
            return Ok(Step::Events(Vec::new()));
        }
        let value = self.parsed(data)?;
        self.own.see(&value);
        self.learn(&value).await?;
        self.breaks.recovered();
        let step = self.read(|decoder| decoder.push(data))?;
        self.finish(&value)?;
        Ok(step)
    }

    /// Takes the final answer from the list of the completed response: an attempt that died there may
    /// have streamed more.
    fn finish(&mut self, event: &Value) -> Result<(), Error> {
        let response = event.get("response").filter(|_| self.done.is_some());
        let lists = response.and_then(|response| response.get("output")?.as_array());
        if let Some(response) = response
            && lists.is_some_and(|items| !items.is_empty())
            && let Some(mut decoder) = self.last.take()
        {
            let read = decoder.whole(&response.to_string());
            let read = read.and_then(|_| decoder.finish());
            let (_, response) = read.map_err(|error| self.named(&error))?;
            self.done = Some(Box::new(response));
        }
        Ok(())
    }

    fn parsed(&self, text: &str) -> Result<Value, Error> {
        serde_json::from_str(text)
            .map_err(|cause| self.client.invalid("an event is not JSON").caused_by(cause))
    }

    /// Notes the response's id once it is known; from here on, a restart can find the response.
    async fn learn(&mut self, event: &Value) -> Result<(), Error> {
        let (id, number) = position_of(event);
        self.seen = number.or(self.seen);
        if self.id().is_none()
            && let Some(id) = id
        {
            let note = Note::of(id);
            self.response = Some(id.to_owned());
            self.notes.write(&note).await?;
            self.note = Some(note);
        }
        Ok(())
    }

    /// Passes an event to the decoder, and ends the answer when the decoder has it complete.
    fn read(
        &mut self,
        take: impl FnOnce(&mut dyn Decoder) -> Result<Vec<StreamEvent>, Error>,
    ) -> Result<Step, Error> {
        let Some(mut decoder) = self.decoder.take() else {
            return Err(self.client.invalid("something follows the answer"));
        };
        let mut events = take(&mut *decoder).map_err(|error| self.named(&error))?;
        if decoder.progress() == CodecProgress::Closed {
            let (rest, response) = decoder.finish().map_err(|error| self.named(&error))?;
            events.extend(rest);
            self.done = Some(Box::new(response));
        } else {
            self.decoder = Some(decoder);
        }
        Ok(Step::Events(
            events.into_iter().filter(is_visible).collect(),
        ))
    }

    /// The error of a response that ended for another reason than its length or a policy.
    fn cut_off(&self, why: &str) -> Error {
        let code = match why {
            "timeout" => Code::Timeout,
            _ => Code::ProviderError,
        };
        self.client
            .error(code, &format!("the response is not complete: {why}"))
    }

    /// The error, with this agent's name.
    fn named(&self, error: &Error) -> Error {
        // Stopped there is not stopped here.
        let is_stopped = error.code == Code::Cancelled;
        let code = if is_stopped {
            Code::ProviderError
        } else {
            error.code
        };
        let mut named = self.client.error(code, &error.message);
        named.status = error.status;
        named.retry_after = error.retry_after;
        match code {
            Code::InvalidRequest | Code::ContentFiltered | Code::ContextLengthExceeded => {
                call::for_good(named)
            }
            Code::AuthenticationFailed
            | Code::RateLimited
            | Code::ModelNotFound
            | Code::InvalidResponse
            | Code::QuotaExceeded
            | Code::ProviderError
            | Code::NetworkError
            | Code::Timeout
            | Code::Cancelled => named,
        }
    }

    async fn broke(&mut self, what: &str) -> Result<Step, Error> {
        let error = self.client.error(Code::NetworkError, what);
        self.again(error).await
    }

    /// Reconnects at the last event received, if the response's id is known.
    async fn again(&mut self, error: Error) -> Result<Step, Error> {
        self.events = None;
        if self.id().is_none() {
            return Err(error);
        }
        self.breaks.pause(error).await?;
        Ok(Step::Events(Vec::new()))
    }

    /// The answer as a response, with its content and the calls that the remote agent leaves to its
    /// client.
    fn answer(&self, response: Response) -> Response {
        let calls = self.own.left(&response.message);
        let asks = calls.iter().map(|call| Asked {
            call: call.tool_call_id.as_str().to_owned(),
            id: None,
            thread_key: None,
            kind: AskKind::Result,
        });
        let place = RemotePosition {
            agent: self.client.agent.clone(),
            at: self.client.at.as_text().to_owned(),
            conversation: self.notes.conversation.clone(),
            context: None,
            run: self.id().map(str::to_owned),
            asks: asks.collect(),
            texts: Vec::new(),
        };
        let mut stop_reason = response.stop_reason;
        if stop_reason == StopReason::ToolUse && calls.is_empty() {
            stop_reason = StopReason::EndTurn;
        }
        let options = MessageOptions {
            metadata: Some(place.metadata()),
            ..MessageOptions::default()
        };
        Response {
            message: AssistantMessage::new(response.message.content, calls, options),
            stop_reason,
            ..response
        }
    }
}

impl call::RemoteCall for ResponseCall {
    fn next(&mut self) -> BoxFuture<'_, Result<Step, Error>> {
        Box::pin(self.step())
    }

    fn is_unnamed(&self) -> bool {
        let is_sent = self.opening.is_sent() || self.events.is_some() || self.response.is_some();
        self.id().is_none() && is_sent
    }

    fn position(&self) -> Option<Value> {
        serde_json::to_value(Note::of(self.response.as_deref()?)).ok()
    }
}

/// Turns a message into input. Messages of other agents become texts, since this agent did not make
/// their calls.
fn input_message(message: &Message) -> Message {
    match message {
        Message::Assistant(answer) => {
            let content = answer.content.clone();
            AssistantMessage::new(content, Vec::new(), MessageOptions::default()).into()
        }
        Message::User(_) | Message::ToolResult(_) => message.clone(),
    }
}

/// Cancels a response that is no longer needed.
pub(super) async fn cancel(client: &Client, note: &Value) -> Result<(), Error> {
    let Some(id) = note.get("response").and_then(Value::as_str) else {
        return Ok(());
    };
    let path = format!("{PATH}/{id}/cancel");
    client.json(Ask::post(&path, &json!({}))).await.map(drop)
}
