//! A provider's wire format: writes a request and reads an answer. Pure; [`Provider`] sends.
//!
//! Each provider is one module with one [`Codec`]. A codec stores the provider's content in the
//! canonical blocks of [`AssistantMessage`]. Content without a canonical block becomes items under the
//! provider's namespace of the metadata, in the provider's order. The provider and model of a
//! conversation receive it back unchanged. Another provider or model receives what it may see; the
//! rest is listed as [`Omission`].
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

    /// The model's capabilities.
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
    /// Fails with [`Code::InvalidRequest`](crate::Code) if the format can't express the request. Content
    /// that this provider may not see is left out and listed.
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
/// The conversation comes last in the body. So a request begins with the bytes of the previous one
/// unless the history was rewritten, and the provider's prompt cache can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Encoded {
    /// The body, JSON text.
    pub body: String,
    /// The byte ranges of the conversation's messages in the body, in order, each with the separator
    /// before it. The bytes before the first range are the head: model, parameters, tools, instructions.
    pub messages: Vec<Range<usize>>,
    /// The parts of the history that were not sent.
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
    /// The type of content: `reasoning`, `signature`, `provider_item`, `citation`, …
    pub what: String,
    /// Why, for a person.
    pub why: String,
}
