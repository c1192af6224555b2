//! Removed items and steps: their content leaves the blocks, and the chain of sums stays.

use super::super::blocks::{self, Erased, Log};
use super::super::error::statement;
use super::super::rows;
use super::super::sums::LogEnd;
use super::super::value::{count, int};
use super::samples::Samples;
use crate::block::{
    Block, BlockFault, BlockReader, ByteRange, ByteRanges, Decoded, ToStore, one_block,
};
use rusqlite::{Connection, OptionalExtension, params};
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use store::{Filter, StoreError, TenantId};
use timeline::{Compaction, CompactionId, Event, Payload, Removed, Seq, ThreadId};

/// The counts of an erasure of removed entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ErasedEntries {
    /// Removed items, steps and compactions whose content is erased.
    pub entries: u64,
    /// Blocks that were written anew.
    pub blocks: u64,
    /// Removed entries that stay, because a fork was made before their removal and shows them.
    pub shown_by_forks: u64,
    /// Entries that stay, because only a fork has removed them: they are in the log of its parent.
    pub in_parents: u64,
}

/// The removed entries of a thread, and the blocks with their content.
pub(super) struct Plan {
    no: i64,
    thread: ThreadId,
    entries: BTreeSet<Removed>,
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

/// The key of a row, and the event with its value.
#[derive(Clone, Copy, Debug)]
struct RowKey {
    execution: i64,
    iteration: i64,
    idx: i64,
    seq: i64,
}

impl Plan {
    pub(super) fn counts(&self) -> ErasedEntries {
        ErasedEntries {
            entries: self.with_content.len() as u64,
            blocks: 0,
            shown_by_forks: self.shown_by_forks,
            in_parents: self.in_parents,
        }
    }

    pub(super) fn blocks(&self) -> impl Iterator<Item = u64> {
        self.blocks.keys().copied()
    }

    /// The entry and the event without its content, if it is to be erased.
    fn erased(&self, event: &Event) -> Option<(Removed, Event)> {
        let entry = event.entry().filter(|it| self.entries.contains(it))?;
        Some((entry, event.erased()?))
    }
}

/// The threads of a tenant with removed entries.
pub(super) fn threads(conn: &Connection, tenant: &TenantId) -> Result<Vec<ThreadId>, StoreError> {
    let sql = "SELECT t.id FROM thread_threads t WHERE t.tenant = ?1
               AND EXISTS (SELECT 1 FROM thread_removals r
                           WHERE r.thread_no = t.no AND r.target NOT GLOB 'compacted *')
               ORDER BY t.no";
    let mut select = conn.prepare_cached(sql).map_err(statement)?;
    let ids = select
        .query_map([tenant.as_str()], |row| row.get::<_, String>(0))
        .map_err(statement)?;
    ids.map(|id| id.map(ThreadId::from).map_err(statement))
        .collect()
}

/// Finds what is to be erased. Reads the log from the first removed entry on.
pub(super) fn plan(conn: &Connection, thread: &ThreadId) -> Result<Plan, StoreError> {
    let conn = &conn.unchecked_transaction().map_err(statement)?;
    let no = rows::number(conn, thread)?;
    let mut plan = Plan {
        no,
        thread: thread.clone(),
        entries: BTreeSet::new(),
        with_content: BTreeSet::new(),
        blocks: BTreeMap::new(),
        shown_by_forks: 0,
        in_parents: 0,
    };
    let mut from = None;
    let mut compactions = None;
    let sql = "SELECT target, seq FROM thread_removals WHERE thread_no = ?1 AND target NOT GLOB 'compacted *'";
    let mut select = conn.prepare_cached(sql).map_err(statement)?;
    let removals = select
        .query_map([no], |row| Ok((row.get::<_, String>(0)?, row.get(1)?)))
        .map_err(statement)?;
    for removal in removals {
        let (target, removed_at): (String, i64) = removal.map_err(statement)?;
        let Ok(what) = target.parse::<Removed>() else {
            let what = format!("thread {thread}: {target:?} can't be removed");
            return Err(StoreError::Damaged(what));
        };
        let seq = match &what {
            Removed::Item(id) => entry(conn, no, ITEM, id.as_str())?,
            Removed::Step(id) => entry(conn, no, STEP, id.as_str())?,
            Removed::Compaction(id) => {
                if compactions.is_none() {
                    compactions = Some(compacted(conn, no)?);
                }
                compactions.as_ref().and_then(|all| all.get(id).copied())
            }
        };
        let Some(seq) = seq else {
            plan.in_parents += 1;
            continue;
        };
        let sql = "SELECT EXISTS (SELECT 1 FROM thread_threads
                   WHERE fork_no = ?1 AND fork_seq >= ?2 AND fork_seq < ?3)";
        let is_shown: bool = conn
            .query_row(sql, [no, seq, removed_at], |row| row.get(0))
            .map_err(statement)?;
        if is_shown {
            plan.shown_by_forks += 1;
        } else {
            plan.entries.insert(what);
            from = Some(from.map_or(seq, |from: i64| from.min(seq)));
        }
    }
    let Some(from) = from else { return Ok(plan) };
    let (mut blocks, mut with_content) = (BTreeMap::new(), BTreeSet::new());
    Log { conn, no }.read_blocks(Seq(count(from)), Filter::All, |_, first, reader| {
        let (mut next, mut has_content) = (first, false);
        for decoded in reader {
            let Decoded { event, .. } = decoded.map_err(fault(conn, no, first))?;
            if let Some((entry, _)) = plan.erased(&event) {
                has_content = true;
                with_content.insert(entry);
            }
            next += 1;
        }
        if has_content {
            let block = PlannedBlock {
                last: next - 1,
                ..PlannedBlock::default()
            };
            blocks.insert(first, block);
        }
        Ok(ControlFlow::Continue(()))
    })?;
    (plan.blocks, plan.with_content) = (blocks, with_content);
    find_rows(conn, &mut plan)?;
    Ok(plan)
}

const ITEM: &str = "SELECT seq FROM thread_items WHERE thread_no = ?1 AND id = ?2";
const STEP: &str = "SELECT seq FROM thread_steps WHERE thread_no = ?1 AND id = ?2";

/// The event of an entry that the log has.
fn entry(conn: &Connection, no: i64, sql: &str, id: &str) -> Result<Option<i64>, StoreError> {
    let mut select = conn.prepare_cached(sql).map_err(statement)?;
    let seq = select.query_row(params![no, id], |row| row.get(0));
    seq.optional().map_err(statement)
}

/// The compactions of a log, and their events.
fn compacted(conn: &Connection, no: i64) -> Result<BTreeMap<CompactionId, i64>, StoreError> {
    let sql = "SELECT seq FROM thread_removals WHERE thread_no = ?1 AND target GLOB 'compacted *'";
    let mut select = conn.prepare_cached(sql).map_err(statement)?;
    let seqs = select.query_map([no], |row| row.get::<_, i64>(0));
    let mut found = BTreeMap::new();
    for seq in seqs.map_err(statement)? {
        let seq = seq.map_err(statement)?;
        Log { conn, no }.read(Seq(count(seq)), Filter::All, |_, decoded| {
            if let Event::ChunkEmitted {
                data: Some(data), ..
            } = &decoded.event
                && let Ok(compaction) = data.read::<Compaction>()
            {
                found.insert(compaction.id, seq);
            }
            Ok(ControlFlow::Break(()))
        })?;
    }
    Ok(found)
}

/// Finds the rows with values in the blocks.
fn find_rows(conn: &Connection, plan: &mut Plan) -> Result<(), StoreError> {
    type List = fn(&mut PlannedBlock) -> &mut Vec<RowKey>;
    let tables: [(&str, List); 3] = [
        (
            "SELECT execution_seq, iteration, idx, seq FROM thread_parts WHERE thread_no = ?1",
            |block| &mut block.parts,
        ),
        (
            "SELECT execution_seq, iteration, 0, answer_seq FROM thread_steps
             WHERE thread_no = ?1 AND answer_seq IS NOT NULL",
            |block| &mut block.answers,
        ),
        (
            "SELECT execution_seq, iteration, 0, end_seq FROM thread_steps
             WHERE thread_no = ?1 AND end_seq IS NOT NULL",
            |block| &mut block.ends,
        ),
    ];
    for (sql, list) in tables {
        let mut select = conn.prepare_cached(sql).map_err(statement)?;
        let rows = select.query_map([plan.no], |row| {
            Ok(RowKey {
                execution: row.get(0)?,
                iteration: row.get(1)?,
                idx: row.get(2)?,
                seq: row.get(3)?,
            })
        });
        for key in rows.map_err(statement)? {
            let key = key.map_err(statement)?;
            let seq = count(key.seq);
            let block = plan.blocks.range_mut(..=seq).next_back();
            if let Some((_, block)) = block.filter(|(_, block)| seq <= block.last) {
                list(block).push(key);
            }
        }
    }
    Ok(())
}

fn fault(conn: &Connection, no: i64, first: u64) -> impl Fn(BlockFault) -> StoreError {
    move |fault| blocks::damaged(conn, no, int(first), &fault)
}

/// Samples of what is erased.
pub(super) fn samples(conn: &Connection, thread: &ThreadId) -> Result<Samples, StoreError> {
    let plan = plan(conn, thread)?;
    let no = plan.no;
    let mut samples = Samples::default();
    for from in plan.blocks() {
        Log { conn, no }.read_blocks(Seq(from), Filter::All, |_, first, reader| {
            for decoded in reader {
                let Decoded { event, .. } = decoded.map_err(fault(conn, no, first))?;
                if let Some((_, erased)) = plan.erased(&event) {
                    samples.add_difference(&event, &erased);
                }
            }
            Ok(ControlFlow::Break(()))
        })?;
    }
    Ok(samples)
}

/// Erases a block of a thread. Whether it had content.
pub(super) fn erase_block(conn: &Connection, plan: &Plan, first: u64) -> Result<bool, StoreError> {
    let id = plan.thread.as_str();
    // The thread may have been deleted.
    let Some(mut end) = LogEnd::of(conn, id)?.filter(|end| end.no == plan.no) else {
        return Ok(false);
    };
    let mut found = None;
    Log { conn, no: plan.no }.read_blocks(Seq(first), Filter::All, |block, at, reader| {
        if at == first {
            found = rewritten(plan, block, reader).map_err(fault(conn, plan.no, first))?;
        }
        Ok(ControlFlow::Break(()))
    })?;
    let Some(Rewritten {
        id: block_id,
        events,
        block,
        fewer,
    }) = found
    else {
        return Ok(false);
    };
    replace(conn, block_id, &block)?;
    let places = Places {
        conn,
        no: plan.no,
        block: block_id,
        first,
        events: &events,
        ranges: &block.ranges,
    };
    if let Some(rows) = plan.blocks.get(&first) {
        places.correct(rows)?;
    }
    end.bytes = end.bytes.saturating_sub(fewer);
    let sql = "UPDATE thread_threads SET bytes = ?2, end_sum = ?3 WHERE no = ?1";
    let mut update = conn.prepare_cached(sql).map_err(statement)?;
    update
        .execute(params![end.no, end.bytes, end.end_sum(id)])
        .map_err(statement)?;
    Ok(true)
}

/// A block without the content of removed entries.
struct Rewritten {
    id: i64,
    events: Vec<Event>,
    block: Block,
    /// The bytes that its events' texts have less.
    fewer: i64,
}

fn rewritten(
    plan: &Plan,
    id: i64,
    reader: BlockReader<'_>,
) -> Result<Option<Rewritten>, BlockFault> {
    let mut all = Vec::new();
    let (mut has_changed, mut fewer) = (false, 0);
    for decoded in reader {
        let decoded = decoded?;
        let before = decoded.text()?;
        let Decoded { at, event, text } = decoded;
        if let Some((_, erased)) = plan.erased(&event) {
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
        id,
        events,
        block,
        fewer,
    }))
}

/// Stores another body. The digest of the first one stays.
fn replace(conn: &Connection, id: i64, block: &Block) -> Result<(), StoreError> {
    let sql = "SELECT body, erased FROM thread_blocks WHERE id = ?1";
    let mut select = conn.prepare_cached(sql).map_err(statement)?;
    let written = select.query_row([id], |row| {
        let before: Option<Erased> = row.get(1)?;
        let written = before.as_ref().and_then(|it| it.first_chunk::<32>());
        Ok(match written {
            Some(written) => *written,
            None => Sha256::digest(row.get_ref(0)?.as_blob()?).into(),
        })
    });
    let erased = blocks::erased(written.map_err(statement)?, &block.body);
    let sql = "UPDATE thread_blocks SET body = ?2, erased = ?3 WHERE id = ?1";
    let mut update = conn.prepare_cached(sql).map_err(statement)?;
    let updated = update.execute(params![id, block.body, erased]);
    updated.map(drop).map_err(statement)
}

/// Corrects the places in a block that the tables have.
struct Places<'a> {
    conn: &'a Connection,
    no: i64,
    block: i64,
    first: u64,
    events: &'a [Event],
    ranges: &'a ByteRanges,
}

impl Places<'_> {
    fn correct(&self, rows: &PlannedBlock) -> Result<(), StoreError> {
        let (no, block) = (self.no, self.block);
        for (seq, event) in (int(self.first)..).zip(self.events) {
            if let Event::ContextCreated { context } = event {
                let (offset, length) = self.range(context.content.as_ref());
                let sql = "UPDATE thread_contexts SET content_offset = ?3, content_length = ?4
                           WHERE thread_no = ?1 AND block = ?2";
                self.run(sql, params![no, block, offset, length])?;
            }
            if let Event::ItemCreated { item } = event {
                let (offset, length) = self.range(item.content.as_ref());
                let sql = "UPDATE thread_items SET content_offset = ?4, content_length = ?5
                           WHERE thread_no = ?1 AND seq = ?2 AND block = ?3";
                self.run(sql, params![no, seq, block, offset, length])?;
            }
        }
        for key in &rows.parts {
            let Some(Event::PartCreated { part, .. } | Event::PartUpdated { part, .. }) =
                self.event(key.seq)
            else {
                continue;
            };
            let (offset, length) = self.range(Some(part));
            let sql = "UPDATE thread_parts SET part_offset = ?6, part_length = ?7
                       WHERE thread_no = ?1 AND execution_seq = ?2 AND iteration = ?3 AND idx = ?4
                       AND block = ?5";
            let (execution, iteration, idx) = (key.execution, key.iteration, key.idx);
            self.run(
                sql,
                params![no, execution, iteration, idx, block, offset, length],
            )?;
        }
        self.correct_steps(rows)
    }

    fn correct_steps(&self, rows: &PlannedBlock) -> Result<(), StoreError> {
        let no = self.no;
        for key in &rows.answers {
            let Some(Event::ChunkEmitted { data, .. }) = self.event(key.seq) else {
                continue;
            };
            let (offset, length) = self.range(data.as_ref());
            let sql = "UPDATE thread_steps SET answer_offset = ?5, answer_length = ?6
                       WHERE thread_no = ?1 AND execution_seq = ?2 AND iteration = ?3 AND answer_block = ?4";
            let (execution, iteration) = (key.execution, key.iteration);
            self.run(
                sql,
                params![no, execution, iteration, self.block, offset, length],
            )?;
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
            let (calls, n_calls) = self.range(outcome.tool_calls.as_ref());
            let (results, n_results) = self.range(outcome.tool_execution_results.as_ref());
            let (open, n_open) = self.range(outcome.open_calls.as_ref());
            // A step without calls has no block, but it can have the text of an error.
            let sql = "UPDATE thread_steps
                       SET calls_offset = ?5, calls_length = ?6, results_offset = ?7, results_length = ?8,
                           open_offset = ?9, open_length = ?10, error_text = ?11
                       WHERE thread_no = ?1 AND execution_seq = ?2 AND iteration = ?3 AND end_seq = ?4";
            let values = params![
                no,
                key.execution,
                key.iteration,
                key.seq,
                calls,
                n_calls,
                results,
                n_results,
                open,
                n_open,
                outcome.error_text
            ];
            self.run(sql, values)?;
        }
        Ok(())
    }

    fn event(&self, seq: i64) -> Option<&Event> {
        let index = count(seq).checked_sub(self.first)?;
        self.events.get(usize::try_from(index).ok()?)
    }

    /// The offset and the length of a value.
    fn range(&self, of: Option<&Payload>) -> (Option<i64>, Option<i64>) {
        let range = of.and_then(|of| self.ranges.of(of));
        let number = |n: usize| int(n as u64);
        let offset = range.map(|ByteRange { offset, .. }| number(offset));
        (offset, range.map(|range| number(range.length)))
    }

    fn run(&self, sql: &str, values: impl rusqlite::Params) -> Result<(), StoreError> {
        let mut update = self.conn.prepare_cached(sql).map_err(statement)?;
        update.execute(values).map(drop).map_err(statement)
    }
}
