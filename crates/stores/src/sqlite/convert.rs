//! Converts a log of one row per event (schema versions 1 to 9) into blocks.

use super::blocks::{self, Blocks, End, Log, Sum};
use super::checkpoints;
use super::error::statement;
use super::objects;
use super::projection::Tables;
use super::rebuild::fold;
use super::sums;
use super::value::{count, instant, int};
use super::words;
use crate::block::{BlockReader, ToStore, split};
use jiff::Timestamp;
use rusqlite::{Connection, params};
use std::time::{Duration, Instant};
use store::{Epoch, StoreError};
use timeline::{Event, Seq};

/// The size of the events of one block, in bytes.
const BLOCK: usize = 16 << 10;

/// Between two lines of the server's log.
const PROGRESS: Duration = Duration::from_secs(5);

/// An event of the older log.
struct OldEvent {
    at: Timestamp,
    event: Event,
    text: String,
}

/// Converts every log, in the transaction of the migration, and compares each event with its older text.
pub(super) fn convert(conn: &Connection) -> Result<(), StoreError> {
    words::clear(conn)?;
    let numbers = words::numbers(conn)?;
    let n_threads = numbers.len();
    let mut told = Instant::now();
    for (n_done, no) in numbers.iter().enumerate() {
        thread(conn, *no)?;
        fold(Log { conn, no: *no }, conn, true)?;
        if told.elapsed() >= PROGRESS {
            tracing::info!(n_done, n_threads, "the store is being migrated");
            told = Instant::now();
        }
    }
    for no in &numbers {
        Tables::of(conn, *no, &Blocks::default()).find_calls()?;
    }
    sums::seal_all(conn, &numbers)?;
    objects::seal_all(conn)?;
    checkpoints::copy_older(conn)?;
    conn.execute_batch("DROP TABLE old_events; DROP TABLE old_checkpoints;")
        .map_err(statement)
}

fn thread(conn: &Connection, no: i64) -> Result<(), StoreError> {
    let sql = "SELECT tenant, id, epoch FROM thread_threads WHERE no = ?1";
    let (tenant, id, epoch): (String, String, i64) = conn
        .query_row(sql, [no], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .map_err(statement)?;
    let mut end = End {
        thread: no,
        epoch: Epoch(count(epoch)),
        tail: Seq::ZERO,
        sum: blocks::seed(&tenant, &id),
    };
    let sql = "SELECT seq, at, payload FROM old_events WHERE thread_no = ?1 ORDER BY seq";
    let mut select = conn.prepare_cached(sql).map_err(statement)?;
    let mut rows = select.query([no]).map_err(statement)?;
    let (mut batch, mut size) = (Vec::new(), 0);
    while let Some(row) = rows.next().map_err(statement)? {
        let seq: i64 = row.get(0).map_err(statement)?;
        let expected = end.tail.0 + batch.len() as u64 + 1;
        if count(seq) != expected {
            return Err(StoreError::Damaged(format!(
                "thread {id}: event {expected} is missing in its log"
            )));
        }
        let text: String = row.get(2).map_err(statement)?;
        let event = Event::decode(&text)
            .map_err(|error| StoreError::Damaged(format!("thread {id}, event {seq}: {error}")))?;
        size += text.len();
        batch.push(OldEvent {
            at: instant(row.get(1).map_err(statement)?)?,
            event,
            text,
        });
        if size >= BLOCK {
            add(conn, &mut end, &std::mem::take(&mut batch))?;
            size = 0;
        }
    }
    add(conn, &mut end, &batch)?;
    let sql = "UPDATE thread_threads SET head_seq = ?2, sum = ?3 WHERE no = ?1";
    let mut update = conn.prepare_cached(sql).map_err(statement)?;
    update
        .execute(params![no, int(end.tail.0), end.sum])
        .map_err(statement)?;
    Ok(())
}

/// Adds a batch, and compares what the blocks say with the older texts.
fn add(conn: &Connection, end: &mut End, batch: &[OldEvent]) -> Result<(), StoreError> {
    let to_store = batch.iter().map(|old| ToStore {
        at: old.at,
        event: &old.event,
        size: old.text.len(),
        raw: differs(old).then_some(&*old.text),
    });
    let blocks = split(to_store);
    let mut old = (end.tail.next().0..).zip(batch);
    for block in &blocks {
        let reader = BlockReader::new(&block.body);
        let reader = reader.map_err(|fault| blocks::damaged(conn, end.thread, 0, &fault))?;
        for decoded in reader {
            let (seq, expected) = old.next().unzip();
            let first = seq.map_or(0, int);
            let damaged =
                |fault: &dyn std::fmt::Display| blocks::damaged(conn, end.thread, first, fault);
            let decoded = decoded.map_err(|fault| damaged(&fault))?;
            let is_equal = expected.is_some_and(|expected: &OldEvent| {
                expected.at == decoded.at && decoded.text().is_ok_and(|text| text == expected.text)
            });
            if !is_equal {
                return Err(damaged(&"the event is not the same in its block"));
            }
        }
    }
    if let Some((seq, _)) = old.next() {
        let fault = "the event is missing in its block";
        return Err(blocks::damaged(conn, end.thread, int(seq), &fault));
    }
    let sum: Sum = blocks::insert_blocks(conn, *end, blocks, None)?.1;
    end.sum = sum;
    end.tail = Seq(end.tail.0 + batch.len() as u64);
    Ok(())
}

/// Whether this program would write the event's text in another way.
fn differs(old: &OldEvent) -> bool {
    old.event.encode().map_or(true, |text| text != old.text)
}
