//! Streams of tasks.

use super::lookup::{Task, Wanted};
use crate::auth::Caller;
use crate::error::{ApiError, a2a};
use crate::sse::{self, FrameBuffer, SentEvents, View};
use crate::state::{Api, OpenStream};
use axum::response::Response;
use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use interop::a2a::{self as protocol, ErrorKind, RequestError, TaskId, TaskState, TaskView};
use interop::sse::{write_event, write_named};
use jiff::{SignedDuration, Timestamp};
use runtime::{Follow, Landmark, RuntimeError, Until};
use serde_json::{Value, json};
use std::ops::ControlFlow;
use timeline::Seq;

/// How a binding wraps the events of a stream.
pub(super) enum Binding {
    /// JSON-RPC: as responses to the call with this id.
    Rpc(Value),
    /// HTTP+JSON: unchanged.
    Rest,
}

/// A task's stream that has not started.
pub(super) struct Stream {
    api: Api,
    task: Task,
    /// Its first event, if the log does not have it.
    pub(super) first: Option<Value>,
    pub(super) view: TaskView,
    pub(super) follow: Follow,
}

/// Writes events in a binding's form.
struct Frames(Binding);

impl Stream {
    /// The stream of a task's events after a position.
    pub(super) async fn of(
        api: &Api,
        task: &Task,
        view: TaskView,
        first: Option<Value>,
        after: Seq,
    ) -> Result<Self, ApiError> {
        let follow = task.thread.follow(after, Until::Forever);
        Ok(Self {
            api: api.clone(),
            task: task.clone(),
            first,
            view,
            follow: follow.await?,
        })
    }

    /// The stream as a response.
    pub(super) fn response(self, binding: Binding, open: OpenStream) -> Response {
        sse::response(self.events(), Frames(binding), open)
    }

    /// Waits until the task ends or waits for an answer. An error if the server stops before that, or if
    /// the caller loses its right to read.
    pub(super) async fn has_ended(self, open: OpenStream) -> Result<(), ApiError> {
        let mut told = self.events();
        loop {
            let next = tokio::select! {
                biased;
                why = open.unwanted() => return Err(why.unwrap_or(RuntimeError::ShuttingDown.into())),
                next = told.next() => next,
            };
            if next.ok_or(RuntimeError::ShuttingDown)??.is_last {
                return Ok(());
            }
        }
    }

    /// The task's events, as the client receives them.
    fn events(mut self) -> BoxStream<'static, Result<SentEvents<Value>, ApiError>> {
        let told = async_stream::try_stream! {
            if let Some(first) = self.first.take() {
                let events = vec![json!({ "task": first })];
                yield SentEvents { events, is_last: false };
            }
            let mut end = None;
            loop {
                let events = if self.view.wants_requests() {
                    self.requests(&mut end).await?
                } else if self.view.wants_calls() {
                    self.calls().await?
                } else {
                    let next = tokio::select! {
                        next = self.follow.next() => Some(next),
                        () = until(end) => None,
                    };
                    match next {
                        Some(Some(logged)) => self.view.responses(&logged?.record),
                        Some(None) => return,
                        None => {
                            self.view.check_requests();
                            Vec::new()
                        }
                    }
                };
                let is_last = self.view.is_over();
                if is_last || !events.is_empty() {
                    yield SentEvents { events, is_last };
                }
                if is_last {
                    return;
                }
            }
        };
        told.boxed()
    }

    /// Passes the task's pending calls to the view.
    async fn calls(&mut self) -> Result<Vec<Value>, ApiError> {
        let read = self.task.read(&self.api, Wanted::default()).await?;
        let calls = read.waiting.calls.as_deref();
        Ok(self.view.calls(calls, read.execution.as_ref()))
    }

    /// Passes the task's open AITP requests to the view. Sets `end` to the time when the first of them
    /// expires.
    async fn requests(&mut self, end: &mut Option<Timestamp>) -> Result<Vec<Value>, ApiError> {
        let read = self.task.read(&self.api, Wanted::default()).await?;
        let open = read.waiting.requests;
        *end = open.iter().filter_map(|request| request.expires_at).min();
        Ok(self
            .view
            .requests((&open, read.n_went_on), Timestamp::now()))
    }
}

/// Waits until after this instant; without one, for ever.
async fn until(end: Option<Timestamp>) {
    let Some(end) = end else {
        return std::future::pending().await;
    };
    // The instant itself still counts.
    let left = end.duration_since(Timestamp::now()) + SignedDuration::from_millis(1);
    if left.is_positive() {
        tokio::time::sleep(left.unsigned_abs()).await;
    }
}

impl View<SentEvents<Value>> for Frames {
    fn write(&mut self, told: &SentEvents<Value>, out: &mut FrameBuffer) -> ControlFlow<()> {
        for said in &told.events {
            let said = match &self.0 {
                Binding::Rpc(id) => protocol::result(id, said).to_string(),
                Binding::Rest => said.to_string(),
            };
            write_event(&said, out);
        }
        sse::flow(told.is_last)
    }

    fn fail(&mut self, error: &ApiError, out: &mut String) {
        let said = match &self.0 {
            Binding::Rpc(id) => protocol::failure(id, &a2a::rpc_error(error)),
            Binding::Rest => a2a::rest_error(error),
        };
        write_named("error", said, out);
    }
}

/// Follows a task that is not over. The stream starts with its current state, then repeats the running
/// execution from its beginning, then continues live.
pub(super) async fn subscribe(
    api: &Api,
    caller: &Caller,
    request: &TaskId,
) -> Result<Stream, ApiError> {
    let task = Task::find(api, caller, &request.id).await?;
    // Looked at first: what happens while the task is read is followed.
    let (_, tail) = task.thread.state().await?;
    let wanted = Wanted {
        history_length: request.history_length,
    };
    let read = task.read(api, wanted).await?;
    if read.state.is_terminal() {
        let message = "the task is over: get it to see what it came to";
        return Err(RequestError::new(ErrorKind::UnsupportedOperation, message).into());
    }
    let view = TaskView::new(&task.id, task.thread.key(), task.item.clone());
    let view = view.after_answers(read.n_went_on);
    let running = read.execution.filter(|_| read.is_executing);
    let (view, after) = if let Some(execution) = running {
        let landmark = Landmark::Execution(&execution);
        let begun = task
            .thread
            .runtime()
            .store()
            .position_of(task.thread.id(), landmark);
        let before = begun.await?.map(|begun| Seq(begun.0.saturating_sub(1)));
        (view.running(), before.unwrap_or(tail))
    } else if read.state == TaskState::Submitted && read.n_went_on == 0 {
        (view, tail)
    } else if read.state == TaskState::Submitted {
        (view.resting().awaiting_answer(), tail)
    } else if read.waiting.requests.is_empty() {
        (view.asking(), tail)
    } else {
        (view.resting(), tail)
    };
    Stream::of(api, &task, view, Some(read.json), after).await
}
