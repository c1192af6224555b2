//! Streams the records of a thread and of all threads below it.
//!
//! Only the child's log has the work of a child. A follower of a thread therefore also reads the
//! logs of the running children. All records of a child come between the record of its start and
//! that of its end. A child's records until it waits come before the record of its parent's wait.
//! If the records are old, a reader may also see later records of the child before its parent
//! waits.

use super::pending_questions::CallAddress;
use super::records::{Ended, Spawned};
use super::relations::{MAX_DEPTH, spawned_from_call};
use super::report::Report;
use super::wake::Woken;
use crate::error::RuntimeError;
use crate::follow::{FollowedRecord, Until, refollow};
use crate::live::Live;
use crate::runtime::Runtime;
use futures_util::StreamExt;
use futures_util::stream::{BoxStream, SelectAll};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use store::{StoreError, TenantId};
use timeline::{Event, Payload, ReadPosition, Record, Seq, ThreadId};

/// The position that a reader has reached in a thread and in the threads below it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    /// The position in the thread.
    pub own: ReadPosition,
    /// The positions in the threads below it that were not read to their ends.
    pub below: BTreeMap<ThreadId, ReadPosition>,
}

impl From<ReadPosition> for Cursor {
    fn from(own: ReadPosition) -> Self {
        Self {
            own,
            below: BTreeMap::new(),
        }
    }
}

impl From<Seq> for Cursor {
    fn from(seq: Seq) -> Self {
        ReadPosition::from(seq).into()
    }
}

/// A record of a thread or of a thread below it.
#[derive(Clone, Debug)]
pub struct Below {
    /// The calls that led to the thread, the followed thread's own first; empty for its own
    /// records.
    pub path: Vec<CallAddress>,
    /// The thread whose record it is.
    pub thread_id: ThreadId,
    /// Its key.
    pub key: String,
    /// The record.
    pub followed: FollowedRecord,
    /// Whether the reader has seen it before; such records are included for readers that fold the
    /// log.
    pub is_past: bool,
    /// Whether it is the last record of a child thread. Another record may report that the thread
    /// continues.
    pub is_last: bool,
    /// Set if the record reports that a child starts or continues: the child thread to follow, and
    /// its last event that is skipped.
    pub follows: Option<(ThreadId, Seq)>,
    /// The thread of a sub-agent that the record starts.
    pub(super) begins: Option<Spawned>,
}

/// The records of a thread, once and in order, with the records of the threads below it between
/// them. The records of each thread are in order.
pub type Tree = BoxStream<'static, Result<Below, StoreError>>;

/// A message from a child's log.
enum Note {
    Record(Box<Below>),
    /// The child's log is read up to this event.
    At(Seq),
    /// The child's run is over.
    Over,
    /// The store has lost the end of the child's log.
    Shortened(StoreError),
}

impl Runtime {
    /// Follows a thread like [`Runtime::follow`], with the threads of sub-agents at any depth that
    /// start or continue after the cursor.
    ///
    /// # Errors
    ///
    /// [`StoreError::AheadOfLog`] if a log ends before its position in the cursor.
    pub async fn tree(
        &self,
        tenant: &TenantId,
        key: &str,
        after: Cursor,
        until: Until,
    ) -> Result<Tree, RuntimeError> {
        let live = self.existing(tenant, key).await?;
        let mut open = Vec::new();
        for (thread, position) in &after.below {
            // What is gone, or somebody else's, is not shown.
            let row = self.seen_child_row(tenant, &live.thread, thread).await;
            let Ok(Some(row)) = row else { continue };
            row.check_position(position.seq)?;
            if let Some((_, call)) = spawned_from_call(row.thread.metadata.as_ref()) {
                open.push((thread.clone(), call, *position));
            }
        }
        let roots = Roots {
            open,
            below: Arc::new(after.below),
        };
        let own = self
            .follow_live(Arc::clone(&live), after.own, until)
            .await?;
        let past = ReadPosition::default();
        Ok(tree(self.clone(), live, own, roots, past, 0))
    }
}

/// The children to follow from the start, and the positions read in children.
struct Roots {
    open: Vec<(ThreadId, String, ReadPosition)>,
    below: Arc<BTreeMap<ThreadId, ReadPosition>>,
}

/// The children that are followed.
struct Family {
    runtime: Runtime,
    parent: Arc<Live>,
    /// Number of threads above the parent.
    depth: usize,
    below: Arc<BTreeMap<ThreadId, ReadPosition>>,
    notes: SelectAll<BoxStream<'static, (ThreadId, Note)>>,
    /// The position read in each open child.
    open: BTreeMap<ThreadId, Seq>,
    /// Threads that are or were followed; a child that waited is reported again.
    seen: BTreeSet<ThreadId>,
}

impl Family {
    fn follow(&mut self, child: ThreadId, call: &str, after: ReadPosition) {
        if self.depth >= MAX_DEPTH || !self.seen.insert(child.clone()) {
            return;
        }
        self.open.insert(child.clone(), Seq::ZERO);
        let place = CallAddress {
            thread_id: self.parent.thread.clone(),
            key: self.parent.key.clone(),
            tool_call_id: call.to_owned(),
        };
        let below = Arc::clone(&self.below);
        let inner = Inner {
            runtime: self.runtime.clone(),
            parent: Arc::clone(&self.parent),
            thread: child,
            place,
            after,
            below,
            depth: self.depth + 1,
        };
        self.notes.push(inside(inner));
    }

    /// Applies a note; returns its record, if it has one.
    fn heard(&mut self, child: &ThreadId, note: Note) -> Result<Option<Below>, StoreError> {
        match note {
            Note::Record(below) => return Ok(self.open.contains_key(child).then_some(*below)),
            Note::Shortened(error) => return Err(error),
            Note::At(seq) => {
                if let Some(at) = self.open.get_mut(child) {
                    *at = seq;
                }
            }
            Note::Over => {
                self.open.remove(child);
            }
        }
        Ok(None)
    }

    fn is_read(&self, (child, seq): &(ThreadId, Seq)) -> bool {
        self.open.get(child).is_none_or(|at| at >= seq)
    }
}

fn tree(
    runtime: Runtime,
    live: Arc<Live>,
    mut own: crate::follow::Follow,
    roots: Roots,
    mut past: ReadPosition,
    depth: usize,
) -> Tree {
    let mut family = Family {
        runtime,
        parent: Arc::clone(&live),
        depth,
        below: roots.below,
        notes: SelectAll::new(),
        open: BTreeMap::new(),
        seen: BTreeSet::new(),
    };
    for (child, call, after) in roots.open {
        family.follow(child, &call, after);
    }
    Box::pin(async_stream::try_stream! {
        loop {
            let (noted, followed) = tokio::select! {
                biased;
                Some(noted) = family.notes.next(), if !family.notes.is_empty() => (Some(noted), None),
                followed = own.next() => (None, followed),
            };
            if let Some((child, note)) = noted {
                if let Some(below) = family.heard(&child, note)? {
                    yield below;
                }
                continue;
            }
            let Some(followed) = followed else { return };
            let followed = followed?;
            let record = &followed.logged.record;
            let is_past = record.seq <= past.seq || !past.count(&record.event);
            for wanted in before(record) {
                while !family.is_read(&wanted) {
                    let Some((child, note)) = family.notes.next().await else { break };
                    if let Some(below) = family.heard(&child, note)? {
                        yield below;
                    }
                }
                if added(record).is_some() {
                    family.open.remove(&wanted.0);
                }
            }
            let begins = begun(record).filter(|(spawned, _)| !spawned.is_hidden);
            let follows = begins.as_ref();
            yield Below {
                follows: follows.map(|(it, after)| (it.spawned_thread_id.clone(), *after)),
                path: Vec::new(),
                thread_id: live.thread.clone(),
                key: live.key.clone(),
                followed: followed.clone(),
                is_past,
                is_last: false,
                begins: begins.as_ref().map(|(spawned, _)| spawned.clone()),
            };
            if let Some((spawned, after)) = begins {
                let child = spawned.spawned_thread_id;
                let known = family.below.get(&child).copied();
                // One that was over when somebody stopped reading here is not shown again.
                if !is_past || known.is_some() {
                    let after = known.unwrap_or_default().max(after.into());
                    family.follow(child, &spawned.tool_call_id, after);
                }
            }
        }
    })
}

/// The children's records to read before this record of their parent is shown: thread and last
/// event.
fn before(record: &Record) -> Vec<(ThreadId, Seq)> {
    if let Some(ended) = added(record).and_then(Ended::read) {
        let seq = ended.seq.unwrap_or(Seq(u64::MAX));
        return vec![(ended.thread_id, seq)];
    }
    let Event::StepStatusChanged { outcome, .. } = &record.event else {
        return Vec::new();
    };
    let left = timeline::OpenCall::list(outcome.open_calls.as_ref()).into_iter();
    let left = left.flat_map(|call| call.children);
    let left = left.filter(|child| !child.is_over);
    left.map(|child| (child.thread_id, child.seq)).collect()
}

/// The child that starts or continues with a record, and the last event of its log that was seen by
/// then.
fn begun(record: &Record) -> Option<(Spawned, Seq)> {
    if let Event::ItemCreated { item } = &record.event {
        let woken = Woken::read(item)?;
        let seq = woken.child.seq;
        let spawned = Spawned {
            spawned_thread_id: woken.child.thread_id,
            tool_call_id: woken.tool_call_id,
            subagent_id: woken.child.subagent_id,
            subagent_type: woken.child.subagent_type,
            is_hidden: woken.child.is_hidden,
        };
        return Some((spawned, seq));
    }
    Some((added(record).and_then(Spawned::read)?, Seq::ZERO))
}

/// The part that a record adds.
fn added(record: &Record) -> Option<&Payload> {
    if let Event::PartCreated { part, .. } = &record.event {
        return Some(part);
    }
    None
}

/// A child that is followed.
struct Inner {
    runtime: Runtime,
    parent: Arc<Live>,
    thread: ThreadId,
    /// The call that started it.
    place: CallAddress,
    /// The position that was read before.
    after: ReadPosition,
    below: Arc<BTreeMap<ThreadId, ReadPosition>>,
    depth: usize,
}

/// The records of one child and of those below it, to the end of its run. A log that can't be read,
/// or that belongs to no child of this thread, is skipped.
fn inside(inner: Inner) -> BoxStream<'static, (ThreadId, Note)> {
    let Inner {
        runtime,
        parent,
        thread,
        place,
        after,
        below,
        depth,
    } = inner;
    Box::pin(async_stream::stream! {
        let row = runtime.seen_child_row(&parent.tenant, &parent.thread, &thread).await;
        if let Ok(Some(row)) = row {
            let live = runtime.live_of(row);
            let own = match refollow(runtime.store(), Arc::clone(&live), after).await {
                Ok(own) => own,
                Err(_) => futures_util::stream::empty().boxed(),
            };
            let roots = Roots { open: Vec::new(), below };
            let mut records = tree(runtime, live, own, roots, after, depth);
            let mut report = Report::default();
            while let Some(found) = records.next().await {
                let mut found = match found {
                    Ok(found) => found,
                    Err(error @ StoreError::AheadOfLog { .. }) => {
                        yield (thread.clone(), Note::Shortened(error));
                        break;
                    }
                    Err(_) => break,
                };
                let seq = found.path.is_empty().then_some(found.followed.position.seq);
                if seq.is_some() {
                    report.push(&found.followed.record);
                    found.is_last = report.is_over();
                }
                found.path.insert(0, place.clone());
                yield (thread.clone(), Note::Record(Box::new(found)));
                if let Some(seq) = seq {
                    yield (thread.clone(), Note::At(seq));
                }
                if report.is_over() {
                    break;
                }
            }
        }
        yield (thread, Note::Over);
    })
}
