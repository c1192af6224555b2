//! Removed items and steps: their content leaves the blocks, and the chain of sums stays.

use crate::block::BlockReader;
use crate::durable::{NewRanges, Plan, RowKey, RowValue, Samples, ValueRange};
use crate::postgres::blocks::{Blocks, Log};
use crate::postgres::connection::Conn;
use crate::postgres::objects::Change;
use crate::postgres::rows::number;
use crate::postgres::value::{Param, get, stored, text};
use crate::sum::{erased, written};
use crate::value::{count, int};
use std::collections::BTreeMap;
use store::{StoreError, TenantId};
use timeline::{Compaction, CompactionId, Event, Removed, Seq, ThreadId};
use tokio_postgres::types::Type;

/// The tables that lose content.
pub(super) const TABLES: [&str; 3] = ["thread_blocks", "thread_steps", "thread_words"];

/// The threads of a tenant with removed entries.
pub(super) async fn threads(conn: &Conn, tenant: &TenantId) -> Result<Vec<ThreadId>, StoreError> {
    let sql = "SELECT t.id FROM thread_threads t WHERE t.tenant = $1
               AND EXISTS (SELECT 1 FROM thread_removals r
                           WHERE r.thread_no = t.no AND NOT starts_with(r.target, 'compacted '))
               ORDER BY t.no";
    let tenant = stored(tenant.as_str());
    let rows = conn.query(sql, &[(&tenant, Type::TEXT)]).await?;
    rows.iter().map(|row| Ok(text(row, 0)?.into())).collect()
}

/// Finds the entries and the blocks that are to be erased. Reads the log from the first removed entry on.
pub(super) async fn plan(conn: &Conn, thread: &ThreadId) -> Result<Plan, StoreError> {
    let no = number(conn, thread).await?;
    let mut plan = Plan::of(no, thread);
    let mut compactions = None;
    // Whether a fork was made between the entry and its removal.
    let sql = "SELECT r.target, r.seq, e.seq, EXISTS (
                   SELECT 1 FROM thread_threads f WHERE f.fork_no = $1 AND f.fork_seq >= e.seq AND f.fork_seq < r.seq)
               FROM thread_removals r LEFT JOIN LATERAL (
                   SELECT i.seq FROM thread_items i
                   WHERE i.thread_no = $1 AND starts_with(r.target, 'item ') AND i.id = substr(r.target, 6)
                   UNION ALL
                   (SELECT s.seq FROM thread_steps s
                    WHERE s.thread_no = $1 AND starts_with(r.target, 'step ') AND s.id = substr(r.target, 6)
                    ORDER BY s.execution_seq DESC, s.iteration DESC LIMIT 1)) e ON true
               WHERE r.thread_no = $1 AND NOT starts_with(r.target, 'compacted ') ORDER BY r.target";
    for row in conn.query(sql, &[(&no, Type::INT8)]).await? {
        let target = text(&row, 0)?;
        let Ok(what) = target.parse::<Removed>() else {
            let what = format!("thread {thread}: {target:?} can't be removed");
            return Err(StoreError::Damaged(what));
        };
        let (removed_at, mut seq): (i64, Option<i64>) = (get(&row, 1)?, get(&row, 2)?);
        let mut is_shown: bool = get(&row, 3)?;
        if let Removed::Compaction(id) = &what {
            if compactions.is_none() {
                compactions = Some(compacted(conn, no).await?);
            }
            seq = compactions.as_ref().and_then(|all| all.get(id).copied());
            if let Some(seq) = seq {
                is_shown = is_forked(conn, no, seq, removed_at).await?;
            }
        }
        match seq {
            None => plan.keep_in_parent(),
            Some(_) if is_shown => plan.keep_for_forks(),
            Some(seq) => plan.erase(what, seq),
        }
    }
    let Some(from) = plan.from() else {
        return Ok(plan);
    };
    let mut blocks = Blocks::since(conn, no, from).await?;
    while let Some(block) = blocks.next().await? {
        let reader = BlockReader::new(block.body()?);
        let looked = reader.and_then(|reader| plan.look_at(block.first(), reader));
        looked.map_err(blocks.fault(block.first()))?;
    }
    find_rows(conn, &mut plan).await?;
    Ok(plan)
}

/// Whether a thread has a fork at or after an event and before its removal.
async fn is_forked(conn: &Conn, no: i64, seq: i64, removed_at: i64) -> Result<bool, StoreError> {
    let sql = "SELECT EXISTS (SELECT 1 FROM thread_threads WHERE fork_no = $1 AND fork_seq >= $2 AND fork_seq < $3)";
    let values: [Param<'_>; 3] = [
        (&no, Type::INT8),
        (&seq, Type::INT8),
        (&removed_at, Type::INT8),
    ];
    let row = conn.first(sql, &values).await?;
    get(&row.ok_or(StoreError::NotFound)?, 0)
}

/// The compactions of a log, and their events.
async fn compacted(conn: &Conn, no: i64) -> Result<BTreeMap<CompactionId, i64>, StoreError> {
    let sql = "SELECT seq FROM thread_removals WHERE thread_no = $1 AND starts_with(target, 'compacted ')";
    let mut found = BTreeMap::new();
    for row in conn.query(sql, &[(&no, Type::INT8)]).await? {
        let seq: i64 = get(&row, 0)?;
        let event = Log::Numbered(no).event(conn, Seq(count(seq))).await?;
        if let Some(Event::ChunkEmitted {
            data: Some(data), ..
        }) = event
            && let Ok(compaction) = data.read::<Compaction>()
        {
            found.insert(compaction.id, seq);
        }
    }
    Ok(found)
}

/// Finds the rows with values in the blocks.
async fn find_rows(conn: &Conn, plan: &mut Plan) -> Result<(), StoreError> {
    let tables = [
        (
            RowValue::Part,
            "SELECT execution_seq, iteration, idx, seq FROM thread_parts WHERE thread_no = $1",
        ),
        (
            RowValue::Answer,
            "SELECT execution_seq, iteration, 0::bigint, answer_seq FROM thread_steps
             WHERE thread_no = $1 AND answer_seq IS NOT NULL",
        ),
        (
            RowValue::End,
            "SELECT execution_seq, iteration, 0::bigint, end_seq FROM thread_steps
             WHERE thread_no = $1 AND end_seq IS NOT NULL",
        ),
    ];
    for (value, sql) in tables {
        for row in conn.query(sql, &[(&plan.no, Type::INT8)]).await? {
            let key = RowKey {
                execution: get(&row, 0)?,
                iteration: get(&row, 1)?,
                idx: get(&row, 2)?,
                seq: get(&row, 3)?,
            };
            plan.add_row(value, key);
        }
    }
    Ok(())
}

/// Samples of what is erased.
pub(super) async fn samples(conn: &Conn, thread: &ThreadId) -> Result<Samples, StoreError> {
    let plan = plan(conn, thread).await?;
    let mut samples = Samples::default();
    for first in plan.blocks() {
        let mut blocks = Blocks::since(conn, plan.no, first).await?;
        if let Some(block) = blocks.next().await? {
            let reader = BlockReader::new(block.body()?);
            let added = reader.and_then(|reader| plan.add_samples(&mut samples, reader));
            added.map_err(blocks.fault(first))?;
        }
    }
    Ok(samples)
}

/// Erases a block of a thread, in a transaction. Whether it had content.
pub(super) async fn erase_block(conn: &Conn, plan: &Plan, first: u64) -> Result<bool, StoreError> {
    // Appends to the thread wait. It may have been deleted.
    let sql = "SELECT tenant FROM thread_threads WHERE id = $1 AND no = $2 FOR NO KEY UPDATE";
    let id = stored(plan.thread.as_str());
    let values: [Param<'_>; 2] = [(&id, Type::TEXT), (&plan.no, Type::INT8)];
    let Some(row) = conn.first(sql, &values).await? else {
        return Ok(false);
    };
    let tenant: String = get(&row, 0)?;
    let mut blocks = Blocks::since(conn, plan.no, first).await?;
    let block = blocks.next().await?;
    let Some(block) = block.filter(|block| block.first() == first) else {
        return Ok(false);
    };
    let reader = BlockReader::new(block.body()?);
    let rewritten = reader.and_then(|reader| plan.rewritten(first, reader));
    let Some(rewritten) = rewritten.map_err(blocks.fault(first))? else {
        return Ok(false);
    };
    let digests = erased(
        written(block.body()?, block.erased.as_ref()),
        &rewritten.block.body,
    );
    let digests = digests.as_slice();
    let place = int(first);
    let sql = "UPDATE thread_blocks SET body = $3, erased = $4 WHERE thread_no = $1 AND first = $2";
    let values: [Param<'_>; 4] = [
        (&plan.no, Type::INT8),
        (&place, Type::INT8),
        (&rewritten.block.body, Type::BYTEA),
        (&digests, Type::BYTEA),
    ];
    conn.execute(sql, &values).await?;
    let rows = Rows {
        conn,
        no: plan.no,
        block: place,
    };
    rows.correct(&rewritten.ranges(plan)).await?;
    let sql = "UPDATE thread_threads SET bytes = bytes - $2 WHERE no = $1";
    let values: [Param<'_>; 2] = [(&plan.no, Type::INT8), (&rewritten.fewer, Type::INT8)];
    conn.execute(sql, &values).await?;
    let change = Change {
        bytes: -rewritten.fewer,
        ..Change::default()
    };
    change.note(conn, &tenant).await?;
    Ok(true)
}

/// The rows that have ranges in a block.
struct Rows<'a> {
    conn: &'a Conn,
    no: i64,
    block: i64,
}

/// The offsets and the lengths of ranges.
fn columns(ranges: impl Iterator<Item = ValueRange>) -> (Vec<Option<i64>>, Vec<Option<i64>>) {
    ranges.unzip()
}

impl Rows<'_> {
    async fn correct(&self, ranges: &NewRanges<'_>) -> Result<(), StoreError> {
        if let Some((offset, length)) = ranges.context {
            let sql = "UPDATE thread_contexts SET content_offset = $3, content_length = $4
                       WHERE thread_no = $1 AND block = $2";
            self.run(sql, &[(&offset, Type::INT8), (&length, Type::INT8)])
                .await?;
        }
        let items = ranges.items.iter().map(|(seq, _)| *seq);
        self.correct_items(
            "UPDATE thread_items i SET content_offset = r.o, content_length = r.l
             FROM unnest($3::bigint[], $4::bigint[], $5::bigint[]) r (seq, o, l)
             WHERE i.thread_no = $1 AND i.block = $2 AND i.seq = r.seq",
            items.clone().collect(),
            ranges.items.iter().map(|(_, place)| *place),
        )
        .await?;
        let parts = ranges.parts.iter().map(|(key, place)| (key.seq, *place));
        let texts = ranges.items.iter().copied().chain(parts);
        self.correct_items(
            "UPDATE thread_words w SET text_offset = r.o, text_length = r.l
             FROM unnest($3::bigint[], $4::bigint[], $5::bigint[]) r (seq, o, l)
             WHERE w.thread_no = $1 AND w.block = $2 AND w.seq = r.seq",
            texts.clone().map(|(seq, _)| seq).collect(),
            texts.map(|(_, place)| place),
        )
        .await?;
        self.correct_parts(&ranges.parts).await?;
        self.correct_steps(ranges).await
    }

    async fn correct_items(
        &self,
        sql: &str,
        seqs: Vec<i64>,
        ranges: impl Iterator<Item = ValueRange> + Send,
    ) -> Result<(), StoreError> {
        let (offsets, lengths) = columns(ranges);
        let values: [Param<'_>; 3] = [
            (&seqs, Type::INT8_ARRAY),
            (&offsets, Type::INT8_ARRAY),
            (&lengths, Type::INT8_ARRAY),
        ];
        self.run(sql, &values).await
    }

    async fn correct_parts(&self, parts: &[(RowKey, ValueRange)]) -> Result<(), StoreError> {
        let (offsets, lengths) = columns(parts.iter().map(|(_, place)| *place));
        let column =
            |of: fn(&RowKey) -> i64| -> Vec<i64> { parts.iter().map(|(key, _)| of(key)).collect() };
        let (executions, iterations) = (column(|it| it.execution), column(|it| it.iteration));
        let indices = column(|it| it.idx);
        let sql = "UPDATE thread_parts p SET part_offset = r.o, part_length = r.l
                   FROM unnest($3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[])
                       r (execution, iteration, idx, o, l)
                   WHERE p.thread_no = $1 AND p.block = $2 AND p.execution_seq = r.execution
                       AND p.iteration = r.iteration AND p.idx = r.idx";
        let values: [Param<'_>; 5] = [
            (&executions, Type::INT8_ARRAY),
            (&iterations, Type::INT8_ARRAY),
            (&indices, Type::INT8_ARRAY),
            (&offsets, Type::INT8_ARRAY),
            (&lengths, Type::INT8_ARRAY),
        ];
        self.run(sql, &values).await
    }

    // Few steps have values in one block.
    async fn correct_steps(&self, ranges: &NewRanges<'_>) -> Result<(), StoreError> {
        for (key, (offset, length)) in &ranges.answers {
            let sql = "UPDATE thread_steps SET answer_offset = $5, answer_length = $6
                       WHERE thread_no = $1 AND answer_block = $2 AND execution_seq = $3 AND iteration = $4";
            let values: [Param<'_>; 4] = [
                (&key.execution, Type::INT8),
                (&key.iteration, Type::INT8),
                (offset, Type::INT8),
                (length, Type::INT8),
            ];
            self.run(sql, &values).await?;
        }
        for (key, step) in &ranges.ends {
            let sql = "UPDATE thread_steps
                       SET calls_offset = $6, calls_length = $7, results_offset = $8, results_length = $9,
                           open_offset = $10, open_length = $11, error_text = $12
                       WHERE thread_no = $1 AND (end_block = $2 OR end_block IS NULL) AND execution_seq = $3
                           AND iteration = $4 AND end_seq = $5";
            let error_text = step.error_text.map(stored);
            let values: [Param<'_>; 10] = [
                (&key.execution, Type::INT8),
                (&key.iteration, Type::INT8),
                (&key.seq, Type::INT8),
                (&step.calls.0, Type::INT8),
                (&step.calls.1, Type::INT8),
                (&step.results.0, Type::INT8),
                (&step.results.1, Type::INT8),
                (&step.open.0, Type::INT8),
                (&step.open.1, Type::INT8),
                (&error_text, Type::TEXT),
            ];
            self.run(sql, &values).await?;
        }
        Ok(())
    }

    /// Does a statement with the thread, the block and these values.
    async fn run(&self, sql: &str, values: &[Param<'_>]) -> Result<(), StoreError> {
        let place: [Param<'_>; 2] = [(&self.no, Type::INT8), (&self.block, Type::INT8)];
        let values: Vec<_> = place.iter().chain(values).cloned().collect();
        self.conn.execute(sql, &values).await
    }
}
