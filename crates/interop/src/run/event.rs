//! What happens in a run, typed.

use crate::parts::{EventPart, OUTPUT_FILE, StepResponse, ToolPart};
use serde::Deserialize;
use serde_json::Value;
use timeline::{
    BlockId, BlockKind, Chunk, Execution, ExecutionId, ExecutionStatus, Interruption, Item,
    MessagePartKind, Payload, Step, StepId, StepOutcome, StepStatus, part_kind,
};

/// What happens in a run.
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
    /// A chunk is streamed. Unknown chunks are not among these, and of the markers only that a tool
    /// starts.
    ///
    /// A fold with blocks ([`RunFold::with_blocks`](super::RunFold::with_blocks)) gives deltas only
    /// of blocks that have begun, ends only blocks that are open, and gives the text of a stored part
    /// that was not streamed as a block of its own.
    Chunk(Chunk<'r>),
    /// The attempt at the step died. Its chunks and parts are void.
    StepReset {
        /// The blocks that were open, in the order of their starts. A fold without blocks gives none.
        open: Vec<(BlockKind, BlockId<'static>)>,
    },
    /// The model answered. The parts of its answer are there.
    Responded {
        /// What the model says of its answer; none where it can't be read.
        response: Option<StepResponse>,
    },
    /// A part of the step is stored, for the first time or again.
    Part {
        /// Its position in the step.
        idx: u32,
        /// What it is.
        part: RunPart,
        /// The part as it is stored.
        payload: &'r Payload,
        /// Whether it is stored for the first time.
        is_new: bool,
        /// Whether it is about a call of an earlier step, which clients know.
        is_known: bool,
    },
    /// A step ends.
    StepEnded {
        /// The step.
        step_id: &'r StepId,
        /// Completed or failed.
        status: StepStatus,
        /// What it came to.
        outcome: &'r StepOutcome,
    },
    /// An execution ends.
    ExecutionEnded {
        /// The execution.
        execution_id: &'r ExecutionId,
        /// Completed or failed.
        status: ExecutionStatus,
        /// Why it did not complete.
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
    /// Beside the run: an item was added to the thread while an execution was at work.
    ItemAdded(&'r Item),
    /// Beside the run: the thread changed while an execution was at work.
    ThreadChanged(Chunk<'r>),
}

/// What a stored part of a step is.
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
        /// Its address, or its content as a data URL.
        url: String,
        /// Its media type.
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

/// The text of a stored part and its kind, a refusal's among them; none of a part without text.
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
