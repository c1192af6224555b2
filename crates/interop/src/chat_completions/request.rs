//! The request `POST /chat/completions`.

use super::message::{HistoryMessage, messages};
use super::options::options;
use crate::options::RunOptions;
use crate::responses::fields::{Fields, invalid};
use crate::responses::{Continues, CreateRequest, RequestError};
use serde_json::Value;

/// Names the thread of a request, among its metadata.
const THREAD: &str = "thread";

/// A request for a completion, read and checked.
#[derive(Clone, Debug, PartialEq)]
pub struct CompletionRequest {
    /// The key of the thread that `metadata.thread` names.
    pub thread: Option<String>,
    /// The messages, in order; one at least.
    pub messages: Vec<HistoryMessage>,
    /// How the run differs from what its agent is configured to do.
    pub options: RunOptions,
    /// Whether the answer is a stream of chunks.
    pub stream: bool,
    /// Whether the last chunk of a stream has the usage.
    pub include_usage: bool,
    /// Whether the client asks to keep the completion. Only a thread keeps one.
    pub store: bool,
}

impl CompletionRequest {
    /// Reads the body of a request.
    ///
    /// # Errors
    ///
    /// A member that is wrong, or that no run can meet, with its place.
    pub fn read(body: &Value) -> Result<Self, RequestError> {
        let fields = Fields::of(body, "")?;
        let messages = messages(&fields)?;
        let options = options(&fields)?;
        let stream = fields.flag("stream")?.unwrap_or(false);
        let mut include_usage = false;
        if let Some(of) = fields.object("stream_options")? {
            if !stream {
                let expected = "expected no value where \"stream\" is not true";
                return Err(invalid(fields.at("stream_options"), expected));
            }
            include_usage = of.flag("include_usage")?.unwrap_or(false);
            // Padding against guesses at the length of tokens: the log's pieces are no tokens.
            of.flag("include_obfuscation")?;
        }
        let metadata = fields.object("metadata")?;
        let thread = metadata.and_then(|it| it.get(THREAD)?.as_str().map(str::to_owned));
        Ok(Self {
            thread,
            messages,
            options,
            stream,
            include_usage,
            store: fields.flag("store")?.unwrap_or(false),
        })
    }

    /// The request as one for a run without a thread: all of its messages are imported.
    pub fn create(&self) -> CreateRequest {
        self.request(Continues::Nothing, &self.messages, false)
    }

    /// The request as one for a run on the thread of this key, to which these messages are added.
    pub fn create_on(&self, key: &str, added: &[HistoryMessage]) -> CreateRequest {
        let continues = Continues::Conversation {
            id: key.to_owned(),
            thread: key.to_owned(),
        };
        self.request(continues, added, true)
    }

    fn request(
        &self,
        continues: Continues,
        messages: &[HistoryMessage],
        store: bool,
    ) -> CreateRequest {
        CreateRequest {
            continues,
            input: messages.iter().flat_map(HistoryMessage::items).collect(),
            options: self.options.clone(),
            stream: self.stream,
            background: false,
            store,
            input_at: "/messages",
        }
    }
}
