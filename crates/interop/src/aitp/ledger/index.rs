//! Indexes for finding requests. They are derived from the ledger's requests and are not stored.

use super::Key;
use super::request::{Request, RequestProgress, RequestStatus};
use crate::aitp::kind::Topic;
use crate::aitp::participants::Party;
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};

/// Numbers of requests by the last instant at which an answer counts.
type ByEnd = BTreeSet<(Timestamp, u64)>;

/// The requests of one party.
#[derive(Clone, Debug, Default, PartialEq)]
struct Share {
    open: ByEnd,
    // By the turn in which they were closed.
    closed: BTreeSet<(u64, u64)>,
}

/// The requests of a ledger by their keys, topics and askers.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Index {
    latest: BTreeMap<Key, u64>,
    open: BTreeMap<Topic, ByEnd>,
    askers: BTreeMap<Party, Share>,
}

impl Index {
    pub(super) fn of(requests: &BTreeMap<u64, Request>) -> Self {
        let mut index = Self::default();
        for (number, request) in requests {
            index.insert(*number, request);
        }
        index
    }

    /// Adds a request, which becomes the latest under its key.
    pub(super) fn insert(&mut self, number: u64, request: &Request) {
        self.latest.insert(request.ask.key.clone(), number);
        self.list(number, request);
    }

    /// Adds a request that is not the latest under its key.
    pub(super) fn list(&mut self, number: u64, request: &Request) {
        let share = self.askers.entry(request.ask.by.clone()).or_default();
        if request.life.status == RequestStatus::Open {
            let slot = (request.life.end(), number);
            share.open.insert(slot);
            let topic = request.ask.key.topic;
            self.open.entry(topic).or_default().insert(slot);
        } else {
            share.closed.insert((request.turn, number));
        }
    }

    fn unlist(&mut self, number: u64, request: &Request) {
        let slot = (request.life.end(), number);
        if let Some(open) = self.open.get_mut(&request.ask.key.topic) {
            open.remove(&slot);
            if open.is_empty() {
                self.open.remove(&request.ask.key.topic);
            }
        }
        if let Some(share) = self.askers.get_mut(&request.ask.by) {
            share.open.remove(&slot);
            share.closed.remove(&(request.turn, number));
            if share.open.is_empty() && share.closed.is_empty() {
                self.askers.remove(&request.ask.by);
            }
        }
    }

    /// Changes a request's progress, in the ledger's change number `turn`.
    pub(super) fn relive(
        &mut self,
        number: u64,
        request: &mut Request,
        life: RequestProgress,
        turn: u64,
    ) {
        self.unlist(number, request);
        request.life = life;
        request.turn = turn;
        self.list(number, request);
    }

    /// Removes a request.
    pub(super) fn remove(&mut self, number: u64, request: &Request) {
        self.unlist(number, request);
        if self.latest.get(&request.ask.key) == Some(&number) {
            self.latest.remove(&request.ask.key);
        }
    }

    /// The number of the latest request under this key.
    pub(super) fn latest(&self, key: &Key) -> Option<u64> {
        self.latest.get(key).copied()
    }

    /// The requests of a topic that are open at `now`, those that expire first before the others.
    pub(super) fn open(&self, topic: Topic, now: Timestamp) -> impl Iterator<Item = u64> {
        let open = self.open.get(&topic).into_iter();
        let open = open.flat_map(move |open| open.range((now, 0)..));
        open.map(|(_, number)| *number)
    }

    /// Number of a party's requests that are open at `now`.
    pub(super) fn n_open(&self, asker: &Party, now: Timestamp) -> usize {
        let share = self.askers.get(asker);
        share.map_or(0, |share| share.open.range((now, 0)..).count())
    }

    /// The open requests of a party. With `over`, only those that expired before that instant.
    pub(super) fn of_asker(&self, asker: &Party, over: Option<Timestamp>) -> Vec<u64> {
        let open = self.askers.get(asker).map(|share| share.open.iter());
        let open = open.into_iter().flatten();
        let open = open.take_while(|(end, _)| over.is_none_or(|now| *end < now));
        open.map(|(_, number)| *number).collect()
    }

    /// All requests of a party, open and closed.
    pub(super) fn all_of(&self, asker: &Party) -> Vec<u64> {
        let mut all = self.of_asker(asker, None);
        let closed = self.askers.get(asker).map(|share| share.closed.iter());
        all.extend(closed.into_iter().flatten().map(|(_, number)| *number));
        all
    }

    /// The request of a party that was closed first, if the party has more than `max` closed ones.
    pub(super) fn surplus(&self, asker: &Party, max: usize) -> Option<u64> {
        let closed = &self.askers.get(asker)?.closed;
        let first = closed.first().filter(|_| closed.len() > max);
        first.map(|(_, number)| *number)
    }
}
