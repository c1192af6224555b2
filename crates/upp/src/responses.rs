//! The Responses format of `OpenAI`, and of every host of Open Responses (UPP §17.2, §17.9).
//!
//! # The answer
//!
//! Text, refusals, reasoning and generated images become content blocks in the order of their output
//! items. Function calls become tool calls with the provider's text of the arguments. A reasoning item
//! has one block for each part of its summary or text; its encrypted content is the signature of the
//! first block.
//!
//! The message's metadata holds everything else under the provider's name: ids, statuses, phases,
//! annotations, log probabilities, and whole items of hosted tools and of unknown types. So the items
//! are sent back unchanged. The metadata also has the model, the status and the response's id.
//!
//! A call of a *custom* tool, whose input is free text, has the arguments `{"input": "…"}`.
//!
//! # The request
//!
//! * The system prompt is `instructions`, so that it is not stored again with each response that
//!   follows another by `previous_response_id`. xAI does not always accept that field; there the prompt is
//!   the first item.
//! * The provider stores nothing: `store` is `false` unless params set it or request a background
//!   response.
//! * Without the provider's store, reasoning can only be sent back encrypted. So `include` gets
//!   `reasoning.encrypted_content` if the model may reason. Exceptions are the `OpenAI` models known to
//!   refuse it (GPT-3.5, GPT-4 and the chat models), unless params have `reasoning`, and params with an
//!   `include` of `null`. [`Responses::with_encrypted_reasoning`] overrides this.
//! * Reasoning and the items after it belong together. Reasoning that is not encrypted, or that nothing
//!   follows, is left out. The items after left-out reasoning are sent without their ids, because the
//!   provider ties those to the reasoning; items of hosted tools there are left out too. All of it is
//!   reported. With `store: true` in params, the reasoning of stored answers is sent by its id.
//! * Tools have `strict: false` unless their metadata has `strict`; without it, the provider would
//!   require properties that the schema has as optional. Other fields under the provider's name in the
//!   metadata of a tool are added to it. `params.tools` come after the tools of the request.
//! * A structure is requested with `strict` if its schema allows that: every property required, no
//!   additional properties, only the keywords that strict schemas may have.
//! * Text documents are sent as text, after their title. `detail` of images is `auto`, unless the user
//!   message's metadata has a `detail` under the provider's name.
//!
//! # Usage
//!
//! `input_tokens` includes cached tokens, as in [`CycleUsage`](crate::CycleUsage). Some hosts count
//! reasoning separately from output tokens. If the total shows that, reasoning is added to the output.

mod assistant;
mod decode;
mod encode;
mod item;
mod output;
mod refusal;
pub(crate) mod strict;
pub mod tools;
mod usage;
mod user;

use crate::codec::{self, Codec, Encoded};
use crate::error::Error;
use crate::model::{Capabilities, Request};
use crate::settings::{NativeSettings, SAMPLING, Settings};
use decode::Decoder;

/// A model behind the Responses format.
#[derive(Clone, Debug)]
pub struct Responses {
    model_id: String,
    provider: String,
    base_url: String,
    dialect: Dialect,
    encrypted_reasoning: Option<bool>,
    plain_reasoning: bool,
}

/// The differences between hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dialect {
    OpenAi,
    Xai,
    OpenRouter,
    Host,
}

impl Responses {
    /// A model of `OpenAI`.
    pub fn openai(model_id: impl Into<String>) -> Self {
        let base_url = "https://api.openai.com/v1";
        Self::of(Dialect::OpenAi, "openai", base_url, model_id)
    }

    /// A model of xAI.
    pub fn xai(model_id: impl Into<String>) -> Self {
        Self::of(Dialect::Xai, "xai", "https://api.x.ai/v1", model_id)
    }

    /// A model behind `OpenRouter`.
    pub fn openrouter(model_id: impl Into<String>) -> Self {
        let base_url = "https://openrouter.ai/api/v1";
        Self::of(Dialect::OpenRouter, "openrouter", base_url, model_id)
    }

    /// A model of any host of Open Responses. `provider` names the host in errors and in the metadata of
    /// messages; `base_url` is the endpoint's address without `/responses`.
    pub fn host(
        provider: impl Into<String>,
        base_url: impl Into<String>,
        model_id: impl Into<String>,
    ) -> Self {
        Self::of(Dialect::Host, provider, base_url, model_id)
    }

    fn of(
        dialect: Dialect,
        provider: impl Into<String>,
        base_url: impl Into<String>,
        model_id: impl Into<String>,
    ) -> Self {
        Self {
            model_id: model_id.into(),
            provider: provider.into(),
            base_url: base_url.into(),
            dialect,
            encrypted_reasoning: None,
            plain_reasoning: false,
        }
    }

    /// Sets whether requests include encrypted reasoning, overriding the guess from the model's name.
    #[must_use]
    pub fn with_encrypted_reasoning(mut self, asked: bool) -> Self {
        self.encrypted_reasoning = Some(asked);
        self
    }

    /// Sets whether readable reasoning without encryption is sent back. Open Responses has no such
    /// input. Hosts of open models, such as vLLM, often accept it, and their models need it.
    #[must_use]
    pub fn with_plain_reasoning(mut self, sent: bool) -> Self {
        self.plain_reasoning = sent;
        self
    }
}

impl Codec for Responses {
    fn provider(&self) -> &str {
        &self.provider
    }

    fn model_id(&self) -> &str {
        &self.model_id
    }

    fn capabilities(&self) -> Capabilities {
        let any = matches!(self.dialect, Dialect::OpenRouter | Dialect::Host);
        Capabilities {
            streaming: true,
            tools: true,
            structured_output: true,
            image_input: true,
            document_input: self.dialect != Dialect::Xai,
            video_input: any,
            audio_input: any,
        }
    }

    fn settings(&self, settings: &Settings) -> NativeSettings {
        let mut native = settings.sampling("", SAMPLING);
        native.put("max_output_tokens", settings.max_output_tokens);
        native.put("parallel_tool_calls", settings.parallel_tool_calls);
        native.put("reasoning.effort", settings.reasoning_effort.as_deref());
        native.put("reasoning.summary", settings.reasoning_summary.as_deref());
        native
    }

    fn path(&self) -> String {
        "/responses".to_owned()
    }

    fn base_url(&self) -> &str {
        &self.base_url
    }

    fn encode(&self, request: &Request) -> Result<Encoded, Error> {
        encode::encode(self, request)
    }

    fn decoder(&self, request: &Request) -> Box<dyn codec::Decoder> {
        Box::new(Decoder::new(self, request))
    }

    fn refusal(&self, status: u16, body: &str) -> Error {
        refusal::of_status(&self.provider, status, body)
    }
}
