//! Adding to a restored backup what the next one has up to an instant.
//!
//! The log has the instant of each event, so it is exact. Objects, checkpoints and deletions have no history: they
//! stay as they were in the backup before the instant.

use super::apply::{forget, threads};
use super::take::{copy, ended};
use crate::block::BlockReader;
use crate::sqlite::append;
use crate::sqlite::blocks::{self, Erased, Sum, Summed};
use crate::sqlite::error::statement;
use crate::sqlite::value::nanos;
use jiff::Timestamp;
use rusqlite::{Connection, Row, params};
use std::collections::BTreeSet;
use store::StoreError;

/// Adds the commits of `next` whose events are not after `at`. Adds to `changed` the numbers of their threads.
pub(super) fn extend(
    to: &Connection,
    next: &Connection,
    at: Timestamp,
    changed: &mut BTreeSet<i64>,
) -> Result<(), StoreError> {
    for (no, id) in threads(next)? {
        let (end, sum) = match ended(to, no, &id)? {
            Some((end, Some(sum))) => (end, sum),
            Some((_, None)) | None => (0, beginning(next, no)?),
        };
        let Some(last) = last_block(next, no, (end, sum), at)? else {
            continue;
        };
        if end == 0 {
            replace(to, next, no, changed)?;
        } else {
            forget(to, no, end + 1)?;
        }
        free_blocks(to, next, (no, end, last), changed)?;
        let sql = "SELECT * FROM thread_blocks WHERE thread_no = ?1 AND first > ?2 AND first <= ?3
                   ORDER BY first";
        copy(next, sql, [no, end, last.first], to, "thread_blocks")?;
        let sql = "DELETE FROM thread_tokens WHERE thread_no = ?1";
        to.execute(sql, [no]).map_err(statement)?;
        let sql = "SELECT * FROM thread_tokens WHERE thread_no = ?1 AND seq <= ?2";
        copy(next, sql, [no, last.end], to, "thread_tokens")?;
        order(to, next, no)?;
        changed.insert(no);
    }
    Ok(())
}

/// The sum before the first block of a thread.
fn beginning(next: &Connection, no: i64) -> Result<Sum, StoreError> {
    let sql = "SELECT tenant, id FROM thread_threads WHERE no = ?1";
    let mut select = next.prepare_cached(sql).map_err(statement)?;
    let seed = select.query_row([no], |row| {
        Ok(blocks::seed(
            row.get_ref(0)?.as_str()?,
            row.get_ref(1)?.as_str()?,
        ))
    });
    seed.map_err(statement)
}

/// The last block of a thread that is added.
#[derive(Clone, Copy)]
struct Last {
    /// Its first event.
    first: i64,
    /// Its last event.
    end: i64,
}

/// The last block that continues the log and has no event after `at`.
fn last_block(
    next: &Connection,
    no: i64,
    (mut end, mut sum): (i64, Sum),
    at: Timestamp,
) -> Result<Option<Last>, StoreError> {
    // A backup of before version 11 has no erased blocks.
    let has_erased: bool = next
        .query_row(
            "SELECT EXISTS (SELECT 1 FROM pragma_table_info('thread_blocks') WHERE name = 'erased')",
            [],
            |row| row.get(0),
        )
        .map_err(statement)?;
    let erased = if has_erased { "erased" } else { "NULL" };
    let sql = format!(
        "SELECT first, n, facts, epoch, sum, body, {erased} FROM thread_blocks
         WHERE thread_no = ?1 AND first > ?2 ORDER BY first"
    );
    let mut select = next.prepare_cached(&sql).map_err(statement)?;
    let mut rows = select.query([no, end]).map_err(statement)?;
    let mut last = None;
    while let Some(row) = rows.next().map_err(statement)? {
        let (summed, after, is_early) = read(next, row, no, at)?;
        // A thread of this number and id that is another one does not continue it.
        if summed.first != end + 1 || summed.after(sum) != after || !is_early {
            break;
        }
        sum = after;
        end = summed.first + summed.n - 1;
        let first = summed.first;
        last = Some(Last { first, end });
    }
    Ok(last)
}

/// The parts of a block's sum, the sum, and whether all events of the block are not after `at`.
fn read(
    next: &Connection,
    row: &Row<'_>,
    no: i64,
    at: Timestamp,
) -> Result<(Summed, Sum, bool), StoreError> {
    let first = row.get(0).map_err(statement)?;
    let body: Vec<u8> = row.get(5).map_err(statement)?;
    let damaged = |fault| blocks::damaged(next, no, first, &fault);
    let erased: Option<Erased> = row.get(6).map_err(statement)?;
    let digest = blocks::digest(&body, erased.as_ref());
    let digest = digest
        .ok_or_else(|| blocks::damaged(next, no, first, &"its content is not what was written"))?;
    let mut is_early = true;
    for decoded in BlockReader::new(&body).map_err(damaged)? {
        is_early &= nanos(decoded.map_err(damaged)?.at) <= nanos(at);
    }
    let summed = Summed {
        first,
        n: row.get(1).map_err(statement)?,
        facts: row.get(2).map_err(statement)?,
        epoch: row.get(3).map_err(statement)?,
        digest,
    };
    Ok((summed, row.get(4).map_err(statement)?, is_early))
}

/// Makes the row of a thread that is newer than the backup. A thread with its number, id or key was deleted before
/// it was made, so it goes.
fn replace(
    to: &Connection,
    next: &Connection,
    no: i64,
    changed: &mut BTreeSet<i64>,
) -> Result<(), StoreError> {
    let sql = "SELECT id, tenant, key FROM thread_threads WHERE no = ?1";
    let (id, tenant, key): (String, String, Option<String>) = next
        .query_row(sql, [no], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .map_err(statement)?;
    let sql =
        "SELECT no FROM thread_threads WHERE no = ?1 OR id = ?2 OR (tenant = ?3 AND key = ?4)";
    delete_found(to, sql, params![no, id, tenant, key], changed)?;
    // The log tells the rest.
    let sql = "SELECT no, id, tenant, key, 'open' AS status, created_at, updated_at, 0 AS head_seq, 0 AS bytes,
                      epoch, change
               FROM thread_threads WHERE no = ?1";
    copy(next, sql, [no], to, "thread_threads")
}

/// A block number that another thread has was free again, so that thread was deleted.
fn free_blocks(
    to: &Connection,
    next: &Connection,
    (no, end, last): (i64, i64, Last),
    changed: &mut BTreeSet<i64>,
) -> Result<(), StoreError> {
    let sql = "SELECT id FROM thread_blocks WHERE thread_no = ?1 AND first > ?2 AND first <= ?3";
    let mut select = next.prepare_cached(sql).map_err(statement)?;
    let ids = select
        .query_map([no, end, last.first], |row| row.get::<_, i64>(0))
        .map_err(statement)?;
    for id in ids {
        let id = id.map_err(statement)?;
        let sql = "SELECT thread_no FROM thread_blocks WHERE id = ?1 AND thread_no <> ?2";
        delete_found(to, sql, params![id, no], changed)?;
    }
    Ok(())
}

/// Deletes the threads that a query finds, and their forks.
fn delete_found(
    to: &Connection,
    sql: &str,
    values: impl rusqlite::Params,
    changed: &mut BTreeSet<i64>,
) -> Result<(), StoreError> {
    let mut select = to.prepare_cached(sql).map_err(statement)?;
    let rows = select
        .query_map(values, |row| row.get(0))
        .map_err(statement)?;
    let mut found: Vec<i64> = rows.collect::<Result<_, _>>().map_err(statement)?;
    while let Some(no) = found.pop() {
        let sql = "SELECT no FROM thread_threads WHERE fork_no = ?1";
        let mut forks = to.prepare_cached(sql).map_err(statement)?;
        let rows = forks.query_map([no], |row| row.get(0)).map_err(statement)?;
        for fork in rows {
            found.push(fork.map_err(statement)?);
        }
        append::delete_all(to, no)?;
        changed.remove(&no);
    }
    Ok(())
}

/// Takes over the claim, and the place in the tenant's list.
fn order(to: &Connection, next: &Connection, no: i64) -> Result<(), StoreError> {
    let sql = "SELECT epoch, change FROM thread_threads WHERE no = ?1";
    let (epoch, change): (i64, i64) = next
        .query_row(sql, [no], |row| Ok((row.get(0)?, row.get(1)?)))
        .map_err(statement)?;
    let sql = "UPDATE thread_threads SET epoch = ?2, change = ?3 WHERE no = ?1";
    to.execute(sql, [no, epoch, change]).map_err(statement)?;
    Ok(())
}

/// Counts what each tenant stores.
pub(super) fn count_usage(to: &Connection) -> Result<(), StoreError> {
    to.execute_batch(
        "DELETE FROM tenant_usage;
         INSERT INTO tenant_usage (tenant, threads, bytes, files)
             SELECT tenant, sum(threads), sum(bytes), sum(files) FROM (
                 SELECT tenant, 1 AS threads, bytes, 0 AS files FROM thread_threads
                 UNION ALL SELECT tenant, 0, octet_length(content), 0 FROM tenant_contents
                 UNION ALL SELECT tenant, 0, octet_length(json), content_no IS NOT NULL FROM tenant_objects)
             GROUP BY tenant;",
    )
    .map_err(statement)
}
