//! A run as AG-UI's events.

use super::asked::Reader;
use crate::error::ApiError;
use crate::run_events::{RunEvents, Seen};
use crate::sse::{self, View};
use crate::state::OpenStream;
use axum::response::Response;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use interop::ag_ui::{RunView, to_messages};
use interop::sse::write_event;
use runtime::{Filter, Follow, RuntimeError, StoreError, Until};
use serde_json::Value;
use std::ops::ControlFlow;
use timeline::Seq;

/// The events that something in the log comes to.
struct Told {
    events: Vec<Value>,
    is_last: bool,
}

/// Writes events as frames.
struct Frames;

/// A run, and what its client is shown of it.
pub(super) struct Shown {
    pub(super) run: RunEvents,
    pub(super) view: RunView,
    /// What comes after this event is shown.
    pub(super) after: Seq,
}

/// The stream of a run.
pub(super) async fn response(
    reader: Reader,
    shown: Shown,
    open: OpenStream,
) -> Result<Response, ApiError> {
    let (tenant, key) = (&reader.caller.tenant, &reader.key);
    let follow = reader
        .api
        .runtime()
        .follow(tenant, key, shown.after, Until::Forever);
    let follow = follow.await?;
    Ok(sse::response(told(follow, shown, reader), Frames, open))
}

/// What the log comes to.
fn told(
    mut follow: Follow,
    mut shown: Shown,
    reader: Reader,
) -> BoxStream<'static, Result<Told, StoreError>> {
    let told = async_stream::stream! {
        let mut first = None;
        while let Some(next) = follow.next().await {
            let logged = match next {
                Ok(logged) => logged,
                Err(error) => {
                    yield Err(error);
                    return;
                }
            };
            let mut events = shown.view.events(&logged.record);
            let seq = logged.record.seq;
            let seen = shown.run.see(&logged.record.event);
            if seen == Seen::Never {
                events.push(RunView::failed("the thread was closed before the run began", "closed"));
            }
            if shown.run.has_begun() {
                first.get_or_insert(seq);
            }
            let is_last = seen.flow().is_break();
            if seen == Seen::Last {
                match shown.end(&reader, (first.unwrap_or(seq), seq)).await {
                    Ok(end) => events.extend(end),
                    Err(error) => {
                        yield Err(error);
                        return;
                    }
                }
            }
            yield Ok(Told { events, is_last });
            if is_last {
                return;
            }
        }
    };
    Box::pin(told)
}

impl Shown {
    /// What stands at the end: what the run has asked by AITP, and all messages where the client needs
    /// them.
    async fn end(&mut self, reader: &Reader, own: (Seq, Seq)) -> Result<Vec<Value>, StoreError> {
        if self.view.is_finished() {
            let asked = reader.asked(own).await;
            self.view.ask(&read(asked)?.unwrap_or_default());
        }
        let mut messages = None;
        if self.view.wants_messages() {
            let (runtime, tenant) = (reader.api.runtime(), &reader.caller.tenant);
            let transcript = runtime.transcript(tenant, &reader.key, Filter::Facts).await;
            messages = read(transcript)?.map(|transcript| to_messages(&transcript).value);
        }
        Ok(self.view.end(messages))
    }
}

/// What was read. Of the runtime nothing else is asked here, so that no other error is to be had.
fn read<T>(read: Result<T, RuntimeError>) -> Result<Option<T>, StoreError> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(RuntimeError::Store(error)) => Err(error),
        Err(error) => {
            tracing::error!(
                error = crate::error::told(&error),
                "the end of a run can't be read"
            );
            Ok(None)
        }
    }
}

impl View<Told> for Frames {
    fn write(&mut self, told: &Told, out: &mut String) -> ControlFlow<()> {
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
