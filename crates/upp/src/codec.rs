//! What a provider's wire format is: a request written, an answer read. Pure; [`Provider`] sends.
//!
//! Each provider is one module with one [`Codec`]. A codec keeps what the provider said: content in
//! the canonical blocks of [`AssistantMessage`], and what these can't hold as items under the
//! provider's own namespace of the metadata, in the provider's order. When the conversation goes
//! back to the provider and model it came from, it goes back as it was; another provider or model
//! is sent what it may see, and the rest is listed as [`Omission`].
//!
//! [`AssistantMessage`]: crate::AssistantMessage
//! [`Provider`]: crate::Provider

mod answer;
mod body;
mod call_ids;
mod document;
mod end;
pub(crate) mod fields;
pub(crate) mod items;
mod origin;

pub(crate) use answer::{AnswerBuilder, made, order};
pub(crate) use body::{Conversation, tool_result_text};
pub use call_ids::CallIdForm;
pub(crate) use call_ids::CallIds;
pub(crate) use document::{document_text, file_name};
pub(crate) use end::{data, ended_early, invalid, is_truncated, structured, text};
pub(crate) use origin::{is_native, native_facts, native_metadata};

use crate::error::Error;
use crate::event::StreamEvent;
use crate::failure;
use crate::message::MessageId;
use crate::model::{Capabilities, Request, Response};
use crate::settings::{NativeSettings, Settings};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// One wire format, bound to a model.
pub trait Codec: Send + Sync + 'static {
    /// The provider's name: the namespace of its metadata, and the provider of errors.
    fn provider(&self) -> &str;

    /// The model's name at its provider.
    fn model_id(&self) -> &str;

    /// What the model can do.
    fn capabilities(&self) -> Capabilities;

    /// Settings in this provider's words, as parameters of a request.
    fn settings(&self, settings: &Settings) -> NativeSettings {
        settings.left_out()
    }

    /// The address of the endpoint below the base URL, such as `/chat/completions`.
    fn path(&self) -> String;

    /// The base URL, where the caller gives none.
    fn base_url(&self) -> &str;

    /// How the key travels.
    fn auth(&self) -> Auth {
        Auth::Bearer
    }

    /// Further headers, by name; the caller's own win over them.
    fn headers(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    /// How the answer's bytes are cut into frames.
    fn framing(&self) -> Framing {
        Framing::ServerSentEvents
    }

    /// Writes a streaming request.
    ///
    /// What can't be expressed is an error with [`Code::InvalidRequest`](crate::Code); what may not
    /// be shown to this provider is left out and listed.
    fn encode(&self, request: &Request) -> Result<Encoded, Error>;

    /// Reads the answer to this request.
    fn decoder(&self, request: &Request) -> Box<dyn Decoder>;

    /// The error of a response with a status other than 2xx.
    fn refusal(&self, status: u16, body: &str) -> Error {
        failure::of_status(self.provider(), status, body)
    }
}

/// How the key travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Auth {
    /// As `Authorization: Bearer …`.
    Bearer,
    /// Bare, in a header of this name.
    Header(&'static str),
}

/// How an answer's bytes are cut into frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// Server-sent events; a frame is an event's data.
    ServerSentEvents,
    /// One JSON text a line.
    Lines,
}

/// Folds the frames of one answer into events and, at the end, the response.
///
/// The result does not depend on how the bytes were cut.
pub trait Decoder: Send {
    /// Takes the data of one frame.
    fn push(&mut self, frame: &str) -> Result<Vec<StreamEvent>, Error>;

    /// Takes a whole answer that was not streamed.
    fn whole(&mut self, body: &str) -> Result<Vec<StreamEvent>, Error>;

    /// How far the answer is.
    fn progress(&self) -> CodecProgress;

    /// Ends the answer: the last events and the response. An answer that is cut off is an error.
    fn finish(self: Box<Self>) -> Result<(Vec<StreamEvent>, Response), Error>;
}

/// How far an answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodecProgress {
    /// More must come.
    Open,
    /// The model is done; only what a provider may leave out, such as usage, may follow.
    Answered,
    /// The provider says that nothing follows.
    Closed,
}

/// A request as it is sent.
///
/// The conversation stands last in the body, so that the bytes of a request begin with those of the
/// request before it as long as nothing was rewritten: what providers' prompt caches want.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Encoded {
    /// The body, JSON text.
    pub body: String,
    /// Where the messages of the conversation stand in the body, in order, each with the separator
    /// before it. What comes before the first is the head: model, parameters, tools, instructions.
    pub messages: Vec<Range<usize>>,
    /// What of the history was not sent.
    pub omitted: Vec<Omission>,
}

impl Encoded {
    /// The body up to the end of the last message: what the next request begins with.
    pub fn conversation(&self) -> &str {
        let end = self.messages.last().map_or(0, |range| range.end);
        self.body.get(..end).unwrap_or_default()
    }
}

/// Something of the history that a provider was not sent. The history still has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Omission {
    /// The message.
    pub message_id: MessageId,
    /// What: `reasoning`, `signature`, `provider_item`, `citation`, …
    pub what: String,
    /// Why, for a person.
    pub why: String,
}
