//! The logs of a thread: those of its ancestors, each up to its fork, and its own.

use super::{Position, Run};
use crate::compaction::{ForModel, StoredCompaction};
use crate::error::RuntimeError;
use crate::pages::{PAGE, text_bytes};
use crate::view::ReadSize;
use std::collections::{BTreeMap, BTreeSet};
use store::{Filter, FoundExecution, Landmark, Logged, Side, Store, StoreError, ThreadRow};
use timeline::{
    Compaction, Entry, Event, Execution, ItemId, Removed, Seq, Thread, ThreadId, Transcript,
};

/// The first and the last event of a page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) first: Position,
    pub(crate) last: Position,
}

/// A log, and the part of it that belongs to the thread.
struct Log {
    thread: ThreadId,
    /// Number of events before its first one.
    base: u64,
    /// Its last event that belongs to the thread.
    end: Seq,
}

impl Log {
    fn place(&self, seq: Seq) -> Position {
        Position(self.base.saturating_add(seq.0))
    }

    /// Converts a position to one of this log; for an earlier log's position, it is before the
    /// first event.
    fn seq(&self, place: Position) -> Seq {
        Seq(place.0.saturating_sub(self.base))
    }

    fn last(&self) -> Position {
        self.place(self.end)
    }
}

/// The logs of a thread, its own last.
pub(crate) struct Chain<'a> {
    store: &'a dyn Store,
    thread: Thread,
    logs: Vec<Log>,
    /// The last event.
    pub(crate) last: Position,
    /// Whether it ends before the thread does.
    is_past: bool,
}

impl<'a> Chain<'a> {
    /// Costs one look-up for each ancestor.
    pub(crate) async fn of(store: &'a dyn Store, row: ThreadRow) -> Result<Self, StoreError> {
        let mut ends = vec![(row.thread.id.clone(), row.tail)];
        let mut fork = row.thread.fork.clone();
        while let Some(from) = fork {
            fork = store.row(&from.thread_id).await?.thread.fork;
            ends.push((from.thread_id, from.seq));
        }
        let mut logs = Vec::with_capacity(ends.len());
        let mut base = 0u64;
        for (thread, end) in ends.into_iter().rev() {
            logs.push(Log { thread, base, end });
            base = base.saturating_add(end.0);
        }
        Ok(Self {
            store,
            thread: row.thread,
            logs,
            last: Position(base),
            is_past: false,
        })
    }

    /// The thread as it was after this event of its own log.
    pub(crate) fn until(mut self, seq: Seq) -> Self {
        if let Some(own) = self.logs.last_mut() {
            own.end = own.end.min(seq);
            self.last = own.last();
            self.is_past = true;
        }
        self
    }

    /// The position of an event of the thread's own log.
    pub(crate) fn own(&self, seq: Seq) -> Position {
        self.logs.last().map_or(self.last, |own| own.place(seq))
    }

    /// The event of the thread's own log at this position; none if an ancestor's log has it.
    pub(crate) fn own_seq(&self, place: Position) -> Option<Seq> {
        let own = self.logs.last()?;
        (place > own.place(Seq::ZERO)).then(|| own.seq(place))
    }

    pub(crate) async fn position_of(
        &self,
        landmark: Landmark<'_>,
    ) -> Result<Option<Position>, StoreError> {
        for log in self.logs.iter().rev() {
            let found = self.store.position_of(&log.thread, landmark).await?;
            if let Some(seq) = found.filter(|seq| *seq <= log.end) {
                return Ok(Some(log.place(seq)));
            }
        }
        Ok(None)
    }

    /// The positions of messages posted before a position, newest first.
    pub(crate) async fn triggers_before(
        &self,
        before: Position,
        limit: usize,
    ) -> Result<Vec<Position>, StoreError> {
        let mut said = Vec::new();
        let logs = self.logs.iter().rev();
        for log in logs.filter(|log| log.place(Seq::ZERO) < before) {
            let left = limit - said.len();
            if left == 0 {
                break;
            }
            let end = log.seq(before).min(log.end.next());
            let found = self
                .store
                .nearest_triggers(&log.thread, Side::Before(end), left)
                .await?;
            said.extend(found.into_iter().map(|seq| log.place(seq)));
        }
        Ok(said)
    }

    /// The positions of messages posted after a position, oldest first.
    pub(crate) async fn triggers_after(
        &self,
        after: Position,
        limit: usize,
    ) -> Result<Vec<Position>, StoreError> {
        let mut said = Vec::new();
        for log in self.logs.iter().filter(|log| log.last() > after) {
            let left = limit - said.len();
            if left == 0 {
                break;
            }
            let start = log.seq(after);
            let found = self
                .store
                .nearest_triggers(&log.thread, Side::After(start), left)
                .await?;
            let own = found.into_iter().filter(|seq| *seq <= log.end);
            said.extend(own.map(|seq| log.place(seq)));
        }
        Ok(said)
    }

    /// The last execution that started before a position.
    pub(crate) async fn run_before(&self, before: Position) -> Result<Option<Run>, StoreError> {
        let logs = self.logs.iter().rev();
        for log in logs.filter(|log| log.place(Seq::ZERO) < before) {
            let end = log.seq(before).min(log.end.next());
            if let Some(ran) = self
                .store
                .nearest_run(&log.thread, Side::Before(end))
                .await?
            {
                return Ok(Some(run(log, &ran)));
            }
        }
        Ok(None)
    }

    /// The first execution that started after a position.
    pub(crate) async fn run_after(&self, after: Position) -> Result<Option<Run>, StoreError> {
        for log in self.logs.iter().filter(|log| log.last() > after) {
            let found = self
                .store
                .nearest_run(&log.thread, Side::After(log.seq(after)))
                .await?;
            if let Some(ran) = found.filter(|ran| ran.created <= log.end) {
                return Ok(Some(run(log, &ran)));
            }
        }
        Ok(None)
    }

    /// The removed ones of these entries.
    pub(crate) async fn removed(&self, of: Vec<Removed>) -> Result<BTreeSet<Removed>, StoreError> {
        Ok(self.removals(of).await?.into_keys().collect())
    }

    /// The removed ones of these entries, with the positions of their removals.
    pub(crate) async fn removals(
        &self,
        of: Vec<Removed>,
    ) -> Result<BTreeMap<Removed, Position>, StoreError> {
        let mut removed = BTreeMap::new();
        for log in &self.logs {
            let found = self.store.removals(&log.thread, of.clone()).await?;
            let own = found.into_iter().filter(|(_, seq)| *seq <= log.end);
            removed.extend(own.map(|(what, seq)| (what, log.place(seq))));
        }
        Ok(removed)
    }

    /// The newest compaction before a position, withdrawn or not.
    pub(crate) async fn compaction_before(
        &self,
        before: Position,
    ) -> Result<Option<StoredCompaction>, StoreError> {
        for log in self.logs.iter().rev() {
            let mut end = log.seq(before).min(log.end.next());
            loop {
                let found = self.store.compactions(&log.thread, end, 1).await?;
                let Some(seq) = found.first().copied() else {
                    break;
                };
                if let Some(found) = self.compaction_at(log, seq).await? {
                    return Ok(Some(found));
                }
                end = seq;
            }
        }
        Ok(None)
    }

    /// The newest compaction that fits.
    pub(crate) async fn newest_compaction(
        &self,
        mut fits: impl FnMut(&StoredCompaction) -> bool,
    ) -> Result<Option<StoredCompaction>, StoreError> {
        let mut before = Position::END;
        while let Some(found) = self.compaction_before(before).await? {
            if fits(&found) {
                return Ok(Some(found));
            }
            before = found.position;
        }
        Ok(None)
    }

    /// The compaction that models read: the newest that is not withdrawn.
    pub(crate) async fn current_compaction(&self) -> Result<Option<StoredCompaction>, StoreError> {
        self.newest_compaction(|found| !found.is_withdrawn).await
    }

    async fn compaction_at(
        &self,
        log: &Log,
        seq: Seq,
    ) -> Result<Option<StoredCompaction>, StoreError> {
        let before = Seq(seq.0.saturating_sub(1));
        let page = self.store.read(&log.thread, before, 1, Filter::Facts);
        let Some(logged) = page.await?.into_iter().next() else {
            return Ok(None);
        };
        let Event::ChunkEmitted {
            data: Some(data), ..
        } = &logged.record.event
        else {
            return Ok(None);
        };
        let Ok(compaction) = data.read::<Compaction>() else {
            return Ok(None);
        };
        let what = Removed::Compaction(compaction.id.clone());
        Ok(Some(StoredCompaction {
            is_withdrawn: !self.removed(vec![what]).await?.is_empty(),
            at: logged.record.at,
            position: log.place(seq),
            bytes: logged.text.len(),
            compaction,
        }))
    }

    /// Reads the thread as a model is to read it: from the end of the compaction that counts.
    pub(crate) async fn read_compacted(
        &self,
        compaction: StoredCompaction,
    ) -> Result<ForModel, RuntimeError> {
        let span = Span {
            first: compaction.through().next(),
            last: self.last,
        };
        Ok(ForModel {
            compaction: Some(compaction),
            transcript: self.fold(span, Filter::Facts).await?,
        })
    }

    /// Reads at most `limit` facts after a position, from the log that has the next event.
    pub(crate) async fn records(
        &self,
        after: Position,
        limit: usize,
    ) -> Result<Vec<Logged>, StoreError> {
        self.page(after, limit, Filter::Facts).await
    }

    /// One page of records of any kind after a position.
    pub(crate) async fn page(
        &self,
        after: Position,
        limit: usize,
        filter: Filter,
    ) -> Result<Vec<Logged>, StoreError> {
        let Some(log) = self.log_after(after) else {
            return Ok(Vec::new());
        };
        let seq = log.seq(after);
        let page = self.store.read(&log.thread, seq, limit, filter);
        let mut page = page.await?;
        page.retain(|logged| logged.record.seq <= log.end);
        Ok(page)
    }

    /// The position of a record that was read after a position.
    pub(crate) fn position_after(&self, after: Position, read: &Logged) -> Position {
        let log = self.log_after(after);
        log.map_or(self.last, |log| log.place(read.record.seq))
    }

    fn log_after(&self, place: Position) -> Option<&Log> {
        self.logs.iter().find(|log| log.last() > place)
    }

    /// Folds a page, without removed entries.
    pub(crate) async fn read(
        &self,
        span: Span,
        filter: Filter,
    ) -> Result<Transcript, RuntimeError> {
        Ok(self.read_marked(span, filter).await?.without_removed())
    }

    /// Folds a span of events. Removed items stay and are marked.
    pub(crate) async fn read_marked(
        &self,
        span: Span,
        filter: Filter,
    ) -> Result<Transcript, RuntimeError> {
        let mut transcript = self.fold(span, filter).await?;
        let removed = self.removed(removed_entries(&transcript)).await?;
        transcript.note_removed(removed);
        Ok(transcript)
    }

    /// Folds a span of events. Items that the span itself removes stay and are marked.
    async fn fold(&self, span: Span, filter: Filter) -> Result<Transcript, RuntimeError> {
        let (mut transcript, mut size) = (Transcript::default(), ReadSize::default());
        let own = self.logs.len().saturating_sub(1);
        for (n, log) in self.logs.iter().enumerate() {
            if log.last() < span.first || log.place(Seq::ZERO) >= span.last {
                continue;
            }
            let reader = Reader {
                store: self.store,
                log,
                filter,
            };
            let (first, last) = (log.seq(span.first), log.seq(span.last).min(log.end));
            transcript = transcript.continued();
            let into = (&mut transcript, &mut size);
            reader.read(first, last, into).await?;
            if n == own && self.is_past {
                self.leave_out_begun_by_end(span.last, &mut transcript)
                    .await?;
            } else if n == own {
                self.leave_out_begun(log, &mut transcript).await?;
            } else {
                // What waited in an ancestor waits there.
                transcript = transcript.continued();
                transcript.seq = last;
            }
        }
        transcript.thread = Some(self.thread.clone());
        Ok(transcript)
    }

    /// Drops items that were queued then and answered later; they appear with their answers.
    async fn leave_out_begun(
        &self,
        log: &Log,
        transcript: &mut Transcript,
    ) -> Result<(), StoreError> {
        if transcript.waiting().next().is_none() {
            return Ok(());
        }
        let head = self.store.head(&log.thread).await?;
        let waits: BTreeSet<&ItemId> = head.state.waiting().map(|it| &it.item.id).collect();
        transcript.retain_waiting(|item| waits.contains(&item.id));
        Ok(())
    }

    /// Drops items that were queued at this position and answered before the end of a past thread.
    async fn leave_out_begun_by_end(
        &self,
        place: Position,
        transcript: &mut Transcript,
    ) -> Result<(), StoreError> {
        let waits: Vec<ItemId> = transcript.waiting().map(|it| it.id.clone()).collect();
        let mut begun = BTreeSet::new();
        for id in waits {
            // A queued item is found at the start of its execution.
            let found = self.position_of(Landmark::Item(&id)).await?;
            if found.is_some_and(|found| found > place) {
                begun.insert(id);
            }
        }
        transcript.retain_waiting(|item| !begun.contains(&item.id));
        Ok(())
    }
}

/// The entries of a transcript that can be removed.
pub(crate) fn removed_entries(transcript: &Transcript) -> Vec<Removed> {
    let mut told = Vec::new();
    for entry in &transcript.entries {
        match entry {
            Entry::Item(item) => told.push(Removed::Item(item.id.clone())),
            Entry::Reaction(reaction) => {
                let steps = reaction.steps.iter();
                told.extend(steps.map(|step| Removed::Step(step.step.id.clone())));
            }
        }
    }
    told
}

fn run(log: &Log, ran: &FoundExecution) -> Run {
    let finished = ran.finished.filter(|seq| *seq <= log.end);
    let finished = finished.map(|seq| log.place(seq));
    Run {
        execution_id: ran.execution_id.clone(),
        trigger: log.place(ran.trigger),
        trigger_type: ran.trigger_type,
        goes_on: ran.goes_on,
        created: log.place(ran.created),
        finished,
        last: finished.unwrap_or_else(|| log.last()),
    }
}

/// Reads a part of one log.
struct Reader<'a> {
    store: &'a dyn Store,
    log: &'a Log,
    filter: Filter,
}

impl Reader<'_> {
    async fn read(
        &self,
        first: Seq,
        last: Seq,
        (transcript, size): (&mut Transcript, &mut ReadSize),
    ) -> Result<(), RuntimeError> {
        let mut seen = Seq(first.0.saturating_sub(1));
        let mut items = BTreeSet::new();
        while seen < last {
            let left = usize::try_from(last.0 - seen.0).unwrap_or(PAGE);
            let page = self.page(seen, left.min(PAGE)).await?;
            size.add(text_bytes(&page)).await?;
            let Some(end) = page.last() else { break };
            seen = end.record.seq;
            for logged in page.iter().take_while(|logged| logged.record.seq <= last) {
                if let Event::ItemCreated { item } = &logged.record.event {
                    items.insert(item.id.clone());
                } else if let Event::ExecutionCreated { execution } = &logged.record.event
                    && !items.contains(&execution.trigger_item_id)
                {
                    let before = self.trigger(execution, logged.record.seq).await?;
                    for logged in before {
                        transcript.apply(&logged.record);
                    }
                }
                transcript.apply(&logged.record);
            }
        }
        transcript.seq = last;
        Ok(())
    }

    async fn page(&self, after: Seq, limit: usize) -> Result<Vec<Logged>, StoreError> {
        let thread = &self.log.thread;
        self.store.read(thread, after, limit, self.filter).await
    }

    /// The trigger of an execution, if it was queued before the page.
    async fn trigger(
        &self,
        execution: &Execution,
        created: Seq,
    ) -> Result<Vec<Logged>, StoreError> {
        let thread = &self.log.thread;
        let found = self
            .store
            .nearest_run(thread, Side::Before(created.next()))
            .await?;
        let found = found.filter(|ran| ran.execution_id == execution.id);
        let Some(ran) = found else {
            return Ok(Vec::new());
        };
        self.page(Seq(ran.trigger.0.saturating_sub(1)), 1).await
    }
}
