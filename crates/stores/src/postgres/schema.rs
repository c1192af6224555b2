//! The tables, and how older ones are brought up to date.

use super::connection::Conn;
use super::error::statement;
use super::value::get;
use store::StoreError;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::Type;

/// The steps from one version of the tables to the next.
pub(super) const MIGRATIONS: [&str; 1] = [include_str!("schema/v1.sql")];

/// The version of these tables.
const VERSION: i32 = 1;

/// Programs that know at least this version can use these tables.
const MIN_VERSION: i32 = 1;

/// The tables. The schema may have others, which are not the store's.
pub(super) const TABLES: &[&str] = &[
    "agent_checkpoints",
    "nodes",
    "schema_version",
    "tenant_contents",
    "tenant_objects",
    "tenant_usage",
    "thread_blocks",
    "thread_contexts",
    "thread_executions",
    "thread_items",
    "thread_parts",
    "thread_removals",
    "thread_steps",
    "thread_threads",
    "thread_tokens",
    "thread_waits",
    "thread_words",
];

const STEPS: usize = 5;

/// Creates the tables, or brings them up to date.
pub(super) async fn migrate(conn: &Conn) -> Result<(), StoreError> {
    let mut tries = 0;
    loop {
        match migrate_once(conn).await {
            // Another node has made the tables at the same time.
            Err(error) if tries < STEPS && is_made(&error) => tries += 1,
            done => return done,
        }
        let _ = conn.batch("ROLLBACK").await;
    }
}

fn is_made(error: &StoreError) -> bool {
    if let StoreError::Failed(cause) = error {
        let cause = cause.downcast_ref::<tokio_postgres::Error>();
        let code = cause.and_then(|it| it.code()).map(SqlState::code);
        // A table or a type that exists, or a change that another transaction has made.
        return matches!(code, Some("42P07" | "42710" | "XX000" | "40001" | "40P01"));
    }
    matches!(error, StoreError::Duplicate(_))
}

/// Why tables that are only read can't be used.
#[derive(Debug, thiserror::Error)]
enum SchemaFault {
    #[error("the database has no tables of a store: a server makes them when it starts")]
    Missing,
    #[error(
        "the tables have version {0}, and this program reads version {VERSION}: a server brings them up to date when it \
         starts"
    )]
    Older(i32),
}

/// Refuses tables that this program can't read as they are.
pub(super) async fn known(conn: &Conn) -> Result<(), StoreError> {
    let fault = if is_empty(conn).await? {
        SchemaFault::Missing
    } else {
        match version(conn, "").await? {
            VERSION.. => return Ok(()),
            older => SchemaFault::Older(older),
        }
    };
    Err(StoreError::Failed(Box::new(fault)))
}

async fn is_empty(conn: &Conn) -> Result<bool, StoreError> {
    let sql = "SELECT to_regclass('schema_version') IS NULL AS is_empty";
    let found = conn.first(sql, &[]).await?;
    get(&found.ok_or(StoreError::NotFound)?, 0)
}

async fn migrate_once(conn: &Conn) -> Result<(), StoreError> {
    let is_empty = is_empty(conn).await?;
    if !is_empty && version(conn, "").await? == VERSION {
        return Ok(());
    }
    // Another node may take long to make the tables.
    conn.batch("BEGIN; SET LOCAL lock_timeout = 0")
        .await
        .map_err(statement)?;
    if is_empty {
        conn.batch(
            "CREATE TABLE schema_version (
                 is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
                 version integer NOT NULL,
                 min_version integer NOT NULL,
                 touched bigint NOT NULL DEFAULT 0
             );
             INSERT INTO schema_version (version, min_version) VALUES (0, 0)",
        )
        .await
        .map_err(statement)?;
    }
    let before = version(conn, "FOR UPDATE").await?;
    if before == VERSION {
        // Another program, perhaps a newer one, has done it meanwhile.
        return conn.batch("ROLLBACK").await.map_err(statement);
    }
    let before = usize::try_from(before).unwrap_or(0);
    for step in MIGRATIONS.iter().skip(before) {
        conn.batch(step).await.map_err(statement)?;
    }
    let sql = "UPDATE schema_version SET version = $1, min_version = $2";
    let values = [
        (
            &VERSION as &(dyn tokio_postgres::types::ToSql + Sync),
            Type::INT4,
        ),
        (&MIN_VERSION, Type::INT4),
    ];
    conn.execute(sql, &values).await?;
    conn.batch("COMMIT").await.map_err(statement)
}

/// The name of the schema with the tables.
pub(super) async fn name(conn: &Conn) -> Result<String, StoreError> {
    let found = conn.first("SELECT current_schema()::text", &[]).await?;
    let name: Option<String> = get(&found.ok_or(StoreError::NotFound)?, 0)?;
    Ok(name.unwrap_or_default())
}

/// The version of the tables. Refuses those that this program does not know.
async fn version(conn: &Conn, lock: &str) -> Result<i32, StoreError> {
    let sql = format!("SELECT version, min_version FROM schema_version {lock}");
    let row = conn.first(&sql, &[]).await?;
    let row = row.ok_or_else(|| StoreError::Damaged("the store has no schema version".into()))?;
    let (found, oldest): (i32, i32) = (get(&row, 0)?, get(&row, 1)?);
    if oldest > VERSION {
        return Err(StoreError::TooNew {
            found: u32::try_from(found).unwrap_or(u32::MAX),
            known: u32::try_from(VERSION).unwrap_or_default(),
        });
    }
    // A newer schema that this program may use is left as it is.
    Ok(found.min(VERSION))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_tables_is_that_of_the_migrations() {
        let steps = MIGRATIONS.iter().flat_map(|step| step.lines());
        let made = steps.filter_map(|line| line.strip_prefix("CREATE TABLE "));
        let made = made.filter_map(|rest| rest.split(' ').next());
        let mut made: Vec<_> = made.chain(["schema_version"]).collect();
        made.sort_unstable();
        assert_eq!(TABLES, made);
    }
}
