//! A tenant's data as lines.

use crate::block::BlockReader;
use crate::durable::lines::{
    CheckpointLine, ContentLine, EventsLine, Line, LineWriter, ObjectLine, TenantLine, ThreadLine,
    TokenLine,
};
use crate::durable::{TransferError, Transferred};
use crate::postgres::blocks::Blocks;
use crate::postgres::connection::Conn;
use crate::postgres::pages::Numbers;
use crate::postgres::value::{Param, get, optional_text, stored, text};
use crate::value::{count, hex, instant};
use std::io::Write;
use store::StoreError;
use tokio_postgres::types::Type;

/// Tokens that are read together.
const TOKENS: i64 = 16;

/// Writes the lines. The connection reads one snapshot.
pub(super) async fn export(
    conn: &Conn,
    tenant: &str,
    to: &mut (dyn Write + Send),
) -> Result<Transferred, TransferError> {
    let name = stored(tenant);
    let values: [Param<'_>; 1] = [(&name, Type::TEXT)];
    let sql = "SELECT EXISTS (SELECT 1 FROM thread_threads WHERE tenant = $1)
                   OR EXISTS (SELECT 1 FROM tenant_objects WHERE tenant = $1)
                   OR EXISTS (SELECT 1 FROM agent_checkpoints WHERE tenant = $1)";
    let row = conn.first(sql, &values).await?;
    let has_any: bool = get(&row.ok_or(StoreError::NotFound)?, 0)?;
    if !has_any {
        return Err(TransferError::NoTenant(tenant.to_owned()));
    }
    let mut export = Export {
        conn,
        tenant: &name,
        lines: LineWriter::new(to),
    };
    export.lines.write(&Line::Tenant(TenantLine::now(tenant)))?;
    export.threads().await?;
    export.contents().await?;
    export.objects().await?;
    export.checkpoints().await?;
    export.lines.end()
}

struct Export<'a> {
    conn: &'a Conn,
    /// As it is stored.
    tenant: &'a str,
    lines: LineWriter<'a>,
}

impl Export<'_> {
    // A fork has a higher number than its parent, which can't be deleted before it.
    async fn threads(&mut self) -> Result<(), TransferError> {
        let (conn, tenant) = (self.conn, self.tenant.to_owned());
        let list =
            "SELECT no FROM thread_threads WHERE no > $1 AND tenant = $3 ORDER BY no LIMIT $2";
        let mut numbers = Numbers::of(conn, list, Some((&tenant, Type::TEXT)));
        while let Some(no) = numbers.next().await? {
            let sql = "SELECT t.id, t.key, p.id, t.fork_seq, t.created_at, t.head_seq, t.bytes, t.change
                       FROM thread_threads t LEFT JOIN thread_threads p ON p.no = t.fork_no WHERE t.no = $1";
            let row = conn.first(sql, &[(&no, Type::INT8)]).await?;
            let row = row.ok_or(StoreError::NotFound)?;
            self.lines.write(&Line::Thread(ThreadLine {
                id: text(&row, 0)?,
                key: optional_text(&row, 1)?,
                parent: optional_text(&row, 2)?,
                fork_seq: get(&row, 3)?,
                created_at: instant(get(&row, 4)?)?,
                events: get(&row, 5)?,
                bytes: get(&row, 6)?,
                change: get(&row, 7)?,
            }))?;
            self.events(no).await?;
            self.tokens(no).await?;
        }
        Ok(())
    }

    /// A line for each block of a log.
    async fn events(&mut self, no: i64) -> Result<(), TransferError> {
        let mut blocks = Blocks::of(self.conn, no);
        while let Some(block) = blocks.next().await? {
            let first = block.first();
            let epoch = count(block.numbers.epoch);
            let line = BlockReader::new(block.body()?)
                .and_then(|reader| EventsLine::of(first, epoch, block.erased.as_ref(), reader));
            let line = line.map_err(blocks.fault(first))?;
            self.lines.write(&Line::Events(line))?;
        }
        Ok(())
    }

    async fn tokens(&mut self, no: i64) -> Result<(), TransferError> {
        let sql = "SELECT token, answer, seq FROM thread_tokens
                   WHERE thread_no = $1 AND (seq, token) > ($2, $3) ORDER BY seq, token LIMIT $4";
        let (mut seq, mut token) = (i64::MIN, String::new());
        loop {
            let values: [Param<'_>; 4] = [
                (&no, Type::INT8),
                (&seq, Type::INT8),
                (&token, Type::TEXT),
                (&TOKENS, Type::INT8),
            ];
            let rows = self.conn.query(sql, &values).await?;
            let Some(last) = rows.last() else {
                return Ok(());
            };
            (token, seq) = (get(last, 0)?, get(last, 2)?);
            for row in &rows {
                self.lines.write(&Line::Token(TokenLine {
                    token: text(row, 0)?,
                    answer: text(row, 1)?,
                    seq: get(row, 2)?,
                }))?;
            }
        }
    }

    async fn contents(&mut self) -> Result<(), TransferError> {
        let (conn, tenant) = (self.conn, self.tenant.to_owned());
        let list =
            "SELECT no FROM tenant_contents WHERE no > $1 AND tenant = $3 ORDER BY no LIMIT $2";
        let mut numbers = Numbers::of(conn, list, Some((&tenant, Type::TEXT)));
        while let Some(no) = numbers.next().await? {
            let sql = "SELECT sha256, content FROM tenant_contents WHERE no = $1";
            let row = conn.first(sql, &[(&no, Type::INT8)]).await?;
            let row = row.ok_or(StoreError::NotFound)?;
            let (hash, content): (&[u8], &[u8]) = (get(&row, 0)?, get(&row, 1)?);
            self.lines
                .write(&Line::Content(ContentLine::of(hash, content)))?;
        }
        Ok(())
    }

    async fn objects(&mut self) -> Result<(), TransferError> {
        let (conn, tenant) = (self.conn, self.tenant.to_owned());
        let list =
            "SELECT no FROM tenant_objects WHERE no > $1 AND tenant = $3 ORDER BY no LIMIT $2";
        let mut numbers = Numbers::of(conn, list, Some((&tenant, Type::TEXT)));
        while let Some(no) = numbers.next().await? {
            let sql = "SELECT o.kind, o.id, o.created_at, t.id, c.sha256, o.json
                       FROM tenant_objects o LEFT JOIN thread_threads t ON t.no = o.thread_no
                       LEFT JOIN tenant_contents c ON c.no = o.content_no WHERE o.no = $1";
            let row = conn.first(sql, &[(&no, Type::INT8)]).await?;
            let row = row.ok_or(StoreError::NotFound)?;
            let content: Option<&[u8]> = get(&row, 4)?;
            self.lines.write(&Line::Object(ObjectLine {
                kind: text(&row, 0)?,
                id: text(&row, 1)?,
                created_at: get(&row, 2)?,
                thread: optional_text(&row, 3)?,
                content: content.map(hex),
                text: text(&row, 5)?,
            }))?;
        }
        Ok(())
    }

    async fn checkpoints(&mut self) -> Result<(), TransferError> {
        let sql = "SELECT session_id, checkpoint_id, saved_at, step, agent_id, state FROM agent_checkpoints
                   WHERE tenant = $1 AND session_id > $2 ORDER BY session_id LIMIT 1";
        let mut after = String::new();
        loop {
            let values: [Param<'_>; 2] = [(&self.tenant, Type::TEXT), (&after, Type::TEXT)];
            let Some(row) = self.conn.first(sql, &values).await? else {
                return Ok(());
            };
            after = get(&row, 0)?;
            self.lines.write(&Line::Checkpoint(CheckpointLine {
                session_id: text(&row, 0)?,
                checkpoint_id: text(&row, 1)?,
                saved_at: get(&row, 2)?,
                step: get(&row, 3)?,
                agent_id: optional_text(&row, 4)?,
                state: text(&row, 5)?,
            }))?;
        }
    }
}
