//! A tenant's data as lines.

use crate::durable::lines::{
    CheckpointLine, ContentLine, EventsLine, Line, LineWriter, ObjectLine, TenantLine, ThreadLine,
    TokenLine,
};
use crate::durable::{TransferError, Transferred};
use crate::sqlite::blocks::{self, Erased, Log};
use crate::sqlite::connection::{exists, reading};
use crate::sqlite::error::statement;
use crate::sqlite::key::StoreKey;
use crate::sqlite::migrations::MIGRATIONS;
use crate::sqlite::schema;
use crate::sqlite::value::{count, instant, int};
use crate::value::hex;
use rusqlite::{Connection, Row};
use std::io::Write;
use std::ops::ControlFlow;
use std::path::Path;
use store::{Filter, StoreError};
use timeline::Seq;

/// Writes all data of a tenant, from one snapshot. Blocks. The store may be served meanwhile. Each line is one
/// write. One block of events or one content is in memory.
///
/// # Errors
///
/// [`TransferError::NoTenant`] if there is nothing of the tenant, [`TransferError::Io`] if it can't be written,
/// [`TransferError::Store`] if the store can't be read.
pub fn export_tenant(
    store: &Path,
    key: Option<&StoreKey>,
    tenant: &str,
    to: &mut (dyn Write + Send),
) -> Result<Transferred, TransferError> {
    exists(store)?;
    let conn = reading(store, key)?;
    schema::known(&conn, MIGRATIONS)?;
    let conn = conn.unchecked_transaction().map_err(statement)?;
    if !has_any(&conn, tenant)? {
        return Err(TransferError::NoTenant(tenant.to_owned()));
    }
    let mut lines = LineWriter::new(to);
    lines.write(&Line::Tenant(TenantLine::now(tenant)))?;
    threads(&conn, tenant, &mut lines)?;
    beside(&conn, tenant, &mut lines)?;
    lines.end()
}

fn has_any(conn: &Connection, tenant: &str) -> Result<bool, StoreError> {
    let sql = "SELECT EXISTS (SELECT 1 FROM thread_threads WHERE tenant = ?1)
                   OR EXISTS (SELECT 1 FROM tenant_objects WHERE tenant = ?1)
                   OR EXISTS (SELECT 1 FROM agent_checkpoints WHERE tenant = ?1)";
    conn.query_row(sql, [tenant], |row| row.get(0))
        .map_err(statement)
}

/// A line for each row of the tenant.
fn write_rows(
    lines: &mut LineWriter<'_>,
    conn: &Connection,
    sql: &str,
    of: impl rusqlite::Params,
    line: impl Fn(&Row<'_>) -> rusqlite::Result<Line>,
) -> Result<(), TransferError> {
    let mut select = conn.prepare_cached(sql).map_err(statement)?;
    let mut rows = select.query(of).map_err(statement)?;
    while let Some(row) = rows.next().map_err(statement)? {
        lines.write(&line(row).map_err(statement)?)?;
    }
    Ok(())
}

// A fork has a higher number than its parent, which can't be deleted before it.
fn threads(
    conn: &Connection,
    tenant: &str,
    lines: &mut LineWriter<'_>,
) -> Result<(), TransferError> {
    let sql =
        "SELECT t.no, t.id, t.key, p.id, t.fork_seq, t.created_at, t.head_seq, t.bytes, t.change
               FROM thread_threads t LEFT JOIN thread_threads p ON p.no = t.fork_no
               WHERE t.tenant = ?1 ORDER BY t.no";
    let mut select = conn.prepare(sql).map_err(statement)?;
    let mut rows = select.query([tenant]).map_err(statement)?;
    while let Some(row) = rows.next().map_err(statement)? {
        let no: i64 = row.get(0).map_err(statement)?;
        let created_at: i64 = row.get(5).map_err(statement)?;
        lines.write(&Line::Thread(ThreadLine {
            id: row.get(1).map_err(statement)?,
            key: row.get(2).map_err(statement)?,
            parent: row.get(3).map_err(statement)?,
            fork_seq: row.get(4).map_err(statement)?,
            created_at: instant(created_at)?,
            events: row.get(6).map_err(statement)?,
            bytes: row.get(7).map_err(statement)?,
            change: row.get(8).map_err(statement)?,
        }))?;
        events(conn, no, lines)?;
        let sql =
            "SELECT token, answer, seq FROM thread_tokens WHERE thread_no = ?1 ORDER BY seq, token";
        write_rows(lines, conn, sql, [no], |row| {
            Ok(Line::Token(TokenLine {
                token: row.get(0)?,
                answer: row.get(1)?,
                seq: row.get(2)?,
            }))
        })?;
    }
    Ok(())
}

/// A line for each block of a log.
fn events(conn: &Connection, no: i64, lines: &mut LineWriter<'_>) -> Result<(), TransferError> {
    let mut about = conn
        .prepare_cached("SELECT epoch, erased FROM thread_blocks WHERE id = ?1")
        .map_err(statement)?;
    // What writing fails with is no error of the store.
    let mut failed = None;
    let log = Log { conn, no };
    log.read_blocks(Seq(1), Filter::All, |block, first, reader| {
        let (epoch, erased): (i64, Option<Erased>) = about
            .query_row([block], |row| Ok((row.get(0)?, row.get(1)?)))
            .map_err(statement)?;
        let line = EventsLine::of(first, count(epoch), erased.as_ref(), reader);
        let line = line.map_err(|fault| blocks::damaged(conn, no, int(first), &fault))?;
        failed = lines.write(&Line::Events(line)).err();
        Ok(match failed {
            Some(_) => ControlFlow::Break(()),
            None => ControlFlow::Continue(()),
        })
    })?;
    failed.map_or(Ok(()), Err)
}

/// Contents, objects and checkpoints. They are read in the order of the tables: an index of tenants would make
/// SQLite sort them in memory.
fn beside(
    conn: &Connection,
    tenant: &str,
    lines: &mut LineWriter<'_>,
) -> Result<(), TransferError> {
    let sql =
        "SELECT sha256, content FROM tenant_contents NOT INDEXED WHERE tenant = ?1 ORDER BY no";
    write_rows(lines, conn, sql, [tenant], |row| {
        let hash: [u8; 32] = row.get(0)?;
        let content = row.get_ref(1)?.as_blob()?;
        Ok(Line::Content(ContentLine::of(&hash, content)))
    })?;
    let sql = "SELECT o.kind, o.id, o.created_at, t.id, c.sha256, o.json
               FROM tenant_objects o NOT INDEXED
               LEFT JOIN thread_threads t ON t.no = o.thread_no
               LEFT JOIN tenant_contents c ON c.no = o.content_no
               WHERE o.tenant = ?1 ORDER BY o.no";
    write_rows(lines, conn, sql, [tenant], |row| {
        let content: Option<[u8; 32]> = row.get(4)?;
        Ok(Line::Object(ObjectLine {
            kind: row.get(0)?,
            id: row.get(1)?,
            created_at: row.get(2)?,
            thread: row.get(3)?,
            content: content.map(|hash| hex(&hash)),
            text: row.get(5)?,
        }))
    })?;
    let sql = "SELECT session_id, checkpoint_id, saved_at, step, agent_id, state
               FROM agent_checkpoints NOT INDEXED WHERE tenant = ?1 ORDER BY no";
    write_rows(lines, conn, sql, [tenant], |row| {
        Ok(Line::Checkpoint(CheckpointLine {
            session_id: row.get(0)?,
            checkpoint_id: row.get(1)?,
            saved_at: row.get(2)?,
            step: row.get(3)?,
            agent_id: row.get(4)?,
            state: row.get(5)?,
        }))
    })
}
