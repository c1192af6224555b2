//! A run as AG-UI's events.

use super::answers::Reader;
use crate::error::ApiError;
use crate::sse::{self, FrameBuffer, SentEvents, View};
use crate::state::OpenStream;
use axum::response::Response;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use interop::ag_ui::{RunView, to_messages, was_cut_off};
use interop::run::Selected;
use interop::sse::write_event;
use runtime::{Filter, Follow, RuntimeError, Until};
use serde_json::Value;
use std::ops::ControlFlow;
use timeline::Seq;

/// Writes events as frames.
struct Frames;

/// A run in the form that its client sees.
pub(super) struct RunEventsView {
    pub(super) view: RunView,
    /// The stream shows events after this one.
    pub(super) after: Seq,
}

/// The stream of a run.
pub(super) async fn response(
    reader: Reader,
    shown: RunEventsView,
    open: OpenStream,
) -> Result<Response, ApiError> {
    let follow = reader.thread.follow(shown.after, Until::Forever);
    let follow = follow.await?;
    Ok(sse::response(
        run_events(follow, shown, reader),
        Frames,
        open,
    ))
}

/// The events of a run, made from the log.
fn run_events(
    mut follow: Follow,
    mut shown: RunEventsView,
    reader: Reader,
) -> BoxStream<'static, Result<SentEvents<Value>, ApiError>> {
    let told = async_stream::try_stream! {
        let mut first = None;
        while let Some(logged) = follow.next().await {
            let logged = logged?;
            let (selected, mut events) = shown.view.select(&logged.record);
            let seq = logged.record.seq;
            if shown.view.is_running() {
                first.get_or_insert(seq);
            }
            if selected == Selected::Last {
                events.extend(shown.end(&reader, (first.unwrap_or(seq), seq)).await?);
            }
            let is_last = selected.flow().is_break();
            yield SentEvents { events, is_last };
            if is_last {
                return;
            }
        }
    };
    Box::pin(told)
}

impl RunEventsView {
    /// The events at the end of a run: its open AITP requests, the pending calls of its sub-agents, and
    /// all messages if the client needs them.
    async fn end(&mut self, reader: &Reader, own: (Seq, Seq)) -> Result<Vec<Value>, RuntimeError> {
        if self.view.is_finished() {
            self.view.add_requests(&reader.pending_calls(own).await?);
        }
        if self.view.has_waiting_children() {
            let (pending, _) = reader.thread.pending().await?;
            let calls = pending.iter().filter_map(|pending| {
                let own = pending.path.first()?.tool_call_id.as_str();
                Some((pending.address.key.as_str(), own, &pending.call))
            });
            self.view.add_child_calls(calls);
        }
        let mut messages = None;
        // Who may not read is given the answer to its own request, and must do without the rest.
        if self.view.wants_messages() && reader.thread.caller().may_read() {
            let read = |filter| reader.thread.transcript(filter);
            let mut transcript = read(Filter::Facts).await?;
            if was_cut_off(&transcript) {
                transcript = read(Filter::All).await?;
            }
            messages = Some(to_messages(&transcript).value);
        }
        Ok(self.view.end(messages))
    }
}

impl View<SentEvents<Value>> for Frames {
    fn write(&mut self, told: &SentEvents<Value>, out: &mut FrameBuffer) -> ControlFlow<()> {
        for event in &told.events {
            write_event(&event.to_string(), out);
        }
        sse::flow(told.is_last)
    }

    fn fail(&mut self, error: &ApiError, out: &mut String) {
        let failure = error.failure();
        let event = RunView::failed(&failure.message, failure.code);
        write_event(&event.to_string(), out);
    }
}
