//! Items of a conversation, read piece by piece: a page costs the page, whatever the thread's length.

use interop::responses::named_by;
use runtime::{Filter, Landmark, Place, Runtime, RuntimeError, Stretch, StretchOf};
use runtime::{TenantId, ThreadRow};
use timeline::{ItemId, StepId, Transcript};

use crate::protocol::key_of;

/// About how many messages, with what answered them, are read at once.
const PIECE: usize = 8;

/// A thread whose items are looked through.
#[derive(Clone, Copy)]
pub(super) struct Thread<'a> {
    pub(super) runtime: &'a Runtime,
    pub(super) tenant: &'a TenantId,
    pub(super) key: &'a str,
}

impl<'a> Thread<'a> {
    pub(super) fn of(runtime: &'a Runtime, row: &'a ThreadRow) -> Self {
        Self {
            runtime,
            tenant: &row.tenant,
            key: key_of(row),
        }
    }

    /// Where an item stands, as its id tells it; none where it does not.
    pub(super) async fn place(&self, item: &str) -> Result<Option<Place>, RuntimeError> {
        for id in named_by(item) {
            let (of_item, of_step) = (ItemId::from(id.as_str()), StepId::from(id.as_str()));
            for landmark in [Landmark::Item(&of_item), Landmark::Step(&of_step)] {
                let place = self.runtime.place_of(self.tenant, self.key, landmark);
                if let Some(place) = place.await? {
                    return Ok(Some(place));
                }
            }
        }
        Ok(None)
    }

    /// What is found in the piece that has an item. One whose id does not tell its place is looked for
    /// in all of the thread, from its end on.
    pub(super) async fn find<T>(
        &self,
        item: &str,
        find: impl Fn(&Transcript) -> Option<T>,
    ) -> Result<Option<T>, RuntimeError> {
        if let Some(place) = self.place(item).await? {
            let piece = self.read(Stretch::UpTo { place, n: 1 }).await?;
            if let Some(found) = find(&piece.transcript) {
                return Ok(Some(found));
            }
        }
        let mut walk = self.walk(true, None);
        while let Some(transcript) = walk.next().await? {
            if let Some(found) = find(&transcript) {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Its pieces from one end on, or from the one that has this place.
    pub(super) fn walk(self, newest_first: bool, from: Option<Place>) -> Walk<'a> {
        let n = PIECE;
        let first = match (newest_first, from) {
            (true, Some(place)) => Stretch::UpTo { place, n },
            (true, None) => Stretch::Before {
                before: Place::END,
                n,
            },
            (false, from) => Stretch::After {
                after: from.map_or(Place::START, Place::before),
                n,
            },
        };
        Walk {
            thread: self,
            next: Some(first),
        }
    }

    async fn read(&self, stretch: Stretch) -> Result<StretchOf, RuntimeError> {
        // With the chunks: an answer that was cut off keeps what it had said.
        self.runtime
            .stretch(self.tenant, self.key, stretch, Filter::All)
            .await
    }
}

/// A walk through a thread in one direction.
pub(super) struct Walk<'a> {
    thread: Thread<'a>,
    next: Option<Stretch>,
}

impl<'a> Walk<'a> {
    /// The pieces of a thread before a place, the newest first.
    pub(super) fn before(thread: Thread<'a>, before: Place) -> Self {
        let next = (before > Place::START.next()).then_some(Stretch::Before { before, n: PIECE });
        Self { thread, next }
    }

    /// The next piece; none at the end.
    pub(super) async fn next(&mut self) -> Result<Option<Transcript>, RuntimeError> {
        let Some(stretch) = self.next.take() else {
            return Ok(None);
        };
        let piece = self.thread.read(stretch.clone()).await?;
        self.next = match stretch {
            Stretch::After { .. } => piece.more.then_some(Stretch::After {
                after: piece.last,
                n: PIECE,
            }),
            // What was not said to an agent may still stand before the first thing that was.
            Stretch::Before { .. }
            | Stretch::UpTo { .. }
            | Stretch::Execution(_)
            | Stretch::Run(_) => Self::before(self.thread, piece.first).next,
        };
        Ok(Some(piece.transcript))
    }
}
