//! What was asked in a thread and what came of it: a fold over the thread's records.

mod check;
mod find;
mod fold;
mod index;
mod request;
mod verdict;

use super::kind::Topic;
use super::message::Message;
use super::participants::{Participants, Party};
use check::Draft;
use fold::Running;
use index::Index;
use jiff::Timestamp;
pub use request::{
    Refusing, Request, RequestProgress, RequestState, RequestStatus, RequestTerms, Settlement,
    SubmittedAnswer,
};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use timeline::Seq;
pub use verdict::{MessageVerdict, RequestEffect, RequestRefusal};

/// The most requests that one party may have open in a thread at a time.
pub const MAX_OPEN: usize = 100;
/// The most requests of one party that are remembered when they are open no longer.
pub const MAX_CLOSED: usize = 100;
/// The most answers to one request, and the most late ones that are remembered.
pub const MAX_ANSWERS: usize = 100;
/// The longest reason for a refusal, in bytes.
pub const MAX_REASON: usize = 2000;

/// A request's topic and the id that it was asked under.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Key {
    /// What is asked for.
    pub topic: Topic,
    /// The id; for a payment the quote's, for a top-up the channel's.
    pub id: String,
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {:?}", self.topic.name(), self.id)
    }
}

/// What was asked in a thread, by whom, and what came of it.
///
/// Of each party it has what is open and the last that was closed, so it is bounded however long the
/// thread is. Folding a record in costs what the record carries and O(log n) to find its request. It
/// can be serialised, and goes on from [`Ledger::seq`]. What [`Ledger::check`] refuses changes nothing
/// when it is folded in, but for an answer that comes late, which is remembered as such.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "Kept")]
pub struct Ledger {
    seq: Seq,
    roster: Participants,
    // Requests by their number, in the order in which they were asked.
    requests: BTreeMap<u64, Request>,
    // The number of the next request or turn.
    next: u64,
    running: Option<Running>,
    #[serde(skip)]
    index: Index,
}

/// A ledger as it is serialised.
#[derive(Deserialize)]
struct Kept {
    seq: Seq,
    roster: Participants,
    requests: BTreeMap<u64, Request>,
    next: u64,
    running: Option<Running>,
}

impl From<Kept> for Ledger {
    fn from(kept: Kept) -> Self {
        Self {
            index: Index::of(&kept.requests),
            seq: kept.seq,
            roster: kept.roster,
            requests: kept.requests,
            next: kept.next,
            running: kept.running,
        }
    }
}

impl Ledger {
    /// The last record that is in it.
    pub fn seq(&self) -> Seq {
        self.seq
    }

    /// A ledger that goes on from a parent's (a fork): what was open there can be answered here.
    #[must_use]
    pub fn continued(mut self) -> Self {
        self.seq = Seq::ZERO;
        self.running = None;
        self
    }

    /// Who takes part.
    pub fn participants(&self) -> &Participants {
        &self.roster
    }

    /// What a message would do if this party said it now, or why it can't be. The message is expected
    /// to satisfy its schema; `now` decides whether it comes late.
    pub fn check(
        &self,
        message: &Message,
        by: &Party,
        now: Timestamp,
    ) -> Result<MessageVerdict, RequestRefusal> {
        Ok(Draft::new(self, by).decide(message, now)?.verdict)
    }

    /// Checks all messages of one item in order, each after those before it. Fails with the index of the first
    /// refused message.
    pub fn check_all<'m>(
        &self,
        messages: impl IntoIterator<Item = &'m Message>,
        by: &Party,
        now: Timestamp,
    ) -> Result<Vec<MessageVerdict>, (usize, RequestRefusal)> {
        let mut draft = Draft::new(self, by);
        let mut verdicts = Vec::new();
        for (place, message) in messages.into_iter().enumerate() {
            let step = draft.decide(message, now);
            verdicts.push(step.map_err(|refusal| (place, refusal))?.verdict);
        }
        Ok(verdicts)
    }

    /// The requests that wait for an answer, in the order in which they were asked.
    pub fn pending(&self, now: Timestamp) -> Vec<&Request> {
        let topics = Topic::ALL.into_iter();
        let numbers: BTreeSet<u64> = topics
            .flat_map(|topic| self.index.open(topic, now))
            .collect();
        let requests = numbers.iter().map(|number| self.requests.get(number));
        requests.flatten().collect()
    }

    /// All requests that are remembered, in the order in which they were asked.
    pub fn requests(&self) -> impl DoubleEndedIterator<Item = &Request> {
        self.requests.values()
    }

    /// The last request that was asked under this key.
    pub fn request(&self, key: &Key) -> Option<&Request> {
        self.requests.get(&self.index.latest(key)?)
    }

    /// Whether somebody may answer a request: not the asker; the one who began the thread; else an
    /// actor that declared the capability. In a thread without actors, everyone else.
    pub fn may_answer(&self, ask: &RequestTerms, party: &Party) -> Result<(), RequestRefusal> {
        let party = self.roster.known(party);
        if party == self.roster.known(&ask.by) {
            return Err(RequestRefusal::OwnRequest(ask.key.clone()));
        }
        if party == Party::Initiator || self.roster.is_empty() {
            return Ok(());
        }
        let member = match &party {
            Party::Actor(id) => self.roster.member(id),
            Party::Initiator | Party::Agent(_) | Party::Assistant => None,
        };
        let Some(member) = member else {
            return Err(RequestRefusal::NotAnActor { party });
        };
        if member.actor.reads(ask.family, ask.version) {
            return Ok(());
        }
        let capability = ask.family.url(ask.version);
        Err(RequestRefusal::NotDeclared { party, capability })
    }

    /// Who may answer a request: the one who began the thread, unless it asks, and these actors.
    pub fn answerers(&self, ask: &RequestTerms) -> Vec<Party> {
        let readers = self.roster.readers(ask.family, ask.version);
        let readers = readers.map(|member| self.roster.named(&member.actor.id));
        let mut parties: BTreeSet<Party> = readers.collect();
        parties.insert(Party::Initiator);
        parties.remove(&self.roster.known(&ask.by));
        parties.into_iter().collect()
    }
}

#[cfg(test)]
mod tests;
