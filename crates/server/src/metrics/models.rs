//! Calls of models.

use super::{CANCELLED, OK, Timed, Timing};
use futures_util::future::BoxFuture;
use futures_util::{Stream, StreamExt};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use upp::telemetry::code_name;
use upp::{Code, Error, Model, ModelEvent, ModelLayer, ModelStream, Request, Response};

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Of {
    provider: String,
    model: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfCall {
    provider: String,
    model: String,
    outcome: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfTokens {
    provider: String,
    model: String,
    r#type: &'static str,
}

#[derive(Clone)]
pub(super) struct ModelFigures {
    calls: Timed<OfCall>,
    first_chunks: Timed<Of>,
    tokens: Family<OfTokens, Counter>,
}

impl ModelFigures {
    pub(super) fn new(registry: &mut Registry) -> Self {
        let calls = Timed::new(
            registry,
            "model_call_duration",
            "Calls of models; the outcome is ok, the protocol's code of the error, or cancelled",
        );
        let first_chunks = Timed::new(
            registry,
            "model_time_to_first_chunk",
            "From a call to the first piece of its answer",
        );
        let tokens = Family::<OfTokens, Counter>::default();
        registry.register(
            "model_tokens",
            "Tokens as providers count them; those of caches and reasoning are also input and output",
            tokens.clone(),
        );
        Self {
            calls,
            first_chunks,
            tokens,
        }
    }

    pub(super) fn of(&self, model: Arc<dyn Model>) -> Arc<dyn Model> {
        let of = Of {
            provider: model.provider().to_owned(),
            model: model.model_id().to_owned(),
        };
        Arc::new(Measured {
            model,
            of,
            figures: self.clone(),
        })
    }

    fn answered(&self, of: &Of, response: &Response) {
        let usage = &response.usage;
        for (kind, n) in [
            ("input", usage.input_tokens),
            ("output", usage.output_tokens),
            ("cache_read", usage.cache_read_tokens),
            ("cache_write", usage.cache_write_tokens),
            ("reasoning", usage.reasoning_tokens),
        ] {
            if n > 0 {
                let labels = OfTokens {
                    provider: of.provider.clone(),
                    model: of.model.clone(),
                    r#type: kind,
                };
                self.tokens.get_or_create(&labels).inc_by(n);
            }
        }
    }
}

/// A model with counted calls.
struct Measured {
    model: Arc<dyn Model>,
    of: Of,
    figures: ModelFigures,
}

impl Measured {
    fn begin(&self) -> Call {
        let (of, calls) = (self.of.clone(), self.figures.calls.clone());
        let timing = Timing::begin(move |outcome, took| {
            let labels = OfCall {
                provider: of.provider,
                model: of.model,
                outcome: outcome.to_owned(),
            };
            calls.took(&labels, took);
        });
        Call {
            of: self.of.clone(),
            figures: self.figures.clone(),
            timing,
            has_chunk: false,
        }
    }
}

impl ModelLayer for Measured {
    fn inner(&self) -> &dyn Model {
        &*self.model
    }

    fn stream(&self, request: Request) -> ModelStream {
        Box::pin(MeasuredStream {
            stream: self.model.stream(request),
            call: Some(self.begin()),
        })
    }

    fn complete(&self, request: Request) -> BoxFuture<'static, Result<Response, Error>> {
        let call = self.begin();
        let answer = self.model.complete(request);
        Box::pin(async move {
            let answer = answer.await;
            call.end(answer.as_ref().map_err(|error| error.code));
            answer
        })
    }
}

/// A running call.
struct Call {
    of: Of,
    figures: ModelFigures,
    timing: Timing,
    has_chunk: bool,
}

impl Call {
    fn arrived(&mut self) {
        if !self.has_chunk {
            self.has_chunk = true;
            let so_far = self.timing.so_far();
            self.figures.first_chunks.took(&self.of, so_far);
        }
    }

    fn end(self, answer: Result<&Response, Code>) {
        match answer {
            Ok(response) => {
                self.figures.answered(&self.of, response);
                self.timing.end(OK);
            }
            Err(Code::Cancelled) => self.timing.end(CANCELLED),
            Err(code) => self.timing.end(code_name(code)),
        }
    }
}

struct MeasuredStream {
    stream: ModelStream,
    /// The call; absent once it has ended.
    call: Option<Call>,
}

impl Stream for MeasuredStream {
    type Item = <ModelStream as Stream>::Item;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let item = self.stream.poll_next_unpin(cx);
        let ended = match &item {
            Poll::Ready(Some(Ok(ModelEvent::Event(_)))) => {
                if let Some(call) = &mut self.call {
                    call.arrived();
                }
                return item;
            }
            Poll::Ready(Some(Ok(ModelEvent::Done(response)))) => Ok(&**response),
            Poll::Ready(Some(Err(error))) => Err(error.code),
            // A stream that ends without an answer.
            Poll::Ready(None) => Err(Code::InvalidResponse),
            Poll::Pending => return item,
        };
        if let Some(call) = self.call.take() {
            call.end(ended);
        }
        item
    }
}
