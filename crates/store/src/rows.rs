//! The row changes of an append in the tables that are derived from the log (EK §9).
//!
//! [`row_changes`] is pure. A store executes the changes, in order, in the transaction of the append.
//! All rows belong to the append's thread; ids are unique within it.

mod tags;
mod trace;

pub use tags::ResponseTag;
pub use trace::{RunRow, SpanKind, SpanRow, TraceChange, TraceEventRow, TraceStatus};

use crate::waits::may_ask;
use jiff::Timestamp;
use std::borrow::Cow;
use std::collections::BTreeMap;
use tags::PartTag;
use timeline::{
    Context, ContextStatus, Event, Execution, ExecutionId, ExecutionStatus, Interruption, Item,
    ItemStatus, Payload, Removed, Seq, Step, StepOutcome, StepStatus, Thread, ThreadStatus,
    ThreadUpdate, chunk_type,
};

/// A change of one row, or of the rows of one step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowChange<'e> {
    /// The data of a created thread, for its existing row.
    Thread(&'e Thread, ThreadStatus),
    /// The thread's status.
    ThreadStatus(ThreadStatus),
    /// The thread's title.
    ThreadTitle(Option<String>),
    /// The thread's metadata.
    ThreadMetadata(Option<Payload>),
    /// A new context.
    Context(ContextRow<'e>),
    /// The status of an existing context.
    ContextStatus(&'e str, ContextStatus, Timestamp),
    /// A new item.
    Item(ItemRow<'e>),
    /// The status of an existing item.
    ItemStatus(&'e str, ItemStatus, Timestamp),
    /// The start of an existing item's execution; the item waits no longer.
    ItemStarted(&'e str, Seq),
    /// A new execution.
    Execution(ExecutionRow<'e>),
    /// The status of an existing execution, and the reason for its end.
    ExecutionStatus(
        &'e str,
        ExecutionStatus,
        Option<&'e Interruption>,
        Timestamp,
    ),
    /// The last event of an existing execution.
    ExecutionEnd(&'e str, Seq),
    /// A new step.
    Step(StepRow<'e>),
    /// The status of an existing step, and its outcome.
    StepStatus(&'e str, StepStatus, &'e StepOutcome, Timestamp),
    /// A new part.
    Part(PartRow<'e>),
    /// New content of an existing part: [`PartRow::key`] and [`PartRow::created_at`] don't change.
    PartContent(PartRow<'e>),
    /// All parts of a step are deleted, because the attempt that wrote them died. The log still has
    /// them.
    PartsDeleted(&'e str),
    /// Readers omit an item or a step from here on. Its rows don't change; its texts are not searched.
    Removed(Removed),
    /// The event may open a request of AITP ([`crate::waits::may_ask`]).
    MayAsk(Seq),
    /// A change of the traces. Rows that their constraints refuse are left out.
    Trace(TraceChange<'e>),
}

/// A context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContextRow<'e> {
    /// As it was created.
    pub context: &'e Context,
    /// Its status after the append.
    pub status: ContextStatus,
    /// When that was set.
    pub updated_at: Option<Timestamp>,
}

/// An item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItemRow<'e> {
    /// The event that created it.
    pub seq: Seq,
    /// As it was created.
    pub item: &'e Item,
    /// Its status after the append.
    pub status: ItemStatus,
    /// When that was set.
    pub updated_at: Option<Timestamp>,
    /// Whether it waits for an execution.
    pub waiting: bool,
    /// The position at which it is read: its own event, or the start of its execution. `None` while it
    /// waits, and for items that an execution writes.
    pub position: Option<Seq>,
}

/// An execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecutionRow<'e> {
    /// The event that created it.
    pub seq: Seq,
    /// As it was created.
    pub execution: &'e Execution,
    /// Its status after the append.
    pub status: ExecutionStatus,
    /// Why it ended, if it was interrupted.
    pub interruption: Option<&'e Interruption>,
    /// When the status was set.
    pub updated_at: Option<Timestamp>,
    /// Its last event.
    pub end_seq: Option<Seq>,
}

/// A step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepRow<'e> {
    /// The event that created it.
    pub seq: Seq,
    /// As it was created.
    pub step: &'e Step,
    /// Its status after the append.
    pub status: StepStatus,
    /// Its outcome, if it is over.
    pub outcome: Option<&'e StepOutcome>,
    /// When the status was set.
    pub updated_at: Option<Timestamp>,
}

/// A part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartRow<'e> {
    /// Its step.
    pub step_id: &'e str,
    /// Its number within the step.
    pub idx: u32,
    /// The event that wrote it last.
    pub seq: Seq,
    /// Its key.
    pub key: &'e str,
    /// Its type, if it has one.
    pub part_type: Option<Cow<'e, str>>,
    /// The part.
    pub part: &'e Payload,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was written last.
    pub updated_at: Timestamp,
}

/// The rows that records change: their numbers, instants and events, in order.
///
/// A row that the records create and change again is one change, with its last content. New contexts and
/// items come first, because an execution names its reaction item before the log creates it. So foreign
/// keys hold at every moment.
pub fn row_changes<'e>(
    records: impl Iterator<Item = (Seq, Timestamp, &'e Event)> + Clone,
) -> Vec<RowChange<'e>> {
    let mut rows = Rows::default();
    for (seq, _, event) in records.clone() {
        rows.create(seq, event);
    }
    for (seq, at, event) in records {
        rows.change(seq, at, event);
    }
    rows.changes
}

/// The number and the instant of a record.
#[derive(Clone, Copy)]
struct Stamp {
    seq: Seq,
    at: Timestamp,
}

/// The table of an appended row.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Table {
    Thread,
    Contexts,
    Items,
    Executions,
    Steps,
    Parts,
    Runs,
    Spans(SpanKind),
}

#[derive(Default)]
struct Rows<'e> {
    changes: Vec<RowChange<'e>>,
    /// Indices of the rows that later records change, by table and id.
    new: BTreeMap<(Table, &'e str), usize>,
}

impl<'e> Rows<'e> {
    fn insert(&mut self, table: Table, id: &'e str, change: RowChange<'e>) {
        self.new.insert((table, id), self.changes.len());
        self.changes.push(change);
    }

    /// The row with this id, if this append has created it.
    fn new_row(&mut self, table: Table, id: &'e str) -> Option<&mut RowChange<'e>> {
        let place = *self.new.get(&(table, id))?;
        self.changes.get_mut(place)
    }

    /// The rows that others refer to.
    fn create(&mut self, seq: Seq, event: &'e Event) {
        if let Event::ContextCreated { context } = event {
            let row = ContextRow {
                context,
                status: context.status,
                updated_at: context.updated_at,
            };
            let id = context.id.as_str();
            self.insert(Table::Contexts, id, RowChange::Context(row));
        } else if let Event::ItemCreated { item } = event {
            let is_input = item.execution_id.is_none();
            let row = ItemRow {
                seq,
                item,
                status: item.status,
                updated_at: None,
                waiting: is_input && item.run.is_some(),
                position: (is_input && item.run.is_none()).then_some(seq),
            };
            self.insert(Table::Items, item.id.as_str(), RowChange::Item(row));
        }
    }

    /// All other changes.
    fn change(&mut self, seq: Seq, at: Timestamp, event: &'e Event) {
        let stamp = Stamp { seq, at };
        if may_ask(event) {
            self.changes.push(RowChange::MayAsk(seq));
        }
        match event {
            Event::ThreadCreated { thread } => {
                let row = RowChange::Thread(thread, thread.status);
                self.insert(Table::Thread, "", row);
            }
            Event::ThreadStatusChanged { to, .. } => self.thread_status(*to),
            Event::ContextStatusChanged { context_id, to, .. } => {
                self.context_status(context_id.as_str(), *to, at);
            }
            Event::ItemStatusChanged { item_id, to, .. } => {
                self.item_status(item_id.as_str(), *to, at);
            }
            Event::ExecutionCreated { execution } => self.execution(stamp, execution),
            Event::ExecutionStatusChanged {
                execution_id,
                to,
                interruption,
                ..
            } => self.execution_status(stamp, execution_id.as_str(), *to, interruption.as_ref()),
            Event::StepCreated { step } => self.step(stamp, step),
            Event::StepStatusChanged {
                step_id,
                to,
                outcome,
                ..
            } => self.step_status(stamp, step_id.as_str(), *to, outcome),
            Event::PartCreated { .. } | Event::PartUpdated { .. } => self.part(stamp, event),
            Event::ChunkEmitted { .. } => self.chunk(stamp, event),
            Event::ThreadFinished { execution_id, .. } => {
                self.finished(stamp, execution_id.as_str());
            }
            Event::ContextCreated { .. }
            | Event::ContextResolved { .. }
            | Event::ItemCreated { .. }
            | Event::ThreadResolved { .. } => {}
        }
    }

    fn thread_status(&mut self, to: ThreadStatus) {
        if let Some(RowChange::Thread(_, status) | RowChange::ThreadStatus(status)) =
            self.new_row(Table::Thread, "")
        {
            *status = to;
        } else {
            self.insert(Table::Thread, "", RowChange::ThreadStatus(to));
        }
    }

    // What can't be read changes nothing, here as in the state.
    fn thread_updated(&mut self, data: Option<&Payload>) {
        let update = data.and_then(|data| data.read().ok());
        let ThreadUpdate { title, metadata } = update.unwrap_or_default();
        self.changes.extend(title.map(RowChange::ThreadTitle));
        self.changes.extend(metadata.map(RowChange::ThreadMetadata));
    }

    fn context_status(&mut self, id: &'e str, to: ContextStatus, at: Timestamp) {
        if let Some(RowChange::Context(row)) = self.new_row(Table::Contexts, id) {
            (row.status, row.updated_at) = (to, Some(at));
        } else {
            self.changes.push(RowChange::ContextStatus(id, to, at));
        }
    }

    fn item_status(&mut self, id: &'e str, to: ItemStatus, at: Timestamp) {
        if let Some(RowChange::Item(row)) = self.new_row(Table::Items, id) {
            (row.status, row.updated_at) = (to, Some(at));
        } else {
            self.changes.push(RowChange::ItemStatus(id, to, at));
        }
    }

    fn execution(&mut self, stamp: Stamp, execution: &'e Execution) {
        let trigger = execution.trigger_item_id.as_str();
        if let Some(RowChange::Item(row)) = self.new_row(Table::Items, trigger) {
            if row.waiting {
                (row.waiting, row.position) = (false, Some(stamp.seq));
            }
        } else {
            self.changes
                .push(RowChange::ItemStarted(trigger, stamp.seq));
        }
        let row = ExecutionRow {
            seq: stamp.seq,
            execution,
            status: execution.status,
            interruption: None,
            updated_at: None,
            end_seq: None,
        };
        let id = execution.id.as_str();
        self.insert(Table::Executions, id, RowChange::Execution(row));
        self.trace_execution(stamp, execution);
    }

    fn execution_status(
        &mut self,
        stamp: Stamp,
        id: &'e str,
        to: ExecutionStatus,
        interruption: Option<&'e Interruption>,
    ) {
        let at = stamp.at;
        if let Some(RowChange::Execution(row)) = self.new_row(Table::Executions, id) {
            (row.status, row.interruption, row.updated_at) = (to, interruption, Some(at));
        } else {
            let change = RowChange::ExecutionStatus(id, to, interruption, at);
            self.changes.push(change);
        }
        self.trace_execution_status(stamp, id, to, interruption);
    }

    fn finished(&mut self, stamp: Stamp, id: &'e str) {
        if let Some(RowChange::Execution(row)) = self.new_row(Table::Executions, id) {
            row.end_seq = Some(stamp.seq);
        } else {
            self.changes.push(RowChange::ExecutionEnd(id, stamp.seq));
        }
        self.trace_event(stamp, "thread.finished".into(), (Some(id), id.into()));
    }

    fn step(&mut self, stamp: Stamp, step: &'e Step) {
        let row = StepRow {
            seq: stamp.seq,
            step,
            status: step.status,
            outcome: None,
            updated_at: None,
        };
        self.insert(Table::Steps, step.id.as_str(), RowChange::Step(row));
        self.trace_step(stamp, step);
    }

    fn step_status(&mut self, stamp: Stamp, id: &'e str, to: StepStatus, outcome: &'e StepOutcome) {
        let at = stamp.at;
        if let Some(RowChange::Step(row)) = self.new_row(Table::Steps, id) {
            (row.status, row.outcome, row.updated_at) = (to, Some(outcome), Some(at));
        } else {
            let change = RowChange::StepStatus(id, to, outcome, at);
            self.changes.push(change);
        }
        self.trace_step_status(stamp, id, to, outcome);
    }

    fn part(&mut self, Stamp { seq, at }: Stamp, event: &'e Event) {
        let (Event::PartCreated {
            part_key: key,
            step_id,
            idx,
            part,
        }
        | Event::PartUpdated {
            part_key: key,
            step_id,
            idx,
            part,
        }) = event
        else {
            return;
        };
        let tag = PartTag::of(part);
        let new = PartRow {
            step_id: step_id.as_str(),
            idx: *idx,
            seq,
            key,
            part_type: tag.name.clone(),
            part,
            created_at: at,
            updated_at: at,
        };
        if let Event::PartCreated { .. } = event {
            self.insert(Table::Parts, key, RowChange::Part(new));
        } else if let Some(RowChange::Part(row)) = self.new_row(Table::Parts, key) {
            (row.seq, row.part_type, row.part, row.updated_at) = (seq, new.part_type, part, at);
        } else {
            self.changes.push(RowChange::PartContent(new));
        }
        self.trace_part(at, step_id.as_str(), &tag);
    }

    fn chunk(&mut self, stamp: Stamp, event: &'e Event) {
        let Event::ChunkEmitted {
            chunk_type,
            execution_id,
            step_id,
            data,
            ..
        } = event
        else {
            return;
        };
        let data = data.as_ref();
        if let Some(step) = step_id {
            let run = execution_id.as_ref().map(ExecutionId::as_str);
            self.marker(stamp, chunk_type, (run, step.as_str()), data);
        } else if chunk_type == chunk_type::THREAD_UPDATED {
            self.thread_updated(data);
        } else if chunk_type == chunk_type::ITEM_REMOVED {
            let what = data.and_then(|data| data.read().ok());
            self.changes.extend(what.map(RowChange::Removed));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::script::{complete_step, end, enqueue, item, respond, start};
    use timeline::{Command, NewThread, State, Trigger};

    fn events(commands: impl IntoIterator<Item = Command>) -> Vec<Event> {
        let mut state = State::default();
        let create = Command::Create {
            thread: NewThread::new("t", Some("k")),
            context_id: "c".into(),
        };
        let mut events = Vec::new();
        for command in std::iter::once(create).chain(commands) {
            for event in state.decide(command, Timestamp::UNIX_EPOCH).unwrap() {
                state.apply(&event);
                events.push(event);
            }
        }
        events
    }

    fn changes(events: &[Event], first: u64) -> Vec<RowChange<'_>> {
        let seqs = (first..).map(Seq).zip(events);
        row_changes(seqs.map(|(seq, event)| (seq, Timestamp::UNIX_EPOCH, event)))
    }

    fn is_update(change: &RowChange<'_>) -> bool {
        matches!(
            change,
            RowChange::ThreadStatus(_)
                | RowChange::ContextStatus(..)
                | RowChange::ItemStatus(..)
                | RowChange::ItemStarted(..)
                | RowChange::ExecutionStatus(..)
                | RowChange::ExecutionEnd(..)
                | RowChange::StepStatus(..)
                | RowChange::PartContent(_)
                | RowChange::Trace(TraceChange::RunEnd(..) | TraceChange::RunStep(_))
        )
    }

    #[test]
    fn rows_that_one_append_creates_and_changes_are_one_change() {
        let life = [
            enqueue("ask"),
            start("one", Trigger::Waiting),
            respond(),
            complete_step(None),
            end(),
        ];
        let events = events(life);
        let changes = changes(&events, 1);
        assert!(!changes.iter().any(is_update), "{changes:?}");
        let executions = changes.iter().filter_map(|change| {
            if let RowChange::Execution(row) = change {
                return Some((row.status, row.end_seq));
            }
            None
        });
        let end = Seq(events.len() as u64);
        let expected = (ExecutionStatus::Completed, Some(end));
        assert_eq!(executions.collect::<Vec<_>>(), [expected]);
        let items = changes.iter().filter_map(|change| {
            if let RowChange::Item(row) = change {
                return Some((row.item.id.as_str(), row.waiting, row.position.is_some()));
            }
            None
        });
        let expected = [("ask", false, true), ("one-reaction", false, false)];
        assert_eq!(items.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn rows_of_earlier_appends_are_updated() {
        let events = events([
            start("one", Trigger::New(item("ask"))),
            respond(),
            complete_step(None),
            end(),
        ]);
        let changes = changes(&events[events.len() - 1..], events.len() as u64);
        let expected = RowChange::ExecutionEnd("one-execution", Seq(events.len() as u64));
        assert!(changes.contains(&expected), "{changes:?}");
    }

    #[test]
    fn contexts_and_items_are_first() {
        let events = events([start("one", Trigger::New(item("ask")))]);
        let changes = changes(&events, 1);
        let is_first =
            |change: &RowChange<'_>| matches!(change, RowChange::Context(_) | RowChange::Item(_));
        assert_eq!(changes.iter().take_while(|it| is_first(it)).count(), 3);
        assert!(!changes[3..].iter().any(is_first));
    }
}
