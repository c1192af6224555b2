//! Tools that start runs and wait for them.

use super::handler::Handler;
use super::stream::Outcome;
use super::tools::thread;
use crate::error::ApiError;
use crate::idempotency::{fingerprint, is_token};
use crate::routes::answers::SubmittedAnswers;
use crate::routes::messages::NewMessage;
use crate::state::OpenStream;
use crate::threads::{ThreadKey, ThreadRef};
use futures_util::StreamExt as _;
use interop::ids::THREAD;
use interop::mcp::ProgressView;
use interop::run::{RunSelector, Selected};
use rmcp::model::{
    CallToolResult, ContentBlock, ProgressNotificationParam, ProgressToken, ProtocolVersion,
};
use rmcp::service::{RequestContext, RoleServer};
use runtime::{Accepted, Logged, Policy, RequestToken, RuntimeError, Until};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::num::{NonZeroU32, NonZeroU64};
use timeline::{ExecutionId, Interruption, Payload, Rejected, Seq};

/// The channel of messages that come through MCP.
const CHANNEL: &str = "mcp";

/// A message for a thread.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct PostedMessage {
    key: String,
    content: Payload,
    agent: Option<String>,
    #[serde(default)]
    policy: Policy,
    max_steps: Option<NonZeroU32>,
    timeout_ms: Option<NonZeroU64>,
    metadata: Option<Payload>,
    idempotency_key: Option<String>,
}

/// Answers to a thread's pending calls.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Answering {
    key: String,
    answers: Vec<Map<String, Value>>,
    actor: Option<String>,
    idempotency_key: Option<String>,
}

/// A run that the client waits for.
struct Waiting {
    thread: ThreadKey,
    run: RunSelector,
    after: Seq,
    told: Option<Told>,
    open: OpenStream,
}

/// Progress notifications to a client.
struct Told {
    progress: ProgressView,
    token: ProgressToken,
    n_sent: f64,
}

/// The executions of a run.
#[derive(Default)]
struct Executions {
    first: Option<ExecutionId>,
    last: Option<ExecutionId>,
}

/// Posts a message, and returns the thread's key and the accepted ids.
pub(super) async fn post(
    handler: &Handler,
    said: PostedMessage,
) -> Result<(ThreadKey, Accepted), ApiError> {
    let (api, caller) = (&handler.api, &handler.caller);
    let token = token(handler, said.idempotency_key)?;
    let message = NewMessage {
        content: said.content,
        agent: said.agent,
        policy: said.policy,
        max_steps: said.max_steps,
        timeout_ms: said.timeout_ms,
        metadata: said.metadata,
        channel: Some(CHANNEL.to_owned()),
        stream: false,
    };
    let message = message.read(api)?;
    let thread = match ThreadRef::find(api, caller, THREAD, &said.key).await? {
        Some(found) => ThreadKey::clone(&found),
        None => ThreadKey::named(api, caller, &said.key, "/key")?,
    };
    let accepted = message.post(api, &thread, token).await?;
    Ok((thread, accepted))
}

/// Posts a message, and waits for the answer.
pub(super) async fn run(
    handler: &Handler,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResult, ApiError> {
    let said: PostedMessage = handler.arguments()?;
    // Before anything is written: a client that can't be served has changed nothing.
    let open = handler.api.open_stream(&handler.caller)?;
    let (thread, accepted) = post(handler, said).await?;
    let progress = ProgressView::new(Some(accepted.item_id.clone()));
    let waiting = Waiting {
        thread,
        run: RunSelector::answering(accepted.item_id),
        after: accepted.after,
        told: Told::of(context, progress),
        open,
    };
    waiting.wait(handler, context).await
}

/// Answers pending calls, and waits for the continuation.
pub(super) async fn answer(
    handler: &Handler,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResult, ApiError> {
    let (api, caller) = (&handler.api, &handler.caller);
    let asked: Answering = handler.arguments()?;
    let token = token(handler, asked.idempotency_key)?;
    let given = SubmittedAnswers::read(caller, asked.answers, asked.actor.as_deref(), CHANNEL)?;
    let thread = ThreadKey::clone(&*thread(handler, &asked.key).await?);
    let open = api.open_stream(caller)?;
    let answered = given.answer(api, &thread, token).await?;
    // A sub-agent is answered in its own thread, and nothing in this one says so.
    let trigger = (answered.target == thread.key()).then(|| answered.accepted.item_id.clone());
    let (run, after) = answered.went_on(&thread).await?;
    let waiting = Waiting {
        thread,
        run,
        after,
        told: Told::of(context, ProgressView::new(trigger)),
        open,
    };
    waiting.wait(handler, context).await
}

/// The token of a request, distinct from those of other protocols.
fn token(handler: &Handler, named: Option<String>) -> Result<Option<RequestToken>, ApiError> {
    let Some(named) = named else { return Ok(None) };
    if !is_token(&named) {
        return Err(ApiError::field(
            "/idempotencyKey",
            "expected 1 to 255 bytes",
        ));
    }
    let fingerprint = fingerprint(&["mcp", handler.argument_text()]);
    let text = format!("mcp:{named}");
    Ok(Some(RequestToken::with_fingerprint(
        text,
        Some(fingerprint),
    )))
}

impl Told {
    /// None if the client wants no progress notifications.
    fn of(context: &RequestContext<RoleServer>, progress: ProgressView) -> Option<Self> {
        let token = context.meta.get_progress_token()?;
        Some(Self {
            progress,
            token,
            n_sent: 0.0,
        })
    }

    async fn tell(&mut self, context: &RequestContext<RoleServer>, logged: &Logged) {
        for message in self.progress.messages(&logged.record) {
            self.n_sent += 1.0;
            let progress = ProgressNotificationParam::new(self.token.clone(), self.n_sent);
            let sent = context.peer.notify_progress(progress.with_message(message));
            // Who can't be told has left, and is noticed there.
            let _ = sent.await;
        }
    }
}

impl Executions {
    fn note(&mut self, run: &RunSelector) {
        if let Some(execution) = run.execution() {
            self.first.get_or_insert_with(|| execution.clone());
            self.last = Some(execution.clone());
        }
    }
}

impl Waiting {
    /// Waits until the run is over. A disconnect does not stop the run, unless the protocol version
    /// defines it as a cancellation. A cancel notification stops it.
    async fn wait(
        mut self,
        handler: &Handler,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResult, ApiError> {
        let follow = self.thread.follow(self.after, Until::Forever);
        let mut follow = follow.await?;
        let mut executions = Executions::default();
        let mut is_left = false;
        loop {
            executions.note(&self.run);
            if let Some(running) = executions.last.as_ref().filter(|_| is_left) {
                return self.stop(running).await;
            }
            let next = tokio::select! {
                biased;
                why = self.open.unwanted() => {
                    return Err(why.unwrap_or(RuntimeError::ShuttingDown.into()));
                }
                () = left(handler, context), if !is_left => {
                    if !is_stopped(handler, context) {
                        return Ok(nobody());
                    }
                    is_left = true;
                    continue;
                }
                next = follow.next() => next,
            };
            let Some(logged) = next else {
                return Err(RuntimeError::BrokenOff.into());
            };
            let logged = logged?;
            let seen = self.run.select(&logged.record.event);
            if let Some(told) = self.told.as_mut().filter(|_| seen.is_own() && !is_left) {
                told.tell(context, &logged).await;
            }
            match seen {
                Selected::Other | Selected::Own => {}
                Selected::Last => {
                    let outcome = self.outcome(&executions).await?;
                    let ended = executions.last.as_ref();
                    match ended.and_then(|ended| outcome.next_run(ended)) {
                        Some(run) => self.run = run,
                        None => return Ok(outcome.result()),
                    }
                }
                Selected::Never => return Err(RuntimeError::Rejected(Rejected::Closed).into()),
            }
        }
    }

    /// The outcome of the run.
    async fn outcome(&self, executions: &Executions) -> Result<Outcome, ApiError> {
        let first = executions.first.as_ref().ok_or(RuntimeError::BrokenOff)?;
        Outcome::of(&self.thread, first).await
    }

    async fn stop(&self, running: &ExecutionId) -> Result<CallToolResult, ApiError> {
        let why = Interruption::USER_CANCELLED;
        match self.thread.cancel(Some(running), why).await {
            // It has ended by itself meanwhile.
            Ok(_) | Err(RuntimeError::NotRunning(_)) => Ok(nobody()),
            Err(error) => Err(error.into()),
        }
    }
}

/// Waits until the client disconnects or cancels its call.
async fn left(handler: &Handler, context: &RequestContext<RoleServer>) {
    tokio::select! {
        () = handler.stopped.cancelled() => {}
        () = context.ct.cancelled() => {}
    }
}

/// Whether the disconnect of a client means that its run should stop.
fn is_stopped(handler: &Handler, context: &RequestContext<RoleServer>) -> bool {
    let version = context.protocol_version();
    let leaving_is_cancelling =
        version.is_some_and(|it| it.as_str() >= ProtocolVersion::V_2026_07_28.as_str());
    leaving_is_cancelling || handler.stopped.is_cancelled()
}

/// The result for a client that has disconnected; nobody reads it.
fn nobody() -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text("the call was cancelled")])
}
