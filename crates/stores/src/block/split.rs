//! Which events of an append share a block.

use super::{Block, BlockWriter, MAX_EVENTS};
use jiff::Timestamp;
use timeline::Event;

/// A block that has this many bytes is full: to read one event, the whole block is read. The texts of streams count
/// apart, because the next part may repeat them.
const FULL: usize = 64 << 10;

/// Maximum number of events in a block of an append.
const EVENTS: usize = 4096;

/// An event that is to be stored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ToStore<'e> {
    /// When it was written.
    pub(crate) at: Timestamp,
    /// The event.
    pub(crate) event: &'e Event,
    /// The size of its JSON text, in bytes.
    pub(crate) size: usize,
    /// Its JSON text, if this program would write it otherwise.
    pub(crate) raw: Option<&'e str>,
}

/// The blocks of an append, in order: one, unless it is large. An event that fills a block has one of its own.
pub(crate) fn split<'e>(events: impl IntoIterator<Item = ToStore<'e>>) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<BlockWriter> = None;
    for ToStore {
        at,
        event,
        size,
        raw,
    } in events
    {
        let is_full = |block: &BlockWriter| {
            block.len() + size > FULL || block.streamed() > FULL || block.n() >= EVENTS
        };
        if open.as_ref().is_some_and(is_full) {
            blocks.extend(open.take().map(BlockWriter::finish));
        }
        let block = open.get_or_insert_with(|| BlockWriter::new(at));
        block.add(at, event, raw);
    }
    blocks.extend(open.map(BlockWriter::finish));
    blocks
}

/// One block with these events, however large it is. `None` if there is none, or more than a block can have.
pub(crate) fn one_block<'e>(events: impl IntoIterator<Item = ToStore<'e>>) -> Option<Block> {
    let mut open: Option<BlockWriter> = None;
    for ToStore { at, event, raw, .. } in events {
        let block = open.get_or_insert_with(|| BlockWriter::new(at));
        if block.n() as u64 >= MAX_EVENTS {
            return None;
        }
        block.add(at, event, raw);
    }
    open.map(BlockWriter::finish)
}
