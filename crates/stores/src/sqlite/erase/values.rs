//! The values of a SQLite store as samples, and the search for samples in its file.

use super::super::blocks::Log;
use super::super::connection::wal;
use super::super::error::statement;
use super::super::rows;
use crate::durable::{FoundSamples, InValues, Matcher, SAMPLE, Samples};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Params};
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::ops::ControlFlow;
use std::path::Path;
use store::{Filter, StoreError};
use timeline::{Seq, ThreadId};

/// Bytes that are read at a time.
const CHUNK: usize = 1 << 20;

/// Adds samples of all values of a query.
pub(super) fn add_rows(
    samples: &mut Samples,
    conn: &Connection,
    sql: &str,
    of: impl Params,
) -> Result<(), StoreError> {
    let mut select = conn.prepare_cached(sql).map_err(statement)?;
    let n_columns = select.column_count();
    let mut rows = select.query(of).map_err(statement)?;
    while let Some(row) = rows.next().map_err(statement)? {
        for column in 0..n_columns {
            match row.get_ref(column).map_err(statement)? {
                ValueRef::Text(text) => samples.add_value(&String::from_utf8_lossy(text)),
                ValueRef::Blob(bytes) => samples.add(bytes),
                ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) => {}
            }
        }
    }
    Ok(())
}

/// Samples of everything that a thread has.
pub(super) fn of_thread(conn: &Connection, thread: &ThreadId) -> Result<Samples, StoreError> {
    let conn = &conn.unchecked_transaction().map_err(statement)?;
    let no = rows::number(conn, thread)?;
    let mut samples = Samples::default();
    Log { conn, no }.read(Seq(1), Filter::All, |_, decoded| {
        let text = decoded.text();
        let text = text.map_err(|fault| StoreError::Damaged(fault.to_string()))?;
        samples.add_json(&text);
        Ok(ControlFlow::Continue(()))
    })?;
    for sql in [
        "SELECT key, title, metadata FROM thread_threads WHERE no = ?1",
        "SELECT token, answer FROM thread_tokens WHERE thread_no = ?1",
        "SELECT o.json, c.content FROM tenant_objects o
         LEFT JOIN tenant_contents c ON c.no = o.content_no WHERE o.thread_no = ?1",
    ] {
        add_rows(&mut samples, conn, sql, [no])?;
    }
    Ok(samples)
}

/// Searches the bytes of a database and its write-ahead log. Blocks.
///
/// # Errors
///
/// If a file can't be read.
pub fn search_files(path: &Path, samples: &Samples) -> std::io::Result<FoundSamples> {
    let matcher = Matcher::new(samples);
    let path = std::fs::canonicalize(path)?;
    let mut found = FoundSamples::default();
    for file in [path.clone(), wal(&path)] {
        let mut bytes = match File::open(&file) {
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            opened => opened?,
        };
        let name = file.display();
        let (mut buffer, mut before) = (Vec::with_capacity(CHUNK + SAMPLE), 0_u64);
        loop {
            // What may begin in the chunk before.
            let n_left = buffer.len().min(SAMPLE - 1);
            before += (buffer.len() - n_left) as u64;
            buffer.drain(..buffer.len() - n_left);
            if (&mut bytes).take(CHUNK as u64).read_to_end(&mut buffer)? == 0 {
                break;
            }
            matcher.find(&buffer, |window, offset| {
                found.add(window, || {
                    format!("{name}, byte {}", before + offset as u64)
                });
            });
        }
    }
    Ok(found)
}

/// Searches all values of all tables.
pub(super) fn search_values(conn: &Connection, samples: &Samples) -> Result<InValues, StoreError> {
    let conn = &conn.unchecked_transaction().map_err(statement)?;
    let matcher = Matcher::new(samples);
    let sql = "SELECT name FROM sqlite_schema
               WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%' AND name NOT LIKE 'sqlite_%'";
    let mut select = conn.prepare(sql).map_err(statement)?;
    let tables = select.query_map([], |row| row.get::<_, String>(0));
    let tables = tables.and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let mut found = InValues::default();
    let mut schema = conn
        .prepare("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL")
        .map_err(statement)?;
    let mut rows = schema.query([]).map_err(statement)?;
    while let Some(row) = rows.next().map_err(statement)? {
        let sql: String = row.get(0).map_err(statement)?;
        matcher.find(sql.as_bytes(), |window, _| {
            found.schema.add(window, String::new);
        });
    }
    for table in tables.map_err(statement)? {
        let of_index = table.starts_with("thread_words_");
        let mut rows = conn
            .prepare(&format!("SELECT * FROM \"{table}\""))
            .map_err(statement)?;
        let columns: Vec<String> = rows.column_names().map(str::to_owned).collect();
        let thread = columns.iter().position(|it| it == "thread_no");
        let thread = thread.or_else(|| (table == "thread_threads").then_some(0));
        let mut rows = rows.query([]).map_err(statement)?;
        while let Some(row) = rows.next().map_err(statement)? {
            for (column, name) in columns.iter().enumerate() {
                let value = row.get_ref(column).map_err(statement)?;
                let (ValueRef::Text(bytes) | ValueRef::Blob(bytes)) = value else {
                    continue;
                };
                if of_index {
                    matcher.find(bytes, |window, _| {
                        found.index.add(window, || format!("{table}.{name}"));
                    });
                    continue;
                }
                found.add(&matcher, bytes, || {
                    let no = thread.and_then(|column| row.get::<_, i64>(column).ok());
                    Ok(match id_of(conn, no)? {
                        Some(id) => format!("{table}.{name} of thread {id}"),
                        None => format!("{table}.{name}"),
                    })
                })?;
            }
        }
    }
    Ok(found)
}

fn id_of(conn: &Connection, no: Option<i64>) -> Result<Option<String>, StoreError> {
    let sql = "SELECT id FROM thread_threads WHERE no = ?1";
    let mut select = conn.prepare_cached(sql).map_err(statement)?;
    let id = select.query_row([no], |row| row.get(0)).optional();
    id.map_err(statement)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_searched_across_the_borders_of_its_chunks() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("db");
        let secret = b"the secret at the border";
        let mut samples = Samples::default();
        samples.add(secret);
        let mut bytes = vec![b'-'; CHUNK - 9];
        bytes.extend_from_slice(secret);
        std::fs::write(&path, &bytes).unwrap();
        assert_eq!(search_files(&path, &samples).unwrap().len(), 2);
        std::fs::write(&path, &bytes[..CHUNK - 9]).unwrap();
        std::fs::write(wal(&path), &bytes).unwrap();
        assert_eq!(search_files(&path, &samples).unwrap().len(), 2);
        std::fs::remove_file(wal(&path)).unwrap();
        assert!(search_files(&path, &samples).unwrap().is_empty());
    }
}
