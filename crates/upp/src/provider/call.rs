//! One call of a model: its attempts, and what became of them.

use super::answer;
use super::endpoint::{Endpoint, Session, is_json};
use crate::call::{CallBody, EndpointCall};
use crate::codec::{Codec, Framing};
use crate::error::Error;
use crate::model::{ModelEvent, Request, Sent};
use crate::prefix::{Prefix, RequestReport};
use futures_util::{Stream, StreamExt};
use std::sync::Arc;

/// A request that can be sent several times.
pub(super) struct Call {
    codec: Arc<dyn Codec>,
    session: Session,
    request: Request,
    sending: EndpointCall,
    sent: Sent,
}

impl Call {
    /// Writes the request and gets its key.
    pub(super) async fn new(
        codec: Arc<dyn Codec>,
        endpoint: &Endpoint,
        request: Request,
    ) -> Result<Arc<Self>, Error> {
        let encoded = codec.encode(&request)?;
        let prefix = Arc::new(Prefix::of(&encoded));
        let report = RequestReport::new(&encoded, &prefix, request.previous.as_deref());
        Ok(Arc::new(Self {
            session: endpoint.session(&request.signal).await?,
            sending: EndpointCall {
                path: codec.path(),
                body: CallBody::Json(encoded.body.into()),
            },
            sent: Sent { prefix, report },
            codec,
            request,
        }))
    }

    /// Sends the request once and reads the answer.
    pub(super) fn attempt(
        self: Arc<Self>,
    ) -> impl Stream<Item = Result<ModelEvent, Error>> + Send + 'static {
        let call = Arc::clone(&self);
        self.items().map(move |item| {
            item.map_err(|error| {
                let error = call.session.redacted(error);
                tracing::debug!(
                    provider = call.codec.provider(),
                    model = call.codec.model_id(),
                    code = error.code.as_str(),
                    status = error.status,
                    message = error.message,
                    "a request to a model failed"
                );
                error
            })
        })
    }

    fn items(self: Arc<Self>) -> impl Stream<Item = Result<ModelEvent, Error>> + Send + 'static {
        async_stream::try_stream! {
            let (signal, session) = (&self.request.signal, &self.session);
            let codec = &*self.codec;
            let mut decoder = codec.decoder(&self.request);
            let accept = match codec.framing() {
                Framing::ServerSentEvents => "text/event-stream",
                Framing::Lines => "application/x-ndjson",
            };
            let response = session.open(&self.sending, accept, signal).await?;
            if codec.framing() == Framing::ServerSentEvents && is_json(&response) {
                let body = session.endpoint.whole(response, signal).await?;
                let events = decoder.whole(&body)?;
                let (last, mut response) = decoder.finish()?;
                for event in events.into_iter().chain(last) {
                    yield ModelEvent::Event(event);
                }
                response.request = Some(self.sent.clone());
                yield ModelEvent::Done(Box::new(response));
                return;
            }
            let bytes = session.endpoint.streamed(response, signal.token().clone());
            let most = session.endpoint.config.max_event_bytes;
            let mut items = std::pin::pin!(answer(codec, decoder, bytes, most));
            while let Some(item) = items.next().await {
                match item? {
                    ModelEvent::Done(mut response) => {
                        response.request = Some(self.sent.clone());
                        yield ModelEvent::Done(response);
                    }
                    event @ ModelEvent::Event(_) => yield event,
                }
            }
        }
    }
}
