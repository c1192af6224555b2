//! Stores a tree: its additions are appended to threads, or become forks.

use super::branch_events::{BranchEvent, Reader, Saved, checkout};
use super::branch_state::{BranchState, Course, open_calls};
use super::ranges::{MessageRange, is_same, is_whole, last_shared, split};
use super::trees::{BranchFold, Trees};
use super::walk::{Walked, about};
use super::written::{WriteTarget, Written, is_observed, written};
use super::{Branch, StoredTreeError};
use crate::error::RuntimeError;
use crate::request::NewThreadRequest;
use crate::runtime::Runtime;
use agents::{ThreadNode, ThreadTree};
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use store::{NewRecord, StoreError, TenantId};
use timeline::{Command, Fork, Payload, Record, Seq, State};
use upp::{Message, Messages};

/// The destination of a tree.
pub(super) struct ImportTarget<'a> {
    pub(super) runtime: &'a Runtime,
    pub(super) tenant: &'a TenantId,
    /// The root's key.
    pub(super) key: &'a str,
}

impl ImportTarget<'_> {
    /// Stores a tree on top of its stored part.
    pub(super) async fn store(
        &self,
        forest: &mut Trees,
        tree: &ThreadTree,
    ) -> Result<(), StoredTreeError> {
        if let Some(root) = forest.branches.first().map(|root| &root.walked.branch)
            && root.node_id != *tree.root().id()
        {
            return Err(StoredTreeError::AnotherTree {
                key: self.key.to_owned(),
                found: root.node_id.to_string(),
                root: tree.root().id().to_string(),
            });
        }
        let places: BTreeMap<&str, usize> =
            tree.nodes().map(|node| &**node.id()).zip(0..).collect();
        let mut next = vec![tree.root()];
        while let Some(node) = next.pop() {
            let children: Vec<&str> = node.children().collect();
            next.extend(children.into_iter().rev().filter_map(|id| tree.node(id)));
            if let Some(place) = forest.indices.get(node.id()).copied() {
                self.extend(forest, place, node).await?;
            } else {
                let place = places.get(&**node.id()).copied();
                self.plant(forest, node, place.unwrap_or_default()).await?;
            }
        }
        self.check_out(forest, tree.current().id()).await
    }

    /// Stores the current node, if it changed.
    async fn check_out(&self, forest: &Trees, node: &Arc<str>) -> Result<(), StoredTreeError> {
        let Some(root) = forest.branches.first() else {
            return Ok(());
        };
        let branch = &root.walked.branch;
        if root.reader.current.as_ref().unwrap_or(&branch.node_id) == node {
            return Ok(());
        }
        let item = checkout(self.runtime.mint().into(), node)?;
        let live = self.runtime.live_by_id(&branch.row.thread.id).await?;
        let commands = vec![(None, Command::Record { item })];
        self.runtime.append_at(live, None, commands).await?;
        Ok(())
    }

    /// Appends a node's additions to its thread.
    async fn extend(
        &self,
        forest: &mut Trees,
        place: usize,
        node: &ThreadNode,
    ) -> Result<(), StoredTreeError> {
        let Some(grown) = forest.branches.get_mut(place) else {
            return Ok(());
        };
        if grown.walked.branch.parent_id.as_deref() != node.parent_id() {
            return Err(StoredTreeError::AnotherParent {
                node: node.id().to_string(),
            });
        }
        if grown.course.last().state == *node.state() {
            return Ok(());
        }
        let thread = &grown.walked.branch.row.thread.id;
        let head = self.runtime.store().head(thread).await?;
        if let Some(active) = head.state.active() {
            return Err(RuntimeError::Busy(active.execution.id.clone()).into());
        }
        let tail = grown.reader.tail;
        if head.tail != tail {
            return Err(moved(thread.clone(), tail, head.tail));
        }
        let mut draft = Draft {
            state: head.state,
            reader: Reader::after(tail),
            records: Vec::new(),
        };
        let commands = self.write(
            &mut draft,
            &grown.course,
            node,
            (&grown.reader.items, head.last_at),
        )?;
        let commands = commands.into_iter().map(|(at, it)| (Some(at), it));
        let live = self.runtime.live_by_id(thread).await?;
        let appended = self.runtime.append_at(live, Some(tail), commands.collect());
        appended.await?;
        let followed = grown.course.follow(&draft.reader.events);
        followed.map_err(|it| damaged(node, it))?;
        grown.reader.tail = draft.reader.tail;
        grown.reader.items.extend(draft.reader.items);
        Ok(())
    }

    /// Creates a node's thread in one transaction.
    async fn plant(
        &self,
        forest: &mut Trees,
        node: &ThreadNode,
        place: usize,
    ) -> Result<(), StoredTreeError> {
        let parent = node.parent_id();
        let parent = parent.and_then(|id| forest.indices.get(id).copied());
        let stem = parent.and_then(|place| forest.branches.get(place));
        let (fork, base) = forked(stem, node);
        let key = match fork {
            None => self.key.to_owned(),
            Some(_) => format!("{}/{}", self.key, node.id()),
        };
        let new = NewThreadRequest {
            key: Some(key.clone()),
            title: node.name().map(str::to_owned),
            metadata: Some(about(node.id(), place)?),
            fork,
        };
        let (draft, course) = self.drafted(new, base, node)?;
        let store = self.runtime.store();
        let made = self.runtime.make(self.tenant, draft.records).await?;
        if !made.is_new() {
            return Err(StoreError::KeyTaken(key).into());
        }
        let branch = Branch {
            node_id: Arc::clone(node.id()),
            parent_id: node.parent_id().map(Arc::from),
            row: store.row(&made.thread).await?,
            is_current: false,
        };
        forest.push(BranchFold {
            walked: Walked {
                branch,
                parent,
                forks: Vec::new(),
                index: place as u64,
            },
            reader: draft.reader,
            course,
        });
        Ok(())
    }

    /// The first records of a new thread, and the branch's states after them.
    fn drafted(
        &self,
        new: NewThreadRequest,
        base: BranchState,
        node: &ThreadNode,
    ) -> Result<(Draft, Course), StoredTreeError> {
        let own = added(&base.conversation, node.state().messages());
        let at = own
            .first()
            .map(Message::timestamp)
            .filter(|at| is_observed(*at));
        let at = at.unwrap_or_else(|| self.runtime.inner.clock.now());
        let mut course = Course::new(base);
        let mut draft = Draft::default();
        draft.add(self.runtime.first(new, Some(at))?)?;
        let n_first = draft.reader.events.len();
        self.write(&mut draft, &course, node, (&BTreeSet::new(), at))?;
        let (first, rest) = draft.reader.events.split_at(n_first);
        for told in [first, rest] {
            course.follow(told).map_err(|it| damaged(node, it))?;
        }
        Ok((draft, course))
    }

    /// Writes a node's additions to its branch: the messages, and then the state.
    fn write(
        &self,
        draft: &mut Draft,
        course: &Course,
        node: &ThreadNode,
        (used, at): (&BTreeSet<timeline::ItemId>, Timestamp),
    ) -> Result<Vec<(Timestamp, Command)>, StoredTreeError> {
        let standing = course.last();
        let n_told = draft.reader.events.len();
        let own = added(&standing.conversation, node.state().messages());
        let open = open_calls(&standing.conversation);
        let place = WriteTarget {
            open: open.into_iter().cloned().collect(),
            used: used.clone(),
            at,
            mint: &|| self.runtime.mint(),
        };
        let Written { commands, entries } = written(&own, place)?;
        let mut commands = commands;
        draft.decide(&commands)?;
        let told = draft.reader.events.get(n_told..).unwrap_or_default();
        let said = told.iter().filter_map(|(_, told)| match told {
            BranchEvent::Message(entry) => Some(entry),
            BranchEvent::Saved(_) | BranchEvent::Rests => None,
        });
        let mut now = standing.clone();
        let mut fixes = Vec::new();
        for ((nth, entry), range) in (course.n_unsaved..).zip(said).zip(entries) {
            let want = own.get(range).unwrap_or_default();
            let have = now.messages(entry);
            let pieces = split(&have, want);
            if !is_whole(&pieces, have.len()) {
                fixes.push((nth, pieces));
            }
            now = now.after(entry, want);
        }
        if commands.is_empty() && now.state == *node.state() {
            return Ok(commands);
        }
        let saved = saved(&now, fixes, node)?;
        let at = commands.last().map_or(at, |(at, _)| *at);
        let at = self.runtime.inner.clock.now().max(at);
        let item = saved.item(self.runtime.mint().into())?;
        let keep = vec![(at, Command::Record { item })];
        draft.decide(&keep)?;
        commands.extend(keep);
        Ok(commands)
    }
}

fn damaged(node: &ThreadNode, detail: String) -> StoredTreeError {
    StoredTreeError::Damaged {
        thread: node.id().as_ref().into(),
        detail,
    }
}

fn moved(thread: timeline::ThreadId, expected: Seq, found: Seq) -> StoredTreeError {
    let conflict = StoreError::Conflict {
        thread,
        expected,
        found,
    };
    RuntimeError::from(conflict).into()
}

/// The snapshot's messages after the last one that it shares with the conversation.
fn added(conversation: &Messages, snapshot: &Messages) -> Vec<Message> {
    let first = last_shared(conversation, snapshot).map_or(0, |(_, place)| place + 1);
    snapshot.iter().skip(first).cloned().collect()
}

/// The fork point of a node's thread in its parent's: after the last message they share, or at its
/// end if they share none.
fn forked(stem: Option<&BranchFold>, node: &ThreadNode) -> (Option<Fork>, BranchState) {
    let Some(stem) = stem else {
        return (None, BranchState::initial());
    };
    let shared = last_shared(&stem.course.last().conversation, node.state().messages());
    let n_shared = shared.map_or(usize::MAX, |(place, _)| place + 1);
    let rest = stem.course.rest_within(n_shared);
    let fork = Fork {
        thread_id: stem.walked.branch.row.thread.id.clone(),
        seq: rest.seq,
    };
    (Some(fork), rest.state.clone())
}

/// A node's state as it is stored on top of its branch's state `now`.
fn saved(
    now: &BranchState,
    fixes: Vec<(usize, Vec<MessageRange>)>,
    node: &ThreadNode,
) -> Result<Saved, StoredTreeError> {
    let want = node.state().messages();
    let is_whole = want.len() == now.conversation.len()
        && want
            .iter()
            .zip(&now.conversation)
            .all(|(a, b)| is_same(a, b));
    let view = (!is_whole).then(|| {
        let have: Vec<Message> = now.conversation.iter().cloned().collect();
        split(&have, &want.iter().cloned().collect::<Vec<_>>())
    });
    let state = |source| StoredTreeError::State {
        node: node.id().to_string(),
        source,
    };
    let earlier = now.with_view(view.as_deref()).unwrap_or_default();
    let json = node.state().to_json_since(&earlier).map_err(state)?;
    let saved = Saved::new(fixes, view, Payload::from_text(json)?);
    // What could not be read again is not written.
    let read = Payload::write(&saved)?.read::<Saved>();
    read.map_err(|source| StoredTreeError::TooDeep {
        node: node.id().to_string(),
        source,
    })
}

/// Records that are not written yet, and the state after them.
#[derive(Default)]
struct Draft {
    state: State,
    reader: Reader,
    records: Vec<NewRecord>,
}

impl Draft {
    fn decide(&mut self, commands: &[(Timestamp, Command)]) -> Result<(), StoredTreeError> {
        for (at, command) in commands {
            let events = self.state.decide(command.clone(), *at)?;
            let new = events.into_iter().map(|event| NewRecord::new(*at, event));
            let new = new.collect::<Result<Vec<_>, serde_json::Error>>()?;
            self.add(new)?;
        }
        Ok(())
    }

    fn add(&mut self, records: Vec<NewRecord>) -> Result<(), serde_json::Error> {
        for new in records {
            self.state.apply(new.event());
            self.reader.read(&Record {
                seq: self.reader.tail.next(),
                at: new.at,
                event: new.event().clone(),
            })?;
            self.records.push(new);
        }
        Ok(())
    }
}
