//! Google's Gemini API, `generateContent` (UPP §17.4).
//!
//! Thoughts become reasoning blocks. A thought signature stays with the part that carried it. Text with
//! a signature is never joined with text without one, and an empty part with only a signature is stored
//! unchanged. Calls of other models are sent to Gemini 3 with the placeholder for "no signature".
//! Schemas are sent as complete JSON Schema.

mod decode;
mod encode;
pub(crate) mod failure;

use crate::codec::{self, Auth, Codec, Encoded};
use crate::error::Error;
use crate::model::{Capabilities, Request};
use crate::settings::{NativeSettings, Settings};
use serde_json::{Value, json};

/// The provider's name.
const PROVIDER: &str = "google";

/// A Gemini model.
#[derive(Clone, Debug)]
pub struct Gemini {
    model_id: String,
}

impl Gemini {
    /// A model by its name, such as `gemini-3-pro`.
    pub fn new(model_id: impl Into<String>) -> Self {
        Self {
            model_id: model_id.into(),
        }
    }

    /// Whether the model refuses calls that have no thought signature: from Gemini 3 on.
    fn wants_signatures(&self) -> bool {
        let version = self.model_id.strip_prefix("gemini-");
        let major = version.and_then(|it| it.split(['.', '-']).next()?.parse::<u32>().ok());
        major.is_some_and(|major| major >= 3)
    }
}

/// Google's own tools, for `params.tools` (UPP §18). They run at Google.
pub fn native_tool(name: &str) -> Value {
    json!({ name: {} })
}

impl Codec for Gemini {
    fn provider(&self) -> &'static str {
        PROVIDER
    }

    fn model_id(&self) -> &str {
        &self.model_id
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::ALL
    }

    fn settings(&self, settings: &Settings) -> NativeSettings {
        let names = ["temperature", "topP", "presencePenalty", "frequencyPenalty"];
        let mut native = settings.sampling("generationConfig.", names);
        native.put(
            "generationConfig.maxOutputTokens",
            settings.max_output_tokens,
        );
        native.leave_out("parallel_tool_calls", settings.parallel_tool_calls.as_ref());
        native.leave_out("reasoning_effort", settings.reasoning_effort.as_ref());
        native.leave_out("reasoning_summary", settings.reasoning_summary.as_ref());
        native
    }

    fn path(&self) -> String {
        format!("/models/{}:streamGenerateContent?alt=sse", self.model_id)
    }

    fn base_url(&self) -> &'static str {
        "https://generativelanguage.googleapis.com/v1beta"
    }

    fn auth(&self) -> Auth {
        Auth::Header("x-goog-api-key")
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

    fn refusal(&self, status: u16, body: &str) -> Error {
        failure::of_status(status, body)
    }
}

#[cfg(test)]
mod tests;
