//! A page of a thread, as runs and messages.

use crate::error::ApiError;
use crate::threads::ThreadRef;
use interop::threads::{MessageObject, Order, Run, RunStatus, ThreadView};
use jiff::Timestamp;
use runtime::{Filter, PageRequest, Position, ThreadPage};

/// A page of a thread. Its ends are places where no run is active, or the thread's ends.
pub(super) struct EntryPage {
    view: ThreadView,
    /// Number of its runs; the view may also have later ones.
    n_runs: usize,
    n_messages: usize,
    first: Position,
    last: Position,
    more: bool,
}

impl EntryPage {
    /// Reads a page. Streamed chunks are read only if an answer was cut off.
    pub(super) async fn of(found: &ThreadRef, page: PageRequest) -> Result<Self, ApiError> {
        let now = Timestamp::now();
        let read = |filter| found.page_with_removed(page.clone(), filter);
        let mut read_of = read(Filter::Facts).await?;
        let mut view = ThreadView::of(&read_of.transcript);
        if view.runs().iter().any(|run| is_cut_off(run.status(now))) {
            read_of = read(Filter::All).await?;
            view = ThreadView::of(&read_of.transcript);
        }
        let ThreadPage {
            first, last, more, ..
        } = read_of;
        let is_tail = match page {
            PageRequest::Before { before: end, .. } | PageRequest::UpTo { place: end, .. } => {
                end == Position::END
            }
            PageRequest::After { .. } | PageRequest::Run(_) | PageRequest::Execution(_) => !more,
        };
        let n_messages = view.messages().count();
        let mut piece = Self {
            n_runs: view.runs().len(),
            n_messages,
            view,
            first,
            last,
            more,
        };
        if !is_tail && piece.waits(now) {
            piece.look_beyond(found, now).await?;
        }
        Ok(piece)
    }

    /// Whether its last run waits for an answer, as far as this page shows.
    fn waits(&self, now: Timestamp) -> bool {
        let last = self.n_runs.checked_sub(1);
        let last = last.and_then(|last| self.view.runs().get(last));
        last.is_some_and(|run| run.status(now).is_active())
    }

    /// Reads messages after a waiting run, which abandon its calls.
    async fn look_beyond(&mut self, found: &ThreadRef, now: Timestamp) -> Result<(), ApiError> {
        let beyond = PageRequest::After {
            after: self.last,
            n: 1,
        };
        let beyond = found.page(beyond, Filter::Facts);
        for entry in &beyond.await?.transcript.entries {
            self.view.push(entry);
            if !self.waits(now) {
                break;
            }
        }
        Ok(())
    }

    /// Its runs, in order.
    pub(super) fn runs(&self) -> impl DoubleEndedIterator<Item = &Run> {
        self.view.runs().iter().take(self.n_runs)
    }

    /// The run of this id.
    pub(super) fn run(&self, id: &str) -> Option<&Run> {
        self.runs().rev().find(|run| run.id() == id)
    }

    /// The run that locks the thread, if it is on this page.
    pub(super) fn active(&self, now: Timestamp) -> Option<&Run> {
        let last = self.runs().next_back();
        last.filter(|run| run.status(now).is_active())
    }

    /// Its messages, in order.
    pub(super) fn messages(&self) -> Vec<MessageObject> {
        let messages = self.view.messages().take(self.n_messages);
        messages.filter_map(|listed| listed.object()).collect()
    }

    /// The message of this id.
    pub(super) fn message(&self, id: &str) -> Option<MessageObject> {
        self.view.message(id)
    }
}

/// Whether an answer may have streamed chunks that are not facts, because it was cut off or still runs.
fn is_cut_off(status: RunStatus) -> bool {
    match status {
        RunStatus::InProgress
        | RunStatus::Cancelling
        | RunStatus::Cancelled
        | RunStatus::Failed
        | RunStatus::Expired => true,
        RunStatus::Queued
        | RunStatus::RequiresAction
        | RunStatus::Completed
        | RunStatus::Incomplete => false,
    }
}

/// Reads a thread page by page in one direction.
pub(super) struct Pieces {
    direction: Order,
    next: Option<Position>,
    n: usize,
}

impl Pieces {
    /// Starts at a position, or at the thread's first end in this direction. Each page has about `n`
    /// messages and their answers.
    pub(super) fn new(direction: Order, from: Option<Position>, n: usize) -> Self {
        let start = match direction {
            Order::Ascending => Position::START,
            Order::Descending => Position::END,
        };
        Self {
            direction,
            next: Some(from.unwrap_or(start)),
            n,
        }
    }

    /// The next page; none at the end.
    pub(super) async fn next(&mut self, found: &ThreadRef) -> Result<Option<EntryPage>, ApiError> {
        let Some(place) = self.next.take() else {
            return Ok(None);
        };
        let n = self.n;
        let piece = match self.direction {
            Order::Ascending => PageRequest::After { after: place, n },
            Order::Descending => PageRequest::Before { before: place, n },
        };
        let piece = EntryPage::of(found, piece).await?;
        self.next = piece.more.then_some(match self.direction {
            Order::Ascending => piece.last,
            Order::Descending => piece.first,
        });
        Ok(Some(piece))
    }
}
