//! The threads in memory in which something waits for a person.

use crate::TenantId;
use crate::waits::{may_ask, waits_for_people};
use jiff::Timestamp;
use std::collections::BTreeMap;
use timeline::{ExecutionId, Record, Seq, State, ThreadId};

/// The calls and requests of a thread that wait for a person. The numbers are those of events among all of the store.
#[derive(Debug, Default)]
pub(super) struct Waits {
    /// The execution that left calls open, with the number and the instant of the event.
    calls: Option<(ExecutionId, u64, Timestamp)>,
    /// The first event that may open a request, and the position of the last one.
    asks: Option<(u64, Seq)>,
}

impl Waits {
    /// When the calls began to wait.
    pub(super) fn calls_since(&self) -> Option<Timestamp> {
        self.calls.as_ref().map(|(_, _, at)| *at)
    }

    /// Whether an event may have opened a request.
    pub(super) fn may_ask(&self) -> bool {
        self.asks.is_some()
    }

    /// Forgets the events up to this one that may have opened requests.
    pub(super) fn settle(&mut self, seq: Seq) {
        self.asks = self.asks.filter(|(_, last)| *last > seq);
    }

    /// Notes a record that was applied to the state.
    pub(super) fn note(&mut self, number: u64, record: &Record, state: &State) {
        if may_ask(&record.event) {
            let first = self.asks.map_or(number, |(first, _)| first);
            self.asks = Some((first, record.seq));
        }
        let open = state.open().filter(|open| waits_for_people(Some(open)));
        let known = self.calls.as_ref().map(|(execution, ..)| execution);
        match open {
            None => self.calls = None,
            Some(open) if known == Some(&open.execution.id) => {}
            Some(open) => self.calls = Some((open.execution.id.clone(), number, record.at)),
        }
    }

    /// The number of the thread in the list; `None` if nothing waits in it.
    pub(super) fn number(&self) -> Option<u64> {
        let calls = self.calls.as_ref().map(|(_, number, _)| *number);
        let asks = self.asks.map(|(number, _)| number);
        calls.into_iter().chain(asks).min()
    }
}

/// The threads of each tenant in which something waits, by their numbers.
pub(super) type WaitingThreads = BTreeMap<TenantId, BTreeMap<u64, ThreadId>>;
