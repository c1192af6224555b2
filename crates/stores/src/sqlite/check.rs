//! Looking a store over.

mod logs;

use super::checkpoints;
use super::error::statement;
use super::migrations::MIGRATIONS;
use super::objects;
use super::value::count;
use super::words;
use crate::durable::{PoisonedRun, Remedy, Stats, StoreFault};
use rusqlite::Connection;
use store::StoreError;
use store::objects::sha256;
use timeline::Interruption;

/// A part of the check: adds what it finds.
type Part<'a> = dyn Fn(&mut Vec<StoreFault>) -> Result<(), StoreError> + 'a;

/// Everything that is wrong.
pub(super) fn check(conn: &Connection) -> Result<Vec<StoreFault>, StoreError> {
    // One snapshot: a server may write meanwhile.
    words::prepare(conn)?;
    let conn = &conn.unchecked_transaction().map_err(statement)?;
    let scratch = scratch()?;
    let mut found = Vec::new();
    let parts: [&Part<'_>; 8] = [
        &|found| pages(conn, found),
        &|found| schema(conn, &scratch, found),
        &|found| logs::check(conn, &scratch, found),
        &|found| usage(conn, found),
        &|found| contents(conn, found),
        &|found| objects::check_all(conn, found),
        &|found| checkpoints::check(conn, found),
        &|found| words::check(conn, &scratch, found),
    ];
    for part in parts {
        match part(&mut found) {
            Ok(()) => {}
            Err(StoreError::Damaged(what)) => {
                found.push(StoreFault::of_store(what, Remedy::Restore));
            }
            Err(other) => return Err(other),
        }
    }
    Ok(found)
}

/// An empty database with the tables of a store.
fn scratch() -> Result<Connection, StoreError> {
    let scratch = Connection::open_in_memory().map_err(statement)?;
    for migration in MIGRATIONS {
        scratch.execute_batch(migration).map_err(statement)?;
    }
    scratch
        .execute_batch(
            "DROP TABLE old_events; DROP TABLE old_checkpoints;
             PRAGMA foreign_keys=OFF; PRAGMA synchronous=OFF;",
        )
        .map_err(statement)?;
    words::prepare(&scratch)?;
    Ok(scratch)
}

fn pages(conn: &Connection, found: &mut Vec<StoreFault>) -> Result<(), StoreError> {
    words::refresh(conn)?;
    let lines = texts(conn, "SELECT integrity_check FROM pragma_integrity_check")?;
    let lines = lines.into_iter().filter(|line| line != "ok");
    found.extend(lines.map(|line| StoreFault::of_store(line, Remedy::Restore)));
    let lines = texts(
        conn,
        "SELECT format('row %s of %s refers to no row of %s', rowid, \"table\", parent)
         FROM pragma_foreign_key_check",
    )?;
    found.extend(
        lines
            .into_iter()
            .map(|line| StoreFault::of_store(line, Remedy::Restore)),
    );
    Ok(())
}

/// Adds tables, indexes and triggers that are not those of this version. The tables of the full-text index are its own.
fn schema(
    conn: &Connection,
    scratch: &Connection,
    found: &mut Vec<StoreFault>,
) -> Result<(), StoreError> {
    let sql = "SELECT type || ' ' || name || ' of ' || tbl_name || ': ' || coalesce(sql, '') FROM main.sqlite_schema
               WHERE name NOT GLOB 'sqlite_*' AND name NOT GLOB 'thread_words_*' ORDER BY 1";
    let [ours, expected] = [texts(conn, sql)?, texts(scratch, sql)?];
    for other in ours.iter().filter(|it| !expected.contains(it)) {
        let name = other.split(':').next().unwrap_or_default();
        found.push(StoreFault::of_store(
            format!("the schema has another {name}"),
            Remedy::Restore,
        ));
    }
    for missing in expected.iter().filter(|it| !ours.contains(it)) {
        let name = missing.split(':').next().unwrap_or_default();
        found.push(StoreFault::of_store(
            format!("the schema lacks the {name}"),
            Remedy::Restore,
        ));
    }
    Ok(())
}

fn usage(conn: &Connection, found: &mut Vec<StoreFault>) -> Result<(), StoreError> {
    let mut lines = texts(
        conn,
        "SELECT format('content %d of tenant %s belongs to no object', c.no, c.tenant)
         FROM tenant_contents c
         WHERE NOT EXISTS (SELECT 1 FROM tenant_objects o WHERE o.content_no = c.no)",
    )?;
    lines.extend(texts(
        conn,
        "SELECT format('tenant %s stores %d threads, %d bytes and %d files, and its usage says %d, %d and %d',
                       f.tenant, f.threads, f.bytes, f.files, coalesce(u.threads, 0), coalesce(u.bytes, 0),
                       coalesce(u.files, 0))
         FROM (SELECT tenant, sum(threads) AS threads, sum(bytes) AS bytes, sum(files) AS files FROM (
                   SELECT tenant, 1 AS threads, bytes, 0 AS files FROM thread_threads
                   UNION ALL SELECT tenant, 0, octet_length(content), 0 FROM tenant_contents
                   UNION ALL SELECT tenant, 0, octet_length(json), content_no IS NOT NULL FROM tenant_objects
                   UNION ALL SELECT tenant, 0, 0, 0 FROM tenant_usage)
               GROUP BY tenant) f
         LEFT JOIN tenant_usage u ON u.tenant = f.tenant
         WHERE f.threads <> coalesce(u.threads, 0) OR f.bytes <> coalesce(u.bytes, 0)
            OR f.files <> coalesce(u.files, 0)",
    )?);
    lines.extend(texts(
        conn,
        "SELECT format('object %d of tenant %s has a content of tenant %s', o.no, o.tenant, c.tenant)
         FROM tenant_objects o JOIN tenant_contents c ON c.no = o.content_no WHERE c.tenant <> o.tenant",
    )?);
    found.extend(
        lines
            .into_iter()
            .map(|line| StoreFault::of_store(line, Remedy::Restore)),
    );
    Ok(())
}

// One content at a time is in memory.
fn contents(conn: &Connection, found: &mut Vec<StoreFault>) -> Result<(), StoreError> {
    let sql = "SELECT no, tenant, sha256, content FROM tenant_contents";
    let mut select = conn.prepare(sql).map_err(statement)?;
    let mut rows = select.query([]).map_err(statement)?;
    while let Some(row) = rows.next().map_err(statement)? {
        let (no, tenant): (i64, String) = (
            row.get(0).map_err(statement)?,
            row.get(1).map_err(statement)?,
        );
        let hash: [u8; 32] = row.get(2).map_err(statement)?;
        let content = row.get_ref(3).map_err(statement)?.as_blob();
        if content.is_ok_and(|content| sha256(content) != hash) {
            found.push(StoreFault::of_object(
                format!("tenant {tenant}, content {no}"),
                "it is not what was kept: its hash is another",
            ));
        }
    }
    Ok(())
}

fn texts(conn: &Connection, sql: &str) -> Result<Vec<String>, StoreError> {
    let mut select = conn.prepare(sql).map_err(statement)?;
    let rows = select.query_map([], |row| row.get(0)).map_err(statement)?;
    rows.collect::<Result<_, _>>().map_err(statement)
}

/// The last executions that were ended because processes died with them, newest first.
pub(super) fn poisoned(conn: &Connection) -> Result<Vec<PoisonedRun>, StoreError> {
    let sql = "SELECT t.tenant, coalesce(t.key, t.id), x.id
               FROM thread_executions x JOIN thread_threads t ON t.no = x.thread_no
               WHERE x.interruption_reason = ?1
               ORDER BY x.updated_at DESC LIMIT 20";
    let read = |row: &rusqlite::Row<'_>| {
        Ok(PoisonedRun {
            tenant: row.get(0)?,
            key: row.get(1)?,
            execution_id: row.get(2)?,
        })
    };
    let mut select = conn.prepare(sql).map_err(statement)?;
    let rows = select.query_map([Interruption::POISONED], read);
    rows.map_err(statement)?
        .collect::<Result<_, _>>()
        .map_err(statement)
}

/// Sizes and counts.
pub(super) fn stats(conn: &Connection) -> Result<Stats, StoreError> {
    let sql = "SELECT count(*), coalesce(sum(head_seq), 0), coalesce(sum(bytes), 0),
                      (SELECT user_version FROM pragma_user_version)
               FROM thread_threads";
    let read = |row: &rusqlite::Row<'_>| Ok([row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?]);
    let [n_threads, n_events, event_bytes, schema_version] =
        conn.query_row(sql, [], read).map_err(statement)?.map(count);
    Ok(Stats {
        n_threads,
        n_events,
        event_bytes,
        schema_version,
    })
}
