//! The Messages format of Anthropic, which some other hosts support too (UPP §17.1).
//!
//! Blocks appear in the order in which the model wrote them. A `text` block becomes text. A `thinking`
//! block becomes reasoning with its signature, a `tool_use` block a tool call. All other blocks
//! (`redacted_thinking`, server tools and their results, citations, unknown blocks) are stored in the
//! message's metadata and sent back unchanged. The metadata also has the fields of the answer: `model`,
//! `stop_reason`, `stop_sequence`, `stop_details`, `container` and all others. Unknown events are listed
//! under `events`.
//!
//! | `stop_reason` | [`StopReason`](crate::StopReason) |
//! |---|---|
//! | `end_turn`, `stop_sequence` | `EndTurn` |
//! | `max_tokens`, `model_context_window_exceeded` | `MaxTokens` |
//! | `tool_use` | `ToolUse` |
//! | `refusal` | `ContentFilter` |
//! | `pause_turn` and any other | `Other`; send the conversation again to continue |
//!
//! The vendor counts prompt tokens in three disjoint classes: not cached, read from the cache, written
//! to the cache. Our `input_tokens` is their sum.
//!
//! Parameters are sent unchanged. Parameters that UPP has too are merged. Native tools of `tools` (see
//! [`tools`]) come after the request's tools, and blocks of `system` after its instructions.
//! `disable_parallel_tool_use` is added to the tool choice, `effort` to the output format. The metadata
//! of messages and tools may have a `cache_control` under the provider's name. A tool's metadata may
//! have any other field of a tool as well.

mod assistant;
mod blocks;
mod content;
mod decode;
mod encode;
mod failure;
mod head;
pub mod tools;

use crate::codec::{self, Auth, Codec, Encoded};
use crate::error::Error;
use crate::model::{Capabilities, Request};
use crate::settings::{NativeSettings, SAMPLING, Settings};
use serde_json::Value;

/// The name of the tool that represents the structure under [`StructureForm::ForcedTool`].
pub(crate) const ANSWER_TOOL: &str = "json_response";

/// How a request demands a structured answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StructureForm {
    /// As `output_config.format`; the tools stay usable.
    #[default]
    OutputFormat,
    /// As a tool named `json_response` that the model must call, for hosts without an output format. The
    /// tool's input becomes text of the message, not a call. If the request has other tools, the model
    /// must call one of them or this one.
    ForcedTool,
}

/// A model behind the Messages format.
#[derive(Clone, Debug, PartialEq)]
pub struct Anthropic {
    /// The model.
    pub model_id: String,
    /// The provider's name in errors and metadata.
    pub provider: String,
    /// The usual prefix of the endpoint's address.
    pub base_url: String,
    /// How the key is sent; `x-api-key` by default.
    pub auth: Auth,
    /// The format's version: the header `anthropic-version`.
    pub version: String,
    /// Features that are in beta: the header `anthropic-beta`.
    pub betas: Vec<String>,
    /// `max_tokens` of a request whose parameters have none. The vendor requires it: without either, the
    /// request fails here.
    pub default_max_tokens: Option<u64>,
    /// How a request demands a structured answer.
    pub structure_form: StructureForm,
    /// The cache marker after the instructions, such as `{"type": "ephemeral"}`.
    pub system_cache_control: Option<Value>,
    /// Whether the model's own reasoning is sent back even without a signature. Anthropic refuses that;
    /// other hosts may not sign at all.
    pub resend_unsigned: bool,
    /// Whether the models accept documents. Anthropic's do; for other hosts it is unknown.
    pub takes_documents: bool,
}

impl Anthropic {
    /// A model of Anthropic.
    pub fn new(model_id: impl Into<String>) -> Self {
        Self {
            model_id: model_id.into(),
            provider: "anthropic".to_owned(),
            base_url: "https://api.anthropic.com/v1".to_owned(),
            auth: Auth::Header("x-api-key"),
            version: "2023-06-01".to_owned(),
            betas: Vec::new(),
            default_max_tokens: None,
            structure_form: StructureForm::default(),
            system_cache_control: None,
            resend_unsigned: false,
            takes_documents: true,
        }
    }

    /// A model of another host of this format, such as `xai` at `https://api.x.ai/v1`. Reasoning is sent
    /// back without a signature too, a structure is requested with a tool, and documents are refused.
    pub fn compatible(
        provider: impl Into<String>,
        base_url: impl Into<String>,
        model_id: impl Into<String>,
    ) -> Self {
        Self {
            provider: provider.into(),
            base_url: base_url.into(),
            structure_form: StructureForm::ForcedTool,
            resend_unsigned: true,
            takes_documents: false,
            ..Self::new(model_id)
        }
    }

    /// Requests beta features.
    #[must_use]
    pub fn with_betas(mut self, betas: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.betas.extend(betas.into_iter().map(Into::into));
        self
    }

    /// Sets `max_tokens` for requests whose parameters have none.
    #[must_use]
    pub fn with_default_max_tokens(mut self, tokens: u64) -> Self {
        self.default_max_tokens = Some(tokens);
        self
    }

    /// Sets how a request demands a structured answer.
    #[must_use]
    pub fn with_structure_form(mut self, form: StructureForm) -> Self {
        self.structure_form = form;
        self
    }

    /// Sets the cache marker after the instructions.
    #[must_use]
    pub fn with_system_cache_control(mut self, cache_control: Value) -> Self {
        self.system_cache_control = Some(cache_control);
        self
    }
}

impl Codec for Anthropic {
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
            document_input: self.takes_documents,
            video_input: false,
            audio_input: false,
        }
    }

    fn settings(&self, settings: &Settings) -> NativeSettings {
        let [temperature, top_p, ..] = SAMPLING;
        let mut native = NativeSettings::default();
        native.put(temperature, settings.temperature);
        native.put(top_p, settings.top_p);
        native.put("max_tokens", settings.max_output_tokens);
        let apart = settings.parallel_tool_calls.map(|parallel| !parallel);
        native.put("tool_choice.disable_parallel_tool_use", apart);
        native.leave_out("presence_penalty", settings.presence_penalty.as_ref());
        native.leave_out("frequency_penalty", settings.frequency_penalty.as_ref());
        native.leave_out("reasoning_effort", settings.reasoning_effort.as_ref());
        native.leave_out("reasoning_summary", settings.reasoning_summary.as_ref());
        native
    }

    fn path(&self) -> String {
        "/messages".to_owned()
    }

    fn base_url(&self) -> &str {
        &self.base_url
    }

    fn auth(&self) -> Auth {
        self.auth
    }

    fn headers(&self) -> Vec<(String, String)> {
        let mut headers = vec![("anthropic-version".to_owned(), self.version.clone())];
        if !self.betas.is_empty() {
            headers.push(("anthropic-beta".to_owned(), self.betas.join(",")));
        }
        headers
    }

    fn encode(&self, request: &Request) -> Result<Encoded, Error> {
        encode::encode(self, request)
    }

    fn decoder(&self, request: &Request) -> Box<dyn codec::Decoder> {
        let structure = request.structure.is_some().then_some(self.structure_form);
        Box::new(decode::Decoder::new(
            &self.provider,
            &self.model_id,
            structure,
        ))
    }

    fn refusal(&self, status: u16, body: &str) -> Error {
        failure::of_status(&self.provider, status, body)
    }
}
