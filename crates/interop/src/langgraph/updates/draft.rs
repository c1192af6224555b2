//! The message that a model is writing, as far as it was streamed.

use crate::langgraph::content::{content, file_block, reasoning_block, text_block};
use crate::parts::StepResponse;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use timeline::BlockKind;

/// The least growth in bytes after which the whole message is streamed again.
const MIN_GROWTH: usize = 64;

/// An addition to a message.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::langgraph) enum Piece<'e> {
    /// More text of a block.
    Text {
        /// Text or reasoning.
        kind: BlockKind,
        /// The position of the block in the message's content.
        index: usize,
        /// The text to append.
        text: &'e str,
    },
    /// A file.
    File {
        /// The position of the block in the message's content.
        index: usize,
        /// The file as a content block.
        block: Value,
    },
    /// A new call, or more of a call's arguments.
    Call(CallChunk<'e>),
    /// The model's data about its complete answer.
    Response(&'e StepResponse),
}

/// A chunk of a call, in `LangChain`'s form.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(in crate::langgraph) struct CallChunk<'e> {
    /// The name of the tool, in the first chunk of the call.
    pub(in crate::langgraph) name: Option<&'e str>,
    /// The text to append to the arguments.
    pub(in crate::langgraph) args: &'e str,
    /// The call's id, in its first chunk.
    pub(in crate::langgraph) id: Option<&'e str>,
    /// The position of the call among the message's calls.
    pub(in crate::langgraph) index: usize,
    #[serde(rename = "type")]
    chunk_type: &'static str,
}

impl<'e> Piece<'e> {
    /// A chunk of a call; `start` are the id and the tool's name.
    pub(in crate::langgraph) fn call(
        index: usize,
        start: Option<(&'e str, &'e str)>,
        args: &'e str,
    ) -> Self {
        Self::Call(CallChunk {
            name: start.map(|(_, name)| name),
            args,
            id: start.map(|(id, _)| id),
            index,
            chunk_type: "tool_call_chunk",
        })
    }
}

#[derive(Clone, Debug)]
struct Block {
    kind: BlockKind,
    id: String,
    text: String,
    file: Option<Value>,
}

/// A message that is being written.
#[derive(Clone, Debug, Default)]
pub(in crate::langgraph) struct Draft {
    blocks: Vec<Block>,
    /// Whether the content is a list of blocks, and no longer one text.
    pub(in crate::langgraph) is_list: bool,
    /// The calls that were started, each with its position and its arguments so far.
    calls: BTreeMap<String, (usize, String)>,
    /// Whether the arguments that were streamed are not those of the stored call.
    pub(super) is_wrong: bool,
    /// Number of its chunks that were streamed.
    pub(in crate::langgraph) n_pieces: u32,
    /// Whether the reader has chunks of it that the log lacks.
    pub(super) has_lost: bool,
    n_bytes: usize,
    /// The length from which on it is streamed whole again.
    snapshot_at: usize,
}

impl Draft {
    /// Appends to a block, or starts it.
    pub(super) fn grow<'e>(
        &mut self,
        kind: BlockKind,
        id: &str,
        text: &'e str,
    ) -> Option<Piece<'e>> {
        if text.is_empty() {
            return None;
        }
        self.n_pieces += 1;
        self.n_bytes += text.len();
        let mut blocks = self.blocks.iter();
        let known = blocks.rposition(|block| block.kind == kind && block.id == id);
        let index = known.unwrap_or_else(|| self.push(kind, id, None));
        self.is_list |= index > 0 || kind == BlockKind::Reasoning;
        self.blocks.get_mut(index)?.text.push_str(text);
        Some(Piece::Text { kind, index, text })
    }

    /// Adds a file.
    pub(super) fn file(&mut self, url: &str, media_type: &str) -> Piece<'static> {
        self.n_pieces += 1;
        self.is_list = true;
        let block = file_block(url, Some(media_type));
        let index = self.push(BlockKind::Text, "", Some(block.clone()));
        Piece::File { index, block }
    }

    fn push(&mut self, kind: BlockKind, id: &str, file: Option<Value>) -> usize {
        self.blocks.push(Block {
            kind,
            id: id.to_owned(),
            text: String::new(),
            file,
        });
        self.blocks.len() - 1
    }

    /// Starts a call, unless it was started before.
    pub(super) fn start_call<'e>(&mut self, call: &'e str, tool: &'e str) -> Option<Piece<'e>> {
        if self.calls.contains_key(call) {
            return None;
        }
        self.n_pieces += 1;
        let index = self.calls.len();
        self.calls.insert(call.to_owned(), (index, String::new()));
        Some(Piece::call(index, Some((call, tool)), ""))
    }

    /// Appends to the arguments of a call.
    pub(super) fn grow_call<'e>(&mut self, call: &str, args: &'e str) -> Option<Piece<'e>> {
        let (index, known) = self.calls.get_mut(call).filter(|_| !args.is_empty())?;
        known.push_str(args);
        Some(Piece::call(*index, None, args))
    }

    /// Completes the arguments of a call. Others than these may have been streamed; the draft is wrong
    /// then.
    pub(super) fn end_call<'e>(&mut self, call: &str, args: &'e str) -> Option<Piece<'e>> {
        let known = self.calls.get(call);
        if let Some(rest) = known.and_then(|(_, known)| args.strip_prefix(known.as_str())) {
            return self.grow_call(call, rest);
        }
        self.is_wrong = true;
        None
    }

    /// Whether the message has grown by an eighth since it was last streamed whole. The total cost is
    /// therefore linear in its length.
    pub(in crate::langgraph) fn take_snapshot_due(&mut self) -> bool {
        let is_due = self.n_bytes >= self.snapshot_at;
        if is_due {
            self.snapshot_at = self.n_bytes + MIN_GROWTH.max(self.n_bytes / 8);
        }
        is_due
    }

    /// The content so far.
    pub(in crate::langgraph) fn content(&self) -> Value {
        let blocks = self.blocks.iter();
        let blocks = blocks.map(|it| {
            let file = it.file.clone();
            file.unwrap_or_else(|| block(it.kind, &it.text))
        });
        content(blocks.collect())
    }
}

/// A content block with this text.
pub(in crate::langgraph) fn block(kind: BlockKind, text: &str) -> Value {
    match kind {
        BlockKind::Text => text_block(text),
        BlockKind::Reasoning => reasoning_block(text),
    }
}
