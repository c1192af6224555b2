//! Rebuilds the nine tables, the full-text index and the list of what waits from the log.

use super::error::statement;
use super::projection::Tables;
use super::rows::decoded;
use super::value::{count, instant};
use super::words;
use rusqlite::{Connection, params};
use store::StoreError;
use store::rows::row_changes;
use timeline::{EventType, Seq};

/// Drops what the tables and the index hold and folds every log into them. Tenants, epochs, the order of lists,
/// tokens, checkpoints and objects stay: they are not in the log.
pub(super) fn rebuild(conn: &Connection) -> Result<(), StoreError> {
    words::clear(conn)?;
    for table in Tables::DERIVED {
        conn.execute(&format!("DELETE FROM {table}"), [])
            .map_err(statement)?;
    }
    let ends = "UPDATE thread_threads SET (head_seq, updated_at, bytes) =
                    (SELECT coalesce(max(seq), 0),
                            coalesce((SELECT at FROM thread_events WHERE thread_no = no
                                      ORDER BY seq DESC LIMIT 1), created_at),
                            coalesce(sum(octet_length(payload)), 0)
                     FROM thread_events WHERE thread_no = no)";
    conn.execute(ends, []).map_err(statement)?;
    for no in words::numbers(conn)? {
        thread(conn, no)?;
    }
    Ok(())
}

fn thread(conn: &Connection, no: i64) -> Result<(), StoreError> {
    let tables = Tables::of(conn, no);
    let first = [
        EventType::ContextCreated.code(),
        EventType::ItemCreated.code(),
    ];
    let sql = "SELECT seq, at, payload FROM thread_events WHERE thread_no = ?1 AND kind <> 14";
    let firsts = format!("{sql} AND kind IN (?2, ?3) ORDER BY seq");
    let thens = format!("{sql} AND kind NOT IN (?2, ?3) ORDER BY seq");
    for sql in [firsts, thens] {
        let mut select = conn.prepare_cached(&sql).map_err(statement)?;
        let mut rows = select
            .query(params![no, first[0], first[1]])
            .map_err(statement)?;
        while let Some(row) = rows.next().map_err(statement)? {
            let seq = Seq(count(row.get(0).map_err(statement)?));
            let at = instant(row.get(1).map_err(statement)?)?;
            let payload: String = row.get(2).map_err(statement)?;
            let event = decoded(&payload)?;
            for change in row_changes(std::iter::once((seq, at, &event))) {
                tables.execute(&change)?;
            }
        }
    }
    tables.find_calls()
}
