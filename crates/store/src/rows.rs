//! The row changes of an append in the tables that are derived from the log (EK §9).
//!
//! [`row_changes`] is pure. A store executes the changes, in order, in the transaction of the append.
//! All rows belong to the append's thread; ids are unique within it.

mod tags;

pub use tags::ResponseTag;

use crate::waits::may_ask;
use jiff::Timestamp;
use std::borrow::Cow;
use std::collections::BTreeMap;
use tags::PartTag;
use timeline::{
    Context, ContextStatus, Event, Execution, ExecutionStatus, Interruption, Item, ItemStatus,
    Payload, Removed, Seq, Step, StepOutcome, StepStatus, Thread, ThreadStatus, ThreadUpdate,
    chunk_type,
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
    /// The status of the existing context, and when it was set.
    ContextStatus(ContextStatus, Timestamp),
    /// A new item.
    Item(ItemRow<'e>),
    /// A change of the existing item with this id.
    ItemChange(&'e str, ItemChange),
    /// A new execution.
    Execution(ExecutionRow<'e>),
    /// A change of the existing execution with this id.
    ExecutionChange(&'e str, ExecutionChange<'e>),
    /// A new step.
    Step(StepRow<'e>),
    /// A change of the existing step with this id.
    StepChange(&'e str, StepChange<'e>),
    /// A new part.
    Part(PartRow<'e>),
    /// New content of an existing part: [`PartRow::created_at`] doesn't change.
    PartContent(PartRow<'e>),
    /// The start of the effect tool with this call in a step.
    ToolStarted {
        /// The step.
        step_id: &'e str,
        /// The call.
        call_id: String,
        /// When it started.
        at: Timestamp,
    },
    /// All parts of a step are deleted, because the attempt that wrote them died. The log still has
    /// them.
    PartsDeleted(&'e str),
    /// Readers omit an item, a step or a compaction from this event on. Its rows don't change; its texts
    /// are not searched.
    Removed(Removed, Seq),
    /// A compaction of the thread, by its event.
    Compacted(Seq),
    /// The event may open a request of AITP ([`crate::waits::may_ask`]).
    MayAsk(Seq),
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
    /// The first execution that it triggered, if the item did not wait for it.
    pub answered: Option<Seq>,
}

/// Changes of an existing item.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ItemChange {
    /// Its status, and when it was set.
    pub status: Option<(ItemStatus, Timestamp)>,
    /// The first execution that it triggers. If it waited, it waits no longer.
    pub started: Option<Seq>,
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

/// Changes of an existing execution.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExecutionChange<'e> {
    /// Its status, the reason for its end, and when it was set.
    pub status: Option<(ExecutionStatus, Option<&'e Interruption>, Timestamp)>,
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
    /// Its changes since then.
    pub change: StepChange<'e>,
}

/// Changes of a step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StepChange<'e> {
    /// Its status, and its outcome.
    pub end: Option<StepEnd<'e>>,
    /// The last response of the model.
    pub answer: Option<StepAnswer<'e>>,
    /// The tokens that all responses of this append read and wrote together.
    pub tokens: (u64, u64),
}

/// A step's status and outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepEnd<'e> {
    /// The event that set them.
    pub seq: Seq,
    /// When they were set.
    pub at: Timestamp,
    /// The status.
    pub status: StepStatus,
    /// The outcome.
    pub outcome: &'e StepOutcome,
}

/// The model's response to a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepAnswer<'e> {
    /// Its event.
    pub seq: Seq,
    /// When it was written.
    pub at: Timestamp,
    /// The model's data about it.
    pub data: Option<&'e Payload>,
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
    /// Its type, if it has one.
    pub part_type: Option<Cow<'e, str>>,
    /// The call, if it is the part of a tool.
    pub call_id: Option<Cow<'e, str>>,
    /// The part.
    pub part: &'e Payload,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was written last.
    pub updated_at: Timestamp,
}

/// The rows that records change: their numbers, instants and events, in order.
///
/// All changes of a row are one change, with its last content. New contexts and items come first, because
/// an execution names its reaction item before the log creates it. So foreign keys hold at every moment.
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

/// The table of a row.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Table {
    Thread,
    Contexts,
    Items,
    Executions,
    Steps,
    Parts,
}

// Keeps sums of what a provider claims within a column.
const MAX_TOKENS: u64 = 1 << 40;

#[derive(Default)]
struct Rows<'e> {
    changes: Vec<RowChange<'e>>,
    /// Indices of the changes that later records add to, by table and id.
    open: BTreeMap<(Table, &'e str), usize>,
}

impl<'e> Rows<'e> {
    fn insert(&mut self, table: Table, id: &'e str, change: RowChange<'e>) {
        self.open.insert((table, id), self.changes.len());
        self.changes.push(change);
    }

    /// The change of the row with this id, if this append has one; otherwise that which `none` makes.
    fn row(
        &mut self,
        table: Table,
        id: &'e str,
        none: impl FnOnce() -> RowChange<'e>,
    ) -> Option<&mut RowChange<'e>> {
        if !self.open.contains_key(&(table, id)) {
            self.insert(table, id, none());
        }
        let place = *self.open.get(&(table, id))?;
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
            self.insert(Table::Contexts, "", RowChange::Context(row));
        } else if let Event::ItemCreated { item } = event {
            let is_input = item.execution_id.is_none();
            let row = ItemRow {
                seq,
                item,
                status: item.status,
                updated_at: None,
                waiting: is_input && item.run.is_some(),
                position: (is_input && item.run.is_none()).then_some(seq),
                answered: None,
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
            Event::ContextStatusChanged { to, .. } => self.context_status(*to, at),
            Event::ItemStatusChanged { item_id, to, .. } => {
                self.item(item_id.as_str(), Some((*to, at)), None);
            }
            Event::ExecutionCreated { execution } => self.execution(seq, execution),
            Event::ExecutionStatusChanged {
                execution_id,
                to,
                interruption,
                ..
            } => {
                let status = (*to, interruption.as_ref(), at);
                self.execution_change(execution_id.as_str(), Some(status), None);
            }
            Event::ThreadFinished { execution_id, .. } => {
                self.execution_change(execution_id.as_str(), None, Some(seq));
            }
            Event::StepCreated { step } => {
                let change = StepChange::default();
                let row = RowChange::Step(StepRow { seq, step, change });
                self.insert(Table::Steps, step.id.as_str(), row);
            }
            Event::StepStatusChanged {
                step_id,
                to,
                outcome,
                ..
            } => {
                let end = StepEnd {
                    seq,
                    at,
                    status: *to,
                    outcome,
                };
                if let Some(step) = self.step(step_id.as_str()) {
                    step.end = Some(end);
                }
            }
            Event::PartCreated { .. } | Event::PartUpdated { .. } => self.part(stamp, event),
            Event::ChunkEmitted { .. } => self.chunk(stamp, event),
            Event::ContextCreated { .. }
            | Event::ContextResolved { .. }
            | Event::ItemCreated { .. }
            | Event::ThreadResolved { .. } => {}
        }
    }

    fn thread_status(&mut self, to: ThreadStatus) {
        let none = || RowChange::ThreadStatus(to);
        if let Some(RowChange::Thread(_, status) | RowChange::ThreadStatus(status)) =
            self.row(Table::Thread, "", none)
        {
            *status = to;
        }
    }

    // What can't be read changes nothing, here as in the state.
    fn thread_updated(&mut self, data: Option<&Payload>) {
        let update = data.and_then(|data| data.read().ok());
        let ThreadUpdate { title, metadata } = update.unwrap_or_default();
        self.changes.extend(title.map(RowChange::ThreadTitle));
        self.changes.extend(metadata.map(RowChange::ThreadMetadata));
    }

    fn context_status(&mut self, to: ContextStatus, at: Timestamp) {
        let none = || RowChange::ContextStatus(to, at);
        match self.row(Table::Contexts, "", none) {
            Some(RowChange::Context(row)) => (row.status, row.updated_at) = (to, Some(at)),
            Some(RowChange::ContextStatus(status, set)) => (*status, *set) = (to, at),
            _ => {}
        }
    }

    fn item(&mut self, id: &'e str, status: Option<(ItemStatus, Timestamp)>, started: Option<Seq>) {
        let none = || RowChange::ItemChange(id, ItemChange::default());
        match self.row(Table::Items, id, none) {
            Some(RowChange::Item(row)) => {
                if let Some((status, at)) = status {
                    (row.status, row.updated_at) = (status, Some(at));
                }
                if row.waiting && started.is_some() {
                    (row.waiting, row.position) = (false, started);
                } else if row.position == Some(row.seq) {
                    row.answered = row.answered.or(started);
                }
            }
            Some(RowChange::ItemChange(_, change)) => {
                change.status = status.or(change.status);
                change.started = change.started.or(started);
            }
            _ => {}
        }
    }

    fn execution(&mut self, seq: Seq, execution: &'e Execution) {
        self.item(execution.trigger_item_id.as_str(), None, Some(seq));
        let row = ExecutionRow {
            seq,
            execution,
            status: execution.status,
            interruption: None,
            updated_at: None,
            end_seq: None,
        };
        let id = execution.id.as_str();
        self.insert(Table::Executions, id, RowChange::Execution(row));
    }

    fn execution_change(
        &mut self,
        id: &'e str,
        status: Option<(ExecutionStatus, Option<&'e Interruption>, Timestamp)>,
        end_seq: Option<Seq>,
    ) {
        let none = || RowChange::ExecutionChange(id, ExecutionChange::default());
        match self.row(Table::Executions, id, none) {
            Some(RowChange::Execution(row)) => {
                if let Some((status, interruption, at)) = status {
                    (row.status, row.interruption, row.updated_at) =
                        (status, interruption, Some(at));
                }
                row.end_seq = end_seq.or(row.end_seq);
            }
            Some(RowChange::ExecutionChange(_, change)) => {
                change.status = status.or(change.status);
                change.end_seq = end_seq.or(change.end_seq);
            }
            _ => {}
        }
    }

    /// The changes of a step.
    fn step(&mut self, id: &'e str) -> Option<&mut StepChange<'e>> {
        let none = || RowChange::StepChange(id, StepChange::default());
        let row = self.row(Table::Steps, id, none)?;
        if let RowChange::Step(StepRow { change, .. }) | RowChange::StepChange(_, change) = row {
            return Some(change);
        }
        None
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
        let is_tool = tag.name.as_ref().is_some_and(|it| it.starts_with("tool-"));
        let new = PartRow {
            step_id: step_id.as_str(),
            idx: *idx,
            seq,
            part_type: tag.name,
            call_id: tag.tool_call_id.filter(|_| is_tool),
            part,
            created_at: at,
            updated_at: at,
        };
        if let Event::PartCreated { .. } = event {
            return self.insert(Table::Parts, key, RowChange::Part(new));
        }
        let none = || RowChange::PartContent(new.clone());
        if let Some(RowChange::Part(row) | RowChange::PartContent(row)) =
            self.row(Table::Parts, key, none)
        {
            let created_at = row.created_at;
            *row = PartRow { created_at, ..new };
        }
    }

    fn chunk(&mut self, stamp: Stamp, event: &'e Event) {
        let Event::ChunkEmitted {
            chunk_type,
            step_id,
            data,
            ..
        } = event
        else {
            return;
        };
        let data = data.as_ref();
        if let Some(step) = step_id {
            self.marker(stamp, chunk_type, step.as_str(), data);
        } else if chunk_type == chunk_type::THREAD_UPDATED {
            self.thread_updated(data);
        } else if chunk_type == chunk_type::ITEM_REMOVED {
            let what = data.and_then(|data| data.read().ok());
            let removed = what.map(|what| RowChange::Removed(what, stamp.seq));
            self.changes.extend(removed);
        } else if chunk_type == chunk_type::THREAD_COMPACTED {
            self.changes.push(RowChange::Compacted(stamp.seq));
        }
    }

    fn marker(
        &mut self,
        Stamp { seq, at }: Stamp,
        chunk_type: &str,
        step_id: &'e str,
        data: Option<&'e Payload>,
    ) {
        match chunk_type {
            chunk_type::STEP_RESPONSE => {
                let tag = data.map(ResponseTag::of).unwrap_or_default();
                let tokens = |n: Option<u64>| n.unwrap_or(0).min(MAX_TOKENS);
                if let Some(step) = self.step(step_id) {
                    step.answer = Some(StepAnswer { seq, at, data });
                    step.tokens.0 += tokens(tag.input_tokens);
                    step.tokens.1 += tokens(tag.output_tokens);
                }
            }
            chunk_type::STEP_RESET => self.changes.push(RowChange::PartsDeleted(step_id)),
            chunk_type::TOOL_STARTED => {
                if let Some(call_id) = data.and_then(|data| data.str_field("toolCallId")) {
                    self.changes.push(RowChange::ToolStarted {
                        step_id,
                        call_id,
                        at,
                    });
                }
            }
            _ => {}
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
                | RowChange::ItemChange(..)
                | RowChange::ExecutionChange(..)
                | RowChange::StepChange(..)
                | RowChange::PartContent(_)
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
        let end = ExecutionChange {
            end_seq: Some(Seq(events.len() as u64)),
            ..ExecutionChange::default()
        };
        let expected = RowChange::ExecutionChange("one-execution", end);
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
