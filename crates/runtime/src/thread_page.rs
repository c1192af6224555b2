//! Reads a page of a long thread, at a cost proportional to the page.
//!
//! A [`Position`] counts the events of a thread: first those of a fork's ancestors, then its own. A
//! page never cuts an execution: it starts and ends where none runs, or at the end of the log.

mod chain;
mod position;

use crate::error::RuntimeError;
use crate::runtime::Runtime;
pub(crate) use chain::{Chain, Span, removed_entries};
pub use position::Position;
use store::{Filter, Landmark, Logged, TenantId};
use timeline::{ExecutionId, ItemType, Seq, Transcript};

/// Selects a part of a thread.
///
/// A position within an execution selects the whole execution. A client that pages by messages must
/// skip those it already has. Removed items still count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PageRequest {
    /// This execution with its handoffs, and the messages posted since the execution before it.
    Execution(ExecutionId),
    /// A run with its continuations: executions that answers to its calls started.
    Run(ExecutionId),
    /// About `n` posted messages before a position, with the executions that answer them.
    Before {
        /// The position; [`Position::END`] for the end of the thread.
        before: Position,
        /// Number of messages; at least one.
        n: usize,
    },
    /// Up to a position, which is included, with the continuations of its execution.
    UpTo {
        /// The place.
        place: Position,
        /// Number of messages; at least one.
        n: usize,
    },
    /// About `n` posted messages after a position, with the executions that answer them.
    After {
        /// The position; [`Position::START`] for the start of the thread.
        after: Position,
        /// Number of messages; at least one.
        n: usize,
    },
}

/// A page of a thread.
#[derive(Clone, Debug)]
pub struct ThreadPage {
    /// The page's items and executions. Its thread is the requested one in its current state. Its
    /// `seq` is that of the last event read, in the log that contains the event.
    pub transcript: Transcript,
    /// The first position of the page; [`PageRequest::Before`] it reads the previous page.
    pub first: Position,
    /// The last position of the page; [`PageRequest::After`] it reads the next page.
    pub last: Position,
    /// Whether there are more events: before the page if it was read backwards, else after it.
    pub more: bool,
}

impl Runtime {
    /// Returns the number of events that a thread has from its ancestors; 0 unless it is a fork.
    pub async fn inherited_events(
        &self,
        tenant: &TenantId,
        key: &str,
    ) -> Result<u64, RuntimeError> {
        let row = self.inner.store.find(tenant, key).await?;
        let chain = Chain::of(self.inner.store.as_ref(), row).await?;
        Ok(chain.own(Seq::ZERO).0)
    }

    /// Returns the position of an event in a thread, or none if the thread does not have it. A fork
    /// has the events that its parent had when the fork was made.
    pub async fn position_of(
        &self,
        tenant: &TenantId,
        key: &str,
        landmark: Landmark<'_>,
    ) -> Result<Option<Position>, RuntimeError> {
        let row = self.inner.store.find(tenant, key).await?;
        let chain = Chain::of(self.inner.store.as_ref(), row).await?;
        Ok(chain.position_of(landmark).await?)
    }

    /// Returns, for each list, the position of the first landmark that the thread has; none if it
    /// has none. Costs one look-up for each landmark, and one for the thread.
    pub async fn positions_of(
        &self,
        tenant: &TenantId,
        key: &str,
        lists: &[Vec<Landmark<'_>>],
    ) -> Result<Vec<Option<Position>>, RuntimeError> {
        let row = self.inner.store.find(tenant, key).await?;
        let chain = Chain::of(self.inner.store.as_ref(), row).await?;
        let mut places = Vec::with_capacity(lists.len());
        for landmarks in lists {
            let mut place = None;
            for landmark in landmarks {
                place = chain.position_of(*landmark).await?;
                if place.is_some() {
                    break;
                }
            }
            places.push(place);
        }
        Ok(places)
    }

    /// Reads [`PageRequest::Run`] up to an event of the thread's own log: the run as it was then.
    /// The cost is proportional to the size of the run.
    ///
    /// # Errors
    ///
    /// [`RuntimeError::UnknownExecution`] if the thread has no such execution.
    pub async fn run_until(
        &self,
        tenant: &TenantId,
        key: &str,
        execution: ExecutionId,
        last: Seq,
    ) -> Result<Transcript, RuntimeError> {
        let row = self.inner.store.find(tenant, key).await?;
        let chain = Chain::of(self.inner.store.as_ref(), row).await?;
        let (span, _) = find_span(&chain, &PageRequest::Run(execution)).await?;
        let last = span.last.min(chain.own(last));
        chain
            .read_marked(Span { last, ..span }, Filter::Facts)
            .await
    }

    /// Reads at most `limit` records after a position, chunks included, and returns the last one's
    /// position. A shorter list may have more records after it; an empty list is the end.
    pub async fn records(
        &self,
        tenant: &TenantId,
        key: &str,
        after: Position,
        limit: usize,
    ) -> Result<(Vec<Logged>, Position), RuntimeError> {
        let store = self.inner.store.as_ref();
        let (row, mut unstored) = self.row_to_read(tenant, key, Filter::All).await?;
        let mut chain = Chain::of(store, row).await?;
        loop {
            let page = chain.page(after, limit, Filter::All).await?;
            let last = page.last().map(|last| chain.position_after(after, last));
            let last = last.unwrap_or(after);
            let is_end = page.len() < limit && last >= chain.last;
            let Some(live) = unstored.take().filter(|_| is_end) else {
                return Ok((page, last));
            };
            chain = Chain::of(store, self.store_for_reader(live).await?).await?;
        }
    }

    /// Reads a page of a thread. If the filter includes chunks, the page also has the partial
    /// output of interrupted steps.
    ///
    /// # Errors
    ///
    /// [`RuntimeError::UnknownExecution`] if the thread has no such execution.
    pub async fn page(
        &self,
        tenant: &TenantId,
        key: &str,
        stretch: PageRequest,
        filter: Filter,
    ) -> Result<ThreadPage, RuntimeError> {
        let read = self.page_with_removed(tenant, key, stretch, filter).await?;
        Ok(ThreadPage {
            transcript: read.transcript.without_removed(),
            ..read
        })
    }

    /// Reads a page of a thread with its removed messages, which [`Transcript::removed`] marks. For
    /// audits.
    pub async fn page_with_removed(
        &self,
        tenant: &TenantId,
        key: &str,
        stretch: PageRequest,
        filter: Filter,
    ) -> Result<ThreadPage, RuntimeError> {
        let store = self.inner.store.as_ref();
        let (row, unstored) = self.row_to_read(tenant, key, filter).await?;
        let mut chain = Chain::of(store, row).await?;
        let mut found = find_span(&chain, &stretch).await?;
        if let Some(live) = unstored.filter(|_| found.0.last >= chain.last) {
            chain = Chain::of(store, self.store_for_reader(live).await?).await?;
            found = find_span(&chain, &stretch).await?;
        }
        marked_page(&chain, found, filter).await
    }

    /// Reads a page of a thread as it was after an event of its own log; without a request the whole
    /// thread.
    ///
    /// # Errors
    ///
    /// [`RuntimeError::BeyondEnd`] if the thread has no such event.
    pub async fn page_at(
        &self,
        tenant: &TenantId,
        key: &str,
        (stretch, at): (Option<PageRequest>, Seq),
        filter: Filter,
    ) -> Result<ThreadPage, RuntimeError> {
        let chain = self.chain_at(tenant, key, at).await?;
        let read = if let Some(stretch) = stretch {
            marked_page(&chain, find_span(&chain, &stretch).await?, filter).await?
        } else {
            let (first, last) = (Position::START.next(), chain.last);
            ThreadPage {
                transcript: chain.read_marked(Span { first, last }, filter).await?,
                first,
                last,
                more: false,
            }
        };
        Ok(ThreadPage {
            transcript: read.transcript.without_removed(),
            ..read
        })
    }

    pub(crate) async fn chain(
        &self,
        tenant: &TenantId,
        key: &str,
    ) -> Result<Chain<'_>, RuntimeError> {
        let store = self.inner.store.as_ref();
        Ok(Chain::of(store, store.find(tenant, key).await?).await?)
    }

    /// The logs of a thread as it was after an event of its own log.
    pub(crate) async fn chain_at(
        &self,
        tenant: &TenantId,
        key: &str,
        at: Seq,
    ) -> Result<Chain<'_>, RuntimeError> {
        let store = self.inner.store.as_ref();
        let row = store.find(tenant, key).await?;
        let tail = row.tail;
        if at > tail {
            return Err(RuntimeError::BeyondEnd { at, tail });
        }
        Ok(Chain::of(store, row).await?.until(at))
    }
}

/// Finds the events of a page, and whether there are more.
async fn find_span(chain: &Chain<'_>, stretch: &PageRequest) -> Cut {
    match stretch {
        PageRequest::Execution(id) => executed(chain, id, Run::was_handed_over).await,
        PageRequest::Run(id) => executed(chain, id, |run| run.goes_on).await,
        PageRequest::Before { before, n } => before_place(chain, *before, *n).await,
        PageRequest::UpTo { place, n } => up_to(chain, *place, *n).await,
        PageRequest::After { after, n } => after_place(chain, *after, *n).await,
    }
}

/// Reads a page with its removed entries, which are marked.
async fn marked_page(
    chain: &Chain<'_>,
    (span, more): (Span, bool),
    filter: Filter,
) -> Result<ThreadPage, RuntimeError> {
    Ok(ThreadPage {
        transcript: chain.read_marked(span, filter).await?,
        first: span.first,
        last: span.last,
        more,
    })
}

/// An execution of a thread, by positions.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) execution_id: ExecutionId,
    pub(crate) trigger: Position,
    pub(crate) trigger_type: ItemType,
    /// Whether it continues the execution before it.
    pub(crate) goes_on: bool,
    pub(crate) created: Position,
    pub(crate) finished: Option<Position>,
    /// Its last event; while it runs, the last of the thread.
    pub(crate) last: Position,
}

impl Run {
    /// Whether it runs at a position after its start.
    fn holds(&self, place: Position) -> bool {
        self.finished.is_none_or(|finished| finished >= place)
    }

    /// Whether the agent before it handed over to it. An execution that acts on answers is no
    /// handoff, as it continues its agent's own calls.
    fn was_handed_over(&self) -> bool {
        self.goes_on && self.trigger_type != ItemType::ActionResult
    }
}

type Cut = Result<(Span, bool), RuntimeError>;

async fn executed(chain: &Chain<'_>, id: &ExecutionId, goes_on: impl Fn(&Run) -> bool) -> Cut {
    let created = chain.position_of(Landmark::Execution(id)).await?;
    let run = match created {
        Some(created) => chain.run_before(created.next()).await?,
        None => None,
    };
    let run = run.ok_or_else(|| RuntimeError::UnknownExecution(id.clone()))?;
    let former = chain.run_before(run.created).await?;
    let first = former.map_or(Position::START, |former| former.last).next();
    let last = end_of(chain, run.last, goes_on).await?;
    Ok((Span { first, last }, is_more_after(chain, last).await?))
}

/// Returns the end of the last execution that continues the one ending at `last`.
pub(crate) async fn end_of(
    chain: &Chain<'_>,
    mut last: Position,
    goes_on: impl Fn(&Run) -> bool,
) -> Result<Position, RuntimeError> {
    while let Some(next) = chain.run_after(last).await? {
        if !goes_on(&next) {
            break;
        }
        last = next.last;
    }
    Ok(last)
}

async fn up_to(chain: &Chain<'_>, place: Position, n: usize) -> Cut {
    let (span, more) = before_place(chain, place.next(), n).await?;
    let last = end_of(chain, span.last, |run| run.goes_on).await?;
    Ok((Span { last, ..span }, more))
}

async fn before_place(chain: &Chain<'_>, before: Position, n: usize) -> Cut {
    let end = before.min(chain.last.next());
    let last = match chain.run_before(end).await? {
        Some(run) if run.holds(end) => run.last,
        _ => end.before(),
    };
    let said = chain.triggers_before(last.next(), n.max(1)).await?;
    let first = match said.get(n.max(1) - 1) {
        Some(said) => at_rest(chain, *said).await?,
        None => Position::START.next(),
    };
    // What ran before the first message was said counts, too.
    let more = !chain.triggers_before(first, 1).await?.is_empty()
        || chain.run_before(first).await?.is_some();
    // What was only kept before the first message goes with it.
    let first = if more { first } else { Position::START.next() };
    Ok((Span { first, last }, more))
}

async fn after_place(chain: &Chain<'_>, after: Position, n: usize) -> Cut {
    let after = after.min(chain.last);
    let first = match chain.run_before(after.next()).await? {
        Some(run) if run.holds(after.next()) => begun(chain, run).await?,
        _ => match chain.run_after(after).await? {
            // The place is at the answers that it goes on with: within what they answer.
            Some(next) if next.goes_on && next.trigger <= after => begun(chain, next).await?,
            _ => after.next(),
        },
    };
    let said = chain
        .triggers_after(after.max(first.before()), n.max(1) + 1)
        .await?;
    let last = match said.get(n.max(1)) {
        Some(next) => rest_before(chain, *next).await?,
        None => chain.last,
    };
    Ok((Span { first, last }, is_more_after(chain, last).await?))
}

async fn is_more_after(chain: &Chain<'_>, last: Position) -> Result<bool, RuntimeError> {
    Ok(!chain.triggers_after(last, 1).await?.is_empty() || chain.run_after(last).await?.is_some())
}

/// The position itself if no execution runs there, else the start of that execution.
async fn at_rest(chain: &Chain<'_>, place: Position) -> Result<Position, RuntimeError> {
    match chain.run_before(place).await? {
        Some(run) if run.holds(place) => begun(chain, run).await,
        _ => Ok(place),
    }
}

/// Returns the start of an execution and of those it continues. It is the trigger's position or, if
/// the trigger was queued, the position after the previous execution.
async fn begun(chain: &Chain<'_>, mut run: Run) -> Result<Position, RuntimeError> {
    loop {
        let former = chain.run_before(run.created).await?;
        match former {
            Some(former) if run.goes_on => run = former,
            Some(former) => return Ok(run.trigger.max(former.last.next())),
            None => return Ok(run.trigger),
        }
    }
}

/// Returns the last position before `place` at which nothing runs. If an execution runs at `place`,
/// it returns the end of that execution and its continuations.
async fn rest_before(chain: &Chain<'_>, place: Position) -> Result<Position, RuntimeError> {
    let last = match chain.run_before(place).await? {
        Some(run) if run.holds(place) => run.last,
        _ => return Ok(place.before()),
    };
    end_of(chain, last, |run| run.goes_on).await
}
