//! The chains of logs.

use super::PostgresStore;
use super::blocks::Blocks;
use super::connection::Conn;
use super::pool::Isolation;
use super::rows;
use super::value::{Param, array, get, stored, text};
use crate::durable::{Chain, ChainEnd, Chaining, Compared, Evidence};
use crate::sum::Sum;
use crate::value::{count, int};
use futures_util::future::BoxFuture;
use store::StoreError;
use timeline::ThreadId;
use tokio_postgres::types::Type;

/// Threads that are listed together.
const PAGE: i64 = 1000;

impl Evidence for PostgresStore {
    fn chain<'a>(&'a self, thread: &'a ThreadId) -> BoxFuture<'a, Result<Chain, StoreError>> {
        self.noting(async move {
            let conn = self.pool.begin(Isolation::LongSnapshot).await?;
            let chain = chain(&conn, thread).await;
            conn.end(chain).await
        })
    }

    fn chain_ends(&self) -> BoxFuture<'_, Result<Vec<ChainEnd>, StoreError>> {
        self.noting(async move {
            let conn = self.pool.begin(Isolation::LongSnapshot).await?;
            let ends = ends(&conn).await;
            conn.end(ends).await
        })
    }

    fn compare(&self, sealed: ChainEnd) -> BoxFuture<'_, Result<Compared, StoreError>> {
        self.noting(async move { compare(&*self.pool.get().await?, &sealed).await })
    }
}

/// The last event and the sum of a thread's row.
pub(super) async fn end(conn: &Conn, no: i64) -> Result<(i64, Sum), StoreError> {
    let sql = "SELECT head_seq, sum FROM thread_threads WHERE no = $1";
    let row = conn.first(sql, &[(&no, Type::INT8)]).await?;
    let row = row.ok_or(StoreError::NotFound)?;
    Ok((get(&row, 0)?, array(&row, 1)?))
}

async fn chain(conn: &Conn, thread: &ThreadId) -> Result<Chain, StoreError> {
    let found = rows::row(conn, thread).await?;
    let (tail, sum) = end(conn, found.no).await?;
    let mut blocks = Blocks::of(conn, found.no);
    let mut chain = Chaining::of(found.row);
    while let Some(block) = blocks.unchecked().await? {
        if !chain.add(&block.numbers, block.body()?, block.erased.as_ref()) {
            break;
        }
    }
    Ok(chain.end(tail, Some(sum)))
}

async fn ends(conn: &Conn) -> Result<Vec<ChainEnd>, StoreError> {
    let sql = "SELECT no, id, head_seq, sum FROM thread_threads WHERE no > $1 ORDER BY no LIMIT $2";
    let (mut found, mut after) = (Vec::new(), i64::MIN);
    loop {
        let values: [Param<'_>; 2] = [(&after, Type::INT8), (&PAGE, Type::INT8)];
        let rows = conn.query(sql, &values).await?;
        let Some(last) = rows.last() else {
            return Ok(found);
        };
        after = get(last, 0)?;
        for row in &rows {
            found.push(ChainEnd {
                thread: text(row, 1)?,
                tail: count(get(row, 2)?),
                sum: array(row, 3)?,
            });
        }
    }
}

async fn compare(conn: &Conn, sealed: &ChainEnd) -> Result<Compared, StoreError> {
    let sql = "SELECT t.head_seq, (SELECT b.sum FROM thread_blocks b WHERE b.thread_no = t.no AND b.first <= $2
                                   ORDER BY b.first DESC LIMIT 1)
               FROM thread_threads t WHERE t.id = $1";
    let (id, tail) = (stored(&sealed.thread), int(sealed.tail));
    let values: [Param<'_>; 2] = [(&id, Type::TEXT), (&tail, Type::INT8)];
    let Some(row) = conn.first(sql, &values).await? else {
        return Ok(Compared::Missing);
    };
    let tail = count(get(&row, 0)?);
    if tail < sealed.tail {
        return Ok(Compared::Older(tail));
    }
    let sum: Option<&[u8]> = get(&row, 1)?;
    Ok(if sum == Some(sealed.sum.as_slice()) {
        Compared::Continues
    } else {
        Compared::Differs
    })
}
