//! Folds events into a message's content.

use super::StreamEvent;
use crate::content::{AssistantContent, BASE64, Media, MediaSource};
use crate::tool::{Arguments, ToolCall, ToolCallId};
use base64::Engine;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The MIME type of media without one.
const UNKNOWN: &str = "application/octet-stream";

/// The kinds of blocks, in the order in which those of one index appear: some providers count
/// each kind on its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Reasoning,
    Text,
    Image,
    Audio,
    Video,
}

#[derive(Clone, Debug, Default)]
struct Block {
    text: String,
    data: Vec<u8>,
    mime_type: Option<String>,
}

#[derive(Clone, Debug, Default)]
struct Call {
    id: Option<ToolCallId>,
    name: Arc<str>,
    arguments: String,
}

/// Folds the events of one model call into content and calls.
///
/// The result does not depend on how the stream was cut into deltas. Blocks appear in the order of
/// their index; calls in the order of their position. Images, audio and video become base64. A
/// reasoning block has no signature: that is in the response's message only.
#[derive(Clone, Debug, Default)]
pub struct Aggregate {
    blocks: BTreeMap<(u32, Kind), Block>,
    calls: BTreeMap<u32, Call>,
}

impl Aggregate {
    /// Adds one event; events without content are ignored.
    pub fn push(&mut self, event: &StreamEvent) {
        match event {
            StreamEvent::TextDelta { index, text } => {
                self.block(*index, Kind::Text).text.push_str(text);
            }
            StreamEvent::ReasoningDelta { index, text } => {
                self.block(*index, Kind::Reasoning).text.push_str(text);
            }
            StreamEvent::ImageDelta {
                index,
                data,
                mime_type,
            } => self.media(*index, Kind::Image, data, mime_type.as_ref()),
            StreamEvent::AudioDelta {
                index,
                data,
                mime_type,
            } => self.media(*index, Kind::Audio, data, mime_type.as_ref()),
            StreamEvent::VideoDelta {
                index,
                data,
                mime_type,
            } => self.media(*index, Kind::Video, data, mime_type.as_ref()),
            StreamEvent::ToolCallDelta {
                index,
                tool_call_id,
                tool_name,
                arguments_json,
            } => {
                let call = self.calls.entry(*index).or_default();
                if call.id.is_none() && !tool_call_id.as_str().is_empty() {
                    call.id = Some(tool_call_id.clone());
                }
                if call.name.is_empty() {
                    call.name.clone_from(tool_name);
                }
                call.arguments.push_str(arguments_json);
            }
            StreamEvent::MessageStart
            | StreamEvent::MessageStop
            | StreamEvent::ContentBlockStart { .. }
            | StreamEvent::ContentBlockStop { .. }
            | StreamEvent::ToolExecutionStart { .. }
            | StreamEvent::ToolExecutionEnd { .. } => {}
        }
    }

    fn block(&mut self, index: u32, kind: Kind) -> &mut Block {
        self.blocks.entry((index, kind)).or_default()
    }

    fn media(&mut self, index: u32, kind: Kind, data: &[u8], mime_type: Option<&String>) {
        let block = self.block(index, kind);
        block.data.extend_from_slice(data);
        if block.mime_type.is_none() {
            block.mime_type = mime_type.cloned();
        }
    }

    /// The content and calls so far.
    pub fn finish(self) -> (Vec<AssistantContent>, Vec<ToolCall>) {
        let blocks = self.blocks.into_iter();
        let content = blocks.map(|((_, kind), block)| content(kind, block));
        let calls = self.calls.into_values().map(|call| ToolCall {
            tool_call_id: call.id.unwrap_or_else(|| ToolCallId::from("")),
            tool_name: call.name,
            arguments: Arguments::from_text(&call.arguments),
            after: Vec::new(),
        });
        (content.collect(), calls.collect())
    }
}

fn content(kind: Kind, block: Block) -> AssistantContent {
    let media = |block: Block| {
        let data = BASE64.encode(block.data);
        let mime_type = block.mime_type.unwrap_or_else(|| UNKNOWN.to_owned());
        Media::new(MediaSource::Base64 { data }, mime_type)
    };
    match kind {
        Kind::Reasoning => AssistantContent::Reasoning {
            text: block.text,
            signature: None,
        },
        Kind::Text => AssistantContent::Text { text: block.text },
        Kind::Image => AssistantContent::Image(media(block)),
        Kind::Audio => AssistantContent::Audio(media(block)),
        Kind::Video => AssistantContent::Video(media(block)),
    }
}
