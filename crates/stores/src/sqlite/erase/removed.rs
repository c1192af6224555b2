//! Removed items and steps: their content leaves the blocks, and the chain of sums stays.

use super::super::blocks::{self, Erased, Log};
use super::super::error::statement;
use super::super::rows;
use super::super::sums::LogEnd;
use super::super::value::{count, int};
use super::samples::Samples;
use crate::block::{Block, BlockFault, BlockReader, BlockWriter, ByteRange, ByteRanges, Decoded};
use rusqlite::{Connection, OptionalExtension, params};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use store::{Filter, StoreError, TenantId};
use timeline::{Event, Payload, Removed, Seq, ThreadId};

/// The counts of an erasure of removed entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ErasedEntries {
    /// Removed items and steps that have no content now.
    pub entries: u64,
    /// Blocks that were written anew.
    pub blocks: u64,
    /// Removed items and steps that stay, because a fork was made before their removal and shows them.
    pub shown_by_forks: u64,
}

/// The removed entries of a thread, and the blocks with their content.
pub(super) struct Plan {
    no: i64,
    thread: ThreadId,
    entries: BTreeSet<Removed>,
    /// The first events of the blocks that have content of them.
    blocks: Vec<u64>,
    shown_by_forks: u64,
}

impl Plan {
    pub(super) fn counts(&self) -> ErasedEntries {
        ErasedEntries {
            entries: self.entries.len() as u64,
            blocks: 0,
            shown_by_forks: self.shown_by_forks,
        }
    }

    pub(super) fn blocks(&self) -> impl Iterator<Item = u64> + use<> {
        self.blocks.clone().into_iter()
    }

    fn erased(&self, event: &Event) -> Option<Event> {
        event.erased(|what| self.entries.contains(what))
    }
}

/// The threads of a tenant with removed entries.
pub(super) fn threads(conn: &Connection, tenant: &TenantId) -> Result<Vec<ThreadId>, StoreError> {
    let sql = "SELECT t.id FROM thread_threads t WHERE t.tenant = ?1
               AND EXISTS (SELECT 1 FROM thread_removals r WHERE r.thread_no = t.no) ORDER BY t.no";
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
        blocks: Vec::new(),
        shown_by_forks: 0,
    };
    let mut from = None;
    let sql = "SELECT target, seq FROM thread_removals WHERE thread_no = ?1";
    let mut select = conn.prepare_cached(sql).map_err(statement)?;
    let removals = select
        .query_map([no], |row| Ok((row.get::<_, String>(0)?, row.get(1)?)))
        .map_err(statement)?;
    for removal in removals {
        let (target, removed_at): (String, i64) = removal.map_err(statement)?;
        // An entry that a fork has removed is in the log of its parent.
        let Some((what, seq)) = entry(conn, no, &target)? else {
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
    let mut blocks = Vec::new();
    Log { conn, no }.read_blocks(Seq(count(from)), Filter::All, |_, first, reader| {
        for decoded in reader {
            let Decoded { event, .. } = decoded.map_err(fault(conn, no, first))?;
            if plan.erased(&event).is_some() {
                blocks.push(first);
                break;
            }
        }
        Ok(ControlFlow::Continue(()))
    })?;
    plan.blocks = blocks;
    Ok(plan)
}

/// A removed entry that the log has, and where.
fn entry(conn: &Connection, no: i64, target: &str) -> Result<Option<(Removed, i64)>, StoreError> {
    let (sql, id, what) = if let Some(id) = target.strip_prefix("item ") {
        let sql = "SELECT seq FROM thread_items WHERE thread_no = ?1 AND id = ?2";
        (sql, id, Removed::Item(id.into()))
    } else if let Some(id) = target.strip_prefix("step ") {
        let sql = "SELECT seq FROM thread_steps WHERE thread_no = ?1 AND id = ?2";
        (sql, id, Removed::Step(id.into()))
    } else {
        return Ok(None);
    };
    let mut select = conn.prepare_cached(sql).map_err(statement)?;
    let seq = select.query_row(params![no, id], |row| row.get(0));
    Ok(seq.optional().map_err(statement)?.map(|seq| (what, seq)))
}

fn fault(conn: &Connection, no: i64, first: u64) -> impl Fn(BlockFault) -> StoreError {
    move |fault| blocks::damaged(conn, no, int(first), &fault)
}

/// Samples of what is erased.
pub(super) fn samples(conn: &Connection, thread: &ThreadId) -> Result<Samples, StoreError> {
    let plan = plan(conn, thread)?;
    let no = plan.no;
    let mut samples = Samples::default();
    for from in &plan.blocks {
        Log { conn, no }.read_blocks(Seq(*from), Filter::All, |_, first, reader| {
            for decoded in reader {
                let Decoded { event, .. } = decoded.map_err(fault(conn, no, first))?;
                if let Some(erased) = plan.erased(&event) {
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
    places.correct()?;
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
        if let Some(erased) = plan.erased(&event) {
            has_changed = true;
            fewer += int(before.len() as u64) - int(erased.encode()?.len() as u64);
            all.push((at, erased, None));
        } else {
            all.push((at, event, text.map(str::to_owned)));
        }
    }
    let Some((first, ..)) = all.first().filter(|_| has_changed) else {
        return Ok(None);
    };
    let mut writer = BlockWriter::new(*first);
    for (at, event, raw) in &all {
        writer.add(*at, event, raw.as_deref());
    }
    let block = writer.finish();
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

/// The key of a row of steps or parts, and the event with its value.
type Row = (i64, i64, i64, Option<i64>);

impl Places<'_> {
    fn correct(&self) -> Result<(), StoreError> {
        let (no, block) = (self.no, self.block);
        let last = int(self.first.saturating_add(self.events.len() as u64)) - 1;
        for event in self.events {
            if let Event::ContextCreated { context } = event {
                let (offset, length) = self.range(context.content.as_ref());
                let sql = "UPDATE thread_contexts SET content_offset = ?3, content_length = ?4
                           WHERE thread_no = ?1 AND block = ?2";
                self.run(sql, params![no, block, offset, length])?;
            }
        }
        let sql = "SELECT seq, 0, 0, seq FROM thread_items
                   WHERE thread_no = ?1 AND seq BETWEEN ?3 AND ?4 AND block = ?2";
        for (seq, _, _, event) in self.rows(sql, last)? {
            let Some(Event::ItemCreated { item }) = self.event(event) else {
                continue;
            };
            let (offset, length) = self.range(item.content.as_ref());
            let sql = "UPDATE thread_items SET content_offset = ?3, content_length = ?4
                       WHERE thread_no = ?1 AND seq = ?2";
            self.run(sql, params![no, seq, offset, length])?;
        }
        let sql = "SELECT execution_seq, iteration, idx, seq FROM thread_parts
                   WHERE thread_no = ?1 AND block = ?2 AND seq BETWEEN ?3 AND ?4";
        for (execution, iteration, idx, event) in self.rows(sql, last)? {
            let Some(Event::PartCreated { part, .. } | Event::PartUpdated { part, .. }) =
                self.event(event)
            else {
                continue;
            };
            let (offset, length) = self.range(Some(part));
            let sql = "UPDATE thread_parts SET part_offset = ?5, part_length = ?6
                       WHERE thread_no = ?1 AND execution_seq = ?2 AND iteration = ?3 AND idx = ?4";
            self.run(sql, params![no, execution, iteration, idx, offset, length])?;
        }
        self.correct_steps(last)
    }

    fn correct_steps(&self, last: i64) -> Result<(), StoreError> {
        let no = self.no;
        let sql = "SELECT execution_seq, iteration, 0, answer_seq FROM thread_steps
                   WHERE thread_no = ?1 AND answer_block = ?2 AND answer_seq BETWEEN ?3 AND ?4";
        for (execution, iteration, _, event) in self.rows(sql, last)? {
            let Some(Event::ChunkEmitted { data, .. }) = self.event(event) else {
                continue;
            };
            let (offset, length) = self.range(data.as_ref());
            let sql = "UPDATE thread_steps SET answer_offset = ?4, answer_length = ?5
                       WHERE thread_no = ?1 AND execution_seq = ?2 AND iteration = ?3";
            self.run(sql, params![no, execution, iteration, offset, length])?;
        }
        let sql = "SELECT execution_seq, iteration, 0, end_seq FROM thread_steps
                   WHERE thread_no = ?1 AND end_seq BETWEEN ?3 AND ?4 AND ?2 > 0";
        for (execution, iteration, _, event) in self.rows(sql, last)? {
            let event = self.event(event);
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
            let sql = "UPDATE thread_steps
                       SET calls_offset = ?4, calls_length = ?5, results_offset = ?6, results_length = ?7,
                           open_offset = ?8, open_length = ?9, error_text = ?10
                       WHERE thread_no = ?1 AND execution_seq = ?2 AND iteration = ?3";
            let ranges = params![
                no,
                execution,
                iteration,
                calls,
                n_calls,
                results,
                n_results,
                open,
                n_open,
                outcome.error_text
            ];
            self.run(sql, ranges)?;
        }
        Ok(())
    }

    /// The rows with a value in the block.
    fn rows(&self, sql: &str, last: i64) -> Result<Vec<Row>, StoreError> {
        let mut select = self.conn.prepare_cached(sql).map_err(statement)?;
        let rows = select
            .query_map(params![self.no, self.block, int(self.first), last], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
            })
            .map_err(statement)?;
        rows.collect::<Result<_, _>>().map_err(statement)
    }

    fn event(&self, seq: Option<i64>) -> Option<&Event> {
        let index = count(seq?).checked_sub(self.first)?;
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
