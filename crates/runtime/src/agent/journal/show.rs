//! The model's own events, shown as chunks while they come.

use super::{AgentJournal, stopped};
use crate::writer::Delta;
use agents::Stopped;
use serde_json::json;
use std::collections::BTreeSet;
use timeline::Chunk;
use upp::StreamEvent;

/// The blocks that are open.
#[derive(Default)]
pub(super) struct Shown {
    open: BTreeSet<(Block, u32)>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Block {
    Reasoning,
    Text,
    Call,
}

impl AgentJournal<'_> {
    fn opens(&self, block: Block, index: u32) -> bool {
        self.shown().open.insert((block, index))
    }

    /// The id of a block; unique in the reaction, as the AI SDK wants it.
    fn block_id(&self, block: Block, index: u32) -> String {
        let letter = if block == Block::Reasoning { 'r' } else { 't' };
        format!("{letter}{}-{index}", self.iteration)
    }

    async fn block(&self, block: Block, index: u32, text: &str) -> Result<(), Stopped> {
        if text.is_empty() {
            return Ok(());
        }
        let id = self.block_id(block, index);
        let (start, delta) = match block {
            Block::Reasoning => ("reasoning-start", Delta::Reasoning),
            Block::Text | Block::Call => ("text-start", Delta::Text),
        };
        if self.opens(block, index) {
            self.writer
                .emit(start, json!({ "id": id }).into())
                .await
                .map_err(stopped)?;
        }
        self.writer.delta(delta, &id, text).await.map_err(stopped)
    }

    pub(super) async fn show(&self, event: StreamEvent) -> Result<(), Stopped> {
        match event {
            StreamEvent::TextDelta { index, text } => self.block(Block::Text, index, &text).await,
            StreamEvent::ReasoningDelta { index, text } => {
                self.block(Block::Reasoning, index, &text).await
            }
            StreamEvent::ToolCallDelta {
                index,
                tool_call_id,
                tool_name,
                arguments_json,
            } => {
                let id = tool_call_id.as_str();
                if self.opens(Block::Call, index) {
                    let data = json!({ "toolCallId": id, "toolName": tool_name });
                    self.writer
                        .emit("tool-input-start", data.into())
                        .await
                        .map_err(stopped)?;
                }
                if arguments_json.is_empty() {
                    return Ok(());
                }
                self.writer
                    .delta(Delta::ToolInput, id, &arguments_json)
                    .await
                    .map_err(stopped)
            }
            StreamEvent::ToolExecutionStart {
                index,
                tool_call_id,
                tool_name,
                ..
            } => self.started(index, tool_call_id.as_str(), &tool_name).await,
            StreamEvent::MessageStart
            | StreamEvent::MessageStop
            | StreamEvent::ContentBlockStart { .. }
            | StreamEvent::ContentBlockStop { .. }
            | StreamEvent::ImageDelta { .. }
            | StreamEvent::AudioDelta { .. }
            | StreamEvent::VideoDelta { .. }
            | StreamEvent::ToolExecutionEnd { .. } => Ok(()),
        }
    }

    /// The chunks that end the blocks that are open.
    pub(super) fn ends(&self) -> Vec<Chunk> {
        let open = std::mem::take(&mut self.shown().open);
        open.into_iter()
            .filter_map(|(block, index)| {
                let chunk_type = match block {
                    Block::Reasoning => "reasoning-end",
                    Block::Text => "text-end",
                    Block::Call => return None,
                };
                let data = json!({ "id": self.block_id(block, index) });
                Some(Chunk {
                    chunk_type: chunk_type.to_owned(),
                    data: Some(data.into()),
                })
            })
            .collect()
    }
}
