//! Streams the model's own events as chunks.

use super::{AgentJournal, stopped};
use crate::writer::BlockDelta;
use agents::Stopped;
use std::collections::BTreeSet;
use timeline::{BlockId, BlockKind, Chunk, NewChunk};
use upp::StreamEvent;

/// The blocks that the model is currently writing.
#[derive(Default)]
pub(super) struct StreamedBlocks {
    open_blocks: BTreeSet<(BlockKind, u32)>,
    open_calls: BTreeSet<u32>,
}

impl AgentJournal<'_> {
    fn block_id(&self, kind: BlockKind, index: u32) -> BlockId<'static> {
        BlockId::new(kind, self.iteration, index)
    }

    async fn block(&self, kind: BlockKind, index: u32, text: &str) -> Result<(), Stopped> {
        if text.is_empty() {
            return Ok(());
        }
        let block = self.block_id(kind, index);
        let delta = match kind {
            BlockKind::Reasoning => BlockDelta::Reasoning,
            BlockKind::Text => BlockDelta::Text,
        };
        let is_new = self.shown().open_blocks.insert((kind, index));
        if is_new {
            let block = block.clone();
            let start = Chunk::BlockStart {
                kind,
                block,
                extra: None,
            };
            self.emit(&start).await?;
        }
        let written = self.writer.delta(delta, &block.id, text).await;
        written.map_err(stopped)
    }

    async fn emit(&self, chunk: &Chunk<'_>) -> Result<(), Stopped> {
        let written = self.writer.emit_chunk(chunk.encode()).await;
        written.map_err(stopped)
    }

    pub(super) async fn show(&self, event: StreamEvent) -> Result<(), Stopped> {
        match event {
            StreamEvent::TextDelta { index, text } => {
                self.block(BlockKind::Text, index, &text).await
            }
            StreamEvent::ReasoningDelta { index, text } => {
                self.block(BlockKind::Reasoning, index, &text).await
            }
            StreamEvent::ToolCallDelta {
                index,
                tool_call_id,
                tool_name,
                arguments_json,
            } => {
                let id = tool_call_id.as_str();
                let is_new = self.shown().open_calls.insert(index);
                if is_new {
                    let start = Chunk::ToolInputStart {
                        tool_call_id: id.into(),
                        tool_name: (&*tool_name).into(),
                        extra: None,
                    };
                    self.emit(&start).await?;
                }
                if arguments_json.is_empty() {
                    return Ok(());
                }
                self.writer
                    .delta(BlockDelta::ToolInput, id, &arguments_json)
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
    pub(super) fn ends(&self) -> Vec<NewChunk> {
        let StreamedBlocks { open_blocks, .. } = std::mem::take(&mut *self.shown());
        let ends = open_blocks.into_iter().map(|(kind, index)| {
            let block = self.block_id(kind, index);
            let extra = None;
            Chunk::BlockEnd { kind, block, extra }.encode()
        });
        ends.collect()
    }
}
