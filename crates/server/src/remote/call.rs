//! What one answer of an agent elsewhere takes, whatever it speaks.

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

/// How often a connection that broke is made again in a row, with nothing said in between.
const RECONNECTS: u32 = 4;
/// How long before the first time; twice as long each time.
const PAUSE: Duration = Duration::from_millis(250);
/// How long at most until something is asked for again.
const LONGEST_POLL: Duration = Duration::from_secs(5);

/// The field of a note with the key of the call, until it is known what that has begun.
pub(super) const CALL: &str = "call";

/// An answer as it comes.
pub(super) trait RemoteCall: Send {
    /// What comes next. Who stops waiting loses nothing that is on its way.
    fn next(&mut self) -> BoxFuture<'_, Result<Step, Error>>;

    /// Whether something was sent, and it is not noted yet what that has begun.
    fn is_unnamed(&self) -> bool;

    /// The note of what was begun, once that is known.
    fn position(&self) -> Option<Value>;
}

/// The note of what a call that was given up has begun, once that is known; none if there is nothing to be stopped.
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

/// A request that begins something, on its way. It goes on when nobody waits for it.
#[derive(Default)]
pub(super) struct Opening(Option<BoxFuture<'static, Result<Answered, Error>>>);

impl Opening {
    pub(super) fn is_sent(&self) -> bool {
        self.0.is_some()
    }

    /// What is answered to the request, which is made unless it is on its way.
    pub(super) async fn answered(
        &mut self,
        request: impl FnOnce() -> BoxFuture<'static, Result<Answered, Error>>,
    ) -> Result<Answered, Error> {
        let answered = self.0.get_or_insert_with(request).await;
        self.0 = None;
        answered
    }
}

/// A piece of an answer.
pub(super) enum Step {
    /// Something to show; perhaps nothing yet.
    Events(Vec<StreamEvent>),
    /// The whole answer.
    Done(Box<Response>),
}

/// The notes of a call; without a keeper they are kept as long as the call.
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

    /// What was noted before a crash. What was refused has begun nothing.
    pub(super) fn read<T: DeserializeOwned>(&self) -> Option<T> {
        let noted = self.kept.as_ref()?.noted()?;
        let noted = RemoteRefusal::noted(&noted).is_none().then_some(noted)?;
        serde_json::from_value(noted).ok()
    }

    /// Notes something; durable when this returns.
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

/// Why a failure is that of this message alone: the cause of its error.
#[derive(Debug, thiserror::Error)]
#[error("it is not sent this message again, nor what came with it")]
struct ForGood;

/// The error of an agent that refuses for good what it is told.
pub(super) fn for_good(error: Error) -> Error {
    error.caused_by(ForGood)
}

/// Whether an agent refuses for good what it is told.
pub(super) fn is_for_good(error: &Error) -> bool {
    matches!(error.cause.as_deref(), Some(cause) if cause.is::<ForGood>())
}

/// Whether an answer to what was sent says that the same would be refused again.
pub(super) fn is_final(error: &Error) -> bool {
    error.code == Code::InvalidRequest && matches!(error.status, Some(400 | 413 | 415 | 422))
}

/// The error of a message that could not be sent.
pub(super) fn unsent(error: Error) -> Error {
    if is_final(&error) {
        for_good(error)
    } else {
        error
    }
}

/// Connections that broke.
#[derive(Default)]
pub(super) struct Breaks {
    n: u32,
}

impl Breaks {
    /// Something was said.
    pub(super) fn recovered(&mut self) {
        self.n = 0;
    }

    /// Waits before the connection is made again.
    ///
    /// # Errors
    ///
    /// What broke it, if that was too often or will not get better.
    pub(super) async fn pause(&mut self, error: Error) -> Result<(), Error> {
        if self.n >= RECONNECTS || !error.is_retryable() {
            return Err(error);
        }
        tokio::time::sleep(PAUSE * 2_u32.saturating_pow(self.n)).await;
        self.n += 1;
        Ok(())
    }
}

/// What a request has that the agent has not heard.
///
/// # Errors
///
/// If it answers what another conversation is asked.
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

/// The names of what was said by what goes on when it is answered; else nobody asks for them.
pub(super) fn question_texts(asks: &[RemoteQuestion], names: Vec<String>) -> Vec<String> {
    if asks.is_empty() { Vec::new() } else { names }
}

/// Asks again and again, less often as time goes.
#[derive(Default)]
pub(super) struct Poll {
    n: u32,
}

impl Poll {
    /// Waits before it is asked again; the first time not at all.
    pub(super) async fn pause(&mut self) {
        if self.n > 0 {
            let pause = PAUSE * 2_u32.saturating_pow(self.n - 1);
            tokio::time::sleep(pause.min(LONGEST_POLL)).await;
        }
        self.n = self.n.saturating_add(1);
    }
}

/// A whole answer as a message here.
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
