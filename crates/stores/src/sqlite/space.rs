//! The space of the file.

use super::error::statement;
use super::value::count;
use rusqlite::Connection;
use std::path::Path;
use store::StoreError;

/// Whether the file can shrink without `VACUUM`: its pages have a map of their parents.
pub(super) fn returns_space(conn: &Connection) -> Result<bool, StoreError> {
    let mode = conn.query_row("PRAGMA auto_vacuum", [], |row| row.get::<_, i64>(0));
    Ok(mode.map_err(statement)? == 2)
}

/// Whether [`shrink`] finds a page.
pub(super) fn can_shrink(conn: &Connection) -> Result<bool, StoreError> {
    Ok(returns_space(conn)? && free_pages(conn)? > 0)
}

/// Returns at most this number of free pages. The bytes of these pages; 0 if none is left.
pub(super) fn shrink(conn: &Connection, pages: u32) -> Result<u64, StoreError> {
    if !can_shrink(conn)? {
        return Ok(0);
    }
    let before = free_pages(conn)?;
    let sql = format!("PRAGMA incremental_vacuum({pages})");
    let mut step = conn.prepare_cached(&sql).map_err(statement)?;
    let mut rows = step.query([]).map_err(statement)?;
    while rows.next().map_err(statement)?.is_some() {}
    let size: i64 = conn
        .query_row("PRAGMA page_size", [], |row| row.get(0))
        .map_err(statement)?;
    let freed = before.saturating_sub(free_pages(conn)?);
    Ok(freed.saturating_mul(count(size)))
}

fn free_pages(conn: &Connection) -> Result<u64, StoreError> {
    let pages = conn.query_row("PRAGMA freelist_count", [], |row| row.get(0));
    pages.map(count).map_err(statement)
}

/// Writes the whole file anew. For that time, the copy is a file in the same directory.
pub(super) fn compact(conn: &Connection) -> Result<(), StoreError> {
    let directory = directory(conn).display().to_string();
    let directory = directory.replace('\'', "''");
    // All other connections of the process have their temporary tables in memory.
    conn.execute_batch(&format!(
        "PRAGMA temp_store_directory='{directory}'; PRAGMA temp_store=FILE;"
    ))
    .map_err(statement)?;
    let done = conn.execute_batch("VACUUM").map_err(statement);
    conn.execute_batch("PRAGMA temp_store=MEMORY; PRAGMA temp_store_directory='';")
        .map_err(statement)?;
    done
}

/// The directory of the file, as an absolute path.
fn directory(conn: &Connection) -> &Path {
    let path = conn.path().map(Path::new);
    path.and_then(Path::parent).unwrap_or(Path::new(""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_file_name_has_the_current_directory() {
        let file = tempfile::NamedTempFile::new_in(".").unwrap();
        let name = file.path().file_name().unwrap();
        let conn = Connection::open(name).unwrap();
        let current = std::env::current_dir().unwrap().canonicalize().unwrap();
        assert_eq!(directory(&conn), current);
        compact(&conn).unwrap();
    }
}
