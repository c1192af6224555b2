//! A run in the form of a UI message stream.

use super::nested::{Nested, SubagentView};
use crate::error::ApiError;
use crate::sse::{self, FrameBuffer, View};
use crate::state::OpenStream;
use crate::threads::ThreadKey;
use axum::response::Response;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use http::HeaderValue;
use interop::ai_sdk::subagent::SubagentQuestion;
use interop::ai_sdk::{ChunkJson, MessageSoFar, StreamView, subagent};
use interop::run::RunSelector;
use interop::sse::{DONE, write_event};
use runtime::{Below, FollowedRecord, Logged, Pending, RuntimeError, StoreError, Until};
use serde_json::{Value, json};
use std::ops::ControlFlow;
use timeline::{Event, ExecutionStatus, OpenCall, OpenKind, Seq, StepId, StepStatus, chunk_type};

/// The client's options for a stream.
#[derive(Clone, Copy)]
pub(super) struct Wanted {
    pub(super) major: u8,
    pub(super) subagents: SubagentView,
    /// Whether it shows all chunk types of EK §8.1.
    pub(super) ek: bool,
}

/// An input of the stream.
enum Happens {
    /// A record of the thread.
    Own(FollowedRecord),
    /// A record of the thread or of one of its descendants.
    Tree(Below),
    /// The thread waits for a person or a client after this step, with these pending calls.
    Asked(StepId, Vec<Pending>),
}

impl Happens {
    /// The event, if it is one of the thread itself.
    fn own(&self) -> Option<&Event> {
        match self {
            Self::Own(logged) => Some(&logged.record.event),
            Self::Tree(below) => {
                let is_own = below.path.is_empty();
                is_own.then_some(&below.followed.record.event)
            }
            Self::Asked(..) => None,
        }
    }
}

/// Shows one run as a UI message stream.
pub(super) struct UiStream {
    /// The key of the thread.
    key: String,
    view: StreamView,
    nested: Nested,
    major: u8,
    /// Number of the run's first chunks that are not sent, because the client has them.
    n_known: usize,
    /// Chunks with the results of sub-agents' calls that were answered before the run started.
    held: Vec<Value>,
}

impl UiStream {
    /// The stream of a run.
    pub(super) fn new(run: RunSelector, wanted: Wanted) -> Self {
        let view = StreamView::new(wanted.major, run).with_thread();
        Self {
            key: String::new(),
            view: if wanted.ek { view.with_ek() } else { view },
            nested: Nested::new(wanted.major, wanted.subagents),
            major: wanted.major,
            n_known: 0,
            held: Vec::new(),
        }
    }

    /// Makes the chunks continue this message.
    pub(super) fn continuing(self, message: Option<MessageSoFar>) -> Self {
        Self {
            view: self.view.continuing(message),
            ..self
        }
    }

    /// Names calls of sub-agents that the client's message has, so that the stream reports their
    /// results.
    pub(super) fn with_calls(self, calls: impl IntoIterator<Item = String>) -> Self {
        Self {
            nested: self.nested.with_calls(calls),
            ..self
        }
    }

    /// Leaves out the run's first `n_known` chunks, which the client has already.
    pub(super) fn from(self, n_known: usize) -> Self {
        Self { n_known, ..self }
    }

    /// The streaming response with the events after a position.
    pub(super) async fn response(
        mut self,
        thread: &ThreadKey,
        after: Seq,
        open: OpenStream,
    ) -> Result<Response, ApiError> {
        thread.key().clone_into(&mut self.key);
        let until = Until::Forever;
        let happens = if self.nested.is_wanted() {
            let tree = thread.tree(after.into(), until).await?;
            tree.map(|next| next.map(Happens::Tree)).boxed()
        } else {
            let follow = thread.follow(after, until).await?;
            follow.map(|next| next.map(Happens::Own)).boxed()
        };
        let happens = asked(thread.clone(), happens);
        let mut response = sse::response(happens, self, open);
        response.headers_mut().insert(
            "x-vercel-ai-ui-message-stream",
            HeaderValue::from_static("v1"),
        );
        Ok(response)
    }

    fn own(&mut self, logged: &Logged, out: &mut String) -> ControlFlow<()> {
        // What another run takes back was not shown.
        let is_shown = self.view.is_running();
        let taken_back = self.nested.taken_back(&logged.record).into_iter();
        for chunk in taken_back.filter(|_| is_shown) {
            write_event(&chunk.to_string(), out);
        }
        let (selected, chunks) = self.view.select(&logged.record);
        if self.view.is_running() && is_reset(&logged.record.event) {
            // The client may count chunks that were lost. From here on it gets all of them again.
            self.n_known = 0;
        }
        for chunk in chunks {
            if self.n_known > 0 {
                self.n_known -= 1;
                continue;
            }
            write_event(&chunk.to_text(), out);
            let again = match &chunk {
                ChunkJson::Chunk(chunk) => self.nested.replayed(&self.key, chunk),
                ChunkJson::Done => None,
            };
            if let Some(again) = again {
                write_event(&again.to_string(), out);
            }
        }
        if self.view.is_running() {
            for chunk in self.held.drain(..) {
                write_event(&chunk.to_string(), out);
            }
        }
        selected.flow()
    }

    fn below(&mut self, below: &Below, out: &mut String) {
        for chunk in self.nested.chunks(below) {
            // Before the run begins, what happens beneath is another run's.
            if self.view.is_running() && self.n_known == 0 {
                write_event(&chunk.to_string(), out);
            } else if subagent::is_of_call(&chunk) {
                self.held.push(chunk);
            }
        }
    }
}

/// Whether an event voids what its step has shown.
fn is_reset(event: &Event) -> bool {
    matches!(event, Event::ChunkEmitted { chunk_type, .. } if chunk_type == chunk_type::STEP_RESET)
}

/// Passes the records on. Before an execution ends with pending calls that its last step does not show,
/// adds those calls.
fn asked(
    thread: ThreadKey,
    mut happens: BoxStream<'static, Result<Happens, StoreError>>,
) -> BoxStream<'static, Result<Happens, RuntimeError>> {
    let told = async_stream::try_stream! {
        let mut left = None;
        while let Some(next) = happens.next().await {
            let next = next?;
            if let Some(Event::StepStatusChanged { step_id, to, outcome, .. }) = next.own()
                && *to == StepStatus::Completed
            {
                let open = OpenCall::list(outcome.open_calls.as_ref());
                let is_apart = open.iter().any(|call| is_apart(call, step_id));
                left = is_apart.then(|| step_id.clone());
            }
            if let Some(Event::ExecutionStatusChanged { to, .. }) = next.own()
                && *to == ExecutionStatus::Completed
                && let Some(step) = left.take()
            {
                yield Happens::Asked(step, thread.pending().await?.0);
            }
            yield next;
        }
    };
    told.boxed()
}

/// Whether a pending call is not visible in this step, because a sub-agent or an earlier step made it.
fn is_apart(call: &OpenCall, step: &StepId) -> bool {
    let is_earlier = call.origin.as_ref().is_some_and(|origin| origin != step);
    call.kind == OpenKind::Child || (call.kind == OpenKind::Approval && is_earlier)
}

/// The pending calls as the chunks of an additional step. Empty if the message's last step shows them
/// all.
pub(super) fn questions(pending: &[Pending], step: &StepId, major: u8) -> Vec<Value> {
    let is_apart = |asked: &Pending| !asked.path.is_empty() || is_apart(&asked.call, step);
    if !pending.iter().any(is_apart) {
        return Vec::new();
    }
    let is_asked =
        |asked: &&Pending| !asked.path.is_empty() || asked.call.kind == OpenKind::Approval;
    let asked = pending
        .iter()
        .filter(is_asked)
        .map(|asked| SubagentQuestion {
            thread_key: &asked.address.key,
            call: &asked.call,
            is_own: asked.path.is_empty(),
        });
    subagent::questions(asked, major)
}

impl View<Happens> for UiStream {
    fn write(&mut self, happens: &Happens, out: &mut FrameBuffer) -> ControlFlow<()> {
        match happens {
            Happens::Own(logged) => self.own(logged, out),
            Happens::Tree(below) if below.path.is_empty() => self.own(&below.followed, out),
            Happens::Tree(below) => {
                self.below(below, out);
                ControlFlow::Continue(())
            }
            Happens::Asked(step, pending) => {
                if self.view.is_running() {
                    for chunk in questions(pending, step, self.major) {
                        write_event(&chunk.to_string(), out);
                    }
                }
                ControlFlow::Continue(())
            }
        }
    }

    fn fail(&mut self, error: &ApiError, out: &mut String) {
        write_event(
            &json!({ "type": "error", "errorText": error.failure().message }).to_string(),
            out,
        );
        write_event(DONE, out);
    }
}
