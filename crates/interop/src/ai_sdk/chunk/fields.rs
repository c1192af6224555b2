//! The rules of the clients' schemas for the fields of a chunk.

use super::shape::Shape;
use super::{Block, ChunkType, Major};
use thread::Json;

/// Why a client refuses a chunk.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FieldFault {
    /// The chunk is no object.
    #[error("it is of type {found}, expected an object")]
    NotAnObject {
        /// The type of it.
        found: &'static str,
    },
    /// The type is not one that clients of this version know.
    #[error("its type {kind:?} is unknown, expected one of ai {major:?}")]
    UnknownType {
        /// The type.
        kind: String,
        /// The version of the client.
        major: Major,
    },
    /// A field is missing, or is not what it must be.
    #[error("{field} is {}, expected {expected}", found.unwrap_or("missing"))]
    Field {
        /// The field.
        field: &'static str,
        /// The expected value.
        expected: &'static str,
        /// The type found.
        found: Option<&'static str>,
    },
}

/// Checks that clients of `major` accept this chunk: its type is known and every field that they read
/// fits their schema. Unknown fields are allowed.
pub fn check_chunk(chunk: &Json, major: Major) -> Result<(), FieldFault> {
    let kind = chunk_type(chunk, major)?;
    check_fields(chunk, kind, major)
}

/// The type of a chunk.
pub(in crate::ai_sdk) fn chunk_type(chunk: &Json, major: Major) -> Result<ChunkType, FieldFault> {
    if chunk.as_object().is_none() {
        let found = chunk.type_name();
        return Err(FieldFault::NotAnObject { found });
    }
    let name = chunk.get("type");
    let Some(kind) = name.and_then(Json::as_str) else {
        return Err(FieldFault::Field {
            field: "type",
            expected: "a string",
            found: name.map(Json::type_name),
        });
    };
    ChunkType::known(kind, major).ok_or_else(|| FieldFault::UnknownType {
        kind: kind.to_owned(),
        major,
    })
}

struct Field {
    name: &'static str,
    shape: Shape,
    needed: bool,
    since: Major,
}

const fn need(name: &'static str, shape: Shape) -> Field {
    Field {
        name,
        shape,
        needed: true,
        since: Major::V5,
    }
}

const fn may(name: &'static str, shape: Shape) -> Field {
    may_from(Major::V5, name, shape)
}

const fn may_from(since: Major, name: &'static str, shape: Shape) -> Field {
    Field {
        name,
        shape,
        needed: false,
        since,
    }
}

const METADATA: Field = may("providerMetadata", Shape::Metadata);
const METADATA_6: Field = may_from(Major::V6, "providerMetadata", Shape::Metadata);
const TOOL_METADATA: Field = may_from(Major::V6, "toolMetadata", Shape::Object);
const TITLE: Field = may_from(Major::V6, "title", Shape::Text);
const EXECUTED: Field = may("providerExecuted", Shape::Flag);
const DYNAMIC: Field = may("dynamic", Shape::Flag);
const CALL: Field = need("toolCallId", Shape::Text);
const NAME: Field = need("toolName", Shape::Text);
const ERROR: Field = need("errorText", Shape::Text);
const ID: Field = need("id", Shape::Text);
const URL: Field = need("url", Shape::Text);
const MEDIA_TYPE: Field = need("mediaType", Shape::Text);

const WORDS: Shape = Shape::Word(&["json", "text"], "`json` or `text`");
const ENCODING: Field = may_from(Major::V6, "inputEncoding", WORDS);
const CITATIONS: Field = may_from(Major::V7, "citations", Shape::Citations);
const INPUT: Field = need("input", Shape::Any);
const APPROVAL: Field = need("approvalId", Shape::Text);
const SOURCE: Field = need("sourceId", Shape::Text);
const TOLD: Field = may("messageMetadata", Shape::Any);

const START: &[Field] = &[may("messageId", Shape::Text), TOLD];
const BLOCK: &[Field] = &[ID, METADATA];
const BLOCK_DELTA: &[Field] = &[ID, need("delta", Shape::Text), METADATA];
const TEXT_END: &[Field] = &[ID, METADATA, CITATIONS];
const TOOL_INPUT_START: &[Field] = &[
    CALL,
    NAME,
    EXECUTED,
    DYNAMIC,
    METADATA_6,
    TOOL_METADATA,
    TITLE,
    ENCODING,
];
const TOOL_INPUT_DELTA: &[Field] = &[CALL, need("inputTextDelta", Shape::Text)];
const TOOL_INPUT_AVAILABLE: &[Field] = &[
    CALL,
    NAME,
    INPUT,
    EXECUTED,
    DYNAMIC,
    METADATA,
    TOOL_METADATA,
    TITLE,
];
const TOOL_INPUT_ERROR: &[Field] = &[
    CALL,
    NAME,
    INPUT,
    ERROR,
    EXECUTED,
    DYNAMIC,
    METADATA,
    TOOL_METADATA,
    TITLE,
];
const TOOL_APPROVAL_REQUEST: &[Field] = &[
    APPROVAL,
    CALL,
    may_from(Major::V7, "reason", Shape::Text),
    may_from(Major::V7, "isAutomatic", Shape::Flag),
    may("signature", Shape::Text),
];
const TOOL_APPROVAL_RESPONSE: &[Field] = &[
    APPROVAL,
    need("approved", Shape::Flag),
    may("reason", Shape::Text),
    EXECUTED,
    METADATA,
];
const TOOL_OUTPUT_AVAILABLE: &[Field] = &[
    CALL,
    need("output", Shape::Any),
    may("preliminary", Shape::Flag),
    EXECUTED,
    DYNAMIC,
    METADATA_6,
    TOOL_METADATA,
];
const TOOL_OUTPUT_ERROR: &[Field] = &[CALL, ERROR, EXECUTED, DYNAMIC, METADATA_6, TOOL_METADATA];
const SOURCE_URL: &[Field] = &[SOURCE, URL, may("title", Shape::Text), METADATA];
const SOURCE_DOCUMENT: &[Field] = &[
    SOURCE,
    MEDIA_TYPE,
    need("title", Shape::Text),
    may("filename", Shape::Text),
    METADATA,
];
const FILE: &[Field] = &[URL, MEDIA_TYPE, METADATA];
const CUSTOM: &[Field] = &[need("kind", Shape::Text), METADATA];
const STEERING: &[Field] = &[ID, need("parts", Shape::Steering)];
const DATA: &[Field] = &[
    need("data", Shape::Any),
    may("id", Shape::Text),
    may("transient", Shape::Flag),
];
const ABORT: &[Field] = &[may_from(Major::V6, "reason", Shape::Text)];
const FINISH_5: &[Field] = &[reason(Some("unknown")), TOLD];
const FINISH_6: &[Field] = &[reason(None), TOLD];
const FINISH_7: &[Field] = &[reason(Some("interrupted")), TOLD];

/// The finish reasons that every client knows, and one more.
const fn reason(more: Option<&'static str>) -> Field {
    may("finishReason", Shape::Reason(more))
}

/// The fields of a type that a client reads.
fn fields(kind: ChunkType, major: Major) -> &'static [Field] {
    match kind {
        ChunkType::StartStep | ChunkType::FinishStep | ChunkType::ResetStep => &[],
        ChunkType::Start => START,
        ChunkType::BlockStart(_) | ChunkType::BlockEnd(Block::Reasoning) => BLOCK,
        ChunkType::BlockDelta(_) => BLOCK_DELTA,
        ChunkType::BlockEnd(Block::Text) => TEXT_END,
        ChunkType::ToolInputStart => TOOL_INPUT_START,
        ChunkType::ToolInputDelta => TOOL_INPUT_DELTA,
        ChunkType::ToolInputAvailable => TOOL_INPUT_AVAILABLE,
        ChunkType::ToolInputError => TOOL_INPUT_ERROR,
        ChunkType::ToolApprovalRequest => TOOL_APPROVAL_REQUEST,
        ChunkType::ToolApprovalResponse => TOOL_APPROVAL_RESPONSE,
        ChunkType::ToolOutputAvailable => TOOL_OUTPUT_AVAILABLE,
        ChunkType::ToolOutputError => TOOL_OUTPUT_ERROR,
        ChunkType::ToolOutputDenied => const { &[CALL] },
        ChunkType::SourceUrl => SOURCE_URL,
        ChunkType::SourceDocument => SOURCE_DOCUMENT,
        ChunkType::File | ChunkType::ReasoningFile => FILE,
        ChunkType::Custom => CUSTOM,
        ChunkType::SteeringMessage => STEERING,
        ChunkType::Data => DATA,
        ChunkType::MessageMetadata => const { &[need("messageMetadata", Shape::Any)] },
        ChunkType::Error => const { &[ERROR] },
        ChunkType::Abort => ABORT,
        ChunkType::Finish => match major {
            Major::V5 => FINISH_5,
            Major::V6 => FINISH_6,
            Major::V7 => FINISH_7,
        },
    }
}

/// Checks every field that the client reads.
pub(in crate::ai_sdk) fn check_fields(
    chunk: &Json,
    kind: ChunkType,
    major: Major,
) -> Result<(), FieldFault> {
    let mut read = fields(kind, major).iter();
    read.try_for_each(|field| {
        if field.since <= major {
            field.check(chunk)
        } else {
            Ok(())
        }
    })
}

/// Checks the fields that a chunk must have.
pub(in crate::ai_sdk) fn check_needed(
    chunk: &Json,
    kind: ChunkType,
    major: Major,
) -> Result<(), FieldFault> {
    let mut needed = fields(kind, major).iter().filter(|field| field.needed);
    needed.try_for_each(|field| field.check(chunk))
}

impl Field {
    fn check(&self, chunk: &Json) -> Result<(), FieldFault> {
        let found = chunk.get(self.name);
        let good = found.map_or(!self.needed, |value| self.shape.fits(value));
        if good {
            return Ok(());
        }
        Err(FieldFault::Field {
            field: self.name,
            expected: self.shape.expected(),
            found: found.map(Json::type_name),
        })
    }
}
