//! The Chat Completions format of `OpenAI`, which most other providers support too (UPP §17.3).
//!
//! Blocks appear in the order in which the model wrote them. Reasoning becomes reasoning blocks, under
//! whatever field name it comes. The message's metadata has model, finish reason, fingerprint, tier,
//! annotations and citations under the provider's name; the usage has the provider's own object. A
//! refusal is text with the stop reason `content_filter`.
//!
//! A [`Dialect`] describes the differences between providers.

mod calls;
mod chunk;
mod decode;
mod details;
mod dialect;
mod encode;
mod facts;
mod media;

pub use dialect::{Dialect, ReasoningForm};

use crate::codec::{self, Codec, Encoded};
use crate::error::Error;
use crate::model::{Capabilities, Request};
use crate::settings::{NativeSettings, SAMPLING, Settings};
use decode::Decoder;
use std::sync::Arc;

/// A model behind the Chat Completions format.
#[derive(Clone, Debug)]
pub struct ChatCompletions {
    model_id: Arc<str>,
    dialect: Dialect,
}

impl ChatCompletions {
    /// A model of a provider with this dialect.
    pub fn new(dialect: Dialect, model_id: impl Into<Arc<str>>) -> Self {
        Self {
            model_id: model_id.into(),
            dialect,
        }
    }

    /// A model of `OpenAI`.
    pub fn openai(model_id: impl Into<Arc<str>>) -> Self {
        Self::new(Dialect::openai(), model_id)
    }
}

impl Codec for ChatCompletions {
    fn provider(&self) -> &str {
        &self.dialect.provider
    }

    fn model_id(&self) -> &str {
        &self.model_id
    }

    fn capabilities(&self) -> Capabilities {
        self.dialect.capabilities
    }

    fn settings(&self, settings: &Settings) -> NativeSettings {
        let mut native = settings.sampling("", SAMPLING);
        native.put(self.dialect.max_tokens, settings.max_output_tokens);
        native.put("parallel_tool_calls", settings.parallel_tool_calls);
        let effort = settings.reasoning_effort.as_deref();
        native.put(self.dialect.reasoning_effort, effort);
        native.leave_out("reasoning_summary", settings.reasoning_summary.as_ref());
        native
    }

    fn path(&self) -> String {
        "/chat/completions".to_owned()
    }

    fn base_url(&self) -> &str {
        &self.dialect.base_url
    }

    fn encode(&self, request: &Request) -> Result<Encoded, Error> {
        encode::encode(self, request)
    }

    fn decoder(&self, request: &Request) -> Box<dyn codec::Decoder> {
        Box::new(Decoder::new(
            &self.dialect,
            Arc::clone(&self.model_id),
            request.structure.is_some(),
        ))
    }
}

#[cfg(test)]
mod tests;
