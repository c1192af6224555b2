//! Operations of the committing thread: creates, claims, appends to and deletes threads.

use super::blocks::{self, Blocks, End, Sum};
use super::error::{making, statement};
use super::objects;
use super::projection::Tables;
use super::rows;
use super::sums::{self, LogEnd};
use super::usage;
use super::value::{count, int, nanos};
use super::words::{Portion, bulk};
use rusqlite::{Connection, OptionalExtension, params};
use store::rows::{RowChange, row_changes};
use store::{
    Append, Appended, Created, Epoch, NewRecord, Ownership, Quotas, StoreError, TenantId, Token,
};
use timeline::{Machine as _, Payload, Seq, Thread, ThreadId, ThreadStatus};

/// The first records of a thread.
pub(super) struct NewLog {
    tenant: TenantId,
    thread: Thread,
    first: Vec<NewRecord>,
    token: Option<Token>,
}

impl NewLog {
    pub(super) fn of(
        tenant: &TenantId,
        first: Vec<NewRecord>,
        token: Option<Token>,
    ) -> Result<Self, StoreError> {
        let thread = NewRecord::thread_of(&first)
            .cloned()
            .ok_or_else(|| StoreError::Damaged("a thread begins with thread.created".into()))?;
        Ok(Self {
            tenant: tenant.clone(),
            thread,
            first,
            token,
        })
    }

    pub(super) fn bytes(&self) -> usize {
        size(&self.first)
    }

    fn updated_at(&self) -> i64 {
        last(&self.first).unwrap_or_else(|| nanos(self.thread.created_at))
    }
}

/// The bytes of the records' texts.
pub(super) fn size(records: &[NewRecord]) -> usize {
    records.iter().map(|record| record.text().len()).sum()
}

/// Finds the thread with the key, or makes it.
pub(super) fn create(
    conn: &Connection,
    new: &NewLog,
    quotas: &Quotas,
) -> Result<Created, StoreError> {
    let NewLog {
        tenant,
        thread,
        first,
        token,
    } = new;
    if let Some(key) = &thread.key
        && let Some(thread) = rows::id_of(conn, tenant, key)?
    {
        return Ok(Created {
            thread,
            epoch: None,
        });
    }
    if let Some(fork) = &thread.fork {
        owner_of(conn, tenant, &fork.thread_id)?;
    }
    quotas.check_thread(tenant, usage::of(conn, tenant)?, size(first) as u64)?;
    let (no, change) = insert_thread(conn, new)?;
    if let Some(token) = token {
        keep_token(conn, no, token, Seq(first.len() as u64))?;
    }
    let end = End {
        thread: no,
        epoch: Epoch::FIRST,
        tail: Seq::ZERO,
        sum: blocks::seed(tenant.as_str(), thread.id.as_str()),
    };
    let (sum, status) = write(conn, end, first, Some(thread))?;
    let end = LogEnd {
        no,
        updated_at: new.updated_at(),
        tail: int(first.len() as u64),
        bytes: int(size(first) as u64),
        change,
        epoch: int(Epoch::FIRST.0),
        status: status.unwrap_or(thread.status),
        sum: Some(sum),
    };
    sums::seal_new(conn, thread.id.as_str(), &end)?;
    Ok(Created {
        thread: thread.id.clone(),
        epoch: Some(Epoch::FIRST),
    })
}

/// Writes the row of a new thread, but its sums and the end of its log. Returns the thread's number and its position in
/// the list.
fn insert_thread(conn: &Connection, new: &NewLog) -> Result<(i64, i64), StoreError> {
    let sql = "INSERT INTO thread_threads
                   (id, tenant, key, status, title, metadata, fork_no, fork_seq, created_at, updated_at, head_seq, bytes,
                    epoch, change, no)
               VALUES (?1, ?2, ?3, 'open', ?4, ?5, (SELECT no FROM thread_threads WHERE id = ?6), ?7, ?8, ?9, 0, 0, ?10,
                       (SELECT coalesce(max(change), 0) + 1 FROM thread_threads WHERE tenant = ?2), ?11)
               RETURNING no, change";
    let thread = &new.thread;
    let fork = thread.fork.as_ref();
    let values = params![
        thread.id.as_str(),
        new.tenant.as_str(),
        thread.key,
        thread.title,
        thread.metadata.as_ref().map(Payload::text),
        fork.map(|fork| fork.thread_id.as_str()),
        fork.map(|fork| int(fork.seq.0)),
        nanos(thread.created_at),
        new.updated_at(),
        int(Epoch::FIRST.0),
        bulk::thread_number(conn)?,
    ];
    let mut insert = conn.prepare_cached(sql).map_err(statement)?;
    let found = insert.query_row(values, |row| Ok((row.get(0)?, row.get(1)?)));
    found.map_err(making(thread.id.as_str()))
}

/// Appends, if the epoch and the tail are the expected ones.
pub(super) fn append(
    conn: &Connection,
    append: &Append,
    quotas: &Quotas,
) -> Result<Appended, StoreError> {
    if let Some(token) = &append.token {
        unused(conn, &append.thread, token)?;
    }
    let found = found(conn, &append.thread)?.ok_or(StoreError::NotFound)?;
    let thread = append.thread.clone();
    if found.epoch != append.epoch {
        return Err(StoreError::Fenced { thread });
    }
    if found.tail != append.tail {
        return Err(StoreError::Conflict {
            thread,
            expected: append.tail,
            found: found.tail,
        });
    }
    for (other, tail) in &append.unmoved {
        let end = LogEnd::of(conn, other.as_str())?;
        if end.is_none_or(|end| count(end.tail) != tail.0) {
            let thread = other.clone();
            return Err(StoreError::Moved { thread });
        }
    }
    if append.is_limited {
        check_bytes(conn, found.no, size(&append.records), quotas)?;
    }
    let tail = Seq(append.tail.0.saturating_add(append.records.len() as u64));
    let epoch = match append.ownership {
        Ownership::Take(_) => Epoch(append.epoch.0.saturating_add(1)),
        // One process writes a store, so it need not know who owns a run.
        Ownership::Keep | Ownership::Offer | Ownership::Rest => append.epoch,
    };
    let end = End {
        thread: found.no,
        epoch,
        tail: append.tail,
        sum: found.sum,
    };
    let (sum, status) = write(conn, end, &append.records, None)?;
    let bytes = int(size(&append.records) as u64);
    let after = LogEnd {
        no: found.no,
        updated_at: last(&append.records).unwrap_or(found.end.updated_at),
        tail: int(tail.0),
        bytes: found.end.bytes.saturating_add(bytes),
        change: found.change.unwrap_or(found.end.change),
        epoch: int(epoch.0),
        status: status.unwrap_or(found.end.status),
        sum: Some(sum),
    };
    let values = params![
        after.no,
        after.tail,
        after.updated_at,
        after.bytes,
        sum,
        after.end_sum(append.thread.as_str()),
        after.status.name(),
        after.epoch,
    ];
    // Its index is left alone where the thread is the first of the list already.
    let sql = match found.change {
        None => {
            "UPDATE thread_threads
             SET head_seq = ?2, updated_at = ?3, bytes = ?4, sum = ?5, end_sum = ?6, status = ?7,
                 epoch = ?8
             WHERE no = ?1"
        }
        Some(_) => {
            "UPDATE thread_threads
             SET head_seq = ?2, updated_at = ?3, bytes = ?4, sum = ?5, end_sum = ?6, status = ?7,
                 epoch = ?8, change = ?9
             WHERE no = ?1"
        }
    };
    let mut update = conn.prepare_cached(sql).map_err(statement)?;
    let updated = match found.change {
        None => update.execute(values),
        Some(change) => update.execute(&*[values, params![change]].concat()),
    };
    updated.map_err(statement)?;
    if let Some(token) = &append.token {
        keep_token(conn, found.no, token, tail)?;
    }
    Ok(Appended { tail, epoch })
}

/// Refuses records of this size if the thread's tenant would store too much with them.
fn check_bytes(
    conn: &Connection,
    no: i64,
    bytes: usize,
    quotas: &Quotas,
) -> Result<(), StoreError> {
    let sql = "SELECT tenant FROM thread_threads WHERE no = ?1";
    let mut select = conn.prepare_cached(sql).map_err(statement)?;
    let tenant: String = select
        .query_row([no], |row| row.get(0))
        .map_err(statement)?;
    let tenant = TenantId::from(tenant.as_str());
    Ok(quotas.check_bytes(&tenant, usage::of(conn, &tenant)?, bytes as u64)?)
}

fn keep_token(conn: &Connection, no: i64, token: &Token, tail: Seq) -> Result<(), StoreError> {
    let sql = "INSERT INTO thread_tokens (thread_no, token, answer, seq, sum) VALUES (?1, ?2, ?3, ?4, ?5)";
    let mut insert = conn.prepare_cached(sql).map_err(statement)?;
    let (text, answer, seq) = (&token.token, &token.answer, int(tail.0));
    let values = params![no, text, answer, seq, sums::of_token(no, text, answer, seq)];
    insert.execute(values).map_err(statement)?;
    Ok(())
}

/// Deletes a thread with all its data and its sidecar objects. If it has many texts, the words of some of them go first:
/// those after the text with this number. Returns the number of the last one if there may be more.
pub(super) fn delete_some(
    conn: &Connection,
    (tenant, thread, tail): (&TenantId, &ThreadId, Option<Seq>),
    after: i64,
    in_bulk: bool,
) -> Result<Option<i64>, StoreError> {
    let no = deletable(conn, tenant, thread)?;
    if let Some(expected) = tail {
        let end = LogEnd::of(conn, thread.as_str())?.ok_or(StoreError::NotFound)?;
        let found = Seq(count(end.tail));
        if found != expected {
            let thread = thread.clone();
            return Err(StoreError::Conflict {
                thread,
                expected,
                found,
            });
        }
    }
    let none = Blocks::default();
    let tables = Tables::of(conn, no, &none);
    let last = if in_bulk {
        bulk::noting(conn, || tables.remove_some(after, &Portion::NOTED))?
    } else {
        tables.remove_some(after, &Portion::LOOKED_UP)?
    };
    if last.is_none() {
        delete_all(conn, no)?;
    }
    Ok(last)
}

/// Adds the words again of a thread that could not be deleted.
pub(super) fn restore_words(
    conn: &Connection,
    tenant: &TenantId,
    thread: &ThreadId,
) -> Result<(), StoreError> {
    let no = owner_of(conn, tenant, thread)?;
    Tables::of(conn, no, &Blocks::default()).add_missing()
}

/// The number of a thread that has no forks.
fn deletable(conn: &Connection, tenant: &TenantId, thread: &ThreadId) -> Result<i64, StoreError> {
    let no = owner_of(conn, tenant, thread)?;
    let sql = "SELECT EXISTS (SELECT 1 FROM thread_threads WHERE fork_no = ?1)";
    if conn
        .query_row(sql, [no], |row| row.get(0))
        .map_err(statement)?
    {
        return Err(StoreError::HasForks {
            thread: thread.clone(),
        });
    }
    Ok(no)
}

/// Deletes everything of the thread with this number.
pub(super) fn delete_all(conn: &Connection, no: i64) -> Result<(), StoreError> {
    delete_derived(conn, no)?;
    for table in ["thread_tokens", "thread_blocks"] {
        conn.execute(&format!("DELETE FROM {table} WHERE thread_no = ?1"), [no])
            .map_err(statement)?;
    }
    objects::delete_sidecars(conn, no)?;
    conn.execute("DELETE FROM thread_threads WHERE no = ?1", [no])
        .map_err(statement)?;
    Ok(())
}

/// Deletes what the tables and the full-text index derive from the log of a thread.
pub(super) fn delete_derived(conn: &Connection, no: i64) -> Result<(), StoreError> {
    Tables::of(conn, no, &Blocks::default()).remove_some(i64::MIN, &Portion::ALL)?;
    for table in Tables::DERIVED {
        let sql = format!("DELETE FROM {table} WHERE thread_no = ?1");
        let mut delete = conn.prepare_cached(&sql).map_err(statement)?;
        delete.execute([no]).map_err(statement)?;
    }
    Ok(())
}

/// Writes the blocks and the rows of the tables. The row of a new thread is written already. Returns the sum of the last
/// block, and the thread's new status.
fn write(
    conn: &Connection,
    end: End,
    records: &[NewRecord],
    new: Option<&Thread>,
) -> Result<(Sum, Option<ThreadStatus>), StoreError> {
    let (blocks, sum) = blocks::insert(conn, end, records)?;
    let mut tables = Tables::of(conn, end.thread, &blocks);
    let numbered = (end.tail.next().0..).map(Seq).zip(records);
    let mut changes = row_changes(numbered.map(|(seq, record)| (seq, record.at, record.event())));
    let status = changes.iter().find_map(|change| {
        if let RowChange::Thread(_, status) | RowChange::ThreadStatus(status) = change {
            return Some(*status);
        }
        None
    });
    // The status is written with the end of the log.
    changes.retain(|change| !matches!(change, RowChange::ThreadStatus(_)));
    if let Some(thread) = new {
        tables.is_sealed = false;
        changes.retain(|change| !matches!(change, RowChange::Thread(..)));
        tables.add_title(thread.title.as_deref())?;
    }
    tables.execute_all(&changes)?;
    tables.note_calls(records.iter().map(NewRecord::event))?;
    Ok((sum, status))
}

/// The instant of the last record.
fn last(records: &[NewRecord]) -> Option<i64> {
    records.last().map(|record| nanos(record.at))
}

/// The number of a thread of this tenant.
pub(super) fn owner_of(
    conn: &Connection,
    tenant: &TenantId,
    thread: &ThreadId,
) -> Result<i64, StoreError> {
    let sql = "SELECT no FROM thread_threads WHERE id = ?1 AND tenant = ?2";
    let found = conn.query_row(sql, [thread.as_str(), tenant.as_str()], |row| row.get(0));
    found
        .optional()
        .map_err(statement)?
        .ok_or(StoreError::NotFound)
}

fn unused(conn: &Connection, thread: &ThreadId, token: &Token) -> Result<(), StoreError> {
    match answer(conn, thread, &token.token)? {
        Some(answer) => Err(StoreError::Repeated { answer }),
        None => Ok(()),
    }
}

/// The stored answer to a token, if the token was used.
pub(super) fn answer(
    conn: &Connection,
    thread: &ThreadId,
    token: &str,
) -> Result<Option<String>, StoreError> {
    let sql = "SELECT thread_no, answer, seq, sum FROM thread_tokens
               WHERE thread_no = (SELECT no FROM thread_threads WHERE id = ?1) AND token = ?2";
    let mut select = conn.prepare_cached(sql).map_err(statement)?;
    let found = select.query_row([thread.as_str(), token], |row| {
        Ok((
            row.get(0)?,
            row.get::<_, String>(1)?,
            row.get(2)?,
            row.get(3)?,
        ))
    });
    let Some((no, answer, seq, sum)) = found.optional().map_err(statement)? else {
        return Ok(None);
    };
    if Some(sums::of_token(no, token, &answer, seq)) != sum {
        return Err(sums::changed(&format!("a token of thread {thread}")));
    }
    Ok(Some(answer))
}

/// The data of a thread that an append depends on.
struct Found {
    no: i64,
    epoch: Epoch,
    tail: Seq,
    sum: Sum,
    end: LogEnd,
    /// The number of its next change; `None` if it is the last changed thread of its tenant.
    change: Option<i64>,
}

/// Finds a thread. A separate query is faster than `UPDATE … RETURNING`, which needs a temporary table.
fn found(conn: &Connection, thread: &ThreadId) -> Result<Option<Found>, StoreError> {
    let sql = format!(
        "SELECT (SELECT max(change) FROM thread_threads o WHERE o.tenant = t.tenant), {}
         FROM thread_threads t WHERE id = ?1",
        LogEnd::COLUMNS
    );
    let mut select = conn.prepare_cached(&sql).map_err(statement)?;
    let found = select.query_row([thread.as_str()], |row| {
        Ok((row.get::<_, i64>(0)?, LogEnd::read(row, 1)?))
    });
    let Some((newest, end)) = found.optional().map_err(statement)? else {
        return Ok(None);
    };
    let end = LogEnd::checked(end, thread.as_str())?;
    let sum = end.sum.ok_or_else(|| sums::changed("a thread's row"))?;
    Ok(Some(Found {
        no: end.no,
        epoch: Epoch(count(end.epoch)),
        tail: Seq(count(end.tail)),
        sum,
        end,
        change: (end.change < newest).then(|| newest.saturating_add(1)),
    }))
}
