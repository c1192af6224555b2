//! Sends what a codec of images writes.

use super::{
    ImageCapabilities, ImageCodec, ImageDecoder, ImageEditRequest, ImageEvent, ImageModel,
    ImageRequest, ImageResult, ImageStream, ImageStreamEvent,
};
use crate::call::EndpointCall;
use crate::error::{Code, Error, Modality};
use crate::provider::{Address, Answer, Endpoint, ProviderConfig};
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use serde_json::{Map, Value};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// An image model behind one of the providers' wire formats. Cloning shares it.
///
/// Dropping a call or a stream closes its connection. Images take long: the configuration's
/// `timeouts.headers` limits a whole call without streaming. Its `max_body_bytes`, `max_event_bytes` and
/// `max_stream_bytes` must be large enough for the images as base64.
#[derive(Clone)]
pub struct ImageProvider {
    codec: Arc<dyn ImageCodec>,
    endpoint: Endpoint,
}

impl std::fmt::Debug for ImageProvider {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ImageProvider")
            .field("model_id", &self.codec.model_id())
            .field("endpoint", &self.endpoint)
            .finish()
    }
}

impl ImageProvider {
    /// Checks the configuration and makes the client. Nothing is sent.
    pub fn new(codec: impl ImageCodec, config: ProviderConfig) -> Result<Self, Error> {
        let codec: Arc<dyn ImageCodec> = Arc::new(codec);
        let address = Address {
            provider: codec.provider(),
            modality: Modality::Image,
            base_url: codec.base_url(),
            auth: codec.auth(),
            headers: Vec::new(),
        };
        let endpoint = Endpoint::new(&codec, &address, <dyn ImageCodec>::refusal, config)?;
        Ok(Self { codec, endpoint })
    }

    async fn call(
        self,
        call: Result<EndpointCall, Error>,
        params: Arc<Map<String, Value>>,
        signal: CancellationToken,
    ) -> Result<ImageResult, Error> {
        let session = self.endpoint.session(&signal).await?;
        let shown = |error| session.redacted(error);
        let answer = session.text(&call.map_err(shown)?, &signal).await?;
        self.codec.decode(&params, &answer).map_err(shown)
    }

    fn events(self, request: ImageRequest) -> ImageStream {
        async_stream::try_stream! {
            let session = self.endpoint.session(&request.signal).await?;
            let shown = |error| session.redacted(error);
            let (call, mut decoder) = self.codec.stream(&request).map_err(shown)?;
            let mut frames = match session.events(&call, &request.signal).await? {
                Answer::Events(frames) => Box::pin(frames),
                Answer::Whole(body) => {
                    let result = self.codec.decode(&request.params, &body).map_err(shown)?;
                    for event in completed(&result) {
                        yield ImageEvent::Event(event);
                    }
                    yield ImageEvent::Done(result);
                    return;
                }
            };
            while let Some(frame) = frames.next().await {
                let frame = match frame {
                    Ok(frame) => frame,
                    // Everything is here; only the end of the connection is not.
                    Err(error) if is_over(&*decoder, &error) => break,
                    Err(error) => Err(error)?,
                };
                let Some(events) = frame.read(|data| decoder.push(data)).map_err(shown)? else {
                    break;
                };
                for event in events {
                    yield ImageEvent::Event(event);
                }
            }
            yield ImageEvent::Done(decoder.finish().map_err(shown)?);
        }
        .boxed()
    }
}

fn is_over(decoder: &dyn ImageDecoder, error: &Error) -> bool {
    decoder.is_complete() && !matches!(error.code, Code::Cancelled | Code::InvalidResponse)
}

/// The events that a stream would have had for these images.
fn completed(result: &ImageResult) -> Vec<ImageStreamEvent> {
    let images = (0..).zip(&result.images);
    images
        .map(|(index, made)| ImageStreamEvent::Complete {
            image: made.image.clone(),
            index,
        })
        .collect()
}

impl ImageModel for ImageProvider {
    fn model_id(&self) -> &str {
        self.codec.model_id()
    }

    fn provider(&self) -> &str {
        self.codec.provider()
    }

    fn capabilities(&self) -> ImageCapabilities {
        self.codec.capabilities()
    }

    fn generate(&self, request: ImageRequest) -> BoxFuture<'static, Result<ImageResult, Error>> {
        let call = self.codec.generate(&request);
        Box::pin(self.clone().call(call, request.params, request.signal))
    }

    fn stream(&self, request: ImageRequest) -> ImageStream {
        self.clone().events(request)
    }

    fn edit(&self, request: ImageEditRequest) -> BoxFuture<'static, Result<ImageResult, Error>> {
        let call = self.codec.edit(&request);
        Box::pin(self.clone().call(call, request.params, request.signal))
    }
}
