//! A completion while it is made: as a stream of chunks, or waited for.

use super::super::responses::continuation::StartedResponse;
use crate::error::{ApiError, openai};
use crate::sse::{self, FrameBuffer, View};
use crate::state::OpenStream;
use crate::threads::Ephemeral;
use axum::response::Response;
use futures_util::StreamExt;
use interop::chat_completions::{ChatCompletion, CompletionStream};
use interop::responses::ResponseOf;
use interop::run::RunSelector;
use runtime::{FollowedRecord, RuntimeError};
use std::ops::ControlFlow;

/// Shows the chunks of a completion.
struct Chunks {
    stream: CompletionStream,
    /// Its thread, if that is ephemeral: until the stream is over.
    _passing: Option<Ephemeral>,
}

impl View<FollowedRecord> for Chunks {
    fn write(&mut self, followed: &FollowedRecord, out: &mut FrameBuffer) -> ControlFlow<()> {
        self.stream.apply(&followed.record, out);
        sse::flow(self.stream.is_over())
    }

    fn fail(&mut self, error: &ApiError, out: &mut String) {
        self.stream.fail(&openai::error_body(error).1, out);
    }
}

fn stream_of(begun: &StartedResponse) -> CompletionStream {
    CompletionStream::new(match begun.of.clone() {
        ResponseOf::Execution(execution) => RunSelector::running(Some(execution)),
        ResponseOf::Trigger(item) => RunSelector::answering(item),
    })
}

/// The chunks of a completion.
pub(super) async fn streamed(
    begun: StartedResponse,
    include_usage: bool,
    open: OpenStream,
) -> Result<Response, ApiError> {
    let follow = begun.follow().await?;
    let view = Chunks {
        stream: stream_of(&begun).streaming(include_usage),
        _passing: begun.ephemeral,
    };
    Ok(sse::response(follow, view, open))
}

/// The whole completion, when its run is over.
pub(super) async fn finished(
    begun: &StartedResponse,
    open: &OpenStream,
) -> Result<ChatCompletion, ApiError> {
    tokio::select! {
        biased;
        why = open.unwanted() => Err(why.unwrap_or(RuntimeError::ShuttingDown.into())),
        whole = whole(begun) => whole,
    }
}

async fn whole(begun: &StartedResponse) -> Result<ChatCompletion, ApiError> {
    let mut stream = stream_of(begun);
    let mut follow = begun.follow().await?;
    while let Some(logged) = follow.next().await {
        stream.apply(&logged?.record, &mut String::new());
        if let Some(outcome) = stream.outcome() {
            return Ok(outcome?);
        }
    }
    // The log ends only when the server does.
    Err(RuntimeError::ShuttingDown.into())
}
