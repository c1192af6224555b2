//! The deltas of a streaming turn.

use super::{Open, PartialTurn, Streamed};
use crate::json::{Json, Object};

/// One event of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MessageDelta {
    /// A response begins; the members it starts with, `timestamp` among them.
    Response {
        /// The members.
        members: Object,
    },
    /// A part of the response begins, at the end of the parts there are.
    Start {
        /// The index of the part in the response.
        part: usize,
        /// The kind of the part.
        kind: StreamedKind,
        /// The initial members, without `part_kind`.
        members: Object,
    },
    /// More of a part's text, thought or arguments.
    Append {
        /// The part's place in the response.
        part: usize,
        /// The text to append.
        text: String,
    },
    /// A part is complete.
    End {
        /// The index of the part in the response.
        part: usize,
        /// The members it ends with, such as a signature.
        members: Object,
    },
    /// The total usage of the response so far.
    Usage {
        /// The counts.
        usage: Object,
    },
    /// The response is complete; `members` are final ones such as `finish_reason`.
    Finish {
        /// The members.
        members: Object,
    },
    /// A complete message that does not stream: a request with answers, or an event.
    Message {
        /// The message, as a document has it.
        message: Json,
    },
}

impl MessageDelta {
    /// A response that begins at an instant.
    #[must_use]
    pub fn response(timestamp: &str) -> Self {
        let members = Object::new().with("timestamp", timestamp);
        Self::Response { members }
    }

    /// The start of a part without initial members.
    #[must_use]
    pub fn start(part: usize, kind: StreamedKind) -> Self {
        let members = Object::new();
        Self::Start {
            part,
            kind,
            members,
        }
    }

    /// A call that begins.
    #[must_use]
    pub fn start_call(part: usize, tool_name: &str, tool_call_id: &str) -> Self {
        let members = Object::new()
            .with("tool_name", tool_name)
            .with("tool_call_id", tool_call_id);
        let kind = StreamedKind::ToolCall;
        Self::Start {
            part,
            kind,
            members,
        }
    }

    /// More of a part.
    #[must_use]
    pub fn append(part: usize, text: impl Into<String>) -> Self {
        let text = text.into();
        Self::Append { part, text }
    }

    /// The end of a part without final members.
    #[must_use]
    pub fn end(part: usize) -> Self {
        let members = Object::new();
        Self::End { part, members }
    }

    /// The end of a response without final members.
    #[must_use]
    pub fn finish() -> Self {
        let members = Object::new();
        Self::Finish { members }
    }
}

/// The kinds of parts that stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StreamedKind {
    /// Text of a model.
    Text,
    /// Reasoning of a model.
    Thinking,
    /// A tool that a model wants called.
    ToolCall,
}

impl StreamedKind {
    /// The kind as a document spells it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Thinking => "thinking",
            Self::ToolCall => "tool-call",
        }
    }

    /// The member with the text so far.
    pub(super) fn text_key(self) -> &'static str {
        match self {
            Self::Text | Self::Thinking => "content",
            Self::ToolCall => "args_text",
        }
    }

    /// Whether a member is this representation's own.
    pub(super) fn reserves(self, key: &str) -> bool {
        matches!(key, "part_kind" | "state") || key == self.text_key()
    }
}

impl TryFrom<&str> for StreamedKind {
    type Error = ();

    fn try_from(kind: &str) -> Result<Self, ()> {
        match kind {
            "text" => Ok(Self::Text),
            "thinking" => Ok(Self::Thinking),
            "tool-call" => Ok(Self::ToolCall),
            _ => Err(()),
        }
    }
}

/// The reason why an event does not fit the events before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeltaRefused {
    /// It belongs to a response, but none is open.
    #[error("no response is being written, expected one to begin first")]
    NoResponse,
    /// It starts a response or message while a response is open.
    #[error("a response is being written, expected it to end first")]
    ResponseOpen,
    /// A part begins in another place than the next.
    #[error("part {part} begins, expected part {expected}")]
    OutOfOrder {
        /// The index at which it begins.
        part: usize,
        /// The expected index.
        expected: usize,
    },
    /// The part does not exist.
    #[error("there is no part {part}, expected one of the {n_parts} that began")]
    NoSuchPart {
        /// The place named.
        part: usize,
        /// The number of parts that have started.
        n_parts: usize,
    },
    /// It sets a member that only the turn itself sets.
    #[error("it sets a member that the turn keeps itself, expected others")]
    Reserved,
    /// The part is already complete.
    #[error("part {part} is done, expected one that is streaming")]
    PartDone {
        /// The index of the part.
        part: usize,
    },
}

impl PartialTurn {
    /// Applies the event with this number; returns whether it was new. Events with a number up to
    /// the last one are skipped, so a stream may be repeated from any position. A refused event
    /// changes nothing.
    pub fn push(&mut self, event: u64, delta: MessageDelta) -> Result<bool, DeltaRefused> {
        if self.last_event.is_some_and(|last| event <= last) {
            return Ok(false);
        }
        match delta {
            MessageDelta::Response { members } => {
                self.refuse_open()?;
                refuse_reserved(&members, is_reserved)?;
                let parts = Vec::new();
                self.response = Some(Open { members, parts });
            }
            MessageDelta::Start {
                part,
                kind,
                members,
            } => self.start(part, kind, members)?,
            MessageDelta::Append { part, text } => self.streaming(part)?.text.push_str(&text),
            MessageDelta::End { part, members } => {
                let streamed = self.streaming(part)?;
                refuse_reserved(&members, |key| streamed.kind.reserves(key))?;
                merge(&mut streamed.members, members);
                streamed.done = true;
            }
            MessageDelta::Usage { usage } => {
                self.open()?.members.insert("usage", usage);
            }
            MessageDelta::Finish { members } => {
                refuse_reserved(&members, is_reserved)?;
                let mut open = self.response.take().ok_or(DeltaRefused::NoResponse)?;
                merge(&mut open.members, members);
                let message = open.into_message(&self.agent_id);
                self.messages.push(message.into());
            }
            MessageDelta::Message { message } => {
                self.refuse_open()?;
                self.messages.push(message);
            }
        }
        self.last_event = Some(event);
        Ok(true)
    }

    fn refuse_open(&self) -> Result<(), DeltaRefused> {
        if self.response.is_some() {
            return Err(DeltaRefused::ResponseOpen);
        }
        Ok(())
    }

    fn open(&mut self) -> Result<&mut Open, DeltaRefused> {
        self.response.as_mut().ok_or(DeltaRefused::NoResponse)
    }

    fn start(
        &mut self,
        part: usize,
        kind: StreamedKind,
        members: Object,
    ) -> Result<(), DeltaRefused> {
        let open = self.open()?;
        let expected = open.parts.len();
        if part != expected {
            return Err(DeltaRefused::OutOfOrder { part, expected });
        }
        refuse_reserved(&members, |key| kind.reserves(key))?;
        let text = String::new();
        let done = false;
        open.parts.push(Streamed {
            kind,
            members,
            text,
            done,
        });
        Ok(())
    }

    fn streaming(&mut self, part: usize) -> Result<&mut Streamed, DeltaRefused> {
        let open = self.open()?;
        let n_parts = open.parts.len();
        let found = open.parts.get_mut(part);
        let streamed = found.ok_or(DeltaRefused::NoSuchPart { part, n_parts })?;
        if streamed.done {
            return Err(DeltaRefused::PartDone { part });
        }
        Ok(streamed)
    }
}

/// Whether a member of a response is the turn's own.
fn is_reserved(key: &str) -> bool {
    matches!(key, "parts" | "message_type" | "agent_id")
}

fn refuse_reserved(members: &Object, is: impl Fn(&str) -> bool) -> Result<(), DeltaRefused> {
    if members.keys().any(is) {
        return Err(DeltaRefused::Reserved);
    }
    Ok(())
}

fn merge(members: &mut Object, more: Object) {
    for (key, value) in more {
        members.insert(key, value);
    }
}
