//! Removed items and steps: their content leaves the blocks, and the chain of sums stays.

use super::super::blocks::{self, Log};
use super::super::error::statement;
use super::super::rows;
use super::super::sums::LogEnd;
use super::super::value::{count, int};
use crate::block::{Block, BlockFault};
use crate::durable::{NewRanges, Plan, RowKey, RowValue, Samples};
use crate::sum::{Erased, erased, written};
use rusqlite::{Connection, OptionalExtension, params};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use store::{Filter, StoreError, TenantId};
use timeline::{Compaction, CompactionId, Event, Removed, Seq, ThreadId};

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
    let mut plan = Plan::of(no, thread);
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
            plan.keep_in_parent();
            continue;
        };
        let sql = "SELECT EXISTS (SELECT 1 FROM thread_threads
                   WHERE fork_no = ?1 AND fork_seq >= ?2 AND fork_seq < ?3)";
        let is_shown: bool = conn
            .query_row(sql, [no, seq, removed_at], |row| row.get(0))
            .map_err(statement)?;
        if is_shown {
            plan.keep_for_forks();
        } else {
            plan.erase(what, seq);
        }
    }
    let Some(from) = plan.from() else {
        return Ok(plan);
    };
    Log { conn, no }.read_blocks(Seq(from), Filter::All, |_, first, reader| {
        let looked = plan.look_at(first, reader);
        looked.map_err(fault(conn, no, first))?;
        Ok(ControlFlow::Continue(()))
    })?;
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
    let tables = [
        (
            RowValue::Part,
            "SELECT execution_seq, iteration, idx, seq FROM thread_parts WHERE thread_no = ?1",
        ),
        (
            RowValue::Answer,
            "SELECT execution_seq, iteration, 0, answer_seq FROM thread_steps
             WHERE thread_no = ?1 AND answer_seq IS NOT NULL",
        ),
        (
            RowValue::End,
            "SELECT execution_seq, iteration, 0, end_seq FROM thread_steps
             WHERE thread_no = ?1 AND end_seq IS NOT NULL",
        ),
    ];
    for (value, sql) in tables {
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
            plan.add_row(value, key.map_err(statement)?);
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
            let added = plan.add_samples(&mut samples, reader);
            added.map_err(fault(conn, no, first))?;
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
            let rewritten = plan.rewritten(first, reader);
            found = rewritten
                .map_err(fault(conn, plan.no, first))?
                .map(|it| (block, it));
        }
        Ok(ControlFlow::Break(()))
    })?;
    let Some((block, rewritten)) = found else {
        return Ok(false);
    };
    replace(conn, block, &rewritten.block)?;
    let ranges = rewritten.ranges(plan);
    let rows = Rows {
        conn,
        no: plan.no,
        block,
    };
    rows.correct(&ranges)?;
    end.bytes = end.bytes.saturating_sub(rewritten.fewer);
    let sql = "UPDATE thread_threads SET bytes = ?2, end_sum = ?3 WHERE no = ?1";
    let mut update = conn.prepare_cached(sql).map_err(statement)?;
    update
        .execute(params![end.no, end.bytes, end.end_sum(id)])
        .map_err(statement)?;
    Ok(true)
}

/// Stores another body. The digest of the first one stays.
fn replace(conn: &Connection, id: i64, block: &Block) -> Result<(), StoreError> {
    let sql = "SELECT body, erased FROM thread_blocks WHERE id = ?1";
    let mut select = conn.prepare_cached(sql).map_err(statement)?;
    let written = select.query_row([id], |row| {
        let before: Option<Erased> = row.get(1)?;
        Ok(written(row.get_ref(0)?.as_blob()?, before.as_ref()))
    });
    let erased = erased(written.map_err(statement)?, &block.body);
    let sql = "UPDATE thread_blocks SET body = ?2, erased = ?3 WHERE id = ?1";
    let mut update = conn.prepare_cached(sql).map_err(statement)?;
    let updated = update.execute(params![id, block.body, erased]);
    updated.map(drop).map_err(statement)
}

/// The rows that have places in a block.
struct Rows<'a> {
    conn: &'a Connection,
    no: i64,
    block: i64,
}

impl Rows<'_> {
    fn correct(&self, ranges: &NewRanges<'_>) -> Result<(), StoreError> {
        let (no, block) = (self.no, self.block);
        if let Some((offset, length)) = ranges.context {
            let sql = "UPDATE thread_contexts SET content_offset = ?3, content_length = ?4
                       WHERE thread_no = ?1 AND block = ?2";
            self.run(sql, params![no, block, offset, length])?;
        }
        for (seq, (offset, length)) in &ranges.items {
            let sql = "UPDATE thread_items SET content_offset = ?4, content_length = ?5
                       WHERE thread_no = ?1 AND seq = ?2 AND block = ?3";
            self.run(sql, params![no, seq, block, offset, length])?;
        }
        for (key, (offset, length)) in &ranges.parts {
            let sql = "UPDATE thread_parts SET part_offset = ?6, part_length = ?7
                       WHERE thread_no = ?1 AND execution_seq = ?2 AND iteration = ?3 AND idx = ?4
                       AND block = ?5";
            let (execution, iteration, idx) = (key.execution, key.iteration, key.idx);
            self.run(
                sql,
                params![no, execution, iteration, idx, block, offset, length],
            )?;
        }
        for (key, (offset, length)) in &ranges.answers {
            let sql = "UPDATE thread_steps SET answer_offset = ?5, answer_length = ?6
                       WHERE thread_no = ?1 AND execution_seq = ?2 AND iteration = ?3 AND answer_block = ?4";
            let (execution, iteration) = (key.execution, key.iteration);
            self.run(
                sql,
                params![no, execution, iteration, block, offset, length],
            )?;
        }
        for (key, step) in &ranges.ends {
            let sql = "UPDATE thread_steps
                       SET calls_offset = ?5, calls_length = ?6, results_offset = ?7, results_length = ?8,
                           open_offset = ?9, open_length = ?10, error_text = ?11
                       WHERE thread_no = ?1 AND execution_seq = ?2 AND iteration = ?3 AND end_seq = ?4";
            let values = params![
                no,
                key.execution,
                key.iteration,
                key.seq,
                step.calls.0,
                step.calls.1,
                step.results.0,
                step.results.1,
                step.open.0,
                step.open.1,
                step.error_text
            ];
            self.run(sql, values)?;
        }
        Ok(())
    }

    fn run(&self, sql: &str, values: impl rusqlite::Params) -> Result<(), StoreError> {
        let mut update = self.conn.prepare_cached(sql).map_err(statement)?;
        update.execute(values).map(drop).map_err(statement)
    }
}
