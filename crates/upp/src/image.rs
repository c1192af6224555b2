//! Images a model makes or changes (UPP §19).

mod answer;
mod codec;
mod google;
mod instance;
mod openai;
#[cfg(feature = "http")]
mod provider;
mod xai;

pub use codec::{ImageCodec, ImageDecoder};
pub use google::GoogleImages;
pub use instance::{ImageGenerator, ImageOptions};
pub use openai::OpenAiImages;
#[cfg(feature = "http")]
pub use provider::ImageProvider;
pub use xai::XaiImages;

use crate::error::{Code, Error, Modality};
use crate::media::Image;
use crate::message::Metadata;
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// The capabilities of an image model (UPP §19).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ImageCapabilities {
    /// It makes images.
    pub generate: bool,
    /// It shows them as they come.
    pub streaming: bool,
    /// It changes images.
    pub edit: bool,
    /// Maximum number of images per call, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_images: Option<u32>,
}

/// One call that makes images.
#[derive(Clone, Debug, Default)]
pub struct ImageRequest {
    /// The description of the image.
    pub prompt: String,
    /// Provider-native parameters, passed unchanged.
    pub params: Arc<Map<String, Value>>,
    /// Cancel it to abandon the answer; this closes the connection.
    pub signal: CancellationToken,
}

/// One call that changes an image.
#[derive(Clone, Debug)]
pub struct ImageEditRequest {
    /// The image.
    pub image: Image,
    /// The area that may change; the whole image if absent.
    pub mask: Option<Image>,
    /// How to change it.
    pub prompt: String,
    /// Provider-native parameters, passed unchanged.
    pub params: Arc<Map<String, Value>>,
    /// Cancel it to abandon the answer; this closes the connection.
    pub signal: CancellationToken,
}

/// An image a model has made.
#[derive(Clone, Debug, PartialEq)]
pub struct GeneratedImage {
    /// The image.
    pub image: Image,
    /// Provider-namespaced extras.
    pub metadata: Metadata,
}

/// The usage of image calls (UPP §19).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ImageUsage {
    /// How many images were made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub images_generated: Option<u32>,
    /// Tokens of the prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// Tokens of the images.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// The cost, in the provider's unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
}

/// The images of one call (UPP §19).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ImageResult {
    /// The images, in the provider's order.
    pub images: Vec<GeneratedImage>,
    /// Provider-namespaced extras.
    pub metadata: Metadata,
    /// The usage, if the provider reports it.
    pub usage: Option<ImageUsage>,
}

/// Something to show while images are made (UPP §19).
#[derive(Clone, Debug, PartialEq)]
pub enum ImageStreamEvent {
    /// An image that is not finished.
    Preview {
        /// As it is now.
        image: Image,
        /// Its position.
        index: u32,
        /// Provider-namespaced extras.
        metadata: Metadata,
    },
    /// An image that is finished.
    Complete {
        /// The image.
        image: Image,
        /// Its position.
        index: u32,
    },
}

/// An item of an image stream: events, then the result as the last item.
#[derive(Clone, Debug, PartialEq)]
pub enum ImageEvent {
    /// Something to show.
    Event(ImageStreamEvent),
    /// The end: all images.
    Done(ImageResult),
}

/// A stream of images. Nothing happens until it is polled; dropping it cancels.
pub type ImageStream = BoxStream<'static, Result<ImageEvent, Error>>;

/// An image model of a provider (UPP §19).
///
/// By default, [`ImageModel::stream`] and [`ImageModel::edit`] fail. A model that implements them
/// declares that in its [`ImageCapabilities`].
pub trait ImageModel: Send + Sync {
    /// The model's name at its provider.
    fn model_id(&self) -> &str;

    /// The provider's name, which is also the namespace of its metadata.
    fn provider(&self) -> &str;

    /// The model's capabilities.
    fn capabilities(&self) -> ImageCapabilities;

    /// Makes images.
    fn generate(&self, request: ImageRequest) -> BoxFuture<'static, Result<ImageResult, Error>>;

    /// Makes images and shows them as they come.
    fn stream(&self, _request: ImageRequest) -> ImageStream {
        let error = refused(self.provider(), "the model can't stream images");
        stream::once(std::future::ready(Err(error))).boxed()
    }

    /// Changes an image.
    fn edit(&self, _request: ImageEditRequest) -> BoxFuture<'static, Result<ImageResult, Error>> {
        let error = refused(self.provider(), "the model can't edit images");
        Box::pin(std::future::ready(Err(error)))
    }
}

fn refused(provider: &str, text: &str) -> Error {
    Error::new(Code::InvalidRequest, provider, text).with_modality(Modality::Image)
}

#[cfg(test)]
mod tests;
