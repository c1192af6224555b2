//! What is the SQLite store's own: its file, its links, its tables, its traces.
#![allow(clippy::unwrap_used, reason = "tests")]

mod access;
mod backup;
mod bulk;
mod checkpoints;
mod commits;
mod entities;
mod erase;
mod health;
mod integrity;
mod medium;
mod size;
mod tables;
mod traces;
mod transfer;
#[path = "../older/version_9.rs"]
mod version_9;
mod versions;
mod words;

use loomline_stores::{OpenMode, SqliteOptions, SqliteStore};
use rusqlite::Connection;
use rusqlite::types::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use store::Store;
use store::suite::Author;
use tempfile::TempDir;
use timeline::{Command, NewThread};

fn place() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("loomline.db");
    (directory, path)
}

fn open(path: &Path) -> Arc<SqliteStore> {
    Arc::new(SqliteStore::open(path, &SqliteOptions::default()).unwrap())
}

fn read_only() -> SqliteOptions {
    SqliteOptions {
        mode: OpenMode::ReadOnly,
        ..SqliteOptions::default()
    }
}

async fn written(store: &Arc<SqliteStore>, name: &str, commands: Vec<Command>) -> Author {
    let store: Arc<dyn Store> = store.clone();
    let mut author = Author::new(&store, "acme", NewThread::new(name, Some(name))).await;
    author.commit_all(commands).await;
    author
}

// The rows of the tables with their texts: the same for equal logs, however their blocks are cut.
fn dump(path: &Path) -> Vec<String> {
    let mut rows = selected(
        path,
        "threads",
        "SELECT no, id, tenant, key, status, title, metadata, fork_no, fork_seq, created_at, updated_at,
                head_seq, epoch, bytes, change FROM thread_threads",
    );
    for table in ["contexts", "items", "executions", "steps", "parts"] {
        let sql = format!("SELECT * FROM thread_{table}_text");
        rows.append(&mut selected(path, table, &sql));
    }
    for table in ["removals", "trace_events", "trace_runs", "trace_spans"] {
        let sql = format!("SELECT * FROM thread_{table}");
        rows.append(&mut selected(path, table, &sql));
    }
    let sql =
        "SELECT thread_no, tenant, calls IS NULL, calls_at, asks IS NULL, asked FROM thread_waits";
    rows.append(&mut selected(path, "waits", sql));
    rows
}

// Every row of the tables as it is stored.
fn stored_rows(path: &Path) -> Vec<String> {
    let tables = [
        "threads",
        "blocks",
        "contexts",
        "items",
        "executions",
        "steps",
        "parts",
        "removals",
        "waits",
    ];
    let rows = tables.iter().flat_map(|table| {
        let sql = format!("SELECT * FROM thread_{table}");
        selected(path, table, &sql)
    });
    rows.collect()
}

fn selected(path: &Path, name: &str, sql: &str) -> Vec<String> {
    let conn = Connection::open(path).unwrap();
    let mut select = conn.prepare(sql).unwrap();
    let n_columns = select.column_count();
    let found = select.query_map([], |row| {
        (0..n_columns)
            .map(|column| row.get::<_, Value>(column))
            .collect::<Result<Vec<_>, _>>()
    });
    let mut found: Vec<_> = found
        .unwrap()
        .map(|row| format!("{name} {:?}", row.unwrap()))
        .collect();
    found.sort();
    found
}
