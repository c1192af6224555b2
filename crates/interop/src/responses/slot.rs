//! One item of a response's output, while it is made.

use crate::json_text::quoted;
use serde_json::Value;

/// The kind of a text block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Block {
    Text,
    Refusal,
    /// Reasoning as a summary.
    Summary,
    /// Reasoning as text.
    Reasoning,
}

/// The names that the protocol has for a block's events and members.
pub(super) struct BlockNames {
    pub(super) begins: &'static str,
    pub(super) delta: &'static str,
    pub(super) done: &'static str,
    pub(super) ends: &'static str,
    pub(super) index: &'static str,
    pub(super) part: &'static str,
    pub(super) member: &'static str,
    /// Further members of a part, a delta and the whole text.
    pub(super) more: &'static str,
}

impl Block {
    pub(super) const fn names(self) -> BlockNames {
        match self {
            Self::Text => BlockNames {
                begins: "response.content_part.added",
                delta: "response.output_text.delta",
                done: "response.output_text.done",
                ends: "response.content_part.done",
                index: "content_index",
                part: "output_text",
                member: "text",
                more: ",\"logprobs\":[]",
            },
            Self::Refusal => BlockNames {
                begins: "response.content_part.added",
                delta: "response.refusal.delta",
                done: "response.refusal.done",
                ends: "response.content_part.done",
                index: "content_index",
                part: "refusal",
                member: "refusal",
                more: "",
            },
            Self::Summary => BlockNames {
                begins: "response.reasoning_summary_part.added",
                delta: "response.reasoning_summary_text.delta",
                done: "response.reasoning_summary_text.done",
                ends: "response.reasoning_summary_part.done",
                index: "summary_index",
                part: "summary_text",
                member: "text",
                more: "",
            },
            Self::Reasoning => BlockNames {
                begins: "response.content_part.added",
                delta: "response.reasoning.delta",
                done: "response.reasoning.done",
                ends: "response.content_part.done",
                index: "content_index",
                part: "reasoning_text",
                member: "text",
                more: "",
            },
        }
    }

    /// A part with this text, which is JSON without its quotes; `annotations` is a JSON array.
    pub(super) fn part(self, text: &str, annotations: &str) -> String {
        let BlockNames { part, member, .. } = self.names();
        let more = if self == Self::Text {
            format!(",\"annotations\":{annotations},\"logprobs\":[]")
        } else {
            String::new()
        };
        format!(r#"{{"type":"{part}","{member}":"{text}"{more}}}"#)
    }
}

/// The status of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OutputStatus {
    InProgress,
    Completed,
    Incomplete,
}

impl OutputStatus {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
            Self::Incomplete => "incomplete",
        }
    }
}

/// The kind of an output item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SlotKind {
    /// A message or reasoning.
    Block(Block),
    /// A call; both are JSON texts in their quotes.
    Call { call_id: String, name: String },
}

/// An item of the output.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    pub(super) kind: SlotKind,
    /// A JSON text in its quotes.
    id: String,
    /// The members of events that say which item they are of.
    pub(super) of: String,
    pub(super) index: usize,
    /// The text so far, or the arguments: JSON without its quotes.
    pub(super) text: String,
    pub(super) is_open: bool,
}

impl Slot {
    pub(super) fn new(kind: SlotKind, id: &str, index: usize) -> Self {
        let id = quoted(id);
        let place = match &kind {
            SlotKind::Block(block) => format!(",\"{}\":0", block.names().index),
            SlotKind::Call { .. } => String::new(),
        };
        Self {
            of: format!(",\"item_id\":{id},\"output_index\":{index}{place}"),
            kind,
            id,
            index,
            text: String::new(),
            is_open: true,
        }
    }

    /// The item when it begins, without text.
    pub(super) fn started(&self) -> String {
        self.item(OutputStatus::InProgress, None, "[]", &More::default())
    }

    /// The item with this text. Without a text it has no part yet.
    pub(super) fn item(
        &self,
        status: OutputStatus,
        text: Option<&str>,
        annotations: &str,
        more: &More<'_>,
    ) -> String {
        let (id, status) = (&self.id, status.name());
        match &self.kind {
            SlotKind::Block(block) => {
                let part = text
                    .map(|text| block.part(text, annotations))
                    .unwrap_or_default();
                block_item(*block, id, status, &part, more)
            }
            SlotKind::Call { call_id, name } => {
                let text = text.unwrap_or_default();
                format!(
                    r#"{{"type":"function_call","id":{id},"status":"{status}","call_id":{call_id},"name":{name},"arguments":"{text}"}}"#
                )
            }
        }
    }
}

/// The optional members of an item.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct More<'a> {
    /// The encrypted content that the provider needs to accept reasoning as input.
    pub(super) sealed: Option<&'a str>,
    /// The phase of a message in its turn.
    pub(super) phase: Option<&'a str>,
}

/// A message or reasoning with one part or none.
pub(super) fn block_item(
    block: Block,
    id: &str,
    status: &str,
    part: &str,
    more: &More<'_>,
) -> String {
    let member = |name: &str, text: Option<&str>| {
        let member = text.map(|text| format!(",\"{name}\":{}", quoted(text)));
        member.unwrap_or_default()
    };
    match block {
        Block::Text | Block::Refusal => {
            let phase = member("phase", more.phase);
            format!(
                r#"{{"type":"message","id":{id},"status":"{status}","role":"assistant","content":[{part}]{phase}}}"#
            )
        }
        Block::Summary | Block::Reasoning => {
            let sealed = member("encrypted_content", more.sealed);
            let parts = if block == Block::Summary {
                format!("\"summary\":[{part}]")
            } else {
                format!("\"summary\":[],\"content\":[{part}]")
            };
            format!(r#"{{"type":"reasoning","id":{id},"status":"{status}",{parts}{sealed}}}"#)
        }
    }
}

/// The result of a call that the server has run.
pub(super) fn output_item(id: &str, call_id: &str, output: &Value, status: OutputStatus) -> String {
    format!(
        r#"{{"type":"function_call_output","id":{},"status":"{}","call_id":{},"output":{output}}}"#,
        quoted(id),
        status.name(),
        quoted(call_id),
    )
}
