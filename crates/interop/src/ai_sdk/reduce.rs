//! A message from the chunks of its stream, as the client of `ai` builds it.
//!
//! [`Reducer`] takes one chunk at a time and can show the message after each. It behaves like the
//! client of its major version, including which chunks update the display. [`StreamFacts`] has the
//! facts of a stream that are not in its message.

mod approvals;
mod blocks;
mod error;
mod facts;
mod metadata;
mod parts;
mod tools;
mod update;

pub use error::ReduceError;
pub use facts::{Aborted, Reduced, StreamError, StreamFacts};

use super::chunk::{ChunkType, Major, check_fields, check_needed, chunk_type, is_set, some, text};
use error::ChunkError;
use facts::Facts;
use parts::Parts;
use serde_json::Value;
use std::collections::BTreeMap;
use thread::{Json, Object};
use tools::Call;

/// The result of pushing a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pushed {
    /// Whether clients redraw the message after this chunk.
    pub visible: bool,
}

/// Builds a message from the chunks of its stream.
///
/// The cost of a chunk depends on the chunk's length only, not on the message's.
///
/// ```
/// use loomline_interop::ai_sdk::{Major, Reducer};
/// use thread::Json;
///
/// let mut reducer = Reducer::new(Major::V7, None);
/// for chunk in [r#"{"type":"text-start","id":"t"}"#, r#"{"type":"text-delta","id":"t","delta":"hi"}"#] {
///     assert!(reducer.push(&Json::parse(chunk)?)?.visible);
/// }
/// let parts = r#"[{"type":"text","text":"hi","state":"streaming"}]"#;
/// assert_eq!(reducer.message().get("parts"), Some(&Json::parse(parts)?));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Reducer {
    major: Major,
    checked: bool,
    renames: bool,
    /// The message without its parts.
    head: Object,
    parts: Parts,
    /// The blocks that are open: texts, then reasonings, by id.
    open: [BTreeMap<String, usize>; 2],
    /// The calls whose input streams, or did.
    calls: BTreeMap<String, Call>,
    facts: Facts,
    /// How many parts are shown.
    shown: usize,
    written: bool,
    place: usize,
    /// The place of the chunk that was refused.
    refused: Option<usize>,
}

impl Reducer {
    /// Starts a stream for clients of `major`. `message` is the last message of the chat. The stream
    /// may continue it if it is the assistant's.
    #[must_use]
    pub fn new(major: Major, message: Option<Json>) -> Self {
        let given = message.and_then(Json::into_object).unwrap_or_default();
        let mut reducer = Self {
            major,
            checked: false,
            renames: false,
            head: Object::new(),
            parts: Parts::default(),
            open: [BTreeMap::new(), BTreeMap::new()],
            calls: BTreeMap::new(),
            facts: Facts::default(),
            shown: 0,
            written: false,
            place: 0,
            refused: None,
        };
        if given.get_str("role") == Some("assistant") {
            reducer.continue_from(given);
        } else {
            let id = given.get("id").filter(|id| !id.is_null()).cloned();
            reducer.begin(id.unwrap_or_else(|| "".into()));
        }
        reducer
    }

    /// Also refuses chunks with fields that the client's schema refuses, not only those that lack
    /// what is needed.
    #[must_use]
    pub fn checked(mut self) -> Self {
        self.checked = true;
        self
    }

    /// Retains the parts of the supplied message when the stream starts a message with another id. A
    /// chat does so after posting. Without this, the parts are dropped, as when a chat resumes a
    /// stream.
    #[must_use]
    pub fn renaming(mut self) -> Self {
        self.renames = true;
        self
    }

    fn begin(&mut self, id: Json) {
        self.head = Object::new().with("id", id).with("role", "assistant");
        self.parts = Parts::default();
        self.forget();
        self.shown = 0;
    }

    fn forget(&mut self) {
        self.open = [BTreeMap::new(), BTreeMap::new()];
        self.calls = BTreeMap::new();
    }

    /// Pushes a chunk. If the client would fail on it, this fails too. The message then stays as it
    /// was shown, and every later chunk is refused.
    pub fn push(&mut self, chunk: &Json) -> Result<Pushed, ReduceError> {
        if let Some(place) = self.refused {
            return Err(ReduceError::Over { place });
        }
        match self.take(chunk) {
            Ok(visible) => {
                self.place += 1;
                if visible {
                    self.written = true;
                    self.shown = self.parts.len();
                }
                Ok(Pushed { visible })
            }
            Err(fault) => {
                self.refused = Some(self.place);
                Err(fault.at(self.place, chunk))
            }
        }
    }

    /// Records the stream's end marker (`[DONE]`).
    pub fn done(&mut self) {
        self.facts.facts.done_seen = true;
    }

    /// The message as it is shown.
    #[must_use]
    pub fn message(&self) -> Json {
        let parts = self.parts.items().get(..self.shown).unwrap_or_default();
        let mut parts = parts.to_vec();
        for call in self.calls.values() {
            call.show_in(&mut parts);
        }
        Json::Object(self.head.clone().with("parts", Json::Array(parts)))
    }

    /// The final message, and the stream's other facts.
    #[must_use]
    pub fn finish(mut self) -> Reduced {
        let mut parts = self.parts.into_items();
        for call in self.calls.values() {
            call.show_in(&mut parts);
        }
        self.facts.close_step(parts.len());
        parts.truncate(self.shown);
        let facts = self.facts.facts_of(self.shown);
        self.head.insert("parts", Json::Array(parts));
        Reduced {
            message: self.written.then_some(Json::Object(self.head)),
            facts,
        }
    }

    /// Whether the chunk changes what is shown.
    fn take(&mut self, chunk: &Json) -> Result<bool, ChunkError> {
        let kind = chunk_type(chunk, self.major)?;
        if self.checked {
            check_fields(chunk, kind, self.major)?;
        } else {
            check_needed(chunk, kind, self.major)?;
        }
        match kind {
            ChunkType::BlockDelta(block) => self.grow_block(block, chunk)?,
            ChunkType::ToolInputDelta => self.grow_input(chunk)?,
            ChunkType::BlockStart(block) => self.start_block(block, chunk),
            ChunkType::BlockEnd(block) => self.end_block(block, chunk)?,
            ChunkType::ToolInputStart => self.start_input(chunk),
            ChunkType::ToolInputAvailable => self.give_input(chunk),
            ChunkType::ToolInputError => self.refuse_input(chunk),
            ChunkType::ToolOutputAvailable => self.give_output(chunk)?,
            ChunkType::ToolOutputError => self.give_error(chunk)?,
            ChunkType::ToolOutputDenied => self.deny_output(chunk)?,
            ChunkType::ToolApprovalRequest => self.request_approval(chunk)?,
            ChunkType::ToolApprovalResponse => self.respond_to_approval(chunk)?,
            ChunkType::SourceUrl => self.push_part(chunk, &["sourceId", "url", "title", METADATA]),
            ChunkType::SourceDocument => {
                let fields = ["sourceId", "mediaType", "title", "filename", METADATA];
                self.push_part(chunk, &fields);
            }
            // `ai` 5 keeps no metadata of files.
            ChunkType::File if self.major == Major::V5 => {
                self.push_part(chunk, &["mediaType", "url"]);
            }
            ChunkType::File | ChunkType::ReasoningFile => {
                self.push_part(chunk, &["mediaType", "url", METADATA]);
            }
            ChunkType::Custom => self.push_part(chunk, &["kind", METADATA]),
            ChunkType::SteeringMessage => self.push_part(chunk, &["id", "parts"]),
            ChunkType::Data => return Ok(self.data(chunk)),
            ChunkType::StartStep => {
                self.facts.start_step(self.parts.len());
                self.parts.push(Object::new().with("type", "step-start"));
                return Ok(false);
            }
            ChunkType::FinishStep => {
                self.facts.close_step(self.parts.len());
                if self.major < Major::V7 {
                    self.open = [BTreeMap::new(), BTreeMap::new()];
                }
                return Ok(false);
            }
            ChunkType::ResetStep => return Ok(self.reset_step()),
            ChunkType::Start => return self.start(chunk),
            ChunkType::MessageMetadata => return self.merge_metadata(chunk),
            ChunkType::Finish => {
                let visible = self.merge_metadata(chunk)?;
                self.facts.finish(chunk);
                return Ok(visible);
            }
            ChunkType::Error => {
                self.facts.error(self.parts.len(), text(chunk, "errorText"));
                return Ok(false);
            }
            ChunkType::Abort => {
                self.facts.abort(chunk);
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn start(&mut self, chunk: &Json) -> Result<bool, ChunkError> {
        let id = some(chunk, "messageId");
        let another = id.filter(|id| !self.renames && self.head.get("id") != Some(*id));
        if let Some(id) = another {
            self.begin(id.clone());
            self.facts.restart();
        }
        let merged = self.merge_metadata(chunk)?;
        if let Some(id) = id {
            self.head.insert("id", id.clone());
        }
        Ok(merged || id.is_some())
    }

    fn merge_metadata(&mut self, chunk: &Json) -> Result<bool, ChunkError> {
        let Some(more) = some(chunk, "messageMetadata") else {
            return Ok(false);
        };
        match self
            .head
            .get_mut("metadata")
            .filter(|known| !known.is_null())
        {
            Some(known) => metadata::merge(known, more)?,
            None => {
                self.head.insert("metadata", more.clone());
            }
        }
        Ok(true)
    }

    /// A part of the fields of its chunk.
    fn push_part(&mut self, chunk: &Json, fields: &[&str]) {
        let mut part = Object::new().with("type", text(chunk, "type"));
        for field in fields {
            if let Some(value) = some(chunk, field) {
                part.insert(*field, value.clone());
            }
        }
        self.parts.push(part);
    }

    fn data(&mut self, chunk: &Json) -> bool {
        if is_set(chunk, "transient") {
            self.facts.facts.transient.push(chunk.clone());
            return false;
        }
        let known = chunk.get("id").and_then(Json::as_str);
        let known = known.and_then(|id| self.parts.data(text(chunk, "type"), id));
        if let Some(part) = known.and_then(|place| self.parts.get_mut(place)) {
            if let Some(data) = chunk.get("data") {
                part.insert("data", data.clone());
            }
        } else if let Some(part) = chunk.as_object() {
            self.parts.push(part.clone());
        }
        true
    }

    fn reset_step(&mut self) -> bool {
        for call in self.calls.values() {
            call.show_in(self.parts.items_mut());
        }
        self.forget();
        let removed = self.parts.reset_step();
        self.facts.reset_step(self.parts.len());
        removed
    }
}

const METADATA: &str = "providerMetadata";

/// Sets the metadata of a part where its chunk has some.
fn put_metadata(part: &mut Object, chunk: &Json) {
    if let Some(metadata) = some(chunk, METADATA) {
        part.insert(METADATA, metadata.clone());
    }
}

/// Builds the message of a whole stream, as clients of `ai` 7 do.
pub fn reduce<'a>(chunks: impl IntoIterator<Item = &'a Value>) -> Result<Value, ReduceError> {
    let mut reducer = Reducer::new(Major::NEWEST, None);
    for chunk in chunks {
        reducer.push(&Json::from(chunk.clone()))?;
    }
    // What came from such values goes back into them.
    Ok(reducer.message().to_value().unwrap_or_default())
}
