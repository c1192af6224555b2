//! Stream events (UPP §9).

use crate::content::AssistantContent;
use crate::tool::{Arguments, ToolCall, ToolCallId};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// One event of a stream; `index` is the content block or, for tools, the call's position.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    tag = "type",
    rename_all = "snake_case",
    rename_all_fields = "camelCase"
)]
pub enum StreamEvent {
    /// A model call begins to answer.
    MessageStart,
    /// A model call has answered.
    MessageStop,
    /// A content block begins.
    ContentBlockStart {
        /// The block.
        index: u32,
    },
    /// A content block is whole.
    ContentBlockStop {
        /// The block.
        index: u32,
    },
    /// More text.
    TextDelta {
        /// The block.
        index: u32,
        /// The text.
        text: String,
    },
    /// More reasoning.
    ReasoningDelta {
        /// The block.
        index: u32,
        /// The text.
        text: String,
    },
    /// The provider's signature of a reasoning block; it comes whole.
    ReasoningSignature {
        /// The block.
        index: u32,
        /// The signature.
        signature: String,
    },
    /// More of a tool call's arguments; the first one of a call names it.
    ToolCallDelta {
        /// The call's position among the calls of the response.
        index: u32,
        /// The call's id.
        tool_call_id: ToolCallId,
        /// The tool's name.
        tool_name: String,
        /// The next piece of the arguments' text; may be empty.
        arguments_json: String,
    },
    /// A tool starts; emitted before it runs.
    ToolExecutionStart {
        /// The call's position.
        index: u32,
        /// The call.
        tool_call_id: ToolCallId,
        /// The tool.
        tool_name: String,
        /// Milliseconds since the epoch.
        timestamp: i64,
    },
    /// A tool has ended; emitted when it does.
    ToolExecutionEnd {
        /// The call's position.
        index: u32,
        /// The call.
        tool_call_id: ToolCallId,
        /// The tool.
        tool_name: String,
        /// What it gave.
        result: Value,
        /// Whether it failed.
        is_error: bool,
        /// Milliseconds since the epoch.
        timestamp: i64,
    },
}

/// Folds the events of one model call into content and calls.
///
/// The result does not depend on how the stream was cut into deltas. Blocks appear in the order of
/// their index; calls in the order of their position.
#[derive(Clone, Debug, Default)]
pub struct Aggregate {
    blocks: BTreeMap<u32, AssistantContent>,
    calls: BTreeMap<u32, (ToolCallId, String, String)>,
}

impl Aggregate {
    /// Folds one event in; events that carry no content change nothing.
    pub fn push(&mut self, event: &StreamEvent) {
        match event {
            StreamEvent::TextDelta { index, text } => {
                let block = self
                    .blocks
                    .entry(*index)
                    .or_insert_with(|| AssistantContent::Text {
                        text: String::new(),
                    });
                if let AssistantContent::Text { text: whole } = block {
                    whole.push_str(text);
                }
            }
            StreamEvent::ReasoningDelta { index, text } => {
                if let AssistantContent::Reasoning { text: whole, .. } = self.reasoning(*index) {
                    whole.push_str(text);
                }
            }
            StreamEvent::ReasoningSignature { index, signature } => {
                if let AssistantContent::Reasoning {
                    signature: slot, ..
                } = self.reasoning(*index)
                {
                    *slot = Some(signature.clone());
                }
            }
            StreamEvent::ToolCallDelta {
                index,
                tool_call_id,
                tool_name,
                arguments_json,
            } => {
                let call = self
                    .calls
                    .entry(*index)
                    .or_insert_with(|| (tool_call_id.clone(), tool_name.clone(), String::new()));
                call.2.push_str(arguments_json);
            }
            StreamEvent::MessageStart
            | StreamEvent::MessageStop
            | StreamEvent::ContentBlockStart { .. }
            | StreamEvent::ContentBlockStop { .. }
            | StreamEvent::ToolExecutionStart { .. }
            | StreamEvent::ToolExecutionEnd { .. } => {}
        }
    }

    fn reasoning(&mut self, index: u32) -> &mut AssistantContent {
        self.blocks
            .entry(index)
            .or_insert_with(|| AssistantContent::Reasoning {
                text: String::new(),
                signature: None,
            })
    }

    /// The content and calls so far.
    pub fn finish(self) -> (Vec<AssistantContent>, Vec<ToolCall>) {
        let calls = self
            .calls
            .into_values()
            .map(|(tool_call_id, tool_name, arguments)| ToolCall {
                tool_call_id,
                tool_name,
                arguments: Arguments::from_text(&arguments),
                after: Vec::new(),
            })
            .collect();
        (self.blocks.into_values().collect(), calls)
    }
}
