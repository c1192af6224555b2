//! The span of a model call.

use super::operation::Operation;
use super::{TARGET, captures_content, code_name, content, count, names, provider_name};
use crate::error::{Code, Error};
use crate::model::{Model, ModelEvent, ModelStream, Request, Response, StopReason, drained};
use futures_util::future::BoxFuture;
use futures_util::{Stream, StreamExt, TryFutureExt, stream};
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::time::Instant;
use tracing::Span;
use tracing::field::Empty;

/// Calls a model in a span named `chat {model}`, a child of the current one.
///
/// The span ends with the stream's last item. Nothing happens until the stream is polled. If no
/// subscriber wants the span, this is just [`Model::stream`].
pub fn call(model: &dyn Model, request: Request) -> ModelStream {
    observed(model, request, |model, request| model.stream(request))
}

/// Calls a model for its whole answer, in a span named `chat {model}`: a stream of one item.
pub(crate) fn call_whole(model: &dyn Model, request: Request) -> ModelStream {
    observed(model, request, |model, request| {
        let answer = model.complete(request);
        stream::once(answer.map_ok(|response| ModelEvent::Done(Box::new(response)))).boxed()
    })
}

/// A whole answer ([`Model::complete`]) in a span.
pub fn complete(
    model: &dyn Model,
    request: Request,
) -> BoxFuture<'static, Result<Response, Error>> {
    let provider = model.provider().to_owned();
    Box::pin(drained(call_whole(model, request), provider))
}

fn observed(
    model: &dyn Model,
    request: Request,
    begin: impl FnOnce(&dyn Model, Request) -> ModelStream,
) -> ModelStream {
    let span = open(model, &request);
    if span.is_disabled() {
        return begin(model, request);
    }
    if captures_content() {
        content::record_request(&span, &request);
    }
    let stream = span.in_scope(|| begin(model, request));
    Box::pin(Observed {
        stream,
        call: Some(Call {
            operation: Operation::new(span),
            start: Instant::now(),
            has_chunk: false,
        }),
    })
}

fn open(model: &dyn Model, request: &Request) -> Span {
    let span = tracing::info_span!(
        target: TARGET,
        "chat",
        { names::OTEL_NAME } = %format_args!("chat {}", model.model_id()),
        { names::OTEL_KIND } = "client",
        { names::OTEL_STATUS_CODE } = Empty,
        { names::ERROR_TYPE } = Empty,
        { names::OPERATION_NAME } = "chat",
        { names::PROVIDER_NAME } = provider_name(model.provider()),
        { names::REQUEST_MODEL } = model.model_id(),
        { names::REQUEST_STREAM } = model.capabilities().streaming,
        { names::OUTPUT_TYPE } = Empty,
        { names::RESPONSE_MODEL } = Empty,
        { names::RESPONSE_ID } = Empty,
        { names::RESPONSE_FINISH_REASONS } = Empty,
        { names::RESPONSE_TIME_TO_FIRST_CHUNK } = Empty,
        { names::USAGE_INPUT_TOKENS } = Empty,
        { names::USAGE_OUTPUT_TOKENS } = Empty,
        { names::USAGE_CACHE_READ } = Empty,
        { names::USAGE_CACHE_WRITE } = Empty,
        { names::USAGE_REASONING } = Empty,
        { names::SYSTEM_INSTRUCTIONS } = Empty,
        { names::INPUT_MESSAGES } = Empty,
        { names::OUTPUT_MESSAGES } = Empty,
    );
    if request.structure.is_some() {
        span.record(names::OUTPUT_TYPE, "json");
    }
    span
}

struct Observed {
    stream: ModelStream,
    /// Absent once the call has ended.
    call: Option<Call>,
}

struct Call {
    operation: Operation,
    start: Instant,
    has_chunk: bool,
}

impl Stream for Observed {
    type Item = <ModelStream as Stream>::Item;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        let Some(call) = &mut this.call else {
            return this.stream.poll_next_unpin(cx);
        };
        let item = {
            let _entered = call.operation.span().enter();
            this.stream.poll_next_unpin(cx)
        };
        match &item {
            Poll::Pending => return item,
            Poll::Ready(Some(Ok(ModelEvent::Event(_)))) => {
                call.arrived();
                return item;
            }
            Poll::Ready(Some(Ok(ModelEvent::Done(_)) | Err(_)) | None) => {}
        }
        if let Some(call) = this.call.take() {
            match &item {
                Poll::Ready(Some(Ok(ModelEvent::Done(response)))) => call.answered(response),
                Poll::Ready(Some(Err(error))) => call.operation.fail(code_name(error.code)),
                Poll::Ready(Some(Ok(ModelEvent::Event(_))) | None) | Poll::Pending => {
                    call.operation.fail(code_name(Code::InvalidResponse));
                }
            }
        }
        item
    }
}

impl Call {
    fn arrived(&mut self) {
        if self.has_chunk {
            return;
        }
        self.has_chunk = true;
        let seconds = self.start.elapsed().as_secs_f64();
        let span = self.operation.span();
        span.record(names::RESPONSE_TIME_TO_FIRST_CHUNK, seconds);
    }

    fn answered(self, response: &Response) {
        let span = self.operation.span();
        span.record(names::RESPONSE_MODEL, &*response.model_id);
        if let Some(id) = &response.response_id {
            span.record(names::RESPONSE_ID, &**id);
        }
        let reason = finish_reason(&response.stop_reason);
        span.record(names::RESPONSE_FINISH_REASONS, reason);
        let usage = &response.usage;
        for (name, n) in [
            (names::USAGE_INPUT_TOKENS, usage.input_tokens),
            (names::USAGE_OUTPUT_TOKENS, usage.output_tokens),
        ] {
            span.record(name, count(n));
        }
        for (name, n) in [
            (names::USAGE_CACHE_READ, usage.cache_read_tokens),
            (names::USAGE_CACHE_WRITE, usage.cache_write_tokens),
            (names::USAGE_REASONING, usage.reasoning_tokens),
        ] {
            if n > 0 {
                span.record(name, count(n));
            }
        }
        if captures_content() {
            content::record_response(span, response, reason);
        }
        self.operation.succeed();
    }
}

/// The reason in the conventions' words, else in the provider's.
fn finish_reason(reason: &StopReason) -> &str {
    match reason {
        StopReason::EndTurn => "stop",
        StopReason::MaxTokens => "length",
        StopReason::ToolUse => "tool_call",
        StopReason::ContentFilter => "content_filter",
        StopReason::Error => "error",
        StopReason::Other(word) => word,
    }
}
