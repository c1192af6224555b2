//! Items of a conversation, read in pages. A page costs time proportional to the page, not to the
//! thread.

#[cfg(test)]
mod counted;
#[cfg(test)]
mod tests;

use crate::threads::ThreadKey;
use interop::responses::{ListOptions, Origin, origins, walk_items};
use runtime::{Filter, Landmark, PageRequest, Position, RuntimeError, ThreadPage};
use std::collections::{BTreeMap, BTreeSet};
use timeline::{Entry, ExecutionStatus, Transcript};

/// Approximate number of messages, with their answers, per read.
const PIECE: usize = 8;

/// A thread whose items are searched.
#[derive(Clone, Copy)]
pub(super) struct Thread<'a>(&'a ThreadKey);

impl<'a> Thread<'a> {
    pub(super) fn of(thread: &'a ThreadKey) -> Self {
        Self(thread)
    }

    /// The position of an item; `None` if the conversation has no item with this id.
    pub(super) async fn position(&self, item: &str) -> Result<Option<Position>, RuntimeError> {
        Ok(self.places(&[item]).await?.pop().flatten())
    }

    /// The position of each item; `None` for ids that the conversation does not have.
    async fn places(&self, items: &[&str]) -> Result<Vec<Option<Position>>, RuntimeError> {
        let origins: Vec<Vec<Origin>> = items.iter().map(|id| origins(id)).collect();
        let landmarks = origins.iter().map(|of| of.iter().map(landmark).collect());
        let landmarks: Vec<Vec<Landmark<'_>>> = landmarks.collect();
        self.0.positions_of(&landmarks).await
    }

    /// Searches the page that contains an item.
    pub(super) async fn find<T>(
        &self,
        item: &str,
        find: impl Fn(&Transcript) -> Option<T>,
    ) -> Result<Option<T>, RuntimeError> {
        let Some(place) = self.position(item).await? else {
            return Ok(None);
        };
        let piece = self.read(PageRequest::UpTo { place, n: 1 }).await?;
        Ok(find(&piece.transcript))
    }

    /// Which of these items the conversation has. Each piece that has some of them is read once.
    pub(super) async fn listed<'i>(
        &self,
        items: &[&'i str],
    ) -> Result<BTreeSet<&'i str>, RuntimeError> {
        let mut left: BTreeMap<Position, BTreeSet<&str>> = BTreeMap::new();
        if items.is_empty() {
            return Ok(BTreeSet::new());
        }
        for (item, place) in items.iter().zip(self.places(items).await?) {
            if let Some(place) = place {
                left.entry(place).or_default().insert(item);
            }
        }
        let all = ListOptions {
            encrypted_reasoning: true,
            extensions: true,
        };
        let mut listed = BTreeSet::new();
        while let Some(place) = left.last_key_value().map(|(place, _)| *place) {
            let piece = self.read(PageRequest::UpTo { place, n: 1 }).await?;
            let within = left.split_off(&piece.first.min(place));
            let wanted: BTreeSet<&'i str> = within.into_values().flatten().collect();
            let items = walk_items(&piece.transcript, all);
            listed.extend(items.filter_map(|item| wanted.get(item.id.as_str()).copied()));
        }
        Ok(listed)
    }

    /// Its pages from one end on, or from the page at `from`.
    pub(super) fn pages(self, newest_first: bool, from: Option<Position>) -> ItemPages<'a> {
        let n = PIECE;
        let first = match (newest_first, from) {
            (true, Some(place)) => PageRequest::UpTo { place, n },
            (true, None) => PageRequest::Before {
                before: Position::END,
                n,
            },
            (false, from) => PageRequest::After {
                after: from.map_or(Position::START, Position::before),
                n,
            },
        };
        ItemPages {
            thread: self,
            next: Some(first),
        }
    }

    /// Reads a page. The streamed chunks are read only if an answer in it was cut off.
    async fn read(&self, page: PageRequest) -> Result<ThreadPage, RuntimeError> {
        let facts = self.0.page(page.clone(), Filter::Facts);
        let facts = facts.await?;
        if !facts.transcript.entries.iter().any(is_cut_off) {
            return Ok(facts);
        }
        self.0.page(page, Filter::All).await
    }
}

fn landmark(origin: &Origin) -> Landmark<'_> {
    match origin {
        Origin::Item(item) => Landmark::Item(item),
        Origin::Step(step) => Landmark::Step(step),
    }
}

/// Whether the answer may have streamed output that is not recorded in items: it failed or is running.
fn is_cut_off(entry: &Entry) -> bool {
    match entry {
        Entry::Item(_) => false,
        Entry::Reaction(reaction) => match reaction.execution.status {
            ExecutionStatus::Executing | ExecutionStatus::Failed => true,
            ExecutionStatus::Completed => false,
        },
    }
}

/// A walk through a thread in one direction.
pub(super) struct ItemPages<'a> {
    thread: Thread<'a>,
    next: Option<PageRequest>,
}

impl<'a> ItemPages<'a> {
    /// The pieces of a thread before a place, the newest first.
    pub(super) fn before(thread: Thread<'a>, before: Position) -> Self {
        let next =
            (before > Position::START.next()).then_some(PageRequest::Before { before, n: PIECE });
        Self { thread, next }
    }

    /// The next page; `None` at the end.
    pub(super) async fn next(&mut self) -> Result<Option<Transcript>, RuntimeError> {
        let Some(page) = self.next.take() else {
            return Ok(None);
        };
        let piece = self.thread.read(page.clone()).await?;
        self.next = match page {
            PageRequest::After { .. } => piece.more.then_some(PageRequest::After {
                after: piece.last,
                n: PIECE,
            }),
            PageRequest::Before { .. } | PageRequest::UpTo { .. } if !piece.more => None,
            PageRequest::Before { .. }
            | PageRequest::UpTo { .. }
            | PageRequest::Execution(_)
            | PageRequest::Run(_) => Self::before(self.thread, piece.first).next,
        };
        Ok(Some(piece.transcript))
    }
}
