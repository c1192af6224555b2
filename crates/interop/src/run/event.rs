//! The events of a run, typed.

use crate::parts::{EventPart, OUTPUT_FILE, StepResponse, ToolPart};
use serde::Deserialize;
use serde_json::Value;
use timeline::{
    BlockId, BlockKind, Chunk, Execution, ExecutionId, ExecutionStatus, Interruption, Item,
    MessagePartKind, Payload, Step, StepId, StepOutcome, StepStatus, part_kind,
};

/// An event of a run.
#[derive(Clone, Debug, PartialEq)]
pub enum RunEvent<'r> {
    /// The run's first execution begins.
    Started {
        /// The execution.
        execution: &'r Execution,
    },
    /// Another execution continues the run.
    Continued {
        /// The execution.
        execution: &'r Execution,
        /// Whether it acts on answers to calls.
        answers: bool,
    },
    /// A step begins.
    StepStarted {
        /// The step.
        step: &'r Step,
    },
    /// A streamed chunk. Unknown chunks are left out, and so are all markers except the one for the
    /// start of a tool.
    ///
    /// A fold with blocks ([`RunFold::with_blocks`](super::RunFold::with_blocks)) emits deltas only
    /// for blocks that have started, and ends only open blocks. The text of a stored part that was
    /// not streamed becomes a block of its own.
    Chunk(Chunk<'r>),
    /// The attempt at the step died. Its chunks and parts are void.
    StepReset {
        /// The blocks that were open, in the order of their starts; empty in a fold without blocks.
        open: Vec<(BlockKind, BlockId<'static>)>,
    },
    /// The model answered. The parts of its answer are stored.
    Responded {
        /// The model's metadata about its answer; `None` if it can't be read.
        response: Option<StepResponse>,
    },
    /// A part of the step is stored, for the first time or again.
    Part {
        /// The position of the part in the step.
        idx: u32,
        /// The part.
        part: RunPart,
        /// The part as it is stored.
        payload: &'r Payload,
        /// Whether it is stored for the first time.
        is_new: bool,
        /// Whether it belongs to a call of an earlier step, which clients know.
        is_known: bool,
    },
    /// A step ends.
    StepEnded {
        /// The step.
        step_id: &'r StepId,
        /// Completed or failed.
        status: StepStatus,
        /// The result of the step.
        outcome: &'r StepOutcome,
    },
    /// An execution ends.
    ExecutionEnded {
        /// The execution.
        execution_id: &'r ExecutionId,
        /// Completed or failed.
        status: ExecutionStatus,
        /// The reason why it did not complete.
        interruption: Option<&'r Interruption>,
        /// Whether the run ends with it.
        is_last: bool,
    },
    /// Everything of an execution is written, and another execution continues the run.
    ContinuationPending,
    /// Nothing of the run follows.
    Ended,
    /// The run will never begin: its thread was closed.
    Abandoned,
    /// An item was added to the thread during an execution; it is not part of the run.
    ItemAdded(&'r Item),
    /// The thread changed during an execution; the change is not part of the run.
    ThreadChanged(Chunk<'r>),
}

/// A stored part of a step, by its kind.
#[derive(Clone, Debug, PartialEq)]
#[expect(
    clippy::large_enum_variant,
    reason = "parts are handled one by one and are not stored"
)]
pub enum RunPart {
    /// A tool call.
    Tool(ToolPart),
    /// An event such as a handoff.
    Event(EventPart),
    /// A file that the model made.
    File {
        /// The URL of the file, or its content as a data URL.
        url: String,
        /// The media type of the file.
        media_type: String,
    },
    /// Other content, such as a text.
    Content,
}

/// The members of a part that is a file.
#[derive(Deserialize)]
struct FilePart {
    #[serde(rename = "type")]
    part_type: String,
    file_data: Option<String>,
    file_url: Option<String>,
    media_type: Option<String>,
}

impl FilePart {
    fn read(part: &Payload) -> Option<(String, String)> {
        // Most parts are none, and are not parsed to know it.
        if !part.text().contains(OUTPUT_FILE) {
            return None;
        }
        let file: Self = part.read().ok()?;
        let url = file.file_data.or(file.file_url)?;
        (file.part_type == OUTPUT_FILE).then_some((url, file.media_type?))
    }
}

impl RunPart {
    /// Reads a part.
    pub fn read(part: &Payload) -> Self {
        if let Some(tool) = ToolPart::read(part) {
            Self::Tool(tool)
        } else if let Some(event) = EventPart::read(part) {
            Self::Event(event)
        } else if let Some((url, media_type)) = FilePart::read(part) {
            Self::File { url, media_type }
        } else {
            Self::Content
        }
    }

    /// The call, if it is one.
    pub fn tool(&self) -> Option<&ToolPart> {
        match self {
            Self::Tool(tool) => Some(tool),
            Self::Event(_) | Self::File { .. } | Self::Content => None,
        }
    }
}

/// The text of a stored part and its kind, including refusals; `None` for a part without text.
pub(super) fn stored_text(part: &Payload) -> Option<(BlockKind, String)> {
    let value = part.value();
    let text = |key: &str| value.get(key).and_then(Value::as_str);
    let (kind, text_of) = match text("type").and_then(part_kind)? {
        MessagePartKind::OutputText | MessagePartKind::InputText => (BlockKind::Text, text("text")),
        MessagePartKind::Refusal => (BlockKind::Text, text("refusal")),
        MessagePartKind::Reasoning => (BlockKind::Reasoning, text("text")),
        MessagePartKind::InputImage
        | MessagePartKind::InputFile
        | MessagePartKind::Tool(_)
        | MessagePartKind::Extension(_) => {
            return None;
        }
    };
    Some((kind, text_of.unwrap_or_default().to_owned()))
}
