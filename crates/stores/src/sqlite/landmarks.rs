//! Positions of landmarks in a log. Each look-up uses one index.

use super::error::statement;
use super::rows::number;
use super::value::{compacted, count, int};
use crate::block::Coded as _;
use rusqlite::{Connection, OptionalExtension, Row, params};
use store::{FoundExecution, Landmark, Side, StoreError};
use timeline::{ItemType, Removed, Seq, ThreadId};

/// Which landmark, as what the reading threads are sent.
pub(super) enum LandmarkQuery {
    Item(String),
    Execution(String),
    Step(String),
}

impl From<Landmark<'_>> for LandmarkQuery {
    fn from(landmark: Landmark<'_>) -> Self {
        match landmark {
            Landmark::Item(id) => Self::Item(id.to_string()),
            Landmark::Execution(id) => Self::Execution(id.to_string()),
            Landmark::Step(id) => Self::Step(id.to_string()),
        }
    }
}

fn place(side: Side) -> i64 {
    let (Side::Before(seq) | Side::After(seq)) = side;
    int(seq.0)
}

fn bound(side: Side) -> (&'static str, &'static str) {
    match side {
        Side::Before(_) => ("<", "DESC"),
        Side::After(_) => (">", "ASC"),
    }
}

fn select_triggers(side: Side) -> String {
    let (beyond, order) = bound(side);
    format!(
        "SELECT place FROM thread_items
         WHERE thread_no = ?1 AND place {beyond} ?2 AND execution_seq IS NULL
           AND type = 0 AND place IS NOT NULL
         ORDER BY place {order} LIMIT ?3"
    )
}

fn select_run(side: Side) -> String {
    let (beyond, order) = bound(side);
    format!(
        "SELECT x.id, x.seq, x.end_seq, i.seq, i.type, x.handoffs > 0
         FROM thread_executions x JOIN thread_items i
         ON i.thread_no = x.thread_no AND i.seq = x.trigger_seq
         WHERE x.thread_no = ?1 AND x.seq {beyond} ?2 ORDER BY x.seq {order} LIMIT 1"
    )
}

/// The place of a landmark.
pub(super) fn position_of(
    conn: &Connection,
    thread: &ThreadId,
    wanted: &LandmarkQuery,
) -> Result<Option<Seq>, StoreError> {
    let no = number(conn, thread)?;
    let (sql, id) = match wanted {
        LandmarkQuery::Item(id) => (
            "SELECT coalesce(place, seq) FROM thread_items WHERE thread_no = ?1 AND id = ?2",
            id,
        ),
        LandmarkQuery::Execution(id) => (
            "SELECT seq FROM thread_executions WHERE thread_no = ?1 AND id = ?2 ORDER BY seq DESC LIMIT 1",
            id,
        ),
        LandmarkQuery::Step(id) => (
            "SELECT seq FROM thread_steps WHERE thread_no = ?1 AND id = ?2
             ORDER BY execution_seq DESC, iteration DESC LIMIT 1",
            id,
        ),
    };
    let mut select = conn.prepare_cached(sql).map_err(statement)?;
    let found = select.query_row(params![no, id], |row| row.get::<_, i64>(0));
    let found = found.optional().map_err(statement)?;
    Ok(found.map(|seq| Seq(count(seq))))
}

/// The places of messages to the agents.
pub(super) fn triggers(
    conn: &Connection,
    thread: &ThreadId,
    side: Side,
    limit: usize,
) -> Result<Vec<Seq>, StoreError> {
    let no = number(conn, thread)?;
    let sql = select_triggers(side);
    let mut select = conn.prepare_cached(&sql).map_err(statement)?;
    let values = params![no, place(side), int(limit as u64)];
    let rows = select
        .query_map(values, |row| row.get::<_, i64>(0))
        .map_err(statement)?;
    rows.map(|seq| Ok(Seq(count(seq.map_err(statement)?))))
        .collect()
}

/// The nearest execution.
pub(super) fn run(
    conn: &Connection,
    thread: &ThreadId,
    side: Side,
) -> Result<Option<FoundExecution>, StoreError> {
    let no = number(conn, thread)?;
    let sql = select_run(side);
    let mut select = conn.prepare_cached(&sql).map_err(statement)?;
    let found = select.query_row(params![no, place(side)], |row| Ok(ran(row)));
    found.optional().map_err(statement)?.transpose()
}

const ANY_REMOVAL: &str = "SELECT EXISTS (SELECT 1 FROM thread_removals WHERE thread_no = ?1)";

const REMOVAL: &str = "SELECT seq FROM thread_removals WHERE thread_no = ?1 AND target = ?2";

/// The positions at which these were removed; others are left out.
pub(super) fn removals(
    conn: &Connection,
    thread: &ThreadId,
    of: Vec<Removed>,
) -> Result<Vec<(Removed, Seq)>, StoreError> {
    let no = number(conn, thread)?;
    let mut any = conn.prepare_cached(ANY_REMOVAL).map_err(statement)?;
    if !any.query_row([no], |row| row.get(0)).map_err(statement)? {
        return Ok(Vec::new());
    }
    let mut select = conn.prepare_cached(REMOVAL).map_err(statement)?;
    let mut found = Vec::new();
    for what in of {
        let values = params![no, what.to_string()];
        let seq = select.query_row(values, |row| row.get::<_, i64>(0));
        let seq = seq.optional().map_err(statement)?;
        found.extend(seq.map(|seq| (what, Seq(count(seq)))));
    }
    Ok(found)
}

const COMPACTIONS: &str = "SELECT seq FROM thread_removals
    WHERE thread_no = ?1 AND target >= ?2 AND target < ?3 ORDER BY target DESC LIMIT ?4";

/// The compactions of a log, newest first.
pub(super) fn compactions(
    conn: &Connection,
    thread: &ThreadId,
    before: Seq,
    limit: usize,
) -> Result<Vec<Seq>, StoreError> {
    let no = number(conn, thread)?;
    let mut select = conn.prepare_cached(COMPACTIONS).map_err(statement)?;
    let values = params![
        no,
        compacted(Seq::ZERO),
        compacted(before),
        int(limit as u64)
    ];
    let rows = select
        .query_map(values, |row| row.get::<_, i64>(0))
        .map_err(statement)?;
    rows.map(|seq| Ok(Seq(count(seq.map_err(statement)?))))
        .collect()
}

fn ran(row: &Row<'_>) -> Result<FoundExecution, StoreError> {
    let seq = |column| {
        let seq: Option<i64> = row.get(column).map_err(statement)?;
        Ok::<_, StoreError>(seq.map(|seq| Seq(count(seq))))
    };
    let id: String = row.get(0).map_err(statement)?;
    let code: u8 = row.get(4).map_err(statement)?;
    let trigger_type = ItemType::of_code(code)
        .ok_or_else(|| StoreError::Damaged(format!("{code} is not the type of an item")))?;
    Ok(FoundExecution {
        execution_id: id.into(),
        created: seq(1)?.unwrap_or_default(),
        finished: seq(2)?,
        trigger: seq(3)?.unwrap_or_default(),
        trigger_type,
        goes_on: trigger_type == ItemType::ActionResult || row.get(5).map_err(statement)?,
    })
}

#[cfg(test)]
mod tests {
    use super::super::connection::{SqliteOptions, writing};
    use super::super::migrations::MIGRATIONS;
    use super::super::schema::migrate;
    use super::*;

    #[test]
    fn no_look_up_reads_more_than_an_index_leads_to() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("db");
        let mut conn = writing(&path, &SqliteOptions::default()).unwrap();
        migrate(&mut conn, &path, MIGRATIONS).unwrap();
        let plan = |sql: &str| -> Vec<String> {
            let mut explain = conn.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
            let rows = explain.raw_query().mapped(|row| row.get(3));
            rows.map(Result::unwrap).collect()
        };
        for (sql, key) in [
            (ANY_REMOVAL, "PRIMARY KEY (thread_no=?)"),
            (REMOVAL, "PRIMARY KEY (thread_no=? AND target=?)"),
            (
                COMPACTIONS,
                "PRIMARY KEY (thread_no=? AND target>? AND target<?)",
            ),
        ] {
            let plan = plan(sql).concat();
            assert!(plan.contains(key) && !plan.contains("B-TREE"), "{plan}");
        }
        for side in [Side::Before(Seq(9)), Side::After(Seq(9))] {
            for sql in [select_triggers(side), select_run(side)] {
                let plan = plan(&sql);
                let whole = |line: &String| line.contains("SCAN") || line.contains("B-TREE");
                assert!(!plan.iter().any(whole), "{plan:?}");
                let bound = |line: &String| line.contains("seq<") || line.contains("seq>");
                let placed = |line: &String| line.contains("place<") || line.contains("place>");
                assert!(plan.iter().any(|it| bound(it) || placed(it)), "{plan:?}");
            }
        }
    }
}
