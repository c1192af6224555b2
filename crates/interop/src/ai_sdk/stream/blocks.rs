//! The blocks of a model's answer that a step has streamed.

use std::collections::BTreeSet;

/// What a block holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Reasoning,
}

impl Kind {
    pub(super) fn start(self) -> &'static str {
        match self {
            Self::Text => "text-start",
            Self::Reasoning => "reasoning-start",
        }
    }

    pub(super) fn delta(self) -> &'static str {
        match self {
            Self::Text => "text-delta",
            Self::Reasoning => "reasoning-delta",
        }
    }

    pub(super) fn end(self) -> &'static str {
        match self {
            Self::Text => "text-end",
            Self::Reasoning => "reasoning-end",
        }
    }
}

#[derive(Clone, Debug)]
struct Block {
    kind: Kind,
    id: String,
    text: String,
    is_open: bool,
    /// Whether the stored part that it grew into was seen.
    is_stored: bool,
}

/// The blocks of one step, in the order of their starts.
#[derive(Clone, Debug, Default)]
pub(super) struct Blocks {
    blocks: Vec<Block>,
    calls: BTreeSet<String>,
}

impl Blocks {
    fn open(&mut self, kind: Kind, id: &str) -> Option<&mut Block> {
        let mut blocks = self.blocks.iter_mut();
        blocks.find(|block| block.is_open && block.kind == kind && block.id == id)
    }

    /// Begins a block; says whether it was not open already.
    pub(super) fn start(&mut self, kind: Kind, id: &str) -> bool {
        if self.open(kind, id).is_some() {
            return false;
        }
        self.blocks.push(Block {
            kind,
            id: id.to_owned(),
            text: String::new(),
            is_open: true,
            is_stored: false,
        });
        true
    }

    pub(super) fn grow(&mut self, kind: Kind, id: &str, delta: &str) {
        if let Some(block) = self.open(kind, id) {
            block.text.push_str(delta);
        }
    }

    /// Ends a block; says whether it was open.
    pub(super) fn end(&mut self, kind: Kind, id: &str) -> bool {
        self.open(kind, id)
            .map(|block| block.is_open = false)
            .is_some()
    }

    /// Ends what is open.
    pub(super) fn end_all(&mut self) -> Vec<(Kind, String)> {
        let open = self.blocks.iter_mut().filter(|block| block.is_open);
        open.map(|block| {
            block.is_open = false;
            (block.kind, block.id.clone())
        })
        .collect()
    }

    /// The id of the block that a stored part grew from, and whether it was still open; it is
    /// over then. Each block accounts for one part.
    pub(super) fn stored(&mut self, kind: Kind, text: &str) -> Option<(String, bool)> {
        let is_it =
            |block: &&mut Block| !block.is_stored && block.kind == kind && block.text == text;
        let block = self.blocks.iter_mut().find(is_it)?;
        block.is_stored = true;
        Some((block.id.clone(), std::mem::take(&mut block.is_open)))
    }

    /// Begins a call; says whether it was not begun already.
    pub(super) fn call(&mut self, id: &str) -> bool {
        self.calls.insert(id.to_owned())
    }

    pub(super) fn is_called(&self, id: &str) -> bool {
        self.calls.contains(id)
    }
}
