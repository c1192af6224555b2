//! A run as AG-UI's events.

use crate::error::ApiError;
use crate::run_events::{RunEvents, Seen};
use crate::sse::{self, View};
use crate::state::{Api, OpenStream};
use axum::response::Response;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use interop::ag_ui::{RunView, to_messages};
use interop::ai_sdk::sse::write_event;
use runtime::{Filter, Follow, Runtime, RuntimeError, StoreError, TenantId, Until};
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
}

/// The stream of what comes after an event of the log.
pub(super) async fn response(
    api: &Api,
    tenant: &TenantId,
    key: &str,
    after: Seq,
    shown: Shown,
    open: OpenStream,
) -> Result<Response, ApiError> {
    let follow = api.runtime().follow(tenant, key, after, Until::Forever);
    let follow = follow.await?;
    let runtime = api.runtime().clone();
    let told = told(follow, shown, runtime, tenant.clone(), key.to_owned());
    Ok(sse::response(told, Frames, open))
}

/// What the log comes to. Where a client needs all messages at the end, they are read then.
fn told(
    mut follow: Follow,
    Shown { mut run, mut view }: Shown,
    runtime: Runtime,
    tenant: TenantId,
    key: String,
) -> BoxStream<'static, Result<Told, StoreError>> {
    let told = async_stream::stream! {
        while let Some(next) = follow.next().await {
            let logged = match next {
                Ok(logged) => logged,
                Err(error) => {
                    yield Err(error);
                    return;
                }
            };
            let mut events = view.events(&logged.record);
            let seen = run.see(&logged.record.event);
            if seen == Seen::Never {
                events.push(RunView::failed("the thread was closed before the run began", "closed"));
            }
            let is_last = seen.flow().is_break();
            if seen == Seen::Last {
                let mut messages = None;
                if view.wants_messages() {
                    match runtime.transcript(&tenant, &key, Filter::Facts).await {
                        Ok(transcript) => messages = Some(to_messages(&transcript).value),
                        Err(RuntimeError::Store(error)) => {
                            yield Err(error);
                            return;
                        }
                        // Nothing else is asked of the runtime than to read.
                        Err(error) => tracing::error!(error = crate::error::told(&error), "the messages can't be read"),
                    }
                }
                events.extend(view.end(messages));
            }
            yield Ok(Told { events, is_last });
            if is_last {
                return;
            }
        }
    };
    Box::pin(told)
}

impl View<Told> for Frames {
    fn write(&mut self, told: &Told, out: &mut String) -> ControlFlow<()> {
        for event in &told.events {
            write_event(&event.to_string(), out);
        }
        if told.is_last {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }

    fn finish(&mut self, _: &mut String) {}

    fn fail(&mut self, error: &ApiError, out: &mut String) {
        let failure = error.failure();
        let event = RunView::failed(&failure.message, failure.code);
        write_event(&event.to_string(), out);
    }
}
