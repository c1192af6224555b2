//! The sums of threads in stores of version 10, where the status counted to the row and not to the end of the log.

use super::error::statement;
use super::sums::{LogEnd, Made};
use rusqlite::{Connection, OptionalExtension as _, params};
use store::StoreError;

/// Gives threads the sums of version 11. A thread whose sum is wrong keeps it, so it is still found to be damaged.
pub(super) fn reseal(conn: &Connection) -> Result<(), StoreError> {
    let mut after = 0;
    while let Some(no) = next(conn, after)? {
        thread(conn, no)?;
        after = no;
    }
    Ok(())
}

fn next(conn: &Connection, after: i64) -> Result<Option<i64>, StoreError> {
    let sql = "SELECT no FROM thread_threads WHERE no > ?1 ORDER BY no LIMIT 1";
    let mut select = conn.prepare_cached(sql).map_err(statement)?;
    let found = select.query_row([after], |row| row.get(0)).optional();
    found.map_err(statement)
}

fn thread(conn: &Connection, no: i64) -> Result<(), StoreError> {
    let Some(made) = Made::of(conn, no)? else {
        return Ok(());
    };
    let sql = format!(
        "SELECT {} FROM thread_threads t WHERE t.no = ?1",
        LogEnd::COLUMNS
    );
    let mut select = conn.prepare_cached(&sql).map_err(statement)?;
    let (end, end_sum) = select
        .query_row([no], |row| LogEnd::read(row, 0))
        .map_err(statement)?;
    let row_sum = (made.stored == Some(made.sum_with(Some(end.status)))).then(|| made.sum());
    let is_whole = end_sum == Some(end.sum_with(&made.id, None));
    let end_sum = is_whole.then(|| end.end_sum(&made.id));
    let sql =
        "UPDATE thread_threads SET row_sum = coalesce(?2, row_sum), end_sum = coalesce(?3, end_sum)
               WHERE no = ?1";
    let mut update = conn.prepare_cached(sql).map_err(statement)?;
    update
        .execute(params![no, row_sum, end_sum])
        .map_err(statement)?;
    Ok(())
}
