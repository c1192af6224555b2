//! Operations of the committing thread: creates, claims, appends to and deletes threads.

use super::error::{making, statement};
use super::kind::kind;
use super::objects;
use super::projection::Tables;
use super::rows;
use super::usage;
use super::value::{count, int, nanos};
use rusqlite::{Connection, OptionalExtension, params};
use store::rows::row_changes;
use store::{Append, Created, Epoch, NewRecord, Quotas, StoreError, TenantId, Token};
use timeline::{Seq, Thread, ThreadId};

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
}

/// The bytes of the records' texts.
pub(super) fn size(records: &[NewRecord]) -> usize {
    records.iter().map(|record| record.text.len()).sum()
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
            claim: None,
        });
    }
    if let Some(fork) = &thread.fork {
        owner_of(conn, tenant, &fork.thread_id)?;
    }
    quotas.check_thread(tenant, usage::of(conn, tenant)?, size(first) as u64)?;
    let sql = "INSERT INTO thread_threads
                   (id, tenant, key, status, created_at, updated_at, head_seq, bytes, epoch, change)
               VALUES (?1, ?2, ?3, 'open', ?4, ?5, ?6, ?7, ?8,
                       (SELECT coalesce(max(change), 0) + 1 FROM thread_threads WHERE tenant = ?2))";
    let created_at = nanos(thread.created_at);
    let values = params![
        thread.id.as_str(),
        tenant.as_str(),
        thread.key,
        created_at,
        last(first).unwrap_or(created_at),
        int(first.len() as u64),
        int(size(first) as u64),
        int(Epoch::FIRST.0),
    ];
    let insert = conn
        .prepare_cached(sql)
        .and_then(|mut insert| insert.insert(values));
    let no = insert.map_err(making(thread.id.as_str()))?;
    if let Some(token) = token {
        keep_token(conn, no, token, Seq(first.len() as u64))?;
    }
    write(conn, no, Seq::ZERO, first)?;
    Ok(Created {
        thread: thread.id.clone(),
        claim: Some(Epoch::FIRST),
    })
}

/// Voids all claims and makes a new one.
pub(super) fn claim(conn: &Connection, thread: &ThreadId) -> Result<Epoch, StoreError> {
    let sql = "UPDATE thread_threads SET epoch = epoch + 1 WHERE id = ?1 RETURNING epoch";
    let mut update = conn.prepare_cached(sql).map_err(statement)?;
    let epoch = update
        .query_row([thread.as_str()], |row| row.get(0))
        .optional()
        .map_err(statement)?;
    Ok(Epoch(count(epoch.ok_or(StoreError::NotFound)?)))
}

/// Appends, if the claim is valid and the tail is the expected one.
pub(super) fn append(
    conn: &Connection,
    append: &Append,
    quotas: &Quotas,
) -> Result<Seq, StoreError> {
    if let Some(token) = &append.token {
        unused(conn, &append.thread, token)?;
    }
    let tail = Seq(append.tail.0.saturating_add(append.records.len() as u64));
    let Some((no, change)) = numbered(conn, &append.thread)? else {
        return Err(StoreError::NotFound);
    };
    // Its index is left alone where the thread is the first of the list already.
    let sql = match change {
        None => {
            "UPDATE thread_threads
             SET head_seq = ?4, updated_at = coalesce(?5, updated_at), bytes = bytes + ?6
             WHERE no = ?1 AND epoch = ?2 AND head_seq = ?3"
        }
        Some(_) => {
            "UPDATE thread_threads
             SET head_seq = ?4, updated_at = coalesce(?5, updated_at), bytes = bytes + ?6, change = ?7
             WHERE no = ?1 AND epoch = ?2 AND head_seq = ?3"
        }
    };
    let mut update = conn.prepare_cached(sql).map_err(statement)?;
    let values = params![
        no,
        int(append.epoch.0),
        int(append.tail.0),
        int(tail.0),
        last(&append.records),
        int(size(&append.records) as u64),
    ];
    let updated = match change {
        None => update.execute(values),
        Some(change) => {
            let values = [values, params![change]].concat();
            update.execute(&*values)
        }
    };
    if updated.map_err(statement)? == 0 {
        return Err(refusal(conn, append));
    }
    if append.is_limited {
        check_bytes(conn, no, quotas)?;
    }
    if let Some(token) = &append.token {
        keep_token(conn, no, token, tail)?;
    }
    write(conn, no, append.tail, &append.records)?;
    Ok(tail)
}

/// Refuses what was appended to a thread if its tenant stores too much with it.
fn check_bytes(conn: &Connection, no: i64, quotas: &Quotas) -> Result<(), StoreError> {
    let sql = "SELECT tenant FROM thread_threads WHERE no = ?1";
    let mut select = conn.prepare_cached(sql).map_err(statement)?;
    let tenant: String = select
        .query_row([no], |row| row.get(0))
        .map_err(statement)?;
    let tenant = TenantId::from(tenant.as_str());
    Ok(quotas.check_bytes(&tenant, usage::of(conn, &tenant)?, 0)?)
}

fn keep_token(conn: &Connection, no: i64, token: &Token, tail: Seq) -> Result<(), StoreError> {
    let sql = "INSERT INTO thread_tokens (thread_no, token, answer, seq) VALUES (?1, ?2, ?3, ?4)";
    let mut insert = conn.prepare_cached(sql).map_err(statement)?;
    let values = params![no, token.token, token.answer, int(tail.0)];
    insert.execute(values).map_err(statement)?;
    Ok(())
}

/// Maximum number of texts whose words one request removes from the index.
const TEXTS: usize = 16;

/// Removes words of a thread that is to be deleted, if it has many texts. Whether there are more.
pub(super) fn delete_words(
    conn: &Connection,
    tenant: &TenantId,
    thread: &ThreadId,
) -> Result<bool, StoreError> {
    let no = deletable(conn, tenant, thread)?;
    Ok(Tables::of(conn, no).remove_some(TEXTS)? == TEXTS)
}

/// Adds the words again of a thread that could not be deleted.
pub(super) fn restore_words(
    conn: &Connection,
    tenant: &TenantId,
    thread: &ThreadId,
) -> Result<(), StoreError> {
    let no = owner_of(conn, tenant, thread)?;
    Tables::of(conn, no).add_missing()
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

/// Deletes a thread with all its data and its sidecar objects.
pub(super) fn delete(
    conn: &Connection,
    tenant: &TenantId,
    thread: &ThreadId,
) -> Result<(), StoreError> {
    let no = deletable(conn, tenant, thread)?;
    Tables::of(conn, no).remove_some(usize::MAX)?;
    for table in Tables::DERIVED
        .into_iter()
        .chain(["thread_tokens", "thread_events"])
    {
        conn.execute(&format!("DELETE FROM {table} WHERE thread_no = ?1"), [no])
            .map_err(statement)?;
    }
    objects::delete_sidecars(conn, no)?;
    conn.execute("DELETE FROM thread_threads WHERE no = ?1", [no])
        .map_err(statement)?;
    Ok(())
}

fn write(conn: &Connection, no: i64, tail: Seq, records: &[NewRecord]) -> Result<(), StoreError> {
    let sql =
        "INSERT INTO thread_events (thread_no, seq, at, kind, payload) VALUES (?1, ?2, ?3, ?4, ?5)";
    let mut insert = conn.prepare_cached(sql).map_err(statement)?;
    let numbered = (tail.next().0..).map(Seq).zip(records);
    for (seq, NewRecord { at, event, text }) in numbered.clone() {
        insert
            .execute(params![no, int(seq.0), nanos(*at), kind(event), &**text])
            .map_err(statement)?;
    }
    let tables = Tables::of(conn, no);
    let changes = row_changes(numbered.map(|(seq, record)| (seq, record.at, &record.event)));
    changes
        .iter()
        .try_for_each(|change| tables.execute(change))?;
    tables.note_calls(records.iter().map(|record| &record.event))
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
    let sql = "SELECT answer FROM thread_tokens
               WHERE thread_no = (SELECT no FROM thread_threads WHERE id = ?1) AND token = ?2";
    let mut select = conn.prepare_cached(sql).map_err(statement)?;
    let found = select.query_row([thread.as_str(), token], |row| row.get(0));
    found.optional().map_err(statement)
}

/// The number of a thread, and the number of its next change. The latter is `None` if it is already the
/// last changed thread of its tenant. A separate query is faster than `UPDATE … RETURNING`, which needs
/// a temporary table.
fn numbered(
    conn: &Connection,
    thread: &ThreadId,
) -> Result<Option<(i64, Option<i64>)>, StoreError> {
    let sql = "SELECT no, change,
                      (SELECT max(change) FROM thread_threads o WHERE o.tenant = t.tenant)
               FROM thread_threads t WHERE id = ?1";
    let mut select = conn.prepare_cached(sql).map_err(statement)?;
    let found = select.query_row([thread.as_str()], |row| {
        let (change, newest): (i64, i64) = (row.get(1)?, row.get(2)?);
        let next = (change < newest).then(|| newest.saturating_add(1));
        Ok((row.get(0)?, next))
    });
    found.optional().map_err(statement)
}

// Why no row was updated.
fn refusal(conn: &Connection, append: &Append) -> StoreError {
    let sql = "SELECT epoch, head_seq FROM thread_threads WHERE id = ?1";
    let thread = append.thread.clone();
    let stands = conn.query_row(sql, [thread.as_str()], |row| Ok((row.get(0)?, row.get(1)?)));
    match stands.optional() {
        Err(error) => statement(error),
        Ok(None) => StoreError::NotFound,
        Ok(Some((epoch, _))) if count(epoch) != append.epoch.0 => StoreError::Fenced { thread },
        Ok(Some((_, tail))) => StoreError::Conflict {
            thread,
            expected: append.tail,
            found: Seq(count(tail)),
        },
    }
}
