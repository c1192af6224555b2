//! Calls of a remote agent: the part that is common to all protocols.

use super::client::{Answered, Client};
use futures_util::future::BoxFuture;
use interop::remote::{News, RemotePosition, RemoteQuestion, RemoteRefusal};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use upp::{
    AssistantContent, AssistantMessage, CallRecord, Code, CycleUsage, Error, MessageId,
    MessageOptions, Request, Response, StopReason, StreamEvent, ToolCall,
};

/// Number of reconnects in a row without a new event, after which the call fails.
const RECONNECTS: u32 = 4;
/// Pause before the first reconnect or poll; it doubles each time.
const PAUSE: Duration = Duration::from_millis(250);
/// The longest pause between two polls.
const LONGEST_POLL: Duration = Duration::from_secs(5);

/// The field of a note that holds the call's key, until the id of the remote run is known.
pub(super) const CALL: &str = "call";

/// The answer of a remote agent, read piece by piece.
pub(super) trait RemoteCall: Send {
    /// Returns the next piece. Dropping the future loses nothing that is still on its way.
    fn next(&mut self) -> BoxFuture<'_, Result<Step, Error>>;

    /// Whether a request was sent whose remote run has no id in the notes yet.
    fn is_unnamed(&self) -> bool;

    /// The note with the id of the remote run, once the id is known.
    fn position(&self) -> Option<Value>;
}

/// Reads an abandoned call on until the id of its remote run is known, and returns the note with it.
/// Returns none if the answer is complete, so that there is nothing to stop.
pub(super) async fn position(mut talk: Box<dyn RemoteCall>) -> Option<Value> {
    loop {
        let begun = talk.position();
        if begun.is_some() {
            return begun;
        }
        match talk.next().await {
            Ok(Step::Events(_)) => {}
            Ok(Step::Done(_)) => return None,
            // It can't be noted any more.
            Err(_) => return talk.position(),
        }
    }
}

/// A request in flight that starts a remote run. It stays in flight while nobody polls it.
#[derive(Default)]
pub(super) struct Opening(Option<BoxFuture<'static, Result<Answered, Error>>>);

impl Opening {
    pub(super) fn is_sent(&self) -> bool {
        self.0.is_some()
    }

    /// Returns the response to the request. Sends the request if none is in flight.
    pub(super) async fn answered(
        &mut self,
        request: impl FnOnce() -> BoxFuture<'static, Result<Answered, Error>>,
    ) -> Result<Answered, Error> {
        let answered = self.0.get_or_insert_with(request).await;
        self.0 = None;
        answered
    }
}

/// A piece of a remote agent's answer.
pub(super) enum Step {
    /// Events to show; may be empty.
    Events(Vec<StreamEvent>),
    /// The whole answer.
    Done(Box<Response>),
}

/// The notes of a call, which survive a crash. Without a [`CallRecord`] nothing is stored.
pub(super) struct Notes {
    kept: Option<Arc<dyn CallRecord>>,
    pub(super) key: String,
    pub(super) conversation: String,
}

impl Notes {
    pub(super) fn of(request: &Request) -> Self {
        let kept = request.call_record.clone();
        let random = || MessageId::random().as_str().to_owned();
        Self {
            key: kept
                .as_ref()
                .map_or_else(random, |kept| kept.key().to_owned()),
            conversation: kept
                .as_ref()
                .map_or_else(random, |kept| kept.conversation().to_owned()),
            kept,
        }
    }

    /// The note that an earlier attempt of this call wrote, if any. A note of a refusal counts as none.
    pub(super) fn read<T: DeserializeOwned>(&self) -> Option<T> {
        let noted = self.kept.as_ref()?.noted()?;
        let noted = RemoteRefusal::noted(&noted).is_none().then_some(noted)?;
        serde_json::from_value(noted).ok()
    }

    /// Stores a note; it is durable when this returns.
    pub(super) async fn write<T: Serialize + Sync>(&self, note: &T) -> Result<(), Error> {
        let Some(kept) = &self.kept else {
            return Ok(());
        };
        let note = serde_json::to_value(note).map_err(|error| {
            Error::new(Code::InvalidRequest, "", "a note has no JSON form").caused_by(error)
        })?;
        kept.note(note).await
    }
}

/// The cause of an error that concerns this message alone: it must not be sent again.
#[derive(Debug, thiserror::Error)]
#[error("it is not sent this message again, nor what came with it")]
struct ForGood;

/// Marks an error as permanent: the agent would refuse the message each time.
pub(super) fn for_good(error: Error) -> Error {
    error.caused_by(ForGood)
}

/// Whether [`for_good`] marked an error as permanent.
pub(super) fn is_for_good(error: &Error) -> bool {
    matches!(error.cause.as_deref(), Some(cause) if cause.is::<ForGood>())
}

/// Whether an error is an answer to the message that a repetition would get again: status 400, 413, 415
/// or 422.
pub(super) fn is_final(error: &Error) -> bool {
    error.code == Code::InvalidRequest && matches!(error.status, Some(400 | 413 | 415 | 422))
}

/// The error of a message that was not delivered, marked as permanent if [`is_final`].
pub(super) fn unsent(error: Error) -> Error {
    if is_final(&error) {
        for_good(error)
    } else {
        error
    }
}

/// The count of broken connections in a row.
#[derive(Default)]
pub(super) struct Breaks {
    n: u32,
}

impl Breaks {
    /// Resets the count: an event arrived.
    pub(super) fn recovered(&mut self) {
        self.n = 0;
    }

    /// Waits before the next reconnect.
    ///
    /// # Errors
    ///
    /// The error of the broken connection, after [`RECONNECTS`] attempts or if it can't be retried.
    pub(super) async fn pause(&mut self, error: Error) -> Result<(), Error> {
        if self.n >= RECONNECTS || !error.is_retryable() {
            return Err(error);
        }
        tokio::time::sleep(PAUSE * 2_u32.saturating_pow(self.n)).await;
        self.n += 1;
        Ok(())
    }
}

/// The messages of a request that the remote agent has not received yet.
///
/// # Errors
///
/// `InvalidRequest` if they answer a question of the conversation that this one was forked from.
pub(super) fn new_messages<'a>(
    client: &Client,
    request: &'a Request,
    notes: &Notes,
) -> Result<News<'a>, Error> {
    let (agent, at) = (&client.agent, &client.at);
    let news = News::of(&request.messages, agent, at, &notes.conversation);
    if news.asks_others {
        let text = "what is answered here was asked in the conversation that this one was forked off from, and can \
            only be answered there; the next message begins a conversation of its own";
        return Err(client.error(Code::InvalidRequest, text));
    }
    Ok(news)
}

/// The names of the texts written so far. Empty unless the agent has questions, for only their answers
/// need the names.
pub(super) fn question_texts(asks: &[RemoteQuestion], names: Vec<String>) -> Vec<String> {
    if asks.is_empty() { Vec::new() } else { names }
}

/// Polls with growing pauses.
#[derive(Default)]
pub(super) struct Poll {
    n: u32,
}

impl Poll {
    /// Waits before the next poll; the first poll has no pause.
    pub(super) async fn pause(&mut self) {
        if self.n > 0 {
            let pause = PAUSE * 2_u32.saturating_pow(self.n - 1);
            tokio::time::sleep(pause.min(LONGEST_POLL)).await;
        }
        self.n = self.n.saturating_add(1);
    }
}

/// Turns a complete answer into a response with one assistant message.
pub(super) fn done(
    client: &Client,
    place: RemotePosition,
    content: Vec<AssistantContent>,
    calls: Vec<ToolCall>,
    stop: StopReason,
) -> Step {
    let options = MessageOptions {
        metadata: Some(place.metadata()),
        ..MessageOptions::default()
    };
    let stop_reason = if calls.is_empty() {
        stop
    } else {
        StopReason::ToolUse
    };
    let model = client.config.agent.as_deref().unwrap_or(&client.host);
    Step::Done(Box::new(Response {
        message: AssistantMessage::new(content, calls, options),
        usage: CycleUsage::default(),
        stop_reason,
        data: None,
        model_id: model.into(),
        provider: client.config.protocol.as_str().into(),
        response_id: place.run.map(Into::into),
        request: None,
    }))
}
