//! Assembles an answer and emits its events.

use crate::content::{AssistantContent, Media, MediaSource};
use crate::event::StreamEvent;
use crate::tool::{Arguments, ToolCall, ToolCallId};
use bytes::Bytes;
use serde_json::Value;
use std::sync::Arc;

/// The answer so far. The index of each event is the index of its block in the message's content,
/// or of its call among the message's calls.
#[derive(Debug, Default)]
pub(crate) struct AnswerBuilder {
    started: bool,
    content: Vec<AssistantContent>,
    calls: Vec<Call>,
    events: Vec<StreamEvent>,
}

#[derive(Debug)]
struct Call {
    id: ToolCallId,
    name: Arc<str>,
    arguments: String,
    after: Vec<ToolCallId>,
}

impl AnswerBuilder {
    /// Reserves room for this many events if none are waiting.
    pub(crate) fn expect(&mut self, n_events: usize) {
        if self.events.is_empty() {
            self.events.reserve_exact(n_events);
        }
    }

    /// Emits an event that another module assembled.
    pub(crate) fn emit(&mut self, event: StreamEvent) {
        self.events.push(event);
    }

    /// Starts the answer, unless it has started.
    pub(crate) fn start(&mut self) {
        if !self.started {
            self.started = true;
            self.events.push(StreamEvent::MessageStart);
        }
    }

    /// Opens a block, which may have content already, and returns its index.
    pub(crate) fn open(&mut self, block: AssistantContent) -> u32 {
        self.start();
        let index = position(self.content.len());
        self.events.push(StreamEvent::ContentBlockStart { index });
        match &block {
            AssistantContent::Text { text } if !text.is_empty() => {
                let text = text.clone();
                self.events.push(StreamEvent::TextDelta { index, text });
            }
            AssistantContent::Reasoning { text, .. } if !text.is_empty() => {
                let text = text.clone();
                self.events
                    .push(StreamEvent::ReasoningDelta { index, text });
            }
            AssistantContent::Text { .. } | AssistantContent::Reasoning { .. } => {}
            AssistantContent::Image(media) => {
                self.push_media(media, |data, mime_type| StreamEvent::ImageDelta {
                    index,
                    data,
                    mime_type,
                });
            }
            AssistantContent::Audio(media) => {
                self.push_media(media, |data, mime_type| StreamEvent::AudioDelta {
                    index,
                    data,
                    mime_type,
                });
            }
            AssistantContent::Video(media) => {
                self.push_media(media, |data, mime_type| StreamEvent::VideoDelta {
                    index,
                    data,
                    mime_type,
                });
            }
        }
        // Most answers have one block, and a list makes room for four at once.
        if self.content.is_empty() {
            self.content.reserve_exact(1);
        }
        self.content.push(block);
        index
    }

    /// Emits an event for media whose bytes are in memory.
    fn push_media(&mut self, media: &Media, event: impl Fn(Bytes, Option<String>) -> StreamEvent) {
        if let Ok(data) = media.to_bytes() {
            self.events.push(event(data, Some(media.mime_type.clone())));
        }
    }

    /// Appends to the block's text, or to its reasoning.
    pub(crate) fn append(&mut self, index: u32, more: &str) {
        if more.is_empty() {
            return;
        }
        let text = more.to_owned();
        match self.block(index) {
            Some(AssistantContent::Text { text: whole }) => {
                whole.push_str(more);
                self.events.push(StreamEvent::TextDelta { index, text });
            }
            Some(AssistantContent::Reasoning { text: whole, .. }) => {
                whole.push_str(more);
                self.events
                    .push(StreamEvent::ReasoningDelta { index, text });
            }
            Some(
                AssistantContent::Image(_)
                | AssistantContent::Audio(_)
                | AssistantContent::Video(_),
            )
            | None => {}
        }
    }

    /// Appends to the signature of a reasoning block, which some providers send in pieces.
    pub(crate) fn sign(&mut self, index: u32, more: &str) {
        if let Some(AssistantContent::Reasoning { signature, .. }) = self.block(index) {
            signature.get_or_insert_default().push_str(more);
        }
    }

    /// The block is whole.
    pub(crate) fn close(&mut self, index: u32) {
        self.events.push(StreamEvent::ContentBlockStop { index });
    }

    /// The block at this index.
    pub(crate) fn block(&mut self, index: u32) -> Option<&mut AssistantContent> {
        self.content.get_mut(usize::try_from(index).ok()?)
    }

    /// Starts a tool call and returns its position. The arguments follow.
    pub(crate) fn call(&mut self, id: impl Into<ToolCallId>, name: &str) -> u32 {
        self.start();
        let index = position(self.calls.len());
        let call = Call {
            id: id.into(),
            name: name.into(),
            arguments: String::new(),
            after: Vec::new(),
        };
        self.events.push(StreamEvent::ToolCallDelta {
            index,
            tool_call_id: call.id.clone(),
            tool_name: call.name.clone(),
            arguments_json: String::new(),
        });
        self.calls.push(call);
        index
    }

    /// Notes the calls that this call waits for, if the model names them.
    pub(crate) fn order(&mut self, index: u32, after: Option<&Value>) {
        let at = usize::try_from(index).unwrap_or(usize::MAX);
        if let Some((call, after)) = self.calls.get_mut(at).zip(after) {
            call.after = order(after);
        }
    }

    /// Appends to the text of the call's arguments.
    pub(crate) fn arguments(&mut self, index: u32, more: &str) {
        let call = usize::try_from(index)
            .ok()
            .and_then(|at| self.calls.get_mut(at));
        if let Some(call) = call.filter(|_| !more.is_empty()) {
            call.arguments.push_str(more);
            self.events.push(StreamEvent::ToolCallDelta {
                index,
                tool_call_id: call.id.clone(),
                tool_name: call.name.clone(),
                arguments_json: more.to_owned(),
            });
        }
    }

    /// The text of the call's arguments so far.
    pub(crate) fn arguments_of(&self, index: u32) -> &str {
        let at = usize::try_from(index).unwrap_or(usize::MAX);
        self.calls.get(at).map_or("", |call| &call.arguments)
    }

    /// Marks the call as cut off: its arguments become invalid JSON, so that it never reads as complete.
    pub(crate) fn truncate(&mut self, index: u32) {
        if Arguments::from_text(self.arguments_of(index))
            .parse()
            .is_ok()
        {
            self.arguments(index, Arguments::CUT);
        }
    }

    /// Marks the last call of a cut-off answer if it has no arguments. The provider sends arguments
    /// whole, so they may be missing.
    pub(crate) fn cut_if_empty(&mut self) {
        let last = position(self.calls.len()).saturating_sub(1);
        if Arguments::from_text(self.arguments_of(last)).is_empty() {
            self.truncate(last);
        }
    }

    /// Whether there are tool calls.
    pub(crate) fn has_calls(&self) -> bool {
        !self.calls.is_empty()
    }

    /// The events since the last time.
    pub(crate) fn take_events(&mut self) -> Vec<StreamEvent> {
        std::mem::take(&mut self.events)
    }

    /// The content and the calls.
    pub(crate) fn finish(self) -> (Vec<AssistantContent>, Vec<ToolCall>) {
        let calls = self.calls.into_iter().map(|call| ToolCall {
            tool_call_id: call.id,
            tool_name: call.name,
            arguments: Arguments::from_text(&call.arguments),
            after: call.after,
        });
        (self.content, calls.collect())
    }
}

/// The ids in the `after` of a call: the calls that it waits for (UAP §8.6). No provider's own format
/// has this member; models behind compatible servers may send it. Values that are not ids are skipped.
pub(crate) fn order(after: &Value) -> Vec<ToolCallId> {
    let ids = after.as_array().into_iter().flatten();
    ids.filter_map(Value::as_str)
        .map(ToolCallId::from)
        .collect()
}

/// Media that a model made; `None` if the data is not base64, because reading the block would then fail.
pub(crate) fn made(data: &str, mime_type: &str) -> Option<Media> {
    let source = MediaSource::Base64 {
        data: data.to_owned(),
    };
    let media = Media::new(source, mime_type);
    media.to_bytes().is_ok().then_some(media)
}

fn position(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}
