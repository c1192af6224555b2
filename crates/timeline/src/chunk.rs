//! Streamed chunks, typed. The log keeps a chunk as a type name and JSON; this module alone writes
//! and reads that form.

use crate::event::{Event, chunk_type};
use crate::ids::StepId;
use crate::payload::Payload;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::borrow::Cow;

/// Types of chunks in the order of their codes in stores, from 1. It never changes, except that new types
/// are added at the end. Stores write other types as text.
pub const CHUNK_TYPES: &[&str] = &[
    "text-start",
    "text-delta",
    "text-end",
    "reasoning-start",
    "reasoning-delta",
    "reasoning-end",
    "tool-input-start",
    "tool-input-delta",
    "tool-input-available",
    "tool-input-error",
    "tool-output-available",
    "tool-output-error",
    "start",
    "start-step",
    "finish-step",
    "finish",
    "error",
    "file",
    "source-url",
    "source-document",
    "data-context-id",
    "data-context-substate",
    "data-thread-ping",
    "data-step-response",
    "data-step-reset",
    "data-tool-started",
    "data-step-noted",
    "data-execution-resumed",
    "data-execution-parked",
    "data-thread-updated",
    "data-item-removed",
];

/// The type names of the chunks of a model's answer. They are those of the AI SDK's stream.
mod name {
    pub(super) const TEXT: [&str; 3] = ["text-start", "text-delta", "text-end"];
    pub(super) const REASONING: [&str; 3] = ["reasoning-start", "reasoning-delta", "reasoning-end"];
    pub(super) const TOOL_INPUT_START: &str = "tool-input-start";
    pub(super) const TOOL_INPUT_DELTA: &str = "tool-input-delta";
    pub(super) const SOURCE_URL: &str = "source-url";
    pub(super) const SOURCE_DOCUMENT: &str = "source-document";
    pub(super) const DATA: &str = "data-";
}

/// The two kinds of blocks that a model streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BlockKind {
    /// Reasoning before or between texts.
    Reasoning,
    /// Text of the answer.
    Text,
}

impl BlockKind {
    const fn names(self) -> [&'static str; 3] {
        match self {
            Self::Text => name::TEXT,
            Self::Reasoning => name::REASONING,
        }
    }

    const fn letter(self) -> char {
        match self {
            Self::Text => 't',
            Self::Reasoning => 'r',
        }
    }
}

/// Names one block of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockId<'a> {
    /// The id as the log has it: unique within a run.
    pub id: Cow<'a, str>,
    /// The position of the block in the model's answer; zero if the id does not contain it.
    pub index: u32,
}

impl<'a> BlockId<'a> {
    /// The id of the block at this position of the answer that a step of this iteration streams.
    pub fn new(kind: BlockKind, iteration: u32, index: u32) -> Self {
        let id = format!("{}{iteration}-{index}", kind.letter()).into();
        Self { id, index }
    }

    /// Reads a block id, which may come from another program.
    pub fn read(id: impl Into<Cow<'a, str>>) -> Self {
        let id = id.into();
        let index = id.rsplit_once('-').map(|(_, index)| index);
        let index = index.and_then(|index| index.parse().ok()).unwrap_or(0);
        Self { id, index }
    }

    /// The id with an owned text.
    pub fn into_owned(self) -> BlockId<'static> {
        BlockId {
            id: self.id.into_owned().into(),
            index: self.index,
        }
    }
}

/// The kind of an answer's source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceKind {
    /// A page on the web.
    Url,
    /// A document.
    Document,
}

/// Members of a chunk that this version does not name. Readers may pass them on.
pub type Extra = Option<Box<Map<String, Value>>>;

/// A streamed chunk (EK §8.1), decoded.
///
/// It borrows from the JSON that it was read from; texts without escapes are not copied.
#[derive(Clone, Debug, PartialEq)]
pub enum Chunk<'a> {
    /// A block of text or reasoning begins.
    BlockStart {
        /// Text or reasoning.
        kind: BlockKind,
        /// The block.
        block: BlockId<'a>,
        /// Unnamed members.
        extra: Extra,
    },
    /// A block grows by this text.
    BlockDelta {
        /// Text or reasoning.
        kind: BlockKind,
        /// The block.
        block: BlockId<'a>,
        /// The text to append.
        text: Cow<'a, str>,
        /// Unnamed members.
        extra: Extra,
    },
    /// A block is complete.
    BlockEnd {
        /// Text or reasoning.
        kind: BlockKind,
        /// The block.
        block: BlockId<'a>,
        /// Unnamed members.
        extra: Extra,
    },
    /// The model begins a tool call.
    ToolInputStart {
        /// The id of the call.
        tool_call_id: Cow<'a, str>,
        /// The name of the tool.
        tool_name: Cow<'a, str>,
        /// Unnamed members.
        extra: Extra,
    },
    /// The arguments of a call grow by this text.
    ToolInputDelta {
        /// The id of the call.
        tool_call_id: Cow<'a, str>,
        /// The text to append.
        text: Cow<'a, str>,
        /// Unnamed members.
        extra: Extra,
    },
    /// A source of the answer, as the AI SDK describes it.
    Source {
        /// Page or document.
        kind: SourceKind,
        /// The description.
        data: &'a Payload,
    },
    /// A marker: a chunk that state depends on.
    Marker(Marker<'a>),
    /// A sign of the runtime for the clients of EK: the context, its substate, a ping.
    Runtime {
        /// The chunk's type.
        chunk_type: &'a str,
        /// Its data.
        data: Option<&'a Payload>,
    },
    /// Data of an application: any other type that begins with `data-`.
    Data {
        /// The chunk's type, `data-` included.
        chunk_type: &'a str,
        /// Its data.
        data: Option<&'a Payload>,
    },
    /// Any other type; views ignore it.
    Other {
        /// The chunk's type.
        chunk_type: &'a str,
        /// Its data.
        data: Option<&'a Payload>,
    },
}

/// A chunk that state depends on. Only the runtime writes them, each by its own command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marker<'a> {
    /// The model has answered; the data describe the answer.
    StepResponse(Option<&'a Payload>),
    /// The attempt that streamed so far died. Its chunks and parts of this step are void.
    StepReset,
    /// An effect tool starts.
    ToolStarted(Option<&'a Payload>),
    /// The step keeps a note for its next attempt.
    StepNoted(Option<&'a Payload>),
    /// A process continues an execution that another process started.
    ExecutionResumed,
    /// The process that ran the execution shut down in order.
    ExecutionParked,
    /// The thread's title or metadata changed.
    ThreadUpdated(Option<&'a Payload>),
    /// Readers omit an item, step or compaction from here on.
    ItemRemoved(Option<&'a Payload>),
    /// A summary replaces the oldest runs when a model reads the thread.
    ThreadCompacted(Option<&'a Payload>),
}

impl<'a> Marker<'a> {
    fn decode(chunk_type: &str, data: Option<&'a Payload>) -> Option<Self> {
        Some(match chunk_type {
            chunk_type::STEP_RESPONSE => Self::StepResponse(data),
            chunk_type::STEP_RESET => Self::StepReset,
            chunk_type::TOOL_STARTED => Self::ToolStarted(data),
            chunk_type::STEP_NOTED => Self::StepNoted(data),
            chunk_type::EXECUTION_RESUMED => Self::ExecutionResumed,
            chunk_type::EXECUTION_PARKED => Self::ExecutionParked,
            chunk_type::THREAD_UPDATED => Self::ThreadUpdated(data),
            chunk_type::ITEM_REMOVED => Self::ItemRemoved(data),
            chunk_type::THREAD_COMPACTED => Self::ThreadCompacted(data),
            _ => return None,
        })
    }

    const fn chunk_type(self) -> &'static str {
        match self {
            Self::StepResponse(_) => chunk_type::STEP_RESPONSE,
            Self::StepReset => chunk_type::STEP_RESET,
            Self::ToolStarted(_) => chunk_type::TOOL_STARTED,
            Self::StepNoted(_) => chunk_type::STEP_NOTED,
            Self::ExecutionResumed => chunk_type::EXECUTION_RESUMED,
            Self::ExecutionParked => chunk_type::EXECUTION_PARKED,
            Self::ThreadUpdated(_) => chunk_type::THREAD_UPDATED,
            Self::ItemRemoved(_) => chunk_type::ITEM_REMOVED,
            Self::ThreadCompacted(_) => chunk_type::THREAD_COMPACTED,
        }
    }

    const fn data(self) -> Option<&'a Payload> {
        match self {
            Self::StepResponse(data)
            | Self::ToolStarted(data)
            | Self::StepNoted(data)
            | Self::ThreadUpdated(data)
            | Self::ItemRemoved(data)
            | Self::ThreadCompacted(data) => data,
            Self::StepReset | Self::ExecutionResumed | Self::ExecutionParked => None,
        }
    }
}

/// A chunk as it is written into the log: its type and its JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewChunk {
    /// Its type (EK §8.1, or a name of the AI SDK's stream).
    pub chunk_type: String,
    /// Its content.
    pub data: Option<Payload>,
}

/// The names of the last member of a delta's data, as this module writes them, with the quote of the text.
const DELTA_MEMBERS: [&str; 2] = [r#""delta":""#, r#""inputTextDelta":""#];

/// The data of a delta up to its text, and the text as it is escaped. `"}` follows it. `None` if the chunk is no delta,
/// or has another form than this module writes.
pub fn split_delta<'a>(chunk_type: &str, data: &'a Payload) -> Option<(&'a str, &'a str)> {
    if !chunk_type.ends_with("-delta") {
        return None;
    }
    let data = data.text();
    let mut members = DELTA_MEMBERS.iter();
    let start = members.find_map(|member| Some(data.find(member)? + member.len()))?;
    let (before, rest) = data.split_at_checked(start)?;
    Some((before, rest.strip_suffix("\"}")?))
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct BlockFields<'a> {
    #[serde(borrow)]
    id: Cow<'a, str>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct DeltaFields<'a> {
    #[serde(borrow)]
    id: Cow<'a, str>,
    #[serde(borrow)]
    delta: Cow<'a, str>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct CallFields<'a> {
    #[serde(borrow)]
    tool_call_id: Cow<'a, str>,
    #[serde(borrow)]
    tool_name: Cow<'a, str>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct CallDeltaFields<'a> {
    #[serde(borrow)]
    tool_call_id: Cow<'a, str>,
    #[serde(borrow)]
    input_text_delta: Cow<'a, str>,
}

/// The members of a chunk that has more or other members than the runtime writes.
struct Members(Map<String, Value>);

impl Members {
    fn read(data: &Payload) -> Option<Self> {
        let Value::Object(members) = data.value() else {
            return None;
        };
        Some(Self(members))
    }

    /// Removes and returns a text; empty if there is none.
    fn text(&mut self, key: &str) -> Cow<'static, str> {
        match self.0.shift_remove(key) {
            Some(Value::String(text)) => text.into(),
            Some(_) | None => "".into(),
        }
    }

    fn rest(self) -> Extra {
        (!self.0.is_empty()).then(|| Box::new(self.0))
    }
}

impl<'a> Chunk<'a> {
    /// Reads a chunk of a log. If its JSON does not have the shape of its type, it becomes
    /// [`Chunk::Other`].
    pub fn decode(chunk_type: &'a str, data: Option<&'a Payload>) -> Self {
        if let Some(marker) = Marker::decode(chunk_type, data) {
            return Self::Marker(marker);
        }
        match chunk_type {
            chunk_type::CONTEXT_ID | chunk_type::CONTEXT_SUBSTATE | chunk_type::THREAD_PING => {
                Self::Runtime { chunk_type, data }
            }
            _ if chunk_type.starts_with(name::DATA) => Self::Data { chunk_type, data },
            _ => data
                .and_then(|data| Self::of_model(chunk_type, data))
                .unwrap_or(Self::Other { chunk_type, data }),
        }
    }

    fn of_model(chunk_type: &str, data: &'a Payload) -> Option<Self> {
        for kind in [BlockKind::Text, BlockKind::Reasoning] {
            let [start, delta, end] = kind.names();
            if chunk_type == delta {
                return Self::delta(kind, data);
            }
            if chunk_type == start {
                let (block, extra) = block(data)?;
                return Some(Self::BlockStart { kind, block, extra });
            }
            if chunk_type == end {
                let (block, extra) = block(data)?;
                return Some(Self::BlockEnd { kind, block, extra });
            }
        }
        match chunk_type {
            name::TOOL_INPUT_START => Self::call_start(data),
            name::TOOL_INPUT_DELTA => Self::call_delta(data),
            name::SOURCE_URL => Self::source(SourceKind::Url, data),
            name::SOURCE_DOCUMENT => Self::source(SourceKind::Document, data),
            _ => None,
        }
    }

    fn source(kind: SourceKind, data: &'a Payload) -> Option<Self> {
        let is_object = data.text().starts_with('{');
        is_object.then_some(Self::Source { kind, data })
    }

    fn delta(kind: BlockKind, data: &'a Payload) -> Option<Self> {
        if let Ok(DeltaFields { id, delta }) = data.read() {
            return Some(Self::BlockDelta {
                kind,
                block: BlockId::read(id),
                text: delta,
                extra: None,
            });
        }
        let mut members = Members::read(data)?;
        Some(Self::BlockDelta {
            kind,
            block: BlockId::read(members.text("id")),
            text: members.text("delta"),
            extra: members.rest(),
        })
    }

    fn call_start(data: &'a Payload) -> Option<Self> {
        if let Ok(fields) = data.read::<CallFields<'a>>() {
            return Some(Self::ToolInputStart {
                tool_call_id: fields.tool_call_id,
                tool_name: fields.tool_name,
                extra: None,
            });
        }
        let mut members = Members::read(data)?;
        Some(Self::ToolInputStart {
            tool_call_id: members.text("toolCallId"),
            tool_name: members.text("toolName"),
            extra: members.rest(),
        })
    }

    fn call_delta(data: &'a Payload) -> Option<Self> {
        if let Ok(fields) = data.read::<CallDeltaFields<'a>>() {
            return Some(Self::ToolInputDelta {
                tool_call_id: fields.tool_call_id,
                text: fields.input_text_delta,
                extra: None,
            });
        }
        let mut members = Members::read(data)?;
        Some(Self::ToolInputDelta {
            tool_call_id: members.text("toolCallId"),
            text: members.text("inputTextDelta"),
            extra: members.rest(),
        })
    }

    /// The chunk's type, as the log names it.
    pub fn chunk_type(&self) -> &'a str {
        match self {
            Self::BlockStart { kind, .. } => kind.names()[0],
            Self::BlockDelta { kind, .. } => kind.names()[1],
            Self::BlockEnd { kind, .. } => kind.names()[2],
            Self::ToolInputStart { .. } => name::TOOL_INPUT_START,
            Self::ToolInputDelta { .. } => name::TOOL_INPUT_DELTA,
            Self::Source {
                kind: SourceKind::Url,
                ..
            } => name::SOURCE_URL,
            Self::Source {
                kind: SourceKind::Document,
                ..
            } => name::SOURCE_DOCUMENT,
            Self::Marker(marker) => marker.chunk_type(),
            Self::Runtime { chunk_type, .. }
            | Self::Data { chunk_type, .. }
            | Self::Other { chunk_type, .. } => chunk_type,
        }
    }

    /// The chunk as the log has it.
    pub fn encode(&self) -> NewChunk {
        NewChunk {
            chunk_type: self.chunk_type().to_owned(),
            data: self.data(),
        }
    }

    fn data(&self) -> Option<Payload> {
        match self {
            Self::BlockStart { block, extra, .. } | Self::BlockEnd { block, extra, .. } => {
                let id = Cow::Borrowed(block.id.as_ref());
                written(&BlockFields { id }, extra)
            }
            Self::BlockDelta {
                block, text, extra, ..
            } => {
                let (id, delta) = (block.id.as_ref().into(), text.as_ref().into());
                written(&DeltaFields { id, delta }, extra)
            }
            Self::ToolInputStart {
                tool_call_id,
                tool_name,
                extra,
            } => {
                let fields = CallFields {
                    tool_call_id: tool_call_id.as_ref().into(),
                    tool_name: tool_name.as_ref().into(),
                };
                written(&fields, extra)
            }
            Self::ToolInputDelta {
                tool_call_id,
                text,
                extra,
            } => {
                let fields = CallDeltaFields {
                    tool_call_id: tool_call_id.as_ref().into(),
                    input_text_delta: text.as_ref().into(),
                };
                written(&fields, extra)
            }
            Self::Source { data, .. } => Some((*data).clone()),
            Self::Marker(marker) => marker.data().cloned(),
            Self::Runtime { data, .. } | Self::Data { data, .. } | Self::Other { data, .. } => {
                data.cloned()
            }
        }
    }
}

impl From<Chunk<'_>> for NewChunk {
    fn from(chunk: Chunk<'_>) -> Self {
        chunk.encode()
    }
}

impl NewChunk {
    /// The chunk, decoded.
    pub fn decode(&self) -> Chunk<'_> {
        Chunk::decode(&self.chunk_type, self.data.as_ref())
    }
}

impl Event {
    /// The chunk that this event is and the step that streams it, if it is a chunk.
    pub fn chunk(&self) -> Option<(Option<&StepId>, Chunk<'_>)> {
        let Self::ChunkEmitted {
            chunk_type,
            step_id,
            data,
            ..
        } = self
        else {
            return None;
        };
        Some((step_id.as_ref(), Chunk::decode(chunk_type, data.as_ref())))
    }
}

fn block(data: &Payload) -> Option<(BlockId<'_>, Extra)> {
    if let Ok(BlockFields { id }) = data.read() {
        return Some((BlockId::read(id), None));
    }
    let mut members = Members::read(data)?;
    let id = BlockId::read(members.text("id"));
    Some((id, members.rest()))
}

/// The JSON of these fields, and of unnamed members after them.
fn written<T: Serialize>(fields: &T, extra: &Extra) -> Option<Payload> {
    let Some(extra) = extra else {
        return Payload::write(fields).ok();
    };
    let mut value = serde_json::to_value(fields).ok()?;
    value.as_object_mut()?.extend((**extra).clone());
    Some(value.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn round_trip(chunk_type: &str, data: Value) -> NewChunk {
        let chunk = NewChunk {
            chunk_type: chunk_type.to_owned(),
            data: Some(data.into()),
        };
        assert_eq!(chunk.decode().encode(), chunk);
        chunk
    }

    #[test]
    fn a_chunk_of_any_type_is_encoded_as_it_was_decoded() {
        for (chunk_type, data) in [
            ("text-start", json!({"id": "t0-1"})),
            ("text-delta", json!({"id": "t0-1", "delta": "a\n\"ä"})),
            ("reasoning-delta", json!({"id": "r2-0", "delta": ""})),
            ("reasoning-end", json!({"id": "mine", "signature": "s"})),
            (
                "tool-input-start",
                json!({"toolCallId": "c", "toolName": "add"}),
            ),
            (
                "tool-input-delta",
                json!({"toolCallId": "c", "inputTextDelta": "{"}),
            ),
            (
                "source-url",
                json!({"sourceId": "s", "url": "https://a.example"}),
            ),
            ("data-weather", json!({"data": {"sun": true}})),
            ("data-context-substate", json!({"key": null})),
            ("data-step-response", json!({"model": "m"})),
            ("file", json!({"url": "data:,"})),
        ] {
            round_trip(chunk_type, data);
        }
    }

    #[test]
    fn a_delta_tells_the_position_of_its_block() {
        let chunk = round_trip("text-delta", json!({"id": "t0-3", "delta": "hi"}));
        let Chunk::BlockDelta {
            kind, block, text, ..
        } = chunk.decode()
        else {
            unreachable!("a text delta is a delta of a block");
        };
        assert_eq!(
            (kind, block.index, text.as_ref()),
            (BlockKind::Text, 3, "hi")
        );
        assert_eq!(block, BlockId::new(BlockKind::Text, 0, 3));
    }

    #[test]
    fn a_delta_with_other_members_keeps_them() {
        let chunk = round_trip("text-delta", json!({"id": "x", "delta": "hi", "more": 1}));
        let Chunk::BlockDelta { block, extra, .. } = chunk.decode() else {
            unreachable!("a text delta is a delta of a block");
        };
        assert_eq!((block.id.as_ref(), block.index), ("x", 0));
        assert_eq!(extra.map(|extra| extra.len()), Some(1));
    }

    #[test]
    fn a_chunk_of_another_shape_is_shown_by_no_view() {
        for data in [None, Some(Payload::from(json!("text")))] {
            let chunk = Chunk::decode("text-delta", data.as_ref());
            assert!(matches!(chunk, Chunk::Other { .. }), "{chunk:?}");
        }
    }
}
