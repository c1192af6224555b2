//! Positions of landmarks in a log in memory.

use crate::{FoundExecution, Landmark, Logged, Side, StoreError};
use std::collections::{BTreeMap, BTreeSet};
use timeline::{Event, Execution, Item, ItemType, Record, Removed, Seq, chunk_type};

/// The positions of a log's landmarks, updated with every record.
#[derive(Debug, Default)]
pub(super) struct Landmarks {
    made: BTreeMap<(&'static str, String), Seq>,
    /// The positions of triggers that had waited: the starts of their executions.
    begun: BTreeMap<String, Seq>,
    said: Vec<Seq>,
    runs: Vec<FoundExecution>,
    removed: BTreeMap<Removed, Seq>,
    compacted: Vec<Seq>,
}

const ITEM: &str = "item";
const EXECUTION: &str = "execution";
const STEP: &str = "step";
const CONTEXT: &str = "context";

impl Landmarks {
    /// Whether all that the events make is new.
    pub(super) fn are_new<'a>(
        &self,
        events: impl Iterator<Item = &'a Event>,
    ) -> Result<(), StoreError> {
        let mut made = BTreeSet::new();
        for id in events.filter_map(made_by) {
            if self.made.contains_key(&id) || !made.insert(id.clone()) {
                return Err(StoreError::Duplicate(id.1));
            }
        }
        Ok(())
    }

    /// Adds the next record; `before` are the preceding ones.
    pub(super) fn note(&mut self, record: &Record, before: &[Logged]) {
        if let Some(id) = made_by(&record.event) {
            self.made.insert(id, record.seq);
        }
        if let Event::ItemCreated { item } = &record.event {
            if item.execution_id.is_none() && item.run.is_none() {
                self.says(item, record.seq);
            }
        } else if let Event::ExecutionCreated { execution } = &record.event {
            self.runs(execution, record.seq, before);
        } else if let Event::ThreadFinished { execution_id, .. } = &record.event
            && let Some(run) = self.runs.last_mut()
            && run.execution_id == *execution_id
        {
            run.finished = Some(record.seq);
        } else if let Event::ChunkEmitted {
            chunk_type,
            data: Some(data),
            ..
        } = &record.event
            && chunk_type == chunk_type::ITEM_REMOVED
            && let Ok(what) = data.read()
        {
            self.removed.entry(what).or_insert(record.seq);
        } else if let Event::ChunkEmitted {
            chunk_type,
            step_id: None,
            ..
        } = &record.event
            && chunk_type == chunk_type::THREAD_COMPACTED
        {
            self.compacted.push(record.seq);
        }
    }

    fn says(&mut self, item: &Item, place: Seq) {
        if item.item_type == ItemType::Message {
            self.said.push(place);
        }
    }

    fn runs(&mut self, execution: &Execution, created: Seq, before: &[Logged]) {
        let id = &execution.trigger_item_id;
        let trigger = self.made.get(&(ITEM, id.to_string())).copied();
        let Some((seq, item)) = trigger.and_then(|seq| Some((seq, item_at(before, seq)?))) else {
            return;
        };
        if item.run.is_some() {
            self.begun.insert(id.to_string(), created);
            self.says(item, created);
        }
        self.runs.push(FoundExecution {
            execution_id: execution.id.clone(),
            trigger: seq,
            trigger_type: item.item_type,
            goes_on: FoundExecution::continues(execution, item.item_type),
            created,
            finished: None,
        });
    }

    pub(super) fn position_of(&self, landmark: Landmark<'_>) -> Option<Seq> {
        let made = |what, id: &str| self.made.get(&(what, id.to_owned())).copied();
        match landmark {
            Landmark::Item(id) => {
                let begun = self.begun.get(id.as_str()).copied();
                begun.or_else(|| made(ITEM, id.as_str()))
            }
            Landmark::Execution(id) => made(EXECUTION, id.as_str()),
            Landmark::Step(id) => made(STEP, id.as_str()),
        }
    }

    pub(super) fn triggers(&self, side: Side, limit: usize) -> Vec<Seq> {
        match side {
            Side::Before(before) => {
                let end = self.said.partition_point(|seq| *seq < before);
                let said = self.said.iter().take(end).rev();
                said.take(limit).copied().collect()
            }
            Side::After(after) => {
                let start = self.said.partition_point(|seq| *seq <= after);
                let said = self.said.iter().skip(start);
                said.take(limit).copied().collect()
            }
        }
    }

    pub(super) fn run(&self, side: Side) -> Option<FoundExecution> {
        let place = match side {
            Side::Before(before) => {
                let end = self.runs.partition_point(|run| run.created < before);
                end.checked_sub(1)?
            }
            Side::After(after) => self.runs.partition_point(|run| run.created <= after),
        };
        self.runs.get(place).cloned()
    }

    pub(super) fn removals(&self, of: Vec<Removed>) -> Vec<(Removed, Seq)> {
        let found = of.into_iter().filter_map(|what| {
            let seq = self.removed.get(&what).copied()?;
            Some((what, seq))
        });
        found.collect()
    }

    pub(super) fn compactions(&self, before: Seq, limit: usize) -> Vec<Seq> {
        let end = self.compacted.partition_point(|seq| *seq < before);
        let compacted = self.compacted.iter().take(end).rev();
        compacted.take(limit).copied().collect()
    }
}

fn item_at(records: &[Logged], seq: Seq) -> Option<&Item> {
    let place = usize::try_from(seq.0.checked_sub(1)?).ok()?;
    let Event::ItemCreated { item } = &records.get(place)?.record.event else {
        return None;
    };
    Some(item)
}

fn made_by(event: &Event) -> Option<(&'static str, String)> {
    match event {
        Event::ItemCreated { item } => Some((ITEM, item.id.to_string())),
        Event::ExecutionCreated { execution } => Some((EXECUTION, execution.id.to_string())),
        Event::StepCreated { step } => Some((STEP, step.id.to_string())),
        Event::ContextCreated { context } => Some((CONTEXT, context.id.to_string())),
        Event::ContextResolved { .. }
        | Event::ContextStatusChanged { .. }
        | Event::ThreadCreated { .. }
        | Event::ThreadResolved { .. }
        | Event::ThreadStatusChanged { .. }
        | Event::ExecutionStatusChanged { .. }
        | Event::ItemStatusChanged { .. }
        | Event::StepStatusChanged { .. }
        | Event::PartCreated { .. }
        | Event::PartUpdated { .. }
        | Event::ChunkEmitted { .. }
        | Event::ThreadFinished { .. } => None,
    }
}
