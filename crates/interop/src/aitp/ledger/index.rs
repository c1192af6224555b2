//! Where requests are found without looking at all of them. It is made from them and not kept.

use super::Key;
use super::request::{Request, RequestProgress, RequestStatus};
use crate::aitp::kind::Topic;
use crate::aitp::participants::Party;
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};

/// Numbers of requests by the last instant at which an answer counts.
type ByEnd = BTreeSet<(Timestamp, u64)>;

/// What somebody asked.
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

    /// Takes in a request, which from now on is the one of its key.
    pub(super) fn insert(&mut self, number: u64, request: &Request) {
        self.latest.insert(request.ask.key.clone(), number);
        self.list(number, request);
    }

    /// Takes in a request that another one of its key came after.
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

    /// Gives a request another life, in this turn.
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

    /// Takes a request out.
    pub(super) fn remove(&mut self, number: u64, request: &Request) {
        self.unlist(number, request);
        if self.latest.get(&request.ask.key) == Some(&number) {
            self.latest.remove(&request.ask.key);
        }
    }

    /// The last request that was asked under this key.
    pub(super) fn latest(&self, key: &Key) -> Option<u64> {
        self.latest.get(key).copied()
    }

    /// What waits for an answer of this topic at this instant, what ends first before the rest.
    pub(super) fn open(&self, topic: Topic, now: Timestamp) -> impl Iterator<Item = u64> {
        let open = self.open.get(&topic).into_iter();
        let open = open.flat_map(move |open| open.range((now, 0)..));
        open.map(|(_, number)| *number)
    }

    /// How many requests of somebody wait for an answer at this instant.
    pub(super) fn n_open(&self, asker: &Party, now: Timestamp) -> usize {
        let share = self.askers.get(asker);
        share.map_or(0, |share| share.open.range((now, 0)..).count())
    }

    /// What somebody asked that is open, or was until its time was over before this instant.
    pub(super) fn of_asker(&self, asker: &Party, over: Option<Timestamp>) -> Vec<u64> {
        let open = self.askers.get(asker).map(|share| share.open.iter());
        let open = open.into_iter().flatten();
        let open = open.take_while(|(end, _)| over.is_none_or(|now| *end < now));
        open.map(|(_, number)| *number).collect()
    }

    /// All that somebody asked.
    pub(super) fn all_of(&self, asker: &Party) -> Vec<u64> {
        let mut all = self.of_asker(asker, None);
        let closed = self.askers.get(asker).map(|share| share.closed.iter());
        all.extend(closed.into_iter().flatten().map(|(_, number)| *number));
        all
    }

    /// What was closed first of what somebody asked, if that is more than so many.
    pub(super) fn surplus(&self, asker: &Party, max: usize) -> Option<u64> {
        let closed = &self.askers.get(asker)?.closed;
        let first = closed.first().filter(|_| closed.len() > max);
        first.map(|(_, number)| *number)
    }
}
