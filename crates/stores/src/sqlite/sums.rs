//! Sums of rows that are no blocks: what a reader gets from such a row is what was written to it.
//!
//! | row | covers |
//! |---|---|
//! | `thread_threads.row_sum` | the thread: tenant, id, key, title, metadata, fork, when it was made |
//! | `thread_threads.end_sum` | the status and the end of its log, which appends change |
//! | `thread_waits.sum` | the row |
//! | `thread_tokens.sum` | the row |
//! | `tenant_objects.sum` | the row, the hash and the length of its content |
//! | `agent_checkpoints.sum` | the row, and `state_sum`, which covers the state |

use super::blocks::Sum;
pub(super) use crate::sum::Summing;

use super::error::statement;
use rusqlite::{Connection, OptionalExtension, Row, params};
use store::StoreError;
use timeline::{Machine as _, ThreadStatus};

/// The error of a row that is not what was written.
pub(super) fn changed(what: &str) -> StoreError {
    StoreError::Damaged(format!(
        "{what} is not what was written: its sum is another"
    ))
}

/// The damage that an error names.
pub(super) fn damage(error: StoreError) -> String {
    if let StoreError::Damaged(what) = error {
        what
    } else {
        error.to_string()
    }
}

/// A thread without the end of its log.
pub(super) struct Made {
    pub(super) no: i64,
    pub(super) tenant: String,
    pub(super) id: String,
    pub(super) key: Option<String>,
    pub(super) created_at: i64,
    pub(super) title: Option<String>,
    pub(super) metadata: Option<String>,
    pub(super) parent: Option<String>,
    pub(super) fork_seq: Option<i64>,
    pub(super) stored: Option<Sum>,
}

impl Made {
    /// The columns of a thread `t` and what it is forked from, `p`. A parent is another row: the sum has its id.
    pub(super) const COLUMNS: &str =
        "t.no, t.tenant, t.id, t.key, t.created_at, t.title, t.metadata,
        p.id, t.fork_seq, t.row_sum";
    /// How many columns.
    pub(super) const N_COLUMNS: usize = 10;

    pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            no: row.get(0)?,
            tenant: row.get(1)?,
            id: row.get(2)?,
            key: row.get(3)?,
            created_at: row.get(4)?,
            title: row.get(5)?,
            metadata: row.get(6)?,
            parent: row.get(7)?,
            fork_seq: row.get(8)?,
            stored: row.get(9)?,
        })
    }

    /// The sum.
    pub(super) fn sum(&self) -> Sum {
        self.sum_with(None)
    }

    /// The sum with the status, as version 10 calculated it, or without it.
    pub(super) fn sum_with(&self, status: Option<ThreadStatus>) -> Sum {
        let text = |to: Summing, text: &String| to.text(text);
        Summing::of("thread_threads")
            .int(self.no)
            .text(&self.tenant)
            .text(&self.id)
            .optional(self.key.as_ref(), text)
            .texts(status.map(ThreadStatus::name))
            .int(self.created_at)
            .optional(self.title.as_ref(), text)
            .optional(self.metadata.as_ref(), text)
            .optional(self.parent.as_ref(), text)
            .optional(self.fork_seq, Summing::int)
            .end()
    }

    /// Refuses a row that has changed.
    pub(super) fn checked(self) -> Result<Self, StoreError> {
        if self.stored == Some(self.sum()) {
            Ok(self)
        } else {
            Err(changed(&format!("the row of thread {}", self.id)))
        }
    }

    /// The thread with this number, unchecked.
    pub(super) fn of(conn: &Connection, no: i64) -> Result<Option<Self>, StoreError> {
        let sql = format!(
            "SELECT {} FROM thread_threads t LEFT JOIN thread_threads p ON p.no = t.fork_no WHERE t.no = ?1",
            Self::COLUMNS
        );
        let mut select = conn.prepare_cached(&sql).map_err(statement)?;
        let found = select.query_row([no], Self::read).optional();
        found.map_err(statement)
    }
}

/// Refuses a thread's row that has changed.
pub(super) fn check_made(conn: &Connection, no: i64) -> Result<(), StoreError> {
    match Made::of(conn, no)? {
        Some(made) => made.checked().map(|_| ()),
        None => Ok(()),
    }
}

/// Writes the sum of what a thread is.
pub(super) fn seal_made(conn: &Connection, no: i64) -> Result<(), StoreError> {
    let Some(made) = Made::of(conn, no)? else {
        return Ok(());
    };
    let sql = "UPDATE thread_threads SET row_sum = ?2 WHERE no = ?1";
    let mut update = conn.prepare_cached(sql).map_err(statement)?;
    update.execute(params![no, made.sum()]).map_err(statement)?;
    Ok(())
}

/// Writes the end of a new thread's log, and the sums of its row.
pub(super) fn seal_new(conn: &Connection, id: &str, end: &LogEnd) -> Result<(), StoreError> {
    let made = Made::of(conn, end.no)?.ok_or(StoreError::NotFound)?;
    let sql = "UPDATE thread_threads
               SET status = ?2, head_seq = ?3, bytes = ?4, sum = ?5, row_sum = ?6, end_sum = ?7
               WHERE no = ?1";
    let mut update = conn.prepare_cached(sql).map_err(statement)?;
    let values = params![
        end.no,
        end.status.name(),
        end.tail,
        end.bytes,
        end.sum,
        made.sum(),
        end.end_sum(id),
    ];
    update.execute(values).map_err(statement)?;
    Ok(())
}

/// The status in a column.
fn status(row: &Row<'_>, column: usize) -> rusqlite::Result<ThreadStatus> {
    let name: String = row.get(column)?;
    let found = ThreadStatus::ALL.iter().find(|it| it.name() == name);
    let unknown = || format!("{name:?} is not the status of a thread").into();
    found.copied().ok_or_else(|| {
        rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Text, unknown())
    })
}

/// The status of a thread and the end of its log, which the next append depends on.
#[derive(Clone, Copy, Debug)]
pub(super) struct LogEnd {
    pub(super) no: i64,
    pub(super) updated_at: i64,
    pub(super) tail: i64,
    pub(super) bytes: i64,
    pub(super) change: i64,
    pub(super) epoch: i64,
    pub(super) status: ThreadStatus,
    pub(super) sum: Option<Sum>,
}

impl LogEnd {
    /// The columns of a thread `t`.
    pub(super) const COLUMNS: &str =
        "t.no, t.updated_at, t.head_seq, t.bytes, t.change, t.epoch, t.status, t.sum, t.end_sum";

    /// Reads the columns from this one on, of the thread with this id.
    pub(super) fn read(row: &Row<'_>, from: usize) -> rusqlite::Result<(Self, Option<Sum>)> {
        let end = Self {
            no: row.get(from)?,
            updated_at: row.get(from + 1)?,
            tail: row.get(from + 2)?,
            bytes: row.get(from + 3)?,
            change: row.get(from + 4)?,
            epoch: row.get(from + 5)?,
            status: status(row, from + 6)?,
            sum: row.get(from + 7)?,
        };
        Ok((end, row.get(from + 8)?))
    }

    /// The sum, for the thread with this id: an index that leads to another row is noticed too.
    pub(super) fn end_sum(&self, id: &str) -> Sum {
        self.sum_with(id, Some(self.status))
    }

    /// The sum with the status, or without it, as version 10 calculated it.
    pub(super) fn sum_with(&self, id: &str, status: Option<ThreadStatus>) -> Sum {
        Summing::of("thread_threads")
            .text(id)
            .int(self.no)
            .int(self.updated_at)
            .int(self.tail)
            .int(self.bytes)
            .int(self.change)
            .int(self.epoch)
            .texts(status.map(ThreadStatus::name))
            .optional(self.sum, |to, sum| to.bytes(&sum))
            .end()
    }

    /// Refuses an end that has changed, or is another thread's.
    pub(super) fn checked(
        (end, stored): (Self, Option<Sum>),
        id: &str,
    ) -> Result<Self, StoreError> {
        if stored == Some(end.end_sum(id)) {
            Ok(end)
        } else {
            Err(changed(&format!("where the log of thread {id} ends")))
        }
    }

    /// The end of the thread with this id.
    pub(super) fn of(conn: &Connection, id: &str) -> Result<Option<Self>, StoreError> {
        let sql = format!(
            "SELECT {} FROM thread_threads t WHERE t.id = ?1",
            Self::COLUMNS
        );
        let mut select = conn.prepare_cached(&sql).map_err(statement)?;
        let found = select.query_row([id], |row| Self::read(row, 0)).optional();
        let found = found.map_err(statement)?;
        found.map(|found| Self::checked(found, id)).transpose()
    }
}

/// Writes the sum of where a thread's log ends.
pub(super) fn seal_end(conn: &Connection, no: i64) -> Result<(), StoreError> {
    let sql = format!(
        "SELECT t.id, {} FROM thread_threads t WHERE t.no = ?1",
        LogEnd::COLUMNS
    );
    let mut select = conn.prepare_cached(&sql).map_err(statement)?;
    let found = select.query_row([no], |row| {
        Ok((row.get::<_, String>(0)?, LogEnd::read(row, 1)?.0))
    });
    let Some((id, end)) = found.optional().map_err(statement)? else {
        return Ok(());
    };
    let sql = "UPDATE thread_threads SET end_sum = ?2 WHERE no = ?1";
    let mut update = conn.prepare_cached(sql).map_err(statement)?;
    update
        .execute(params![no, end.end_sum(&id)])
        .map_err(statement)?;
    Ok(())
}

/// A row of the list of what waits.
pub(super) struct Wait {
    pub(super) no: i64,
    pub(super) tenant: String,
    pub(super) calls: Option<i64>,
    pub(super) calls_at: Option<i64>,
    pub(super) asks: Option<i64>,
    pub(super) last_asks: Option<i64>,
    stored: Option<Sum>,
}

impl Wait {
    /// The columns of a row `w`.
    pub(super) const COLUMNS: &str =
        "w.thread_no, w.tenant, w.calls, w.calls_at, w.asks, w.asked, w.sum";

    pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            no: row.get(0)?,
            tenant: row.get(1)?,
            calls: row.get(2)?,
            calls_at: row.get(3)?,
            asks: row.get(4)?,
            last_asks: row.get(5)?,
            stored: row.get(6)?,
        })
    }

    fn sum(&self) -> Sum {
        Summing::of("thread_waits")
            .int(self.no)
            .text(&self.tenant)
            .optional(self.calls, Summing::int)
            .optional(self.calls_at, Summing::int)
            .optional(self.asks, Summing::int)
            .optional(self.last_asks, Summing::int)
            .end()
    }

    /// Refuses a row that has changed.
    pub(super) fn checked(self) -> Result<Self, StoreError> {
        if self.stored == Some(self.sum()) {
            Ok(self)
        } else {
            Err(changed(&format!("what waits in thread number {}", self.no)))
        }
    }
}

/// Writes the sum of what waits in a thread, if something does.
pub(super) fn seal_wait(conn: &Connection, no: i64) -> Result<(), StoreError> {
    let sql = format!(
        "SELECT {} FROM thread_waits w WHERE w.thread_no = ?1",
        Wait::COLUMNS
    );
    let mut select = conn.prepare_cached(&sql).map_err(statement)?;
    let found = select
        .query_row([no], Wait::read)
        .optional()
        .map_err(statement)?;
    let Some(wait) = found else {
        return Ok(());
    };
    let sql = "UPDATE thread_waits SET sum = ?2 WHERE thread_no = ?1";
    let mut update = conn.prepare_cached(sql).map_err(statement)?;
    update.execute(params![no, wait.sum()]).map_err(statement)?;
    Ok(())
}

/// The sum of a token and its answer.
pub(super) fn of_token(no: i64, token: &str, answer: &str, seq: i64) -> Sum {
    let summing = Summing::of("thread_tokens").int(no).text(token);
    summing.text(answer).int(seq).end()
}

/// The sum of an agent's state.
pub(super) fn of_state(state: &str) -> Sum {
    Summing::of("state").text(state).end()
}

/// Adds sums to the rows of an older store.
pub(super) fn seal_all(conn: &Connection, numbers: &[i64]) -> Result<(), StoreError> {
    for no in numbers {
        seal_made(conn, *no)?;
        seal_end(conn, *no)?;
        seal_wait(conn, *no)?;
        seal_tokens(conn, *no)?;
    }
    Ok(())
}

/// Refuses the tokens of a thread if one is not what was written.
pub(super) fn check_tokens(conn: &Connection, no: i64) -> Result<(), StoreError> {
    let sql = "SELECT token, answer, seq, sum FROM thread_tokens WHERE thread_no = ?1";
    let mut select = conn.prepare_cached(sql).map_err(statement)?;
    let mut rows = select.query([no]).map_err(statement)?;
    while let Some(row) = rows.next().map_err(statement)? {
        let (token, answer): (String, String) = (
            row.get(0).map_err(statement)?,
            row.get(1).map_err(statement)?,
        );
        let sum = of_token(no, &token, &answer, row.get(2).map_err(statement)?);
        if row.get::<_, Option<Sum>>(3).map_err(statement)? != Some(sum) {
            return Err(changed(&format!("token {token:?}")));
        }
    }
    Ok(())
}

fn seal_tokens(conn: &Connection, no: i64) -> Result<(), StoreError> {
    let sql = "SELECT token, answer, seq FROM thread_tokens WHERE thread_no = ?1";
    let mut select = conn.prepare_cached(sql).map_err(statement)?;
    let read = |row: &Row<'_>| {
        Ok((
            row.get::<_, String>(0)?,
            row.get::<_, String>(1)?,
            row.get(2)?,
        ))
    };
    let rows = select.query_map([no], read).map_err(statement)?;
    for (token, answer, seq) in rows.collect::<Result<Vec<_>, _>>().map_err(statement)? {
        let sql = "UPDATE thread_tokens SET sum = ?3 WHERE thread_no = ?1 AND token = ?2";
        let mut update = conn.prepare_cached(sql).map_err(statement)?;
        let sum = of_token(no, &token, &answer, seq);
        update.execute(params![no, token, sum]).map_err(statement)?;
    }
    Ok(())
}
