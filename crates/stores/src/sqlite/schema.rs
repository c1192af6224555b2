//! The schema and its versions (EK-17).

use super::connection::sibling;
use super::convert;
use super::error::{failed, statement};
use super::reseal;
use super::space;
use crate::private;
use rusqlite::{Connection, TransactionBehavior};
use std::fs::File;
use std::path::Path;
use store::StoreError;

/// The version whose log has blocks. It derives all else from the log of the version before.
const BLOCKS: usize = 10;

// "LOOM": tells our files from others.
const APPLICATION_ID: i64 = 0x4c4f_4f4d;

/// Migrates the file to the newest version, in one transaction, after making a copy.
pub(super) fn migrate(
    conn: &mut Connection,
    path: &Path,
    migrations: &[&str],
) -> Result<(), StoreError> {
    let (version, _) = versions(conn, migrations)?;
    let missing = migrations.get(version..).unwrap_or_default();
    if missing.is_empty() {
        return Ok(());
    }
    if version > 0 {
        back_up(conn, &sibling(path, &format!("backup-v{version}")))?;
    } else if pragma(conn, "SELECT count(*) FROM sqlite_schema")? > 0 {
        return Err(StoreError::Damaged(format!(
            "{} is not a Loomline store",
            path.display()
        )));
    }
    upgrade(conn, migrations)?;
    tracing::info!(
        from = version,
        to = migrations.len(),
        "the store's schema was migrated"
    );
    Ok(())
}

/// Migrates a file to the newest version, in one transaction, without a copy.
pub(super) fn upgrade(conn: &mut Connection, migrations: &[&str]) -> Result<(), StoreError> {
    let (version, _) = versions(conn, migrations)?;
    let missing = migrations.get(version..).unwrap_or_default();
    if missing.is_empty() {
        return Ok(());
    }
    let tx = conn
        .transaction_with_behavior(TransactionBehavior::Exclusive)
        .map_err(statement)?;
    for migration in missing {
        tx.execute_batch(migration).map_err(statement)?;
    }
    let newest = migrations.len();
    let converts = version < BLOCKS && newest >= BLOCKS;
    if converts {
        convert::convert(&tx)?;
    }
    renew_sums(&tx, version as u64)?;
    tx.execute_batch(&format!(
        "PRAGMA user_version={newest}; PRAGMA application_id={APPLICATION_ID};"
    ))
    .map_err(statement)?;
    tx.commit().map_err(statement)?;
    if version > 0 && (converts || !space::returns_space(conn)?) {
        // The old log was most of the file. A file that was made before version 11 does not shrink otherwise.
        if let Err(error) = space::compact(conn) {
            tracing::warn!(
                %error,
                "the space of the older store was not returned; `loomline purge --removed --yes` returns it"
            );
        }
    }
    Ok(())
}

/// Gives rows of a store of an earlier version the sums that this version calculates.
pub(super) fn renew_sums(conn: &Connection, version: u64) -> Result<(), StoreError> {
    if version == BLOCKS as u64 {
        reseal::reseal(conn)?;
    }
    Ok(())
}

/// Refuses a file whose schema this program does not read.
pub(super) fn known(conn: &Connection, migrations: &[&str]) -> Result<(), StoreError> {
    let (version, known) = versions(conn, migrations)?;
    if version < known {
        return Err(StoreError::Damaged(format!(
            "its schema has version {version} of {known}; it is migrated when it is served"
        )));
    }
    Ok(())
}

fn versions(conn: &Connection, migrations: &[&str]) -> Result<(usize, usize), StoreError> {
    let known = migrations.len();
    let found = u32::try_from(pragma(conn, "PRAGMA user_version")?)
        .map_err(|_| StoreError::Damaged("the schema version is negative".into()))?;
    let id = pragma(conn, "PRAGMA application_id")?;
    if found > 0 && id != APPLICATION_ID {
        return Err(StoreError::Damaged(
            "it is a database of another program".into(),
        ));
    }
    if found as usize > known {
        let known = u32::try_from(known).unwrap_or(u32::MAX);
        return Err(StoreError::TooNew { found, known });
    }
    Ok((found as usize, known))
}

/// Rewrites a page with its content, to find out whether a commit succeeds.
pub(super) fn touch(conn: &Connection) -> Result<(), StoreError> {
    let version = pragma(conn, "PRAGMA user_version")?;
    conn.pragma_update(None, "user_version", version)
        .map_err(statement)
}

fn pragma(conn: &Connection, sql: &str) -> Result<i64, StoreError> {
    conn.query_row(sql, [], |row| row.get(0)).map_err(statement)
}

// An older copy is of a migration that did not come through, so this one holds the same and more.
fn back_up(conn: &Connection, copy: &Path) -> Result<(), StoreError> {
    match std::fs::remove_file(copy) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(failed(error)),
        Ok(()) | Err(_) => {}
    }
    let target = copy.to_str().ok_or_else(|| {
        StoreError::Failed(format!("{} is not a UTF-8 path", copy.display()).into())
    })?;
    private::make_file(copy).map_err(failed)?;
    conn.execute("VACUUM INTO ?1", [target])
        .map_err(statement)?;
    File::open(copy)
        .and_then(|file| file.sync_all())
        .map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::super::connection::{SqliteOptions, writing};
    use super::super::migrations::MIGRATIONS;
    use super::*;

    fn opened(path: &Path) -> Connection {
        writing(path, &SqliteOptions::default()).unwrap()
    }

    #[test]
    fn an_older_schema_is_migrated_after_a_copy_was_made() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("db");
        let mut conn = opened(&path);
        migrate(
            &mut conn,
            &path,
            &["CREATE TABLE a (n); INSERT INTO a VALUES (7)"],
        )
        .unwrap();
        assert!(!sibling(&path, "backup-v0").exists());

        let newer = [
            "CREATE TABLE a (n)",
            "ALTER TABLE a ADD COLUMN m",
            "UPDATE a SET m = n + 1",
        ];
        migrate(&mut conn, &path, &newer).unwrap();

        assert_eq!(pragma(&conn, "SELECT m FROM a").unwrap(), 8);
        assert_eq!(pragma(&conn, "PRAGMA user_version").unwrap(), 3);
        let copy = opened(&sibling(&path, "backup-v1"));
        assert_eq!(pragma(&copy, "SELECT n FROM a").unwrap(), 7);
        assert_eq!(pragma(&copy, "PRAGMA user_version").unwrap(), 1);
    }

    #[test]
    #[cfg(feature = "encryption")]
    fn the_copy_of_an_encrypted_store_is_encrypted() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("db");
        let options = SqliteOptions {
            key: Some("5a".repeat(32).parse().unwrap()),
            ..SqliteOptions::default()
        };
        let mut conn = writing(&path, &options).unwrap();
        let first = "CREATE TABLE a (n); INSERT INTO a VALUES ('kept to ourselves')";
        migrate(&mut conn, &path, &[first]).unwrap();
        migrate(&mut conn, &path, &[first, "CREATE TABLE b (n)"]).unwrap();

        let copy = sibling(&path, "backup-v1");
        let bytes = std::fs::read(&copy).unwrap();
        assert!(
            !bytes
                .windows(17)
                .any(|window| window == b"kept to ourselves")
        );
        let copy = writing(&copy, &options).unwrap();
        assert_eq!(pragma(&copy, "SELECT count(*) FROM a").unwrap(), 1);
    }

    #[test]
    fn a_store_of_version_1_becomes_one_of_the_newest() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("db");
        let mut conn = opened(&path);
        migrate(&mut conn, &path, &MIGRATIONS[..1]).unwrap();
        migrate(&mut conn, &path, MIGRATIONS).unwrap();
        let sql = "SELECT count(*) FROM sqlite_schema WHERE name IN ('thread_blocks', 'thread_trace_runs')";
        assert_eq!(pragma(&conn, sql).unwrap(), 2);
        assert!(sibling(&path, "backup-v1").exists());
    }

    #[test]
    fn a_migration_that_fails_leaves_the_version_before() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("db");
        let mut conn = opened(&path);
        migrate(&mut conn, &path, &["CREATE TABLE a (n)"]).unwrap();
        let broken = ["", "CREATE TABLE b (n)", "CREATE TABLE a (n)"];
        assert!(migrate(&mut conn, &path, &broken).is_err());
        assert_eq!(pragma(&conn, "PRAGMA user_version").unwrap(), 1);
        assert_eq!(
            pragma(&conn, "SELECT count(*) FROM sqlite_schema").unwrap(),
            1
        );
        migrate(&mut conn, &path, &["", "CREATE TABLE b (n)"]).unwrap();
    }

    #[test]
    fn a_newer_schema_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("db");
        let mut conn = opened(&path);
        migrate(&mut conn, &path, &["CREATE TABLE a (n)", ""]).unwrap();
        let refused = migrate(&mut conn, &path, &[""]);
        assert!(
            matches!(refused, Err(StoreError::TooNew { found: 2, known: 1 })),
            "{refused:?}"
        );
    }

    #[test]
    fn a_database_of_another_program_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("db");
        let mut conn = opened(&path);
        conn.execute_batch("CREATE TABLE theirs (n)").unwrap();
        assert!(matches!(
            migrate(&mut conn, &path, MIGRATIONS),
            Err(StoreError::Damaged(_))
        ));
        conn.execute_batch("PRAGMA user_version=1").unwrap();
        assert!(matches!(
            migrate(&mut conn, &path, MIGRATIONS),
            Err(StoreError::Damaged(_))
        ));
    }
}
