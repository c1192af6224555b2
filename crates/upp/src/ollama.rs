//! The chat format of Ollama (UPP §17.5): one JSON text per line.
//!
//! Thinking becomes a reasoning block and is sent back as `thinking` to the model that wrote it. Calls
//! without an id get one of ours. Ollama accepts pictures as bytes and no other media.

mod decode;
mod encode;

use crate::codec::{self, Codec, Encoded, Framing};
use crate::error::Error;
use crate::model::{Capabilities, Request};
use crate::settings::{NativeSettings, SAMPLING, Settings};
use serde_json::Value;

/// The provider's name.
const PROVIDER: &str = "ollama";

/// A model of an Ollama server.
#[derive(Clone, Debug)]
pub struct Ollama {
    model_id: String,
}

impl Ollama {
    /// A model by its name, such as `llama3.2`.
    pub fn new(model_id: impl Into<String>) -> Self {
        Self {
            model_id: model_id.into(),
        }
    }
}

impl Codec for Ollama {
    fn provider(&self) -> &'static str {
        PROVIDER
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
            document_input: false,
            video_input: false,
            audio_input: false,
        }
    }

    fn settings(&self, settings: &Settings) -> NativeSettings {
        let mut native = settings.sampling("options.", SAMPLING);
        native.put("options.num_predict", settings.max_output_tokens);
        native.put("think", settings.reasoning_effort.as_deref().map(think));
        native.leave_out("parallel_tool_calls", settings.parallel_tool_calls.as_ref());
        native.leave_out("reasoning_summary", settings.reasoning_summary.as_ref());
        native
    }

    fn path(&self) -> String {
        "/api/chat".to_owned()
    }

    fn base_url(&self) -> &'static str {
        "http://localhost:11434"
    }

    fn framing(&self) -> Framing {
        Framing::Lines
    }

    fn encode(&self, request: &Request) -> Result<Encoded, Error> {
        encode::encode(self, request)
    }

    fn decoder(&self, request: &Request) -> Box<dyn codec::Decoder> {
        Box::new(decode::Decoder::new(
            &self.model_id,
            request.structure.is_some(),
        ))
    }
}

#[cfg(test)]
mod tests;

/// The value of `think`: false for `none`, otherwise the effort.
fn think(effort: &str) -> Value {
    match effort {
        "none" => false.into(),
        other => other.into(),
    }
}
