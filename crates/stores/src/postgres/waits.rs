//! The threads in which something waits for a person.

use super::connection::Conn;
use super::rows::threads;
use super::value::{Param, get, stored};
use crate::value::{count, instant, int};
use std::collections::BTreeMap;
use store::{KeyPattern, StoreError, TenantId, WaitingRow, WaitingRows};
use timeline::{Seq, ThreadId};
use tokio_postgres::types::Type;

/// A page of the tenant's threads in which something waits.
pub(super) async fn waiting(
    conn: &Conn,
    tenant: &TenantId,
    page: &WaitingRows,
) -> Result<Vec<WaitingRow>, StoreError> {
    // One thread is found by its number, many in the order of the list.
    let (one, key) = match &page.key {
        Some(KeyPattern::Key(key)) => (
            "w.thread_no = (SELECT no FROM thread_threads WHERE tenant = $1 AND key = $3)",
            Some(key),
        ),
        Some(KeyPattern::Prefix(prefix)) => (
            "starts_with((SELECT key FROM thread_threads WHERE no = w.thread_no), $3)",
            Some(prefix),
        ),
        None => ("$3::text IS NULL", None),
    };
    let sql = format!(
        "SELECT w.thread_no, w.calls_at, w.asks IS NOT NULL, w.number FROM thread_waits w
         WHERE w.tenant = $1 AND w.number > $2 AND {one} ORDER BY w.number LIMIT $4"
    );
    let tenant = stored(tenant.as_str());
    let after = page.after.map_or(0, int);
    let key = key.map(|key| stored(key));
    let limit = int(page.limit as u64);
    let values: [Param<'_>; 4] = [
        (&tenant, Type::TEXT),
        (&after, Type::INT8),
        (&key, Type::TEXT),
        (&limit, Type::INT8),
    ];
    let waits = conn.query(&sql, &values).await?;
    let numbers = waits.iter().map(|row| get(row, 0));
    let numbers: Vec<i64> = numbers.collect::<Result<_, _>>()?;
    let found = threads(conn, &numbers).await?;
    let mut found: BTreeMap<_, _> = found.into_iter().map(|it| (it.no, it.row)).collect();
    let mut rows = Vec::new();
    for (row, no) in waits.iter().zip(numbers) {
        let since: Option<i64> = get(row, 1)?;
        let Some(thread) = found.remove(&no) else {
            continue;
        };
        rows.push(WaitingRow {
            row: thread,
            calls_since: since.map(instant).transpose()?,
            may_ask: get(row, 2)?,
            number: count(get(row, 3)?),
        });
    }
    Ok(rows)
}

/// Notes that no request of a thread was open after an event.
pub(super) async fn settle(conn: &Conn, thread: &ThreadId, seq: Seq) -> Result<(), StoreError> {
    let thread = stored(thread.as_str());
    // The thread is locked as by appends, so that a message which arrives now counts on.
    let lock = "SELECT no FROM thread_threads WHERE id = $1 FOR NO KEY UPDATE";
    let Some(row) = conn.first(lock, &[(&thread, Type::TEXT)]).await? else {
        return Ok(());
    };
    let (no, seq): (i64, i64) = (get(&row, 0)?, int(seq.0));
    let values: [Param<'_>; 2] = [(&no, Type::INT8), (&seq, Type::INT8)];
    let sql = "DELETE FROM thread_waits WHERE thread_no = $1 AND asked <= $2 AND calls IS NULL";
    conn.execute(sql, &values).await?;
    let sql =
        "UPDATE thread_waits SET asks = NULL, asked = NULL WHERE thread_no = $1 AND asked <= $2";
    conn.execute(sql, &values).await
}
