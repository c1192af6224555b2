//! The Chat Completions format of `OpenAI`, which most other providers speak too (UPP §17.3).
//!
//! Blocks appear in the order the model wrote them; `reasoning_content` and `reasoning` become
//! reasoning blocks. The message's metadata keeps model, finish reason, fingerprint and tier
//! under the provider's name; the usage keeps the provider's own object. A refusal is text with
//! the stop reason `content_filter`.

mod calls;
mod decode;
mod encode;

use crate::codec::{self, Codec, Encoded};
use crate::error::Error;
use crate::model::{Capabilities, Request};
use decode::Decoder;

/// A model behind the Chat Completions format.
#[derive(Clone, Debug)]
pub struct ChatCompletions {
    /// The model.
    pub model_id: String,
    /// The provider's name in errors and metadata.
    pub provider: String,
    /// The usual prefix of the endpoint's address.
    pub base_url: String,
    /// Whether reasoning goes back as `reasoning_content`, as some compatible providers want.
    pub resend_reasoning: bool,
}

impl ChatCompletions {
    /// A model of `OpenAI`.
    pub fn openai(model_id: impl Into<String>) -> Self {
        Self {
            model_id: model_id.into(),
            provider: "openai".to_owned(),
            base_url: "https://api.openai.com/v1".to_owned(),
            resend_reasoning: false,
        }
    }

    /// A model of a compatible provider of this name.
    pub fn compatible(
        provider: impl Into<String>,
        base_url: impl Into<String>,
        model_id: impl Into<String>,
    ) -> Self {
        Self {
            provider: provider.into(),
            base_url: base_url.into(),
            ..Self::openai(model_id)
        }
    }
}

impl Codec for ChatCompletions {
    fn provider(&self) -> &str {
        &self.provider
    }

    fn model_id(&self) -> &str {
        &self.model_id
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            streaming: true,
            tools: true,
            structured_output: true,
            image_input: true,
            document_input: true,
            video_input: false,
            audio_input: false,
        }
    }

    fn path(&self) -> String {
        "/chat/completions".to_owned()
    }

    fn base_url(&self) -> &str {
        &self.base_url
    }

    fn encode(&self, request: &Request) -> Result<Encoded, Error> {
        encode::encode(self, request)
    }

    fn decoder(&self, request: &Request) -> Box<dyn codec::Decoder> {
        Box::new(Decoder::new(
            self.provider.as_str(),
            self.model_id.as_str(),
            request.structure.is_some(),
        ))
    }
}

#[cfg(test)]
mod tests;
