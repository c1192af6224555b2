//! What was asked in a thread and what came of it: a fold over the thread's records.

mod check;
mod find;
mod fold;
mod request;
mod verdict;

use super::kind::Topic;
use super::message::Message;
use super::roster::{Party, Roster};
use check::Draft;
use fold::Running;
use jiff::Timestamp;
pub use request::{Ask, Given, Life, Refusing, Request, Settlement, Standing, State};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use timeline::{Role, Seq};
pub use verdict::{Effect, Refusal, Verdict};

/// The most requests of one thread that may be open at a time.
pub const MAX_OPEN: usize = 1000;
/// The most answers to one request, and the most late ones that are remembered.
pub const MAX_ANSWERS: usize = 1000;

/// Who says something: the actor's id, if it has one, and the role of the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Speaker<'a> {
    /// `metadata.actor`.
    pub actor: Option<&'a str>,
    /// The role.
    pub role: Option<Role>,
}

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
/// It is as large as what was asked and answered, whatever else was said. Folding a record in costs
/// what the record carries and O(log n) to find its request. It can be serialised, and goes on from
/// [`Ledger::seq`]. What [`Ledger::check`] refuses changes nothing when it is folded in, but for an
/// answer that comes late, which is remembered as such.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Ledger {
    seq: Seq,
    roster: Roster,
    // Requests by their number, in the order in which they were asked.
    requests: BTreeMap<u64, Request>,
    latest: BTreeMap<Topic, BTreeMap<String, u64>>,
    open: BTreeMap<Topic, BTreeSet<u64>>,
    running: Option<Running>,
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
    pub fn roster(&self) -> &Roster {
        &self.roster
    }

    /// What a message would do if it were said now, or why it can't be. The message is expected to
    /// satisfy its schema; `now` decides whether it comes late.
    pub fn check(
        &self,
        message: &Message,
        speaker: Speaker<'_>,
        now: Timestamp,
    ) -> Result<Verdict, Refusal> {
        let mut draft = Draft::new(self);
        Ok(draft.decide(message, speaker, now)?.verdict)
    }

    /// The same for all messages of one item, each after those before it; the place of the first
    /// that can't be.
    pub fn check_all<'m>(
        &self,
        messages: impl IntoIterator<Item = &'m Message>,
        speaker: Speaker<'_>,
        now: Timestamp,
    ) -> Result<Vec<Verdict>, (usize, Refusal)> {
        let mut draft = Draft::new(self);
        let mut verdicts = Vec::new();
        for (place, message) in messages.into_iter().enumerate() {
            let step = draft.decide(message, speaker, now);
            verdicts.push(step.map_err(|refusal| (place, refusal))?.verdict);
        }
        Ok(verdicts)
    }

    /// The requests that wait for an answer, in the order in which they were asked.
    pub fn pending(&self, now: Timestamp) -> Vec<&Request> {
        let mut numbers: Vec<u64> = self.open.values().flatten().copied().collect();
        numbers.sort_unstable();
        let requests = numbers
            .iter()
            .filter_map(|number| self.requests.get(number));
        requests
            .filter(|request| request.state(now) == State::Open)
            .collect()
    }

    /// All requests there ever were, in the order in which they were asked.
    pub fn requests(&self) -> impl DoubleEndedIterator<Item = &Request> {
        self.requests.values()
    }

    /// The last request that was asked under this key.
    pub fn request(&self, key: &Key) -> Option<&Request> {
        let number = self.latest.get(&key.topic)?.get(&key.id)?;
        self.requests.get(number)
    }

    /// Whether somebody may answer a request: not the asker; the one who began the thread; else an
    /// actor that declared the capability. In a thread without actors, everyone else.
    pub fn may_answer(&self, ask: &Ask, party: &Party) -> Result<(), Refusal> {
        let key = || ask.key.clone();
        if *party == ask.by {
            return Err(Refusal::OwnRequest(key()));
        }
        if *party == Party::Initiator || self.roster.is_empty() {
            return Ok(());
        }
        let member = match party {
            Party::Actor(id) => self.roster.member(id),
            Party::Initiator | Party::Assistant => None,
        };
        let who = || party.clone();
        let member = member.ok_or_else(|| Refusal::NotAnActor { party: who() })?;
        if member.actor.reads(ask.family, ask.version) {
            return Ok(());
        }
        Err(Refusal::NotDeclared {
            party: who(),
            capability: ask.family.url(ask.version),
        })
    }

    /// Who may answer a request: the one who began the thread, unless it asks, and these actors.
    pub fn answerers(&self, ask: &Ask) -> Vec<Party> {
        let readers = self.roster.readers(ask.family, ask.version);
        let readers = readers.map(|member| self.roster.party(Some(&member.actor.id), None));
        let mut parties: BTreeSet<Party> = readers.collect();
        parties.insert(Party::Initiator);
        parties.remove(&ask.by);
        parties.into_iter().collect()
    }

    /// The numbers of the open requests of a topic.
    fn open_numbers(&self, topic: Topic) -> impl Iterator<Item = u64> {
        self.open.get(&topic).into_iter().flatten().copied()
    }

    /// How many requests are open; those that nobody answered in time are only told apart when there
    /// are many.
    fn n_open(&self, now: Timestamp) -> usize {
        let listed = self.open.values().map(BTreeSet::len).sum();
        if listed < MAX_OPEN {
            return listed;
        }
        self.pending(now).len()
    }

    fn next_number(&self) -> u64 {
        let last = self.requests.last_key_value();
        last.map_or(0, |(number, _)| number + 1)
    }
}

#[cfg(test)]
mod tests;
