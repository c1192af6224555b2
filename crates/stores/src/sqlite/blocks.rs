//! The blocks of the log in their table: written with a chain of sums, read with the sums checked.

use super::error::statement;
use super::value::{count, int};
use super::words::bulk;
pub(super) use crate::sum::{Erased, Sum, Summed, digest, erased, seed};

use crate::block::{
    Block, BlockFault, BlockReader, ByteRanges, Decoded, MAX_EVENTS, ToStore, split,
};
use rusqlite::{Connection, OptionalExtension, Row, params};
use sha2::{Digest as _, Sha256};
use std::ops::{ControlFlow, RangeInclusive};
use std::sync::Arc;
use store::{Epoch, Filter, Logged, NewRecord, StoreError};
use timeline::{Event, Payload, Record, Seq};

/// The position of a text in a stored block.
#[derive(Clone, Copy, Debug)]
pub(super) struct StoredRange {
    /// The block's number.
    pub(super) block: i64,
    /// The first byte in its body, from 0.
    pub(super) offset: i64,
    /// The length, in bytes.
    pub(super) length: i64,
}

/// The number of the event at this index of a block, among the events of all threads.
pub(super) fn event_number(block: i64, index: u64) -> i64 {
    block
        .saturating_mul(int(MAX_EVENTS))
        .saturating_add(int(index))
}

/// The block of the event with this number.
pub(super) fn block_of(number: i64) -> i64 {
    number.div_euclid(int(MAX_EVENTS))
}

fn index_of(number: i64) -> usize {
    usize::try_from(number.rem_euclid(int(MAX_EVENTS))).unwrap_or(usize::MAX)
}

/// The blocks that hold the events at hand.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    blocks: Vec<StoredBlock>,
}

#[derive(Debug)]
struct StoredBlock {
    id: i64,
    events: RangeInclusive<u64>,
    ranges: ByteRanges,
}

impl Blocks {
    /// The range of a JSON value of the events.
    pub(super) fn range(&self, of: &Payload) -> Option<StoredRange> {
        self.blocks.iter().find_map(|block| {
            let range = block.ranges.of(of)?;
            Some(StoredRange {
                block: block.id,
                offset: int(range.offset as u64),
                length: int(range.length as u64),
            })
        })
    }

    /// The number of the event at this position.
    pub(super) fn number(&self, seq: Seq) -> Option<i64> {
        let block = self.blocks.iter().find(|it| it.events.contains(&seq.0))?;
        Some(event_number(block.id, seq.0 - block.events.start()))
    }
}

/// Where blocks are added to.
#[derive(Clone, Copy, Debug)]
pub(super) struct End {
    /// The number of the thread.
    pub(super) thread: i64,
    /// The claim of the writer.
    pub(super) epoch: Epoch,
    /// The last event.
    pub(super) tail: Seq,
    /// The sum of the last block.
    pub(super) sum: Sum,
}

/// Stores records as blocks. Returns the blocks and the sum of the last one.
pub(super) fn insert(
    conn: &Connection,
    end: End,
    records: &[NewRecord],
) -> Result<(Blocks, Sum), StoreError> {
    let to_store = records.iter().map(|record| ToStore {
        at: record.at,
        event: record.event(),
        size: record.text().len(),
        raw: None,
    });
    insert_blocks(conn, end, split(to_store), None)
}

/// Stores blocks. `written` is the digest of the body that an erased block had.
pub(super) fn insert_blocks(
    conn: &Connection,
    end: End,
    blocks: Vec<Block>,
    written: Option<[u8; 32]>,
) -> Result<(Blocks, Sum), StoreError> {
    let sql = "INSERT INTO thread_blocks (thread_no, first, n, epoch, facts, sum, body, erased, id)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
    let mut insert = conn.prepare_cached(sql).map_err(statement)?;
    let (mut first, mut sum) = (end.tail.next().0, end.sum);
    let mut stored = Blocks::default();
    for block in blocks {
        let summed = Summed {
            first: int(first),
            n: int(block.n as u64),
            facts: int(block.facts as u64),
            epoch: int(end.epoch.0),
            digest: written.unwrap_or_else(|| Sha256::digest(&block.body).into()),
        };
        let erased = written.map(|written| erased(written, &block.body));
        sum = summed.after(sum);
        let id = insert
            .insert(params![
                end.thread,
                summed.first,
                summed.n,
                summed.epoch,
                summed.facts,
                sum,
                block.body,
                erased,
                bulk::block_number(conn)?
            ])
            .map_err(statement)?;
        let next = first + block.n as u64;
        stored.blocks.push(StoredBlock {
            id,
            events: first..=next - 1,
            ranges: block.ranges,
        });
        first = next;
    }
    Ok((stored, sum))
}

/// Damage of a block.
pub(super) fn damaged(
    conn: &Connection,
    thread: i64,
    first: i64,
    fault: &dyn std::fmt::Display,
) -> StoreError {
    let sql = "SELECT id FROM thread_threads WHERE no = ?1";
    let id = conn.query_row(sql, [thread], |row| row.get::<_, String>(0));
    // Its row may be damaged too.
    let id = id.unwrap_or_else(|_| format!("number {thread}"));
    StoreError::Damaged(format!("thread {id}, event {first}: the block: {fault}"))
}

fn decode(conn: &Connection, thread: i64, first: i64) -> impl Fn(BlockFault) -> StoreError {
    move |fault| damaged(conn, thread, first, &fault)
}

/// The log of one thread.
#[derive(Clone, Copy, Debug)]
pub(super) struct Log<'a> {
    pub(super) conn: &'a Connection,
    /// The number of the thread.
    pub(super) no: i64,
}

impl Log<'_> {
    /// Calls back with the events from `from` on, in order, until that breaks. Checks the sum of each block
    /// that it reads. Returns the sum of the last block that it saw.
    pub(super) fn read(
        &self,
        from: Seq,
        filter: Filter,
        mut with: impl FnMut(Seq, Decoded<'_>) -> Result<ControlFlow<()>, StoreError>,
    ) -> Result<Option<Sum>, StoreError> {
        self.read_blocks(from, filter, |_, first, reader| {
            for (seq, decoded) in (first..).zip(reader) {
                let decoded = decoded.map_err(decode(self.conn, self.no, int(first)))?;
                let is_wanted = seq >= from.0 && filter.keeps(&decoded.event);
                if is_wanted && with(Seq(seq), decoded)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
            Ok(ControlFlow::Continue(()))
        })
    }

    /// Calls back with the blocks from that with event `from` on: number, first event, and its events.
    pub(super) fn read_blocks(
        &self,
        from: Seq,
        filter: Filter,
        mut with: impl FnMut(i64, u64, BlockReader<'_>) -> Result<ControlFlow<()>, StoreError>,
    ) -> Result<Option<Sum>, StoreError> {
        let sql = "SELECT first, n, facts, epoch, sum, id, body, erased FROM thread_blocks
                   WHERE thread_no = ?1 AND first >= coalesce(
                       (SELECT max(first) FROM thread_blocks WHERE thread_no = ?1 AND first <= ?2), 1)
                   ORDER BY first";
        let mut select = self.conn.prepare_cached(sql).map_err(statement)?;
        let from = int(from.0).max(1);
        let mut rows = select.query([self.no, from]).map_err(statement)?;
        let mut before: Option<(Sum, i64)> = None;
        while let Some(row) = rows.next().map_err(statement)? {
            let (first, n, facts): (i64, i64, i64) = (
                row.get(0).map_err(statement)?,
                row.get(1).map_err(statement)?,
                row.get(2).map_err(statement)?,
            );
            let sum: Sum = row.get(4).map_err(statement)?;
            let (sum_before, expected) = match before {
                Some(before) => before,
                None => self.sum_before(first)?,
            };
            before = Some((sum, first.saturating_add(n)));
            if first != expected {
                return Err(damaged(
                    self.conn,
                    self.no,
                    first,
                    &"the events before it are missing",
                ));
            }
            if filter == Filter::Facts && facts == 0 {
                continue;
            }
            let body = body(row, 6)?;
            let erased: Option<Erased> = row.get(7).map_err(statement)?;
            let epoch = row.get(3).map_err(statement)?;
            let digest = digest(body, erased.as_ref());
            let sum_of = |digest| {
                let summed = Summed {
                    first,
                    n,
                    facts,
                    epoch,
                    digest,
                };
                summed.after(sum_before)
            };
            if digest.map(sum_of) != Some(sum) {
                return Err(damaged(
                    self.conn,
                    self.no,
                    first,
                    &"its content has changed",
                ));
            }
            let reader = BlockReader::new(body).map_err(decode(self.conn, self.no, first))?;
            let id = row.get(5).map_err(statement)?;
            if with(id, count(first), reader)?.is_break() {
                break;
            }
        }
        Ok(before.map(|(sum, _)| sum))
    }

    /// The sum before the block that begins with this event, and the event after the block before.
    fn sum_before(&self, first: i64) -> Result<(Sum, i64), StoreError> {
        if first <= 1 {
            let sql = "SELECT tenant, id FROM thread_threads WHERE no = ?1";
            let mut select = self.conn.prepare_cached(sql).map_err(statement)?;
            let seed = select.query_row([self.no], |row| {
                Ok(seed(row.get_ref(0)?.as_str()?, row.get_ref(1)?.as_str()?))
            });
            return Ok((seed.map_err(statement)?, 1));
        }
        let sql = "SELECT sum, first + n FROM thread_blocks
                   WHERE thread_no = ?1 AND first < ?2 ORDER BY first DESC LIMIT 1";
        let mut select = self.conn.prepare_cached(sql).map_err(statement)?;
        let found = select.query_row([self.no, first], |row| Ok((row.get(0)?, row.get(1)?)));
        let found = found.optional().map_err(statement)?;
        found.ok_or_else(|| {
            damaged(
                self.conn,
                self.no,
                first,
                &"the events before it are missing",
            )
        })
    }

    /// The event at this position.
    pub(super) fn event(&self, seq: Seq) -> Result<Option<Event>, StoreError> {
        let mut found = None;
        self.read(seq, Filter::All, |at, decoded| {
            found = (at == seq).then_some(decoded.event);
            Ok(ControlFlow::Break(()))
        })?;
        Ok(found)
    }

    /// The number of the event at this position among all events, and its instant.
    pub(super) fn numbered(&self, seq: Seq) -> Result<Option<(i64, i64)>, StoreError> {
        let mut found = None;
        self.read_blocks(seq, Filter::All, |block, first, mut reader| {
            let Some(index) = seq.0.checked_sub(first) else {
                return Ok(ControlFlow::Break(()));
            };
            let nth = usize::try_from(index).unwrap_or(usize::MAX);
            if let Some(decoded) = reader.nth(nth) {
                let decoded = decoded.map_err(decode(self.conn, self.no, int(first)))?;
                found = Some((event_number(block, index), super::value::nanos(decoded.at)));
            }
            Ok(ControlFlow::Break(()))
        })?;
        Ok(found)
    }

    /// Calls back with all blocks, each with its events and their ranges.
    pub(super) fn read_ranged(
        &self,
        mut with: impl FnMut(&[Record], &Blocks) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        self.read_blocks(Seq(1), Filter::All, |id, first, mut reader| {
            let mut records = Vec::new();
            for (seq, decoded) in (first..).zip(&mut reader) {
                let Decoded { at, event, .. } =
                    decoded.map_err(decode(self.conn, self.no, int(first)))?;
                let seq = Seq(seq);
                records.push(Record { seq, at, event });
            }
            let block = StoredBlock {
                id,
                events: first..=first + records.len() as u64 - 1,
                ranges: reader.into_ranges(),
            };
            let blocks = Blocks {
                blocks: vec![block],
            };
            with(&records, &blocks)?;
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(())
    }
}

/// The thread's number, the position and the event with this number, if there is one.
pub(super) fn event_with_number(
    conn: &Connection,
    number: i64,
) -> Result<Option<(i64, Seq, Event)>, StoreError> {
    let sql = "SELECT thread_no, first FROM thread_blocks WHERE id = ?1";
    let mut select = conn.prepare_cached(sql).map_err(statement)?;
    let found = select.query_row([block_of(number)], |row| Ok((row.get(0)?, row.get(1)?)));
    let Some((no, first)) = found.optional().map_err(statement)? else {
        return Ok(None);
    };
    let first: i64 = first;
    let seq = Seq(count(first).saturating_add(index_of(number) as u64));
    let mut found = None;
    Log { conn, no }.read_blocks(seq, Filter::All, |id, first, mut reader| {
        if id != block_of(number) {
            return Err(damaged(conn, no, int(first), &"it has another number"));
        }
        if let Some(decoded) = reader.nth(index_of(number)) {
            let decoded = decoded.map_err(decode(conn, no, int(first)))?;
            found = Some((no, seq, decoded.event));
        }
        Ok(ControlFlow::Break(()))
    })?;
    Ok(found)
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

pub(super) fn body<'r>(row: &'r Row<'_>, column: usize) -> Result<&'r [u8], StoreError> {
    let body = row.get_ref(column).map_err(statement)?.as_blob();
    body.map_err(|error| StoreError::Damaged(error.to_string()))
}
