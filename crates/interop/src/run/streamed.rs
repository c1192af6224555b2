//! The texts of a step that was cut off.

use std::collections::BTreeMap;
use timeline::{BlockKind, Chunk, StepRecord};

/// The texts and the reasonings that a step streamed, each in the order of their first pieces. It
/// needs the chunks of the log.
pub(crate) fn streamed_texts(record: &StepRecord) -> (Vec<String>, Vec<String>) {
    let (mut texts, mut reasonings) = (Vec::new(), Vec::new());
    let mut open: BTreeMap<(BlockKind, String), usize> = BTreeMap::new();
    for (chunk_type, data) in &record.chunks {
        let chunk = Chunk::decode(chunk_type, data.as_ref());
        if let Chunk::BlockEnd { kind, block, .. } = chunk {
            open.remove(&(kind, block.id.into_owned()));
        } else if let Chunk::BlockDelta {
            kind, block, text, ..
        } = chunk
            && !text.is_empty()
        {
            let blocks: &mut Vec<String> = match kind {
                BlockKind::Text => &mut texts,
                BlockKind::Reasoning => &mut reasonings,
            };
            let index = open.entry((kind, block.id.into_owned()));
            let index = *index.or_insert(blocks.len());
            match blocks.get_mut(index) {
                Some(known) => known.push_str(&text),
                None => blocks.push(text.into_owned()),
            }
        }
    }
    (texts, reasonings)
}
