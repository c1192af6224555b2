//! Checks logs against their sums, and the tables against the logs.

use super::{Scratch, texts};
use crate::durable::{Remedy, StoreFault};
use crate::postgres::connection::Conn;
use crate::postgres::derive::{Derive, Derived, Numbered, TABLES, threads_after};
use crate::postgres::error::statement;
use crate::postgres::value::{Param, array, get, stored};
use crate::sum::Sum;
use crate::value::{count, int, nanos};
use store::StoreError;
use timeline::Machine as _;
use tokio_postgres::types::Type;

/// The derived tables, with the columns that identify a row.
const ORDERS: [(&str, &str); 7] = [
    ("thread_contexts", "thread_no"),
    ("thread_items", "seq"),
    ("thread_executions", "seq"),
    ("thread_steps", "execution_seq, iteration"),
    ("thread_parts", "execution_seq, iteration, idx"),
    ("thread_removals", "target"),
    ("thread_words", "seq"),
];

/// The tables whose rows name a thread that no constraint demands.
const OF_THREADS: [&str; 6] = [
    "thread_blocks",
    "thread_tokens",
    "thread_items",
    "thread_executions",
    "thread_steps",
    "thread_parts",
];

/// The temporary tables are emptied after logs with this number of events.
const EVENTS: u64 = 100_000;

/// Adds what is wrong with the logs and the tables.
pub(super) async fn check(
    read: &Conn,
    scratch: &Scratch,
    found: &mut Vec<StoreFault>,
) -> Result<(), StoreError> {
    for table in OF_THREADS {
        let sql = format!(
            "SELECT format('a row of {table} belongs to a thread %s that is not there', r.thread_no) FROM {table} r
             WHERE NOT EXISTS (SELECT 1 FROM thread_threads t WHERE t.no = r.thread_no) LIMIT 1"
        );
        let lines = texts(read, &sql).await?;
        let faults = lines.into_iter();
        found.extend(faults.map(|line| StoreFault::of_store(line, Remedy::Restore)));
    }
    let (mut after, mut n_events) = (i64::MIN, 0);
    loop {
        let threads = threads_after(read, after).await?;
        let Some(last) = threads.last() else {
            return Ok(());
        };
        after = last.no;
        for thread in &threads {
            let check = Check {
                read,
                scratch,
                thread,
            };
            n_events += check.thread(found).await?;
            if n_events >= EVENTS {
                let sql = format!("TRUNCATE thread_threads, {}", TABLES.join(", "));
                let sql = format!("{sql}, thread_tokens, tenant_objects");
                scratch.conn.batch(&sql).await.map_err(statement)?;
                n_events = 0;
            }
        }
    }
}

struct Check<'a> {
    read: &'a Conn,
    scratch: &'a Scratch,
    thread: &'a Numbered,
}

impl Check<'_> {
    /// Checks a thread. Returns the number of its events.
    async fn thread(&self, found: &mut Vec<StoreFault>) -> Result<u64, StoreError> {
        let derive = Derive {
            read: self.read,
            to: &self.scratch.conn,
            no: self.thread.no,
            tenant: &self.thread.tenant,
        };
        let mut faults = Vec::new();
        let mut add = |what: String, remedy| {
            faults.push(StoreFault::of_thread(&self.thread.id, what, remedy));
        };
        let done = async {
            let (mut derived, executions) = match derive.measure().await {
                Err(StoreError::Damaged(what)) => {
                    add(what, Remedy::Restore);
                    return Ok(0);
                }
                other => other?,
            };
            for (what, remedy) in self.end_faults(&derived).await? {
                add(what, remedy);
            }
            match self.table_faults(&derive, &mut derived, &executions).await {
                Ok(whats) => whats.into_iter().for_each(|it| add(it, Remedy::Rebuild)),
                // The tables refuse a row of the log.
                Err(StoreError::Damaged(what)) => {
                    self.scratch.reset().await?;
                    add(what, Remedy::Rebuild);
                }
                Err(StoreError::Duplicate(id)) => {
                    self.scratch.reset().await?;
                    add(format!("an id of its log is in use: {id}"), Remedy::Restore);
                }
                Err(other) => return Err(other),
            }
            Ok(derived.tail.0)
        };
        let n_events = done.await?;
        found.append(&mut faults);
        Ok(n_events)
    }

    /// Compares the end of a log with the thread's row.
    async fn end_faults(&self, derived: &Derived) -> Result<Vec<(String, Remedy)>, StoreError> {
        let sql = "SELECT head_seq, bytes, updated_at, sum FROM thread_threads WHERE no = $1";
        let row = self
            .read
            .first(sql, &[(&self.thread.no, Type::INT8)])
            .await?;
        let row = row.ok_or(StoreError::NotFound)?;
        let (tail, bytes, at): (i64, i64, i64) = (get(&row, 0)?, get(&row, 1)?, get(&row, 2)?);
        let sum: Sum = array(&row, 3)?;
        let mut faults = Vec::new();
        if tail != int(derived.tail.0) {
            let what = format!(
                "its log has {} events, its row says {}",
                derived.tail,
                count(tail)
            );
            faults.push((what, Remedy::Restore));
        } else if sum != derived.sum {
            let what = "the sum of its last block is not that of its row";
            faults.push((what.to_owned(), Remedy::Restore));
        }
        if bytes != derived.bytes || derived.at.is_some_and(|last| last != at) {
            let what = "its row has another size or another last instant than its log";
            faults.push((what.to_owned(), Remedy::Rebuild));
        }
        Ok(faults)
    }

    /// Compares the rows of a thread with those that its log makes.
    async fn table_faults(
        &self,
        derive: &Derive<'_>,
        derived: &mut Derived,
        executions: &std::collections::BTreeMap<String, i64>,
    ) -> Result<Vec<String>, StoreError> {
        let sql = format!(
            "INSERT INTO thread_threads SELECT no, id, tenant, key, status, title, metadata, NULL, NULL, created_at,
                 updated_at, head_seq, bytes, epoch, owner, change, sum FROM {}.thread_threads WHERE no = $1",
            self.scratch.schema
        );
        self.scratch
            .conn
            .execute(&sql, &[(&self.thread.no, Type::INT8)])
            .await?;
        derive.fold(derived, executions).await?;
        if let Some(calls) = &derived.calls {
            calls.find(self.read, &self.scratch.conn).await?;
        }
        let mut faults = Vec::new();
        if !self.has_row(derived).await? {
            faults.push("its row is not what its log says".to_owned());
        }
        for (table, order) in ORDERS {
            if let Some(n) = self.first_difference(table, "*", order).await? {
                faults.push(format!("row {n} of {table} is not what its log says"));
            }
        }
        let calls = "thread_no, calls, calls_at";
        let differs = self
            .first_difference("thread_waits", calls, "calls")
            .await?;
        if differs.is_some() {
            faults.push("the list of what waits is not what its log says".to_owned());
        }
        Ok(faults)
    }

    /// Whether the thread's row has what its log decides.
    async fn has_row(&self, derived: &Derived) -> Result<bool, StoreError> {
        let Some(made) = &derived.made else {
            return Ok(false);
        };
        let sql = "SELECT 1 AS is_equal FROM thread_threads t LEFT JOIN thread_threads p ON p.no = t.fork_no
                   WHERE t.no = $1 AND t.key IS NOT DISTINCT FROM $2 AND t.status = $3
                       AND t.title IS NOT DISTINCT FROM $4 AND t.metadata IS NOT DISTINCT FROM $5
                       AND p.id IS NOT DISTINCT FROM $6 AND t.fork_seq IS NOT DISTINCT FROM $7
                       AND t.created_at = $8 AND t.id = $9";
        let key = made.key.as_deref().map(stored);
        let status = derived.status.unwrap_or(made.status).name();
        let parent = made.fork.as_ref().map(|it| stored(it.thread_id.as_str()));
        let fork_seq = made.fork.as_ref().map(|it| int(it.seq.0));
        let created_at = nanos(made.created_at);
        let id = stored(made.id.as_str());
        let values: [Param<'_>; 9] = [
            (&self.thread.no, Type::INT8),
            (&key, Type::TEXT),
            (&status, Type::TEXT),
            (&derived.title, Type::TEXT),
            (&derived.metadata, Type::TEXT),
            (&parent, Type::TEXT),
            (&fork_seq, Type::INT8),
            (&created_at, Type::INT8),
            (&id, Type::TEXT),
        ];
        Ok(self.read.first(sql, &values).await?.is_some())
    }

    /// The number of the first row, from 1, that is not the same in the store.
    async fn first_difference(
        &self,
        table: &str,
        columns: &str,
        order: &str,
    ) -> Result<Option<i64>, StoreError> {
        let rows = |schema: &str| {
            format!(
                "SELECT row_number() OVER (ORDER BY {order}) AS n, r::text AS r
                 FROM (SELECT {columns} FROM {schema}.{table} WHERE thread_no = $1 AND ({order}) IS NOT NULL) r"
            )
        };
        let (ours, expected) = (rows(&self.scratch.schema), rows("pg_temp"));
        let sql = format!(
            "SELECT min(n) FROM (SELECT n, a.r AS one, b.r AS other FROM ({ours}) a FULL JOIN ({expected}) b USING (n)) f
             WHERE one IS DISTINCT FROM other"
        );
        let number: [Param<'_>; 1] = [(&self.thread.no, Type::INT8)];
        let row = self.scratch.conn.first(&sql, &number).await?;
        get(&row.ok_or(StoreError::NotFound)?, 0)
    }
}
