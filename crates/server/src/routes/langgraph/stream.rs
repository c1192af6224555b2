//! Waiting for runs, and streaming them.

use super::asked;
use super::disconnect::Disconnect;
use super::start::StartedRun;
use crate::error::ApiError;
use crate::sse::{self, FrameBuffer, SentEvents, View};
use crate::state::OpenStream;
use crate::threads::{Ephemeral, ThreadRef};
use axum::Json;
use axum::response::{IntoResponse as _, Response};
use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use interop::langgraph::{
    Frame, FrameId, InterruptedCall, Moment, RunEventStream, RunRecord, Speaks, StreamMode,
    agent_protocol_messages, interrupts, shown_id, values_at,
};
use interop::run::{RunSelector, Selected};
use runtime::{Filter, Follow, RuntimeError, Until};
use serde_json::{Value, json};
use std::ops::ControlFlow;
use timeline::{ExecutionId, ItemId, Seq};

/// A run to follow, and the position to follow it from.
pub(super) struct Followed {
    pub(super) found: ThreadRef,
    pub(super) id: ExecutionId,
    pub(super) trigger: ItemId,
    pub(super) is_resumed: bool,
    pub(super) after: Seq,
    /// The temporary thread of a run without a thread. Dropping it deletes the thread.
    pub(super) ephemeral: Option<Ephemeral>,
}

impl From<StartedRun> for Followed {
    fn from(begun: StartedRun) -> Self {
        Self {
            found: begun.found,
            id: begun.id,
            trigger: begun.trigger,
            is_resumed: begun.is_resumed,
            after: begun.after,
            ephemeral: begun.ephemeral,
        }
    }
}

impl Followed {
    /// An existing run.
    pub(super) fn of(found: ThreadRef, run: super::run::Run) -> Self {
        Self {
            found,
            id: run.record.id,
            trigger: run.record.trigger,
            is_resumed: run.record.is_resumed,
            after: run.after,
            ephemeral: None,
        }
    }

    async fn follow(&self) -> Result<Follow, ApiError> {
        let follow = self.found.follow(self.after, Until::Forever);
        Ok(follow.await?)
    }

    /// Waits until the run is over.
    pub(super) async fn has_ended(&self, open: OpenStream) -> Result<(), ApiError> {
        let mut follow = self.follow().await?;
        let mut run = RunSelector::answering(self.trigger.clone());
        loop {
            let next = tokio::select! {
                biased;
                why = open.unwanted() => {
                    return Err(why.unwrap_or(RuntimeError::ShuttingDown.into()));
                }
                next = follow.next() => next,
            };
            let Some(logged) = next else { return Ok(()) };
            match run.select(&logged?.record.event) {
                Selected::Other | Selected::Own => {}
                Selected::Last | Selected::Never => return Ok(()),
            }
        }
    }

    /// The headers with the run's id, and with the path to resume the stream.
    pub(super) fn headers(&self, then: &str) -> HeaderMap {
        let (thread, run) = (shown_id(&self.found.row().thread), self.id.as_str());
        let path = format!("/threads/{thread}/runs/{run}");
        let mut headers = HeaderMap::new();
        let mut put = |name: HeaderName, value: String| {
            headers.extend(
                HeaderValue::from_str(&value)
                    .ok()
                    .map(|value| (name, value)),
            );
        };
        // What leaves no trace can't be found again.
        if self.ephemeral.is_none() {
            put(header::LOCATION, format!("{path}/{then}"));
        }
        put(header::CONTENT_LOCATION, path);
        headers
    }

    /// The outcome of a run: its thread's values, and for the Agent Protocol the run too.
    pub(super) async fn outcome(&self, speaks: Speaks) -> Result<Response, ApiError> {
        let record = super::run::Run::find(&self.found, self.id.as_str())
            .await?
            .record;
        let waits = waits(&self.found, &record).await?;
        let mut values = match &record.last {
            Some(last) => values_then(&self.found, last, Moment::End).await?,
            None => None,
        }
        .unwrap_or_else(|| json!({"messages": []}));
        if speaks == Speaks::AgentProtocol {
            let messages = values["messages"].as_array().map(Vec::as_slice);
            let messages = agent_protocol_messages(messages.unwrap_or_default());
            let run = record.to_json(speaks, shown_id(&self.found.row().thread));
            return Ok(
                Json(json!({"run": run, "values": values, "messages": messages})).into_response(),
            );
        }
        if let Some((error, message)) = &record.failure {
            values = json!({"__error__": {"error": error, "message": message}});
        } else if !waits.is_empty() {
            values["__interrupt__"] = interrupts(&waits).into();
        }
        Ok((self.headers("join"), Json(values)).into_response())
    }

    /// The stream of the run. With `disconnect` the run is cancelled when its reader disconnects.
    pub(super) async fn stream(
        self,
        modes: &[StreamMode],
        last: Option<FrameId>,
        (disconnect, open): (Option<Disconnect>, OpenStream),
    ) -> Result<Response, ApiError> {
        let view = RunEventStream::new(
            shown_id(&self.found.row().thread),
            self.id.as_str(),
            self.trigger.clone(),
            modes,
        );
        let view = if self.is_resumed {
            view.resumed()
        } else {
            view
        };
        let view = view.after(last);
        let headers = self.headers("stream");
        let follow = self.follow().await?;
        let mut response = sse::response(run_events(self, follow, view, disconnect), Frames, open);
        response.headers_mut().extend(headers);
        Ok(response)
    }
}

/// The pending calls of a run, if they are still pending.
async fn waits(found: &ThreadRef, record: &RunRecord) -> Result<Vec<InterruptedCall>, ApiError> {
    match &record.last {
        Some(last) => left_by(found, last).await,
        None => Ok(Vec::new()),
    }
}

/// The pending calls that an execution ended with, if they are still pending.
pub(super) async fn left_by(
    found: &ThreadRef,
    execution: &ExecutionId,
) -> Result<Vec<InterruptedCall>, ApiError> {
    let open = found.open_calls().await?.0;
    if open.is_some_and(|open| open.execution.id == *execution) {
        return asked(found).await;
    }
    Ok(Vec::new())
}

/// The values of a thread at a moment of an execution. Costs time proportional to the thread.
pub(super) async fn values_then(
    found: &ThreadRef,
    execution: &ExecutionId,
    moment: Moment,
) -> Result<Option<Value>, ApiError> {
    let transcript = found.transcript(Filter::Facts).await?;
    Ok(values_at(&transcript, execution, moment))
}

/// The events of a run, made from the log. Values are read when they are needed.
fn run_events(
    run: Followed,
    mut follow: Follow,
    mut view: RunEventStream,
    mut disconnect: Option<Disconnect>,
) -> BoxStream<'static, Result<SentEvents<Frame>, ApiError>> {
    let told = async_stream::try_stream! {
        // The block would capture only the fields that it uses, and `ephemeral` would delete the thread now.
        let run = run;
        yield SentEvents { events: vec![view.metadata()], is_last: false };
        while let Some(followed) = follow.next().await {
            let followed = followed?;
            let (seen, mut events) = view.select_at(&followed.record, followed.position);
            events.extend(more(&run.found, &mut view, seen).await?);
            let is_last = seen.flow().is_break();
            if let Some(disconnect) = disconnect.as_mut().filter(|_| is_last) {
                disconnect.over();
            }
            yield SentEvents { events, is_last };
            if is_last {
                return;
            }
        }
    };
    Box::pin(told)
}

/// The events that the log does not have: the values when the run starts, and the values and interrupts
/// at its end.
async fn more(
    found: &ThreadRef,
    view: &mut RunEventStream,
    seen: Selected,
) -> Result<Vec<Frame>, ApiError> {
    let mut frames = Vec::new();
    if view.wants_values()
        && let Some(execution) = view.execution().cloned()
        && let Some(values) = values_then(found, &execution, Moment::Begin).await?
    {
        frames.extend(view.begin(values));
    }
    match (seen, view.execution().cloned()) {
        (Selected::Last, Some(execution)) => {
            let asked = left_by(found, &execution).await?;
            let values = if view.wants_last_values() {
                values_then(found, &execution, Moment::End).await?
            } else {
                None
            };
            frames.extend(view.end(values, &asked));
        }
        (Selected::Never, _) => {
            frames.push(Frame::error(
                "closed",
                "the thread was closed before the run began",
            ));
        }
        (Selected::Other | Selected::Own | Selected::Last, _) => {}
    }
    Ok(frames)
}

fn failed(error: &ApiError) -> Frame {
    let failure = error.failure();
    Frame::error(failure.code, &failure.message)
}

/// Writes frames.
struct Frames;

impl View<SentEvents<Frame>> for Frames {
    fn write(&mut self, told: &SentEvents<Frame>, out: &mut FrameBuffer) -> ControlFlow<()> {
        for frame in &told.events {
            frame.write(out);
        }
        sse::flow(told.is_last)
    }

    fn fail(&mut self, error: &ApiError, out: &mut String) {
        failed(error).write(out);
    }
}
