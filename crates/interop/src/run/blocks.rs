//! The blocks that a step has streamed, and which of them its stored parts are.

use std::collections::{BTreeMap, BTreeSet};
use timeline::{BlockId, BlockKind};

#[derive(Clone, Debug)]
struct Block {
    kind: BlockKind,
    id: BlockId<'static>,
    text: String,
    /// Whether the stored part that it grew into was seen.
    is_stored: bool,
}

/// The blocks of one step, in the order of their starts. A lookup does not scan all blocks.
#[derive(Clone, Debug, Default)]
pub(super) struct Blocks {
    all: Vec<Block>,
    /// The positions of the blocks that are open, by kind and id.
    open: BTreeMap<(BlockKind, String), usize>,
    /// The position of the block that grew last, while it is open.
    last: Option<usize>,
    /// The number of stored blocks at the front.
    n_stored: usize,
    calls: BTreeSet<String>,
}

impl Blocks {
    /// Begins a block. False if it is open already.
    pub(super) fn start(&mut self, kind: BlockKind, id: &BlockId<'_>) -> bool {
        let position = self.all.len();
        let open = self.open.entry((kind, id.id.clone().into_owned()));
        if *open.or_insert(position) != position {
            return false;
        }
        self.all.push(Block {
            kind,
            id: id.clone().into_owned(),
            text: String::new(),
            is_stored: false,
        });
        true
    }

    /// Appends to a block, which begins with this if it is not open. True if it begins.
    pub(super) fn grow(&mut self, kind: BlockKind, id: &BlockId<'_>, delta: &str) -> bool {
        // Most deltas are of the block before.
        if let Some(block) = self.last.and_then(|last| self.all.get_mut(last))
            && (block.kind, &block.id) == (kind, id)
        {
            block.text.push_str(delta);
            return false;
        }
        let begins = self.start(kind, id);
        let position = self.open.get(&(kind, id.id.clone().into_owned())).copied();
        self.last = position;
        if let Some(block) = position.and_then(|position| self.all.get_mut(position)) {
            block.text.push_str(delta);
        }
        begins
    }

    /// Ends a block. False if it is not open.
    pub(super) fn end(&mut self, kind: BlockKind, id: &BlockId<'_>) -> bool {
        self.last = None;
        let key = (kind, id.id.clone().into_owned());
        self.open.remove(&key).is_some()
    }

    /// Ends all open blocks and returns them in the order of their starts.
    pub(super) fn end_all(&mut self) -> Vec<(BlockKind, BlockId<'static>)> {
        self.last = None;
        let mut open: Vec<usize> = std::mem::take(&mut self.open).into_values().collect();
        open.sort_unstable();
        let ended = open.into_iter().filter_map(|position| {
            let block = self.all.get(position)?;
            Some((block.kind, block.id.clone()))
        });
        ended.collect()
    }

    /// Finds the streamed block of a stored part and ends it. Returns its id, and whether it was
    /// open. Each block counts for one part.
    pub(super) fn store(
        &mut self,
        kind: BlockKind,
        text: &str,
    ) -> Option<(BlockId<'static>, bool)> {
        let from = self.n_stored;
        let mut rest = self.all.iter().enumerate().skip(from);
        let (position, _) =
            rest.find(|(_, block)| !block.is_stored && block.kind == kind && block.text == text)?;
        let block = self.all.get_mut(position)?;
        block.is_stored = true;
        let id = block.id.clone();
        let rest = self.all.iter().skip(from);
        self.n_stored += rest.take_while(|block| block.is_stored).count();
        let key = (kind, id.id.clone().into_owned());
        let was_open = self.open.get(&key) == Some(&position);
        if was_open {
            self.last = None;
            self.open.remove(&key);
        }
        Some((id, was_open))
    }

    /// Starts a call. Returns false if it has already started.
    pub(super) fn start_call(&mut self, id: &str) -> bool {
        self.calls.insert(id.to_owned())
    }

    /// Whether this call has started.
    pub(super) fn has_call(&self, id: &str) -> bool {
        self.calls.contains(id)
    }
}
