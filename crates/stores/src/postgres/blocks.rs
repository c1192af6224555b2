//! The blocks of the log, read with their sums checked.

use super::connection::Conn;
use super::value::{Param, array, get, text};
use crate::block::{BlockFault, BlockReader, Decoded};
use crate::durable::StoredNumbers;
use crate::sum::{Erased, Sum, Summed, digest, seed};
use crate::value::{count, int};
use std::ops::ControlFlow;
use std::sync::Arc;
use store::{Filter, Logged, StoreError};
use timeline::{Event, Record, Seq, ThreadId};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

/// Blocks are fetched until they have this many bytes.
const CHUNK_BYTES: i64 = 512 << 10;

/// Maximum number of blocks that are fetched together.
const CHUNK: i64 = 256;

/// A thread, with the blocks from that with an event on. `$1` names the thread.
macro_rules! blocks_of {
    ($thread:literal) => {
        concat!(
            "SELECT t.no, t.tenant, t.id, t.sum, p.sum, p.next, b.first, b.n, b.facts, b.epoch, b.sum, b.body, b.erased
             FROM thread_threads t
             LEFT JOIN LATERAL (
                 SELECT max(first) AS first FROM thread_blocks WHERE thread_no = t.no AND first <= $2) s ON true
             LEFT JOIN LATERAL (
                 SELECT sum, first + n AS next FROM thread_blocks WHERE thread_no = t.no AND first < s.first
                 ORDER BY first DESC LIMIT 1) p ON true
             LEFT JOIN LATERAL (
                 SELECT c.*, coalesce(sum(octet_length(body)) OVER w, 0) AS size, row_number() OVER w AS nth
                 FROM (SELECT first, n, facts, epoch, sum, erased, CASE WHEN facts > 0 OR NOT $3 THEN body END AS body
                       FROM thread_blocks WHERE thread_no = t.no AND first >= coalesce(s.first, 1)
                       ORDER BY first LIMIT $4) c
                 WINDOW w AS (ORDER BY first)) b ON b.nth = 1 OR b.size <= $5
             WHERE t.",
            $thread,
            " = $1 ORDER BY b.first"
        )
    };
}

const BY_ID: &str = blocks_of!("id");
const BY_NO: &str = blocks_of!("no");

/// The log of one thread.
#[derive(Clone, Copy)]
pub(super) enum Log<'a> {
    Named(&'a ThreadId),
    Numbered(i64),
}

/// Where a chunk of blocks ends.
struct Read {
    /// The sum of its last block, and the event after that.
    end: Option<(Sum, i64)>,
    /// The sum of the thread's last block.
    thread: Sum,
    n_blocks: usize,
    is_over: bool,
}

impl Log<'_> {
    /// Calls back with the events from `from` on, in order, until that breaks. Checks the sum of each block that it
    /// reads. Returns whether the log was read to its end.
    pub(super) async fn read(
        &self,
        conn: &Conn,
        from: Seq,
        filter: Filter,
        limit: i64,
        mut with: impl FnMut(Seq, Decoded<'_>) -> Result<ControlFlow<()>, StoreError> + Send,
    ) -> Result<(), StoreError> {
        let mut next = from;
        let mut limit = limit;
        loop {
            let rows = self.rows(conn, next, filter, limit).await?;
            let read = read_chunk(&rows, from, filter, &mut with)?;
            let Some((sum, after)) = read.end else {
                return Ok(());
            };
            if read.is_over || read.n_blocks == 0 {
                return Ok(());
            }
            if count(after) <= next.0 {
                // The last block was read again, so it is the end.
                return Ok(());
            }
            if sum == read.thread {
                return Ok(());
            }
            next = Seq(count(after));
            limit = CHUNK;
        }
    }

    async fn rows(
        &self,
        conn: &Conn,
        from: Seq,
        filter: Filter,
        limit: i64,
    ) -> Result<Vec<Row>, StoreError> {
        let from = int(from.0).max(1);
        let (id, no);
        let (sql, thread): (&str, Param<'_>) = match self {
            Self::Named(thread) => {
                id = super::value::stored(thread.as_str());
                (BY_ID, (&id, Type::TEXT))
            }
            Self::Numbered(number) => {
                no = *number;
                (BY_NO, (&no, Type::INT8))
            }
        };
        let is_facts = filter == Filter::Facts;
        let values = [
            thread,
            (&from, Type::INT8),
            (&is_facts, Type::BOOL),
            (&limit, Type::INT8),
            (&CHUNK_BYTES, Type::INT8),
        ];
        let rows = conn.query(sql, &values).await?;
        if rows.is_empty() {
            return Err(StoreError::NotFound);
        }
        Ok(rows)
    }

    /// The event at this position.
    pub(super) async fn event(&self, conn: &Conn, seq: Seq) -> Result<Option<Event>, StoreError> {
        let mut found = None;
        let with = |at, decoded: Decoded<'_>| {
            found = (at == seq).then_some(decoded.event);
            Ok(ControlFlow::Break(()))
        };
        self.read(conn, seq, Filter::All, 1, with).await?;
        Ok(found)
    }

    /// Maximum number of blocks that hold this number of events.
    pub(super) fn chunk_for(limit: usize) -> i64 {
        int(limit as u64).clamp(1, CHUNK)
    }
}

/// Blocks from one with this number of its first event on, at most `$3`, with `$4` bytes or one.
const PLAIN: &str = "SELECT first, n, facts, epoch, sum, body, erased
    FROM (SELECT c.*, sum(octet_length(body)) OVER w AS size, row_number() OVER w AS nth
          FROM (SELECT first, n, facts, epoch, sum, body, erased FROM thread_blocks
                WHERE thread_no = $1 AND first >= $2 ORDER BY first LIMIT $3) c
          WINDOW w AS (ORDER BY first)) b
    WHERE nth = 1 OR size <= $4 ORDER BY first";

/// The blocks of a thread, one after the other. The connection should read one snapshot.
pub(super) struct Blocks<'a> {
    conn: &'a Conn,
    no: i64,
    /// Where the next chunk begins.
    from: i64,
    fetched: std::vec::IntoIter<Row>,
    /// The thread, once a block of it was checked.
    chain: Option<ChainPlace>,
}

/// A place between two blocks of a chain.
struct ChainPlace {
    thread: String,
    before: Sum,
    next: i64,
}

/// A block as it is stored.
pub(super) struct StoredBlock {
    pub(super) numbers: StoredNumbers,
    pub(super) erased: Option<Erased>,
    row: Row,
}

impl StoredBlock {
    pub(super) fn body(&self) -> Result<&[u8], StoreError> {
        get(&self.row, 5)
    }

    pub(super) fn first(&self) -> u64 {
        count(self.numbers.first)
    }
}

impl<'a> Blocks<'a> {
    /// All blocks of the thread with this number.
    pub(super) fn of(conn: &'a Conn, no: i64) -> Self {
        Self {
            conn,
            no,
            from: 1,
            fetched: Vec::new().into_iter(),
            chain: None,
        }
    }

    /// The blocks from that with an event on.
    pub(super) async fn since(conn: &'a Conn, no: i64, event: u64) -> Result<Self, StoreError> {
        let sql = "SELECT max(first) FROM thread_blocks WHERE thread_no = $1 AND first <= $2";
        let event = int(event);
        let values: [Param<'_>; 2] = [(&no, Type::INT8), (&event, Type::INT8)];
        let row = conn.first(sql, &values).await?;
        let first: Option<i64> = row.and_then(|row| get(&row, 0).transpose()).transpose()?;
        Ok(Self {
            from: first.unwrap_or(1),
            ..Self::of(conn, no)
        })
    }

    /// The next block.
    pub(super) async fn unchecked(&mut self) -> Result<Option<StoredBlock>, StoreError> {
        if self.fetched.len() == 0 {
            let values: [Param<'_>; 4] = [
                (&self.no, Type::INT8),
                (&self.from, Type::INT8),
                (&CHUNK, Type::INT8),
                (&CHUNK_BYTES, Type::INT8),
            ];
            self.fetched = self.conn.query(PLAIN, &values).await?.into_iter();
        }
        let Some(row) = self.fetched.next() else {
            return Ok(None);
        };
        let numbers = StoredNumbers {
            first: get(&row, 0)?,
            n: get(&row, 1)?,
            facts: get(&row, 2)?,
            epoch: get(&row, 3)?,
            sum: array(&row, 4)?,
        };
        self.from = numbers.first.saturating_add(1);
        let erased: Option<&[u8]> = get(&row, 6)?;
        Ok(Some(StoredBlock {
            numbers,
            erased: erased.and_then(|it| it.try_into().ok()),
            row,
        }))
    }

    /// The next block, if it continues the chain.
    pub(super) async fn next(&mut self) -> Result<Option<StoredBlock>, StoreError> {
        let from = self.from;
        let Some(block) = self.unchecked().await? else {
            return Ok(None);
        };
        let place = match self.chain.take() {
            Some(place) => place,
            None => self.place(from, &block.numbers).await?,
        };
        let &StoredNumbers {
            first,
            n,
            facts,
            epoch,
            sum,
        } = &block.numbers;
        if first != place.next {
            let fault = "the events before it are missing";
            return Err(damaged(&place.thread, first, &fault));
        }
        let summed = digest(block.body()?, block.erased.as_ref()).map(|digest| {
            let summed = Summed {
                first,
                n,
                facts,
                epoch,
                digest,
            };
            summed.after(place.before)
        });
        if summed != Some(sum) {
            return Err(damaged(&place.thread, first, &"its content has changed"));
        }
        self.chain = Some(ChainPlace {
            before: sum,
            next: first.saturating_add(n),
            ..place
        });
        Ok(Some(block))
    }

    /// The place before the first block that is read.
    async fn place(&self, from: i64, first: &StoredNumbers) -> Result<ChainPlace, StoreError> {
        let sql = "SELECT t.tenant, t.id, p.sum, p.next FROM thread_threads t LEFT JOIN LATERAL (
                       SELECT sum, first + n AS next FROM thread_blocks WHERE thread_no = t.no AND first < $2
                       ORDER BY first DESC LIMIT 1) p ON true
                   WHERE t.no = $1";
        let values: [Param<'_>; 2] = [(&self.no, Type::INT8), (&first.first, Type::INT8)];
        let row = self.conn.first(sql, &values).await?;
        let row = row.ok_or(StoreError::NotFound)?;
        let thread = text(&row, 1)?;
        let next: Option<i64> = get(&row, 3)?;
        Ok(match next.filter(|_| from > 1) {
            Some(next) => ChainPlace {
                before: array(&row, 2)?,
                next,
                thread,
            },
            None => ChainPlace {
                before: seed(&text(&row, 0)?, &thread),
                next: 1,
                thread,
            },
        })
    }

    /// Damage of a block that was read.
    pub(super) fn fault(&self, first: u64) -> impl Fn(BlockFault) -> StoreError {
        let thread = self.chain.as_ref().map(|it| it.thread.clone());
        let thread = thread.unwrap_or_default();
        move |fault| damaged(&thread, int(first), &fault)
    }
}

fn damaged(thread: &str, first: i64, fault: &dyn std::fmt::Display) -> StoreError {
    StoreError::Damaged(format!(
        "thread {thread}, event {first}: the block: {fault}"
    ))
}

fn read_chunk(
    rows: &[Row],
    from: Seq,
    filter: Filter,
    with: &mut impl FnMut(Seq, Decoded<'_>) -> Result<ControlFlow<()>, StoreError>,
) -> Result<Read, StoreError> {
    let first_row = rows.first().ok_or(StoreError::NotFound)?;
    let mut read = Read {
        end: None,
        thread: array(first_row, 3)?,
        n_blocks: 0,
        is_over: false,
    };
    for row in rows {
        let Some(first) = get::<Option<i64>>(row, 6)? else {
            continue;
        };
        let thread = text(row, 2)?;
        let (n, facts): (i64, i64) = (get(row, 7)?, get(row, 8)?);
        let sum: Sum = array(row, 10)?;
        let (before, expected) = match read.end {
            Some(end) => end,
            None if first <= 1 => (seed(&text(row, 1)?, &thread), 1),
            None => {
                let next: Option<i64> = get(row, 5)?;
                let missing = || damaged(&thread, first, &"the events before it are missing");
                (
                    array(row, 4).map_err(|_| missing())?,
                    next.ok_or_else(missing)?,
                )
            }
        };
        if first != expected {
            return Err(damaged(&thread, first, &"the events before it are missing"));
        }
        read.end = Some((sum, first.saturating_add(n)));
        read.n_blocks += 1;
        if filter == Filter::Facts && facts == 0 {
            continue;
        }
        let body: &[u8] = get(row, 11)?;
        let erased: Option<&[u8]> = get(row, 12)?;
        let erased: Option<Erased> = erased.and_then(|it| it.try_into().ok());
        let summed = digest(body, erased.as_ref()).map(|digest| {
            let epoch = get(row, 9)?;
            let summed = Summed {
                first,
                n,
                facts,
                epoch,
                digest,
            };
            Ok::<_, StoreError>(summed.after(before))
        });
        if summed.transpose()? != Some(sum) {
            return Err(damaged(&thread, first, &"its content has changed"));
        }
        let fault = |fault: BlockFault| damaged(&thread, first, &fault);
        let reader = BlockReader::new(body).map_err(fault)?;
        for (seq, decoded) in (count(first)..).zip(reader) {
            let decoded = decoded.map_err(fault)?;
            let is_wanted = seq >= from.0 && filter.keeps(&decoded.event);
            if is_wanted && with(Seq(seq), decoded)?.is_break() {
                read.is_over = true;
                return Ok(read);
            }
        }
    }
    Ok(read)
}

/// An event as readers get it.
pub(super) fn logged(seq: Seq, decoded: Decoded<'_>) -> Result<Logged, StoreError> {
    let text = decoded.text();
    let text = text.map_err(|fault| StoreError::Damaged(fault.to_string()))?;
    let Decoded { at, event, .. } = decoded;
    Ok(Logged {
        record: Record { seq, at, event },
        text: Arc::from(text),
        large: None,
    })
}
