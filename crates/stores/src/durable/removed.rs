//! Removed items and steps: which content leaves which blocks, and the new ranges of the values that stay.

use super::{ErasedEntries, Samples};
use crate::block::{Block, BlockFault, BlockReader, ByteRange, Decoded, ToStore, one_block};
use crate::value::{count, int};
use std::collections::{BTreeMap, BTreeSet};
use timeline::{Event, Payload, Removed, ThreadId};

/// The removed entries of a thread, and the blocks with their content.
pub(crate) struct Plan {
    /// The number of the thread.
    pub(crate) no: i64,
    pub(crate) thread: ThreadId,
    entries: BTreeSet<Removed>,
    /// The event of the first of them.
    from: Option<i64>,
    /// Those of them that have content.
    with_content: BTreeSet<Removed>,
    /// The blocks that have content of them, by their first events.
    blocks: BTreeMap<u64, PlannedBlock>,
    shown_by_forks: u64,
    in_parents: u64,
}

/// A block that is to be erased. Its rows are those of parts and steps with values in it. Until it is erased they can
/// only become fewer: a row that changes gets values of a newer block.
#[derive(Debug, Default)]
struct PlannedBlock {
    last: u64,
    parts: Vec<RowKey>,
    answers: Vec<RowKey>,
    ends: Vec<RowKey>,
}

/// The value of a row that is in a block.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RowValue {
    Part,
    Answer,
    End,
}

/// The key of a row, and the event with its value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowKey {
    pub(crate) execution: i64,
    pub(crate) iteration: i64,
    pub(crate) idx: i64,
    pub(crate) seq: i64,
}

impl Plan {
    pub(crate) fn of(no: i64, thread: &ThreadId) -> Self {
        Self {
            no,
            thread: thread.clone(),
            entries: BTreeSet::new(),
            from: None,
            with_content: BTreeSet::new(),
            blocks: BTreeMap::new(),
            shown_by_forks: 0,
            in_parents: 0,
        }
    }

    /// Adds an entry that is erased, and its event.
    pub(crate) fn erase(&mut self, entry: Removed, seq: i64) {
        self.entries.insert(entry);
        self.from = Some(self.from.map_or(seq, |from| from.min(seq)));
    }

    /// Adds an entry that a fork shows.
    pub(crate) fn keep_for_forks(&mut self) {
        self.shown_by_forks += 1;
    }

    /// Adds an entry that is in the log of the parent.
    pub(crate) fn keep_in_parent(&mut self) {
        self.in_parents += 1;
    }

    /// The event of the first entry that is erased.
    pub(crate) fn from(&self) -> Option<u64> {
        self.from.map(count)
    }

    pub(crate) fn counts(&self) -> ErasedEntries {
        ErasedEntries {
            entries: self.with_content.len() as u64,
            blocks: 0,
            shown_by_forks: self.shown_by_forks,
            in_parents: self.in_parents,
        }
    }

    /// The counts, if all blocks are erased.
    pub(crate) fn expected(&self) -> ErasedEntries {
        ErasedEntries {
            blocks: self.blocks.len() as u64,
            ..self.counts()
        }
    }

    pub(crate) fn blocks(&self) -> impl Iterator<Item = u64> {
        self.blocks.keys().copied()
    }

    /// The entry and the event without its content, if it is to be erased.
    fn erased(&self, event: &Event) -> Option<(Removed, Event)> {
        let entry = event.entry().filter(|it| self.entries.contains(it))?;
        Some((entry, event.erased()?))
    }

    /// Adds a block, if it has content of the entries.
    pub(crate) fn look_at(
        &mut self,
        first: u64,
        reader: BlockReader<'_>,
    ) -> Result<(), BlockFault> {
        let (mut next, mut has_content) = (first, false);
        for decoded in reader {
            if let Some((entry, _)) = self.erased(&decoded?.event) {
                has_content = true;
                self.with_content.insert(entry);
            }
            next += 1;
        }
        if has_content {
            let block = PlannedBlock {
                last: next - 1,
                ..PlannedBlock::default()
            };
            self.blocks.insert(first, block);
        }
        Ok(())
    }

    /// Adds a row, if a block has its value.
    pub(crate) fn add_row(&mut self, value: RowValue, key: RowKey) {
        let seq = count(key.seq);
        let block = self.blocks.range_mut(..=seq).next_back();
        let Some((_, block)) = block.filter(|(_, block)| seq <= block.last) else {
            return;
        };
        match value {
            RowValue::Part => block.parts.push(key),
            RowValue::Answer => block.answers.push(key),
            RowValue::End => block.ends.push(key),
        }
    }

    /// Adds samples of what a block loses.
    pub(crate) fn add_samples(
        &self,
        samples: &mut Samples,
        reader: BlockReader<'_>,
    ) -> Result<(), BlockFault> {
        for decoded in reader {
            let event = decoded?.event;
            if let Some((_, erased)) = self.erased(&event) {
                samples.add_difference(&event, &erased);
            }
        }
        Ok(())
    }

    /// A block without the content of the entries; `None` if it has none.
    pub(crate) fn rewritten(
        &self,
        first: u64,
        reader: BlockReader<'_>,
    ) -> Result<Option<Rewritten>, BlockFault> {
        let mut all = Vec::new();
        let (mut has_changed, mut fewer) = (false, 0);
        for decoded in reader {
            let decoded = decoded?;
            let before = decoded.text()?;
            let Decoded { at, event, text } = decoded;
            if let Some((_, erased)) = self.erased(&event) {
                has_changed = true;
                fewer += int(before.len() as u64) - int(erased.encode()?.len() as u64);
                all.push((at, erased, None));
            } else {
                all.push((at, event, text.map(str::to_owned)));
            }
        }
        if !has_changed {
            return Ok(None);
        }
        let to_store = all.iter().map(|(at, event, raw)| ToStore {
            at: *at,
            event,
            size: 0,
            raw: raw.as_deref(),
        });
        let block = one_block(to_store).ok_or(BlockFault::Number)?;
        let events = all.into_iter().map(|(_, event, _)| event).collect();
        Ok(Some(Rewritten {
            first,
            events,
            block,
            fewer,
        }))
    }
}

/// A block without the content of removed entries.
pub(crate) struct Rewritten {
    first: u64,
    events: Vec<Event>,
    pub(crate) block: Block,
    /// The bytes that its events' texts have less.
    pub(crate) fewer: i64,
}

/// The offset and the length of a value in its block.
pub(crate) type ValueRange = (Option<i64>, Option<i64>);

/// The values of the end of a step.
pub(crate) struct StepValues<'e> {
    pub(crate) calls: ValueRange,
    pub(crate) results: ValueRange,
    pub(crate) open: ValueRange,
    /// A step without calls has no block, but it can have the text of an error.
    pub(crate) error_text: Option<&'e str>,
}

/// The new ranges of the values of a block.
#[derive(Default)]
pub(crate) struct NewRanges<'e> {
    pub(crate) context: Option<ValueRange>,
    /// By the items' events.
    pub(crate) items: Vec<(i64, ValueRange)>,
    pub(crate) parts: Vec<(RowKey, ValueRange)>,
    pub(crate) answers: Vec<(RowKey, ValueRange)>,
    pub(crate) ends: Vec<(RowKey, StepValues<'e>)>,
}

impl Rewritten {
    /// The new ranges of the values that rows have in the block.
    pub(crate) fn ranges(&self, plan: &Plan) -> NewRanges<'_> {
        let mut ranges = NewRanges::default();
        for (seq, event) in (int(self.first)..).zip(&self.events) {
            if let Event::ContextCreated { context } = event {
                ranges.context = Some(self.range(context.content.as_ref()));
            }
            if let Event::ItemCreated { item } = event {
                ranges.items.push((seq, self.range(item.content.as_ref())));
            }
        }
        let Some(rows) = plan.blocks.get(&self.first) else {
            return ranges;
        };
        for key in &rows.parts {
            if let Some(Event::PartCreated { part, .. } | Event::PartUpdated { part, .. }) =
                self.event(key.seq)
            {
                ranges.parts.push((*key, self.range(Some(part))));
            }
        }
        for key in &rows.answers {
            if let Some(Event::ChunkEmitted { data, .. }) = self.event(key.seq) {
                ranges.answers.push((*key, self.range(data.as_ref())));
            }
        }
        for key in &rows.ends {
            let event = self.event(key.seq);
            let outcome = if let Some(Event::StepStatusChanged { outcome, .. }) = event {
                outcome
            } else if let Some(Event::StepCreated { step }) = event {
                &step.outcome
            } else {
                continue;
            };
            let values = StepValues {
                calls: self.range(outcome.tool_calls.as_ref()),
                results: self.range(outcome.tool_execution_results.as_ref()),
                open: self.range(outcome.open_calls.as_ref()),
                error_text: outcome.error_text.as_deref(),
            };
            ranges.ends.push((*key, values));
        }
        ranges
    }

    fn event(&self, seq: i64) -> Option<&Event> {
        let index = count(seq).checked_sub(self.first)?;
        self.events.get(usize::try_from(index).ok()?)
    }

    fn range(&self, of: Option<&Payload>) -> ValueRange {
        let range = of.and_then(|of| self.block.ranges.of(of));
        let number = |n: usize| int(n as u64);
        let offset = range.map(|ByteRange { offset, .. }| number(offset));
        (offset, range.map(|range| number(range.length)))
    }
}
