//! Streams of tasks.

use super::tasks::{Task, Wanted};
use crate::auth::Caller;
use crate::error::{ApiError, a2a};
use crate::sse::{self, View};
use crate::state::{Api, OpenStream};
use axum::response::Response;
use futures_util::StreamExt as _;
use futures_util::stream;
use interop::a2a::{self as protocol, ErrorKind, RequestError, TaskId, TaskState, TaskView};
use interop::sse::{write_event, write_named};
use runtime::{Follow, Landmark, Logged, RuntimeError, Until};
use serde_json::{Value, json};
use std::ops::ControlFlow;
use std::sync::Arc;
use timeline::Seq;

/// How a binding wraps what a stream says.
pub(super) enum Binding {
    /// As answers to the call with this id.
    Rpc(Value),
    /// As it is.
    Rest,
}

/// A task's stream that has not begun.
pub(super) struct Stream {
    /// What it begins with, where that is not in the log.
    pub(super) first: Option<Value>,
    pub(super) view: TaskView,
    pub(super) follow: Follow,
}

/// Shows a task's stream; nothing in the log comes before the first.
struct TaskStream {
    first: Option<Value>,
    view: TaskView,
    binding: Binding,
}

impl Stream {
    /// The stream of a task from an event on.
    pub(super) async fn of(
        api: &Api,
        task: &Task,
        view: TaskView,
        first: Option<Value>,
        after: Seq,
    ) -> Result<Self, ApiError> {
        let runtime = api.runtime();
        let follow = runtime.follow(&task.tenant, &task.key, after, Until::Forever);
        Ok(Self {
            first,
            view,
            follow: follow.await?,
        })
    }

    /// The stream as a response.
    pub(super) fn response(self, binding: Binding, open: OpenStream) -> Response {
        let begins = stream::once(async { Ok(None) });
        let happens = begins.chain(self.follow.map(|next| next.map(Some)));
        let view = TaskStream {
            first: self.first,
            view: self.view,
            binding,
        };
        sse::response(happens.boxed(), view, open)
    }

    /// Waits until the task is over or asks something. An error where the server stops, or nobody may
    /// be told any more, before that.
    pub(super) async fn settled(mut self, open: OpenStream) -> Result<(), ApiError> {
        while !self.view.is_over() {
            let next = tokio::select! {
                biased;
                why = open.unwanted() => return Err(why.unwrap_or(RuntimeError::ShuttingDown.into())),
                next = self.follow.next() => next,
            };
            let logged = next.ok_or(ApiError::from(RuntimeError::ShuttingDown))?;
            self.view.responses(&logged?.record);
        }
        Ok(())
    }
}

impl TaskStream {
    fn told(&self, said: &Value, out: &mut String) {
        let said = json!({ "task": said });
        self.frame(&said, out);
    }

    fn frame(&self, said: &Value, out: &mut String) {
        let said = match &self.binding {
            Binding::Rpc(id) => protocol::result(id, said).to_string(),
            Binding::Rest => said.to_string(),
        };
        write_event(&said, out);
    }
}

impl View<Option<Arc<Logged>>> for TaskStream {
    fn write(&mut self, happened: &Option<Arc<Logged>>, out: &mut String) -> ControlFlow<()> {
        if let Some(first) = self.first.take() {
            self.told(&first, out);
        }
        if let Some(logged) = happened {
            for said in self.view.responses(&logged.record) {
                self.frame(&said, out);
            }
        }
        sse::flow(self.view.is_over())
    }

    fn fail(&mut self, error: &ApiError, out: &mut String) {
        let said = match &self.binding {
            Binding::Rpc(id) => protocol::failure(id, &a2a::rpc_error(error)),
            Binding::Rest => a2a::rest_error(error),
        };
        write_named("error", said, out);
    }
}

/// Follows a task that is not over: first as it stands, then what its running execution has said from its
/// beginning, then what comes.
pub(super) async fn subscribe(
    api: &Api,
    caller: &Caller,
    request: &TaskId,
) -> Result<Stream, ApiError> {
    let task = Task::find(api, caller, &request.id).await?;
    // Looked at first: what happens while the task is read is followed.
    let (_, tail) = api.runtime().state(&task.tenant, &task.key).await?;
    let wanted = Wanted {
        history_length: request.history_length,
    };
    let read = task.read(api, wanted).await?;
    if read.state.is_terminal() {
        let message = "the task is over: get it to see what it came to";
        return Err(RequestError::new(ErrorKind::UnsupportedOperation, message).into());
    }
    let view = TaskView::new(&task.id, &task.key, task.item.clone());
    let running = read.execution.filter(|_| read.is_executing);
    let (view, after) = if let Some(execution) = running {
        let landmark = Landmark::Execution(&execution);
        let begun = api.runtime().store().place_of(&task.thread, landmark);
        let before = begun.await?.map(|begun| Seq(begun.0.saturating_sub(1)));
        (view.running(), before.unwrap_or(tail))
    } else if read.state == TaskState::Submitted {
        (view, tail)
    } else {
        (view.asking(), tail)
    };
    Stream::of(api, &task, view, Some(read.json), after).await
}
