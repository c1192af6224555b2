//! The deltas of a step, before its parts are stored.

use super::Run;
use crate::threads::object::{Function, StepCall};
use std::collections::BTreeMap;
use timeline::{BlockKind, Chunk};

/// The text that a chunk adds to the running step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::threads) enum Delta<'a> {
    /// Nothing that is shown.
    Nothing,
    /// An addition to a text.
    Text {
        /// Its position among the step's texts.
        index: usize,
        is_first: bool,
        delta: &'a str,
    },
    /// More of a call's arguments.
    Call {
        /// Its position among the step's calls.
        index: usize,
        is_first: bool,
        delta: &'a str,
    },
}

#[derive(Clone, Debug)]
struct StreamedCall {
    id: String,
    name: String,
    arguments: String,
}

/// The texts and calls that a step has streamed.
#[derive(Clone, Debug, Default)]
pub(super) struct Streamed {
    pub(super) texts: Vec<String>,
    text_positions: BTreeMap<String, usize>,
    calls: Vec<StreamedCall>,
    call_positions: BTreeMap<String, usize>,
}

impl Streamed {
    pub(super) fn chunk<'d>(&mut self, chunk: &'d Chunk<'_>) -> Delta<'d> {
        let delta = match chunk {
            Chunk::BlockDelta {
                kind: BlockKind::Text,
                block,
                text,
                ..
            } => self.text(&block.id, text),
            Chunk::ToolInputStart {
                tool_call_id,
                tool_name,
                ..
            } => self.call(tool_call_id, tool_name),
            Chunk::ToolInputDelta {
                tool_call_id, text, ..
            } => self.arguments(tool_call_id, text),
            Chunk::BlockDelta {
                kind: BlockKind::Reasoning,
                ..
            }
            | Chunk::BlockStart { .. }
            | Chunk::BlockEnd { .. }
            | Chunk::Source { .. }
            | Chunk::Marker(_)
            | Chunk::Runtime { .. }
            | Chunk::Data { .. }
            | Chunk::Other { .. } => None,
        };
        delta.unwrap_or(Delta::Nothing)
    }

    fn text<'d>(&mut self, id: &str, delta: &'d str) -> Option<Delta<'d>> {
        if delta.is_empty() {
            return None;
        }
        let known = self.text_positions.get(id).copied();
        let index = known.unwrap_or_else(|| {
            self.texts.push(String::new());
            let index = self.texts.len() - 1;
            self.text_positions.insert(id.to_owned(), index);
            index
        });
        self.texts.get_mut(index)?.push_str(delta);
        Some(Delta::Text {
            index,
            is_first: known.is_none(),
            delta,
        })
    }

    fn call<'d>(&mut self, id: &str, name: &str) -> Option<Delta<'d>> {
        if self.call_positions.contains_key(id) {
            return None;
        }
        let index = self.calls.len();
        self.call_positions.insert(id.to_owned(), index);
        self.calls.push(StreamedCall {
            id: id.to_owned(),
            name: name.to_owned(),
            arguments: String::new(),
        });
        Some(Delta::Call {
            index,
            is_first: true,
            delta: "",
        })
    }

    fn arguments<'d>(&mut self, id: &str, delta: &'d str) -> Option<Delta<'d>> {
        let index = *self.call_positions.get(id)?;
        let call = self.calls.get_mut(index).filter(|_| !delta.is_empty())?;
        call.arguments.push_str(delta);
        Some(Delta::Call {
            index,
            is_first: false,
            delta,
        })
    }

    /// The calls so far.
    pub(super) fn calls(&self) -> Vec<StepCall> {
        let calls = self.calls.iter().map(|call| StepCall {
            id: call.id.clone(),
            kind: "function",
            function: Function {
                name: call.name.clone(),
                arguments: call.arguments.clone(),
                output: None,
            },
        });
        calls.collect()
    }
}

/// The deltas of the running step.
impl Run {
    pub(in crate::threads) fn n_streamed_texts(&self) -> usize {
        self.streamed.texts.len()
    }

    pub(in crate::threads) fn n_streamed_calls(&self) -> usize {
        self.streamed.calls.len()
    }

    /// A text so far.
    pub(in crate::threads) fn streamed_text(&self, index: usize) -> Option<&str> {
        self.streamed.texts.get(index).map(String::as_str)
    }

    /// The id and name of a call.
    pub(in crate::threads) fn streamed_call(&self, index: usize) -> Option<(&str, &str)> {
        let call = self.streamed.calls.get(index)?;
        Some((&call.id, &call.name))
    }

    /// The position of the call of this id among the streamed ones, and its arguments so far.
    pub(in crate::threads) fn streamed_arguments(&self, id: &str) -> Option<(usize, &str)> {
        let index = *self.streamed.call_positions.get(id)?;
        let call = self.streamed.calls.get(index)?;
        Some((index, &call.arguments))
    }
}
