//! The requests of a thread and their answers, folded from the thread's records.

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

/// Maximum number of open requests of one party in a thread.
pub const MAX_OPEN: usize = 100;
/// The most requests of one party that are remembered when they are open no longer.
pub const MAX_CLOSED: usize = 100;
/// Maximum number of answers to one request, and of late answers stored for it.
pub const MAX_ANSWERS: usize = 100;
/// The longest reason for a refusal, in bytes.
pub const MAX_REASON: usize = 2000;

/// A request's topic and id.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Key {
    /// The kind of answer that the request needs.
    pub topic: Topic,
    /// The id; for a payment the quote's, for a top-up the channel's.
    pub id: String,
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {:?}", self.topic.name(), self.id)
    }
}

/// The requests of a thread, their authors and their answers.
///
/// The ledger stores each party's open requests and its most recently closed ones, so its size is
/// bounded. Folding a record costs time for the record's content, and O(log n) to find its request.
/// The ledger can be serialised; folding then continues after [`Ledger::seq`]. A recorded message that
/// [`Ledger::check`] refuses changes nothing, except that a late answer is listed as late.
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

    /// The ledger of a fork of this thread. Requests that are open in the parent can be answered in
    /// the fork.
    #[must_use]
    pub fn continued(mut self) -> Self {
        self.seq = Seq::ZERO;
        self.running = None;
        self
    }

    /// The thread's participants.
    pub fn participants(&self) -> &Participants {
        &self.roster
    }

    /// The effect of `message` if `by` posted it at `now`, or the reason to refuse it. The message
    /// must already satisfy its schema. `now` decides whether an answer is late.
    pub fn check(
        &self,
        message: &Message,
        by: &Party,
        now: Timestamp,
    ) -> Result<MessageVerdict, RequestRefusal> {
        Ok(Draft::new(self, by).decide(message, now)?.verdict)
    }

    /// Checks all messages of one item in order, each after those before it. Fails with the index of
    /// the first refused message.
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

    /// The open requests, in the order in which they were posted.
    pub fn pending(&self, now: Timestamp) -> Vec<&Request> {
        let topics = Topic::ALL.into_iter();
        let numbers: BTreeSet<u64> = topics
            .flat_map(|topic| self.index.open(topic, now))
            .collect();
        let requests = numbers.iter().map(|number| self.requests.get(number));
        requests.flatten().collect()
    }

    /// All stored requests, in the order in which they were posted.
    pub fn requests(&self) -> impl DoubleEndedIterator<Item = &Request> {
        self.requests.values()
    }

    /// The latest request under this key.
    pub fn request(&self, key: &Key) -> Option<&Request> {
        self.requests.get(&self.index.latest(key)?)
    }

    /// Checks that a party may answer a request. The requester may not. The thread's initiator may,
    /// and so may actors that declared the capability. In a thread without actors, every other party
    /// may.
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

    /// The parties that may answer a request: the thread's initiator and the actors that declared the
    /// capability. The requester itself is excluded.
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
