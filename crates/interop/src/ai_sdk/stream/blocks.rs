//! The blocks of a model's answer that a step has streamed.

use std::collections::{BTreeMap, BTreeSet};

/// What a block holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
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
    /// Whether the stored part that it grew into was seen.
    is_stored: bool,
}

/// The blocks of one step, in the order of their starts. Finding one takes no longer with more.
#[derive(Clone, Debug, Default)]
pub(super) struct Blocks {
    all: Vec<Block>,
    /// The blocks that are open, by kind and id.
    open: BTreeMap<(Kind, String), usize>,
    /// So many blocks at the front are stored.
    n_stored: usize,
    calls: BTreeSet<String>,
}

impl Blocks {
    /// Begins a block; says whether it was not open already.
    pub(super) fn start(&mut self, kind: Kind, id: &str) -> bool {
        let place = self.all.len();
        let open = self.open.entry((kind, id.to_owned()));
        if *open.or_insert(place) != place {
            return false;
        }
        self.all.push(Block {
            kind,
            id: id.to_owned(),
            text: String::new(),
            is_stored: false,
        });
        true
    }

    pub(super) fn grow(&mut self, kind: Kind, id: &str, delta: &str) {
        let place = self.open.get(&(kind, id.to_owned()));
        if let Some(block) = place.and_then(|place| self.all.get_mut(*place)) {
            block.text.push_str(delta);
        }
    }

    /// Ends a block; says whether it was open.
    pub(super) fn end(&mut self, kind: Kind, id: &str) -> bool {
        self.open.remove(&(kind, id.to_owned())).is_some()
    }

    /// Ends what is open.
    pub(super) fn end_all(&mut self) -> Vec<(Kind, String)> {
        let open = std::mem::take(&mut self.open).into_iter();
        let mut ended: Vec<_> = open.map(|(block, place)| (place, block)).collect();
        ended.sort_unstable_by_key(|(place, _)| *place);
        ended.into_iter().map(|(_, block)| block).collect()
    }

    /// The id of the block that a stored part grew from, and whether it was still open; it is
    /// over then. Each block accounts for one part.
    pub(super) fn stored(&mut self, kind: Kind, text: &str) -> Option<(String, bool)> {
        let from = self.n_stored;
        let mut rest = self.all.iter().enumerate().skip(from);
        let (place, _) =
            rest.find(|(_, block)| !block.is_stored && block.kind == kind && block.text == text)?;
        let block = self.all.get_mut(place)?;
        block.is_stored = true;
        let id = block.id.clone();
        let rest = self.all.iter().skip(from);
        self.n_stored += rest.take_while(|block| block.is_stored).count();
        let key = (kind, id);
        let was_open = self.open.get(&key) == Some(&place);
        if was_open {
            self.open.remove(&key);
        }
        Some((key.1, was_open))
    }

    /// Begins a call; says whether it was not begun already.
    pub(super) fn call(&mut self, id: &str) -> bool {
        self.calls.insert(id.to_owned())
    }

    pub(super) fn is_called(&self, id: &str) -> bool {
        self.calls.contains(id)
    }
}
