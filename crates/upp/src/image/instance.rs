//! An image model with parameters (UPP §19).

use super::{
    ImageCapabilities, ImageEditRequest, ImageModel, ImageRequest, ImageResult, ImageStream,
    refused,
};
use crate::error::{Code, Error, Modality};
use crate::media::Image;
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream;
use serde_json::{Map, Value};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// The options of an [`ImageGenerator`].
#[derive(Clone)]
pub struct ImageOptions {
    /// The model.
    pub model: Arc<dyn ImageModel>,
    /// Provider-native parameters, passed unchanged.
    pub params: Map<String, Value>,
}

impl ImageOptions {
    /// Options with only a model.
    pub fn new(model: Arc<dyn ImageModel>) -> Self {
        Self {
            model,
            params: Map::new(),
        }
    }
}

impl std::fmt::Debug for ImageOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ImageOptions")
            .field("model", &self.model.model_id())
            .finish_non_exhaustive()
    }
}

/// An image model with parameters; cloning shares it.
///
/// Fails with `INVALID_REQUEST` if the model's capabilities don't include the request. A cancelled
/// `signal` ends a call with `CANCELLED`.
#[derive(Clone, Debug)]
pub struct ImageGenerator {
    options: Arc<ImageOptions>,
    params: Arc<Map<String, Value>>,
}

impl ImageGenerator {
    /// Creates it from the options.
    pub fn new(options: ImageOptions) -> Self {
        Self {
            params: Arc::new(options.params.clone()),
            options: Arc::new(options),
        }
    }

    /// The model.
    pub fn model(&self) -> &Arc<dyn ImageModel> {
        &self.options.model
    }

    /// The model's capabilities.
    pub fn capabilities(&self) -> ImageCapabilities {
        self.options.model.capabilities()
    }

    fn request(&self, prompt: String, signal: &CancellationToken) -> ImageRequest {
        ImageRequest {
            prompt,
            params: Arc::clone(&self.params),
            signal: signal.child_token(),
        }
    }

    fn refused(&self, text: &str) -> Error {
        refused(self.options.model.provider(), text)
    }

    fn cancelled(&self) -> Error {
        Error::new(
            Code::Cancelled,
            self.options.model.provider(),
            "the image call was cancelled",
        )
        .with_modality(Modality::Image)
    }

    async fn until(
        &self,
        signal: &CancellationToken,
        call: BoxFuture<'static, Result<ImageResult, Error>>,
    ) -> Result<ImageResult, Error> {
        let outcome = signal.run_until_cancelled(call).await;
        outcome.unwrap_or_else(|| Err(self.cancelled()))
    }

    /// Makes images.
    pub async fn generate(
        &self,
        prompt: impl Into<String>,
        signal: CancellationToken,
    ) -> Result<ImageResult, Error> {
        if !self.capabilities().generate {
            return Err(self.refused("the model can't make images from a prompt"));
        }
        let request = self.request(prompt.into(), &signal);
        let _guard = request.signal.clone().drop_guard();
        self.until(&signal, self.options.model.generate(request))
            .await
    }

    /// Makes images and shows them as they come; the result is the last item.
    pub fn stream(&self, prompt: impl Into<String>, signal: CancellationToken) -> ImageStream {
        if !self.capabilities().streaming {
            let error = self.refused("the model can't stream images");
            return stream::once(std::future::ready(Err(error))).boxed();
        }
        let (this, prompt) = (self.clone(), prompt.into());
        async_stream::try_stream! {
            let request = this.request(prompt, &signal);
            let _guard = request.signal.clone().drop_guard();
            let mut events = this.options.model.stream(request);
            loop {
                let next = signal.run_until_cancelled(events.next()).await;
                match next.ok_or_else(|| this.cancelled())? {
                    Some(event) => yield event?,
                    None => break,
                }
            }
        }
        .boxed()
    }

    /// Changes an image, or the part of it that `mask` names.
    pub async fn edit(
        &self,
        image: Image,
        mask: Option<Image>,
        prompt: impl Into<String>,
        signal: CancellationToken,
    ) -> Result<ImageResult, Error> {
        if !self.capabilities().edit {
            return Err(self.refused("the model can't edit images"));
        }
        let request = ImageEditRequest {
            image,
            mask,
            prompt: prompt.into(),
            params: Arc::clone(&self.params),
            signal: signal.child_token(),
        };
        let _guard = request.signal.clone().drop_guard();
        self.until(&signal, self.options.model.edit(request)).await
    }
}
