//! What is the SQLite store's own: its file, its links, its tables, its traces.
#![cfg(feature = "sqlite")]
#![allow(clippy::unwrap_used, reason = "tests")]

mod access;
mod checkpoints;
mod commits;
mod health;
mod medium;
mod tables;
mod traces;
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

// Every row of the nine tables and of what waits, as text.
fn dump(path: &Path) -> Vec<String> {
    let conn = Connection::open(path).unwrap();
    let tables = [
        "threads",
        "contexts",
        "items",
        "executions",
        "steps",
        "parts",
        "trace_events",
        "trace_runs",
        "trace_spans",
        "waits",
    ];
    let mut rows = Vec::new();
    for table in tables {
        let sql = format!("SELECT * FROM thread_{table}");
        // A file of an older version has fewer tables.
        let Ok(mut select) = conn.prepare(&sql) else {
            continue;
        };
        let n_columns = select.column_count();
        let found = select.query_map([], |row| {
            (0..n_columns)
                .map(|column| row.get::<_, Value>(column))
                .collect::<Result<Vec<_>, _>>()
        });
        let mut found: Vec<_> = found
            .unwrap()
            .map(|row| format!("{table} {:?}", row.unwrap()))
            .collect();
        found.sort();
        rows.append(&mut found);
    }
    rows
}
