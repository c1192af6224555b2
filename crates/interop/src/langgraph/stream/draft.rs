//! The message that a model is writing, as far as a reader has heard it.

use crate::langgraph::content::{content, file_block, reasoning_block, text_block};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// After how many bytes more than before a message is shown again, at the least.
const MIN_GROWTH: usize = 64;

/// What kind of block grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Reasoning,
}

#[derive(Clone, Debug)]
struct Block {
    kind: Kind,
    id: String,
    text: String,
    file: Option<Value>,
}

/// A message that is being written.
#[derive(Clone, Debug, Default)]
pub(super) struct Draft {
    blocks: Vec<Block>,
    /// Whether the content is a list of blocks, and no longer one text.
    is_list: bool,
    /// The calls that have begun, each with its place and the arguments so far.
    calls: BTreeMap<String, (usize, String)>,
    /// Whether something was said of it that is not so.
    pub(super) is_wrong: bool,
    /// Whether anything was said of it.
    pub(super) is_told: bool,
    n_bytes: usize,
    /// How long it is when it is shown again.
    shown_at: usize,
}

impl Draft {
    /// More of a block; gives the content that a reader adds.
    pub(super) fn grow(&mut self, kind: Kind, id: &str, delta: &str) -> Option<Value> {
        if delta.is_empty() {
            return None;
        }
        self.is_told = true;
        self.n_bytes += delta.len();
        let known = self
            .blocks
            .iter()
            .rposition(|it| it.kind == kind && it.id == id);
        let place = known.unwrap_or_else(|| {
            self.push(kind, id, None);
            self.blocks.len() - 1
        });
        self.is_list |= place > 0 || kind == Kind::Reasoning;
        let block = self.blocks.get_mut(place)?;
        block.text.push_str(delta);
        if !self.is_list {
            return Some(delta.into());
        }
        let mut grown = shown(kind, delta);
        grown["index"] = place.into();
        Some(json!([grown]))
    }

    /// A file; gives the content that a reader adds.
    pub(super) fn file(&mut self, url: &str, media_type: Option<&str>) -> Value {
        self.is_told = true;
        self.is_list = true;
        let mut block = file_block(url, media_type);
        self.push(Kind::Text, "", Some(block.clone()));
        block["index"] = (self.blocks.len() - 1).into();
        json!([block])
    }

    fn push(&mut self, kind: Kind, id: &str, file: Option<Value>) {
        self.blocks.push(Block {
            kind,
            id: id.to_owned(),
            text: String::new(),
            file,
        });
    }

    /// A call begins; gives its piece, unless it had begun.
    pub(super) fn called(&mut self, call: &str, tool: &str) -> Option<Value> {
        if self.calls.contains_key(call) {
            return None;
        }
        self.is_told = true;
        let place = self.calls.len();
        self.calls.insert(call.to_owned(), (place, String::new()));
        Some(
            json!({"name": tool, "args": "", "id": call, "index": place, "type": "tool_call_chunk"}),
        )
    }

    /// More arguments of a call; gives their piece.
    pub(super) fn arguments(&mut self, call: &str, delta: &str) -> Option<Value> {
        let (place, known) = self.calls.get_mut(call).filter(|_| !delta.is_empty())?;
        known.push_str(delta);
        Some(
            json!({"name": null, "args": delta, "id": null, "index": place, "type": "tool_call_chunk"}),
        )
    }

    /// The arguments of a call are these: what is missing, or none where others were said.
    pub(super) fn rest<'a>(&self, call: &str, whole: &'a str) -> Option<&'a str> {
        let (_, known) = self.calls.get(call)?;
        whole.strip_prefix(known.as_str())
    }

    /// The content so far, if it has grown enough to be shown again: by an eighth, so that a long message costs its
    /// length and not the square of it.
    pub(super) fn shown_again(&mut self) -> Option<Value> {
        if self.n_bytes < self.shown_at {
            return None;
        }
        self.shown_at = self.n_bytes + MIN_GROWTH.max(self.n_bytes / 8);
        let blocks = self.blocks.iter();
        let blocks = blocks.map(|it| it.file.clone().unwrap_or_else(|| shown(it.kind, &it.text)));
        Some(content(blocks.collect()))
    }
}

fn shown(kind: Kind, text: &str) -> Value {
    match kind {
        Kind::Text => text_block(text),
        Kind::Reasoning => reasoning_block(text),
    }
}
