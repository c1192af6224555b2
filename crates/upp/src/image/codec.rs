//! The wire format of an image model.

use super::{
    ImageCapabilities, ImageEditRequest, ImageRequest, ImageResult, ImageStreamEvent, refused,
};
use crate::call::EndpointCall;
use crate::codec::Auth;
use crate::error::{Code, Error, Modality};
use crate::failure;
use serde_json::{Map, Value};

/// One wire format of images, bound to a model. Pure; `ImageProvider` sends.
pub trait ImageCodec: Send + Sync + 'static {
    /// The provider's name: the namespace of its metadata, and the provider of errors.
    fn provider(&self) -> &str;

    /// The model's name at its provider.
    fn model_id(&self) -> &str;

    /// The model's capabilities.
    fn capabilities(&self) -> ImageCapabilities;

    /// The default base URL.
    fn base_url(&self) -> &str;

    /// How the key travels.
    fn auth(&self) -> Auth {
        Auth::Bearer
    }

    /// Writes a call that makes images.
    fn generate(&self, request: &ImageRequest) -> Result<EndpointCall, Error>;

    /// Writes a streaming call that makes images, and returns the decoder of its events.
    fn stream(
        &self,
        _request: &ImageRequest,
    ) -> Result<(EndpointCall, Box<dyn ImageDecoder>), Error> {
        Err(refused(self.provider(), "the model can't stream images"))
    }

    /// Writes a call that changes an image.
    fn edit(&self, _request: &ImageEditRequest) -> Result<EndpointCall, Error> {
        Err(refused(self.provider(), "the model can't edit images"))
    }

    /// Reads the whole answer to a call with these parameters; [`Code::InvalidResponse`](crate::Code) if
    /// it has another form.
    fn decode(&self, params: &Map<String, Value>, body: &str) -> Result<ImageResult, Error>;

    /// The error of a response with a status other than 2xx.
    fn refusal(&self, status: u16, body: &str) -> Error {
        failure::of_status(self.provider(), status, body)
    }
}

/// Reads the events of one answer.
pub trait ImageDecoder: Send {
    /// Processes the data of one event.
    fn push(&mut self, data: &str) -> Result<Vec<ImageStreamEvent>, Error>;

    /// Whether all requested images are finished, so that the rest of the stream can be ignored.
    fn is_complete(&self) -> bool;

    /// Ends the answer. Fails if it was cut off.
    fn finish(self: Box<Self>) -> Result<ImageResult, Error>;
}

pub(super) fn invalid(provider: &str, text: &str) -> Error {
    Error::new(Code::InvalidResponse, provider, text).with_modality(Modality::Image)
}

/// Reads an answer's JSON.
pub(super) fn read<'de, T: serde::Deserialize<'de>>(
    provider: &str,
    body: &'de str,
) -> Result<T, Error> {
    serde_json::from_str(body).map_err(|cause| {
        let text = "the answer is not what the provider's images look like";
        invalid(provider, text).caused_by(cause)
    })
}
