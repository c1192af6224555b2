//! A response while it is made: as a stream of events, or waited for.

use super::continuation::StartedResponse;
use crate::error::{ApiError, openai};
use crate::sse::{self, FrameBuffer, View};
use crate::state::OpenStream;
use crate::threads::Ephemeral;
use axum::response::Response;
use futures_util::StreamExt;
use interop::responses::{EventFraming, ResponseObject, ResponseStream};
use runtime::{FollowedRecord, RuntimeError, Until};
use std::ops::ControlFlow;

/// Shows the events of a response.
struct Events {
    stream: ResponseStream,
    /// Its thread, if that is not stored; held until the stream ends.
    _passing: Option<Ephemeral>,
}

impl View<FollowedRecord> for Events {
    fn write(&mut self, followed: &FollowedRecord, out: &mut FrameBuffer) -> ControlFlow<()> {
        self.stream.apply(&followed.record, out);
        sse::flow(self.stream.is_over())
    }

    fn fail(&mut self, error: &ApiError, out: &mut String) {
        self.stream.fail(&openai::error_body(error).1, out);
    }
}

/// The events of a response, from its first on.
pub(super) async fn streamed(
    begun: StartedResponse,
    open: OpenStream,
) -> Result<Response, ApiError> {
    let stream = ResponseStream::new(begun.of.clone(), EventFraming::Sse);
    followed(begun, stream, open).await
}

/// The events of a response, as this stream shows them.
pub(super) async fn followed(
    begun: StartedResponse,
    stream: ResponseStream,
    open: OpenStream,
) -> Result<Response, ApiError> {
    let follow = begun.follow().await?;
    let view = Events {
        stream,
        _passing: begun.ephemeral,
    };
    Ok(sse::response(follow, view, open))
}

/// The response when it is over.
pub(super) async fn finished(
    begun: &StartedResponse,
    open: &OpenStream,
) -> Result<ResponseObject, ApiError> {
    tokio::select! {
        biased;
        why = open.unwanted() => Err(why.unwrap_or(RuntimeError::ShuttingDown.into())),
        object = object(begun, ResponseStream::is_over) => object,
    }
}

/// The response as soon as there is one.
pub(super) async fn started(begun: &StartedResponse) -> Result<ResponseObject, ApiError> {
    object(begun, |stream| stream.execution().is_some()).await
}

async fn object(
    begun: &StartedResponse,
    is_enough: impl Fn(&ResponseStream) -> bool,
) -> Result<ResponseObject, ApiError> {
    let mut stream = ResponseStream::quiet(begun.of.clone());
    let mut follow = begun.follow().await?;
    let mut out = String::new();
    while let Some(logged) = follow.next().await {
        stream.apply(&logged?.record, &mut out);
        if is_enough(&stream)
            && let Some(object) = stream.object()
        {
            return Ok(object);
        }
    }
    // The log ends only when the server does.
    Err(RuntimeError::ShuttingDown.into())
}

impl StartedResponse {
    /// The records of the thread, from before the response's first one.
    pub(in crate::routes) async fn follow(&self) -> Result<runtime::Follow, RuntimeError> {
        self.thread.follow(self.after, Until::Forever).await
    }
}
