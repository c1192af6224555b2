//! The data that a batch of requests depends on: one round trip, in the transaction that writes.

use super::connection::Conn;
use super::usage::{hold, is_near, of as usage_of};
use super::value::{Param, array, get, optional_text, stored, text};
use super::write::{Body, Write};
use crate::sum::Sum;
use crate::value::{count, int};
use futures_util::future::{join, join_all, try_join_all};
use std::collections::{BTreeMap, BTreeSet};
use store::{Epoch, Quotas, StorageUsage, StoreError, TenantId};
use timeline::{Seq, ThreadId};
use tokio_postgres::types::Type;
use tokio_postgres::{Error, Row};

/// The rows that were found, locked until the transaction ends.
#[derive(Default)]
pub(super) struct Look {
    pub(super) threads: BTreeMap<ThreadId, FoundThread>,
    /// The answers to tokens that were used.
    pub(super) tokens: BTreeMap<(ThreadId, String), String>,
    pub(super) usage: BTreeMap<TenantId, StorageUsage>,
    /// Threads by their keys.
    pub(super) keys: BTreeMap<(TenantId, String), ThreadId>,
    /// Threads by their ids: parents of forks, and new threads that exist already.
    pub(super) ids: BTreeMap<ThreadId, (i64, TenantId)>,
    /// Unused numbers of threads.
    pub(super) numbers: Vec<i64>,
    /// The sums and epochs of blocks, by their thread and first event.
    pub(super) blocks: BTreeMap<(ThreadId, Seq), (Sum, Epoch)>,
}

/// The end of the log of an existing thread.
#[derive(Clone)]
pub(super) struct FoundThread {
    pub(super) no: i64,
    pub(super) tenant: TenantId,
    pub(super) epoch: Epoch,
    pub(super) tail: Seq,
    pub(super) sum: Sum,
    pub(super) owner: Option<i64>,
    /// The microseconds of the database's clock.
    pub(super) now: u64,
    /// Whether calls of it may wait for a person.
    pub(super) may_wait: bool,
    /// Whether a request of the batch has changed it.
    pub(super) is_changed: bool,
}

const THREADS: &str = "SELECT id, no, tenant, epoch, head_seq, sum, owner, (extract(epoch FROM now()) * 1000000)::bigint,
        EXISTS (SELECT 1 FROM thread_waits w WHERE w.thread_no = no AND w.calls IS NOT NULL)
    FROM thread_threads WHERE id = ANY($1) ORDER BY no FOR NO KEY UPDATE";

const TOKENS: &str = "SELECT r.id, r.token, k.answer
    FROM unnest($1::text[], $2::text[]) r (id, token)
    JOIN thread_threads t ON t.id = r.id JOIN thread_tokens k ON k.thread_no = t.no AND k.token = r.token";

const USAGE: &str = "SELECT tenant, sum(threads)::bigint, sum(bytes)::bigint, sum(files)::bigint FROM tenant_usage
    WHERE tenant IN (SELECT unnest($1::text[]) UNION SELECT tenant FROM thread_threads WHERE id = ANY($2))
    GROUP BY tenant";

const KEYS: &str =
    "SELECT t.tenant, t.key, t.id FROM unnest($1::text[], $2::text[]) r (tenant, key)
    JOIN thread_threads t ON t.tenant = r.tenant AND t.key = r.key";

const IDS: &str = "SELECT id, no, tenant FROM thread_threads WHERE id = ANY($1)";

const NUMBERS: &str = "SELECT nextval('thread_numbers') FROM generate_series(1, $1)";

const BLOCKS: &str = "SELECT r.id, r.first, b.sum, b.epoch FROM unnest($1::text[], $2::bigint[]) r (id, first)
    JOIN thread_threads t ON t.id = r.id JOIN thread_blocks b ON b.thread_no = t.no AND b.first = r.first";

/// Once this is confirmed by the standby servers, everything before it is.
const BARRIER: &str = "UPDATE schema_version SET touched = touched + 1 WHERE is_only";

/// The questions of a batch.
#[derive(Default)]
struct Questions {
    threads: Vec<String>,
    tokens: (Vec<String>, Vec<String>),
    /// Tenants, and threads of tenants, whose limits count.
    limited: (Vec<String>, Vec<String>),
    keys: (Vec<String>, Vec<String>),
    ids: Vec<String>,
    n_new: i64,
    blocks: (Vec<String>, Vec<i64>),
}

impl Questions {
    fn of(batch: &[Write], quotas: &Quotas) -> Self {
        let is_limited = !quotas.are_unlimited();
        let mut asked = Self::default();
        let mut threads = BTreeSet::new();
        for write in batch {
            match &write.body {
                Body::Append(append) => {
                    threads.insert(stored(append.thread.as_str()));
                    threads.extend(append.unmoved.iter().map(|(id, _)| stored(id.as_str())));
                    if let Some(token) = &append.token {
                        asked
                            .tokens
                            .0
                            .push(stored(append.thread.as_str()).into_owned());
                        asked.tokens.1.push(stored(&token.token).into_owned());
                    }
                    if append.is_limited && is_limited {
                        let thread = stored(append.thread.as_str()).into_owned();
                        asked.limited.1.push(thread);
                    }
                }
                Body::Create(new) => {
                    asked.n_new += 1;
                    asked.ids.push(stored(new.thread.id.as_str()).into_owned());
                    if let Some(fork) = &new.thread.fork {
                        asked.ids.push(stored(fork.thread_id.as_str()).into_owned());
                    }
                    if let Some(key) = &new.thread.key {
                        asked.keys.0.push(stored(new.tenant.as_str()).into_owned());
                        asked.keys.1.push(stored(key).into_owned());
                    }
                    if is_limited {
                        let tenant = stored(new.tenant.as_str()).into_owned();
                        asked.limited.0.push(tenant);
                    }
                }
            }
            if write.doubt.is_some() {
                asked
                    .blocks
                    .0
                    .push(stored(write.thread().as_str()).into_owned());
                asked.blocks.1.push(int(write.tail().next().0));
            }
        }
        asked.threads = threads.into_iter().map(Into::into).collect();
        asked
    }
}

/// Begins a transaction, locks the threads of a batch, and reads what its requests depend on.
pub(super) async fn look(
    conn: &Conn,
    batch: &[Write],
    quotas: &Quotas,
) -> Result<Result<Look, StoreError>, Error> {
    let asked = Questions::of(batch, quotas);
    let threads: [Param<'_>; 1] = [(&asked.threads, Type::TEXT_ARRAY)];
    let tokens: [Param<'_>; 2] = [
        (&asked.tokens.0, Type::TEXT_ARRAY),
        (&asked.tokens.1, Type::TEXT_ARRAY),
    ];
    let limited: [Param<'_>; 2] = [
        (&asked.limited.0, Type::TEXT_ARRAY),
        (&asked.limited.1, Type::TEXT_ARRAY),
    ];
    let keys: [Param<'_>; 2] = [
        (&asked.keys.0, Type::TEXT_ARRAY),
        (&asked.keys.1, Type::TEXT_ARRAY),
    ];
    let ids: [Param<'_>; 1] = [(&asked.ids, Type::TEXT_ARRAY)];
    let numbers: [Param<'_>; 1] = [(&asked.n_new, Type::INT8)];
    let blocks: [Param<'_>; 2] = [
        (&asked.blocks.0, Type::TEXT_ARRAY),
        (&asked.blocks.1, Type::INT8_ARRAY),
    ];
    let is_doubtful = !asked.blocks.0.is_empty();
    let questions: [(&str, &[Param<'_>], bool); 8] = [
        (THREADS, &threads, !asked.threads.is_empty()),
        (TOKENS, &tokens, !asked.tokens.0.is_empty()),
        (
            USAGE,
            &limited,
            !asked.limited.0.is_empty() || !asked.limited.1.is_empty(),
        ),
        (KEYS, &keys, !asked.keys.0.is_empty()),
        (IDS, &ids, !asked.ids.is_empty()),
        (NUMBERS, &numbers, asked.n_new > 0),
        (BLOCKS, &blocks, is_doubtful),
        (BARRIER, &[], is_doubtful),
    ];
    let questions = questions.map(|(sql, values, is_asked)| is_asked.then_some((sql, values)));
    let prepare = questions.iter().flatten();
    try_join_all(prepare.map(|(sql, values)| conn.prepare(sql, values))).await?;
    // The threads are locked first, so that all others read what was committed before that.
    let ask = questions.iter().map(async |asked| match asked {
        Some((sql, values)) => conn.rows(sql, values).await,
        None => Ok(Vec::new()),
    });
    let asked = join_all(ask);
    let (begun, answers) = join(conn.begin(), asked).await;
    begun?;
    let mut found = Vec::new();
    for rows in answers {
        found.push(rows?);
    }
    Ok(read(&found))
}

fn read(answers: &[Vec<Row>]) -> Result<Look, StoreError> {
    let mut look = Look::default();
    let rows = |n: usize| answers.get(n).into_iter().flatten();
    for row in rows(0) {
        let owner: Option<i64> = get(row, 6)?;
        let found = FoundThread {
            no: get(row, 1)?,
            tenant: text(row, 2)?.as_str().into(),
            epoch: Epoch(count(get(row, 3)?)),
            tail: Seq(count(get(row, 4)?)),
            sum: array(row, 5)?,
            owner,
            now: count(get(row, 7)?),
            may_wait: get(row, 8)?,
            is_changed: false,
        };
        look.threads.insert(text(row, 0)?.into(), found);
    }
    for row in rows(1) {
        let key = (text(row, 0)?.into(), text(row, 1)?);
        look.tokens.insert(key, text(row, 2)?);
    }
    for row in rows(2) {
        look.usage
            .insert(text(row, 0)?.as_str().into(), usage(row)?);
    }
    for row in rows(3) {
        let key = optional_text(row, 1)?.unwrap_or_default();
        let key = (text(row, 0)?.as_str().into(), key);
        look.keys.insert(key, text(row, 2)?.into());
    }
    for row in rows(4) {
        let of = (get(row, 1)?, text(row, 2)?.as_str().into());
        look.ids.insert(text(row, 0)?.into(), of);
    }
    for row in rows(5) {
        look.numbers.push(get(row, 0)?);
    }
    for row in rows(6) {
        let place = (text(row, 0)?.into(), Seq(count(get(row, 1)?)));
        let epoch = Epoch(count(get(row, 3)?));
        look.blocks.insert(place, (array(row, 2)?, epoch));
    }
    Ok(look)
}

/// The usage in the columns behind the first.
pub(super) fn usage(row: &Row) -> Result<StorageUsage, StoreError> {
    Ok(StorageUsage {
        threads: count(get(row, 1)?),
        bytes: count(get(row, 2)?),
        files: count(get(row, 3)?),
    })
}

/// Reads again what tenants store that may reach their limits, when no other writer changes it.
pub(super) async fn hold_usage(
    conn: &Conn,
    batch: &[Write],
    look: &mut Look,
    quotas: &Quotas,
) -> Result<(), StoreError> {
    if quotas.are_unlimited() {
        return Ok(());
    }
    let mut tenants = BTreeSet::new();
    for write in batch {
        let tenant = match &write.body {
            Body::Append(append) if append.is_limited => {
                look.threads.get(&append.thread).map(|found| &found.tenant)
            }
            Body::Append(_) => None,
            Body::Create(new) => Some(&new.tenant),
        };
        let used = |tenant| look.usage.get(tenant).copied().unwrap_or_default();
        tenants.extend(tenant.filter(|it| is_near(&quotas.of(it), &used(it))));
    }
    if tenants.is_empty() {
        return Ok(());
    }
    let tenants: Vec<TenantId> = tenants.into_iter().cloned().collect();
    hold(conn, &tenants.iter().collect::<Vec<_>>()).await?;
    for tenant in tenants {
        let usage = usage_of(conn, &tenant).await?;
        look.usage.insert(tenant, usage);
    }
    Ok(())
}
