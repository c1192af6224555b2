//! The check of a store: its schema, its logs, the tables that are derived from the logs, and the contents of objects.

mod schema;
mod threads;

use super::connection::{Conn, Connector};
use super::derive;
use super::error::statement;
use super::pages::Numbers;
use super::schema::MIGRATIONS;
use super::value::{get, original, text};
use crate::durable::{Remedy, StoreFault};
use store::StoreError;
use store::objects::sha256;
use tokio_postgres::types::Type;

/// Everything that is wrong. Both connections read the store as it was at one moment.
pub(super) async fn check(
    connector: &Connector,
    schema: &str,
) -> Result<Vec<StoreFault>, StoreError> {
    let read = connector.connect().await?;
    let sql = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL idle_in_transaction_session_timeout = 0";
    read.batch(sql).await.map_err(statement)?;
    let row = read.first("SELECT pg_export_snapshot()", &[]).await?;
    let scratch = Scratch {
        conn: connector.connect().await?,
        schema: quoted(schema),
        snapshot: get(&row.ok_or(StoreError::NotFound)?, 0)?,
    };
    let mut found = schema::differences(&scratch).await?;
    let has_other_schema = !found.is_empty();
    match data(&read, &scratch, &mut found).await {
        // Nothing more can be read without the columns that are missing.
        Err(StoreError::Failed(_)) if has_other_schema => {}
        other => other?,
    }
    for conn in [&read, &scratch.conn] {
        conn.batch("ROLLBACK").await.map_err(statement)?;
    }
    Ok(found)
}

/// A connection that derives the tables anew, in temporary tables. Its transaction is rolled back.
struct Scratch {
    conn: Conn,
    /// The name of the schema with the real tables, for statements.
    schema: String,
    /// The snapshot that the transaction reads.
    snapshot: String,
}

impl Scratch {
    async fn begin(&self) -> Result<(), StoreError> {
        derive::begin(&self.conn, "REPEATABLE READ").await?;
        // It may wait long for what the other connection reads, and holds no locks that others wait for.
        let sql = format!(
            "SET TRANSACTION SNAPSHOT '{}'; SET LOCAL idle_in_transaction_session_timeout = 0",
            self.snapshot
        );
        self.conn.batch(&sql).await.map_err(statement)
    }

    /// Makes all tables as temporary ones.
    async fn make_tables(&self) -> Result<(), StoreError> {
        let path = ["SET LOCAL search_path = pg_temp"];
        for sql in path.iter().chain(&MIGRATIONS) {
            self.conn.batch(sql).await.map_err(statement)?;
        }
        Ok(())
    }

    /// Lets the names of the derived tables mean the temporary ones. The logs stay those of the store.
    async fn use_tables(&self) -> Result<(), StoreError> {
        let sql = format!(
            "DROP TABLE thread_blocks CASCADE; SET LOCAL search_path = pg_temp, {}",
            self.schema
        );
        self.conn.batch(&sql).await.map_err(statement)
    }

    /// Begins anew after a statement was refused.
    async fn reset(&self) -> Result<(), StoreError> {
        self.conn.batch("ROLLBACK").await.map_err(statement)?;
        self.begin().await?;
        self.make_tables().await?;
        self.use_tables().await
    }
}

async fn data(
    read: &Conn,
    scratch: &Scratch,
    found: &mut Vec<StoreFault>,
) -> Result<(), StoreError> {
    threads::check(read, scratch, found).await?;
    usage(read, found).await?;
    contents(read, found).await
}

/// A name in a statement.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// The first column of all rows, with the texts as they were before they were stored.
async fn texts(conn: &Conn, sql: &str) -> Result<Vec<String>, StoreError> {
    let rows = conn.query(sql, &[]).await?;
    rows.iter().map(|row| get(row, 0).map(original)).collect()
}

const ORPHANS: &str =
    "SELECT format('content %s of tenant %s belongs to no object', c.no, c.tenant) FROM tenant_contents c
    WHERE NOT EXISTS (SELECT 1 FROM tenant_objects o WHERE o.content_no = c.no)";

const USAGE: &str =
    "SELECT format('tenant %s stores %s threads, %s bytes and %s files, and its usage says %s, %s and %s',
            f.tenant, f.threads, f.bytes, f.files, coalesce(u.threads, 0), coalesce(u.bytes, 0), coalesce(u.files, 0))
    FROM (SELECT tenant, sum(threads) AS threads, sum(bytes) AS bytes, sum(files) AS files FROM (
              SELECT tenant, 1 AS threads, bytes, 0 AS files FROM thread_threads
              UNION ALL SELECT tenant, 0, octet_length(content), 0 FROM tenant_contents
              UNION ALL SELECT tenant, 0, octet_length(json), (content_no IS NOT NULL)::int FROM tenant_objects
              UNION ALL SELECT tenant, 0, 0, 0 FROM tenant_usage) s
          GROUP BY tenant) f
    LEFT JOIN (SELECT tenant, sum(threads) AS threads, sum(bytes) AS bytes, sum(files) AS files
               FROM tenant_usage GROUP BY tenant) u ON u.tenant = f.tenant
    WHERE f.threads <> coalesce(u.threads, 0) OR f.bytes <> coalesce(u.bytes, 0) OR f.files <> coalesce(u.files, 0)
    ORDER BY f.tenant";

const TENANTS: &str = "SELECT format('object %s of tenant %s has a content of tenant %s', o.no, o.tenant, c.tenant)
    FROM tenant_objects o JOIN tenant_contents c ON c.no = o.content_no WHERE c.tenant <> o.tenant ORDER BY o.no";

async fn usage(conn: &Conn, found: &mut Vec<StoreFault>) -> Result<(), StoreError> {
    for sql in [ORPHANS, USAGE, TENANTS] {
        let lines = texts(conn, sql).await?;
        found.extend(
            lines
                .into_iter()
                .map(|line| StoreFault::of_store(line, Remedy::Restore)),
        );
    }
    Ok(())
}

// One content at a time is in memory.
async fn contents(conn: &Conn, found: &mut Vec<StoreFault>) -> Result<(), StoreError> {
    let list = "SELECT no FROM tenant_contents WHERE no > $1 ORDER BY no LIMIT $2";
    let mut numbers = Numbers::of(conn, list, None);
    while let Some(no) = numbers.next().await? {
        let sql = "SELECT tenant, sha256, content FROM tenant_contents WHERE no = $1";
        let Some(row) = conn.first(sql, &[(&no, Type::INT8)]).await? else {
            continue;
        };
        let (hash, content): (&[u8], &[u8]) = (get(&row, 1)?, get(&row, 2)?);
        if sha256(content) != hash {
            let tenant = text(&row, 0)?;
            found.push(StoreFault::of_object(
                format!("tenant {tenant}, content {no}"),
                "it is not what was written: its hash is another",
            ));
        }
    }
    Ok(())
}
