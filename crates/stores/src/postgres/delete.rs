//! Deletes threads.

use super::connection::Conn;
use super::objects::{Change, delete_sidecars};
use super::value::{Param, get, stored};
use crate::value::count;
use store::{StoreError, TenantId};
use timeline::{Seq, ThreadId};
use tokio_postgres::types::Type;

/// The tables that refer to a thread by its number, children first.
pub(super) const TABLES: [&str; 10] = [
    "thread_words",
    "thread_waits",
    "thread_removals",
    "thread_parts",
    "thread_steps",
    "thread_executions",
    "thread_items",
    "thread_contexts",
    "thread_tokens",
    "thread_blocks",
];

/// Further tables that lose rows with a thread.
pub(super) const OTHERS: [&str; 3] = ["tenant_objects", "tenant_contents", "thread_threads"];

/// Deletes a thread with all its data and its sidecar objects, in a transaction.
pub(super) async fn delete(
    conn: &Conn,
    tenant: &TenantId,
    thread: &ThreadId,
    tail: Option<Seq>,
) -> Result<(), StoreError> {
    let (id, tenant) = (stored(thread.as_str()), stored(tenant.as_str()));
    // Appends to it and forks of it wait, and find it gone.
    let sql =
        "SELECT no, bytes, head_seq FROM thread_threads WHERE id = $1 AND tenant = $2 FOR UPDATE";
    let values: [Param<'_>; 2] = [(&id, Type::TEXT), (&tenant, Type::TEXT)];
    let row = conn
        .first(sql, &values)
        .await?
        .ok_or(StoreError::NotFound)?;
    let (no, bytes): (i64, i64) = (get(&row, 0)?, get(&row, 1)?);
    let found = Seq(count(get(&row, 2)?));
    if let Some(expected) = tail.filter(|tail| *tail != found) {
        let thread = thread.clone();
        return Err(StoreError::Conflict {
            thread,
            expected,
            found,
        });
    }
    let number: [Param<'_>; 1] = [(&no, Type::INT8)];
    let sql = "SELECT 1 AS fork FROM thread_threads WHERE fork_no = $1 LIMIT 1";
    if conn.first(sql, &number).await?.is_some() {
        let thread = thread.clone();
        return Err(StoreError::HasForks { thread });
    }
    for table in TABLES {
        let sql = format!("DELETE FROM {table} WHERE thread_no = $1");
        conn.execute(&sql, &number).await?;
    }
    let mut change = Change {
        threads: -1,
        bytes: -bytes,
        files: 0,
    };
    delete_sidecars(conn, no, &mut change).await?;
    conn.execute("DELETE FROM thread_threads WHERE no = $1", &number)
        .await?;
    change.note(conn, &tenant).await
}
