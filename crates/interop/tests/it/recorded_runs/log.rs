//! Recorded logs, and what of them the views are made with.

use super::{compact, folder, golden, names};
use std::collections::BTreeSet;
use timeline::{
    Entry, Event, Execution, ExecutionId, Item, ItemId, ItemType, OpenCall, OpenKind, Reaction,
    Record, Seq, StepStatus, Transcript,
};

/// The names of the logs, but for those of sub-agents.
pub(super) fn run_names() -> BTreeSet<String> {
    let mut names = names(&folder("logs"));
    names.retain(|name| !name.contains(".child"));
    names
}

/// The log of one thread.
pub(super) struct RunLog {
    pub(super) name: String,
    pub(super) records: Vec<Record>,
    /// The calls that its sub-agents have left open, with the keys of their threads.
    pub(super) beneath: Vec<(String, OpenCall)>,
}

/// An execution, and what it answers.
pub(super) struct Began<'a> {
    pub(super) execution: &'a Execution,
    pub(super) trigger: &'a Item,
    /// The place of the record with which it began.
    pub(super) place: usize,
}

impl Began<'_> {
    pub(super) fn trigger_id(&self) -> ItemId {
        self.trigger.id.clone()
    }

    pub(super) fn answers(&self) -> bool {
        self.trigger.item_type == ItemType::ActionResult
    }

    /// Whether another agent has handed over to it.
    pub(super) fn is_handed_to(&self) -> bool {
        // Answers keep the count of the run whose calls they answer.
        let run = self.execution.run.as_ref().filter(|_| !self.answers());
        run.is_some_and(|run| run.value()["handoffs"].as_u64() > Some(0))
    }
}

impl RunLog {
    pub(super) fn all() -> impl Iterator<Item = Self> {
        run_names().into_iter().map(Self::read)
    }

    fn read(name: String) -> Self {
        let records = records(&name);
        let beneath = (1..=9)
            .map(|n| format!("{name}.child{n}"))
            .take_while(|child| folder("logs").join(format!("{child}.log")).exists())
            .flat_map(|child| {
                let left = left_open(&self::records(&child));
                left.into_iter()
                    .map(move |call| (format!("k/{child}"), call))
            })
            .collect();
        Self {
            name,
            records,
            beneath,
        }
    }

    /// The executions, in order.
    pub(super) fn executions(&self) -> Vec<Began<'_>> {
        let began = self
            .records
            .iter()
            .enumerate()
            .filter_map(|(place, record)| {
                let Event::ExecutionCreated { execution } = &record.event else {
                    return None;
                };
                let trigger = self.item(&execution.trigger_item_id)?;
                Some(Began {
                    execution,
                    trigger,
                    place,
                })
            });
        began.collect()
    }

    fn item(&self, id: &ItemId) -> Option<&Item> {
        let mut items = self.records.iter().filter_map(|record| {
            let Event::ItemCreated { item } = &record.event else {
                return None;
            };
            Some(item)
        });
        items.find(|item| item.id == *id)
    }

    /// The place after the last record of an execution, or of those that it has handed over to.
    pub(super) fn end_of(&self, began: &Began<'_>) -> usize {
        let executions = self.executions();
        let later = executions.iter().filter(|it| it.place >= began.place);
        let own = later
            .enumerate()
            .take_while(|(n, it)| *n == 0 || it.is_handed_to());
        let last = own.last().unwrap().1.execution.id.clone();
        let ends = |record: &Record| matches!(&record.event, Event::ThreadFinished { execution_id, .. } if *execution_id == last);
        let end = self.records.iter().position(ends);
        end.map_or(self.records.len(), |place| place + 1)
    }

    /// The transcript of the first `n_records` records.
    pub(super) fn transcript(&self, n_records: usize) -> Transcript {
        let mut transcript = Transcript::default();
        for record in &self.records[..n_records] {
            transcript.apply(record);
        }
        transcript.without_removed()
    }

    /// After how many records the whole conversation is looked at: in the midst of an answer, when the
    /// first execution is over, and at the end.
    pub(super) fn moments(&self) -> Vec<(&'static str, usize)> {
        let is_piece = |record: &Record| matches!(&record.event, Event::ChunkEmitted { chunk_type, .. } if chunk_type.ends_with("-delta"));
        let pieces = self.records.iter().enumerate();
        let mut pieces = pieces.filter(|(_, record)| is_piece(record));
        let midst = pieces.nth(2).map(|(place, _)| ("in the midst", place + 1));
        let over = |record: &Record| matches!(record.event, Event::ThreadFinished { .. });
        let over = self.records.iter().position(over);
        let over = over.map(|place| ("after the first", place + 1));
        let end = ("at the end", self.records.len());
        let moments = midst.into_iter().chain(over);
        let moments = moments.filter(|(_, n)| *n < self.records.len());
        moments.chain([end]).collect()
    }

    /// The calls that the last step of an execution has left open.
    pub(super) fn left_by(&self, execution: &ExecutionId) -> Vec<OpenCall> {
        let transcript = self.transcript(self.records.len());
        let mut reactions = transcript.entries.iter().filter_map(|entry| match entry {
            Entry::Reaction(reaction) => Some(reaction),
            Entry::Item(_) => None,
        });
        let reaction = reactions.find(|it| it.execution.id == *execution);
        reaction.map(Reaction::open_calls).unwrap_or_default()
    }

    /// The calls whose sub-agents have waited.
    pub(super) fn waits_beneath(&self) -> Vec<String> {
        let left = left_open(&self.records).into_iter();
        let beneath = left.filter(|call| call.kind == OpenKind::Child);
        beneath.map(|call| call.tool_call_id).collect()
    }
}

/// The calls that the first step has left open which leaves any.
fn left_open(records: &[Record]) -> Vec<OpenCall> {
    let mut left = records.iter().filter_map(|record| {
        let Event::StepStatusChanged { to, outcome, .. } = &record.event else {
            return None;
        };
        let is_over = *to == StepStatus::Completed;
        is_over.then(|| OpenCall::list(outcome.open_calls.as_ref()))
    });
    left.find(|calls| !calls.is_empty()).unwrap_or_default()
}

/// Reads a log: one record a line, its place, its time and its event.
fn records(name: &str) -> Vec<Record> {
    let file = folder("logs").join(format!("{name}.log"));
    let text = compact::whole(&std::fs::read_to_string(file).unwrap());
    let text = golden::with_ids(&text);
    let record = |line: &str| {
        let mut fields = line.splitn(3, ' ');
        let mut next = || fields.next().unwrap();
        Record {
            seq: Seq(next().parse().unwrap()),
            at: next().parse().unwrap(),
            event: Event::decode(next()).unwrap(),
        }
    };
    text.lines().map(record).collect()
}
