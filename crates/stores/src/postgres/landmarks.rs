//! Positions of landmarks in a log. Each look-up uses one index.

use super::connection::Conn;
use super::rows::number;
use super::value::{Param, get, stored, text};
use crate::block::Coded as _;
use crate::value::{compacted, count, int};
use store::{FoundExecution, Landmark, Side, StoreError};
use timeline::{ItemType, Removed, Seq, ThreadId};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

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

fn seq(row: &Row, column: usize) -> Result<Seq, StoreError> {
    Ok(Seq(count(get(row, column)?)))
}

/// The place of a landmark.
pub(super) async fn position_of(
    conn: &Conn,
    thread: &ThreadId,
    landmark: Landmark<'_>,
) -> Result<Option<Seq>, StoreError> {
    let no = number(conn, thread).await?;
    let (sql, id) = match landmark {
        Landmark::Item(id) => (
            "SELECT coalesce(place, seq) FROM thread_items WHERE thread_no = $1 AND id = $2",
            id.as_str(),
        ),
        Landmark::Execution(id) => (
            "SELECT seq FROM thread_executions WHERE thread_no = $1 AND id = $2 ORDER BY seq DESC LIMIT 1",
            id.as_str(),
        ),
        Landmark::Step(id) => (
            "SELECT seq FROM thread_steps WHERE thread_no = $1 AND id = $2
             ORDER BY execution_seq DESC, iteration DESC LIMIT 1",
            id.as_str(),
        ),
    };
    let id = stored(id);
    let values: [Param<'_>; 2] = [(&no, Type::INT8), (&id, Type::TEXT)];
    let found = conn.first(sql, &values).await?;
    found.map(|row| seq(&row, 0)).transpose()
}

/// The places of messages to the agents.
pub(super) async fn triggers(
    conn: &Conn,
    thread: &ThreadId,
    side: Side,
    limit: usize,
) -> Result<Vec<Seq>, StoreError> {
    let no = number(conn, thread).await?;
    let (beyond, order) = bound(side);
    let sql = format!(
        "SELECT place FROM thread_items
         WHERE thread_no = $1 AND place {beyond} $2 AND execution_seq IS NULL AND type = 0 AND place IS NOT NULL
         ORDER BY place {order} LIMIT $3"
    );
    let (place, limit) = (place(side), int(limit as u64));
    let values: [Param<'_>; 3] = [
        (&no, Type::INT8),
        (&place, Type::INT8),
        (&limit, Type::INT8),
    ];
    let rows = conn.query(&sql, &values).await?;
    rows.iter().map(|row| seq(row, 0)).collect()
}

/// The nearest execution.
pub(super) async fn run(
    conn: &Conn,
    thread: &ThreadId,
    side: Side,
) -> Result<Option<FoundExecution>, StoreError> {
    let no = number(conn, thread).await?;
    let (beyond, order) = bound(side);
    let sql = format!(
        "SELECT x.id, x.seq, x.end_seq, i.seq, i.type, x.handoffs > 0
         FROM thread_executions x JOIN thread_items i ON i.thread_no = x.thread_no AND i.seq = x.trigger_seq
         WHERE x.thread_no = $1 AND x.seq {beyond} $2 ORDER BY x.seq {order} LIMIT 1"
    );
    let place = place(side);
    let values: [Param<'_>; 2] = [(&no, Type::INT8), (&place, Type::INT8)];
    let found = conn.first(&sql, &values).await?;
    found.map(|row| ran(&row)).transpose()
}

fn ran(row: &Row) -> Result<FoundExecution, StoreError> {
    let code: i16 = get(row, 4)?;
    let trigger_type = u8::try_from(code).ok().and_then(ItemType::of_code);
    let trigger_type = trigger_type
        .ok_or_else(|| StoreError::Damaged(format!("{code} is not the type of an item")))?;
    let finished: Option<i64> = get(row, 2)?;
    Ok(FoundExecution {
        execution_id: text(row, 0)?.into(),
        created: seq(row, 1)?,
        finished: finished.map(|seq| Seq(count(seq))),
        trigger: seq(row, 3)?,
        trigger_type,
        goes_on: trigger_type == ItemType::ActionResult || get(row, 5)?,
    })
}

/// The positions at which these were removed; others are left out.
pub(super) async fn removals(
    conn: &Conn,
    thread: &ThreadId,
    of: Vec<Removed>,
) -> Result<Vec<(Removed, Seq)>, StoreError> {
    let no = number(conn, thread).await?;
    let targets = of.iter().map(|what| stored(&what.to_string()).into_owned());
    let targets: Vec<_> = targets.collect();
    let sql = "SELECT n.n, r.seq FROM unnest($2::text[]) WITH ORDINALITY n (target, n)
               JOIN thread_removals r ON r.thread_no = $1 AND r.target = n.target ORDER BY n.n";
    let values: [Param<'_>; 2] = [(&no, Type::INT8), (&targets, Type::TEXT_ARRAY)];
    let mut found = Vec::new();
    for row in conn.query(sql, &values).await? {
        let nth: i64 = get(&row, 0)?;
        let what = usize::try_from(nth)
            .ok()
            .and_then(|nth| of.get(nth.checked_sub(1)?));
        found.extend(what.cloned().zip(Some(seq(&row, 1)?)));
    }
    Ok(found)
}

/// The compactions of a log, newest first.
pub(super) async fn compactions(
    conn: &Conn,
    thread: &ThreadId,
    before: Seq,
    limit: usize,
) -> Result<Vec<Seq>, StoreError> {
    let no = number(conn, thread).await?;
    let sql = "SELECT seq FROM thread_removals
               WHERE thread_no = $1 AND target >= $2 AND target < $3 ORDER BY target DESC LIMIT $4";
    let (from, to, limit) = (compacted(Seq::ZERO), compacted(before), int(limit as u64));
    let values: [Param<'_>; 4] = [
        (&no, Type::INT8),
        (&from, Type::TEXT),
        (&to, Type::TEXT),
        (&limit, Type::INT8),
    ];
    let rows = conn.query(sql, &values).await?;
    rows.iter().map(|row| seq(row, 0)).collect()
}
