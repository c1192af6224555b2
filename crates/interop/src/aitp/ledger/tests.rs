mod bounds;
mod ends;
mod payments;
mod runs;
mod who;

use super::*;
use crate::aitp::Actor;
use crate::aitp::change::ParticipantChange;
use crate::aitp::family::REQUESTS;
use crate::aitp::kind::Kind;
use crate::aitp::samples::{near_quote, sample, sample_with};
use proptest::prelude::*;
use serde_json::{Value, json};
use timeline::{
    Command, Ending, Event, ItemType, NewChunk, NewItem, NewThread, Payload, Record, Removed, Role,
    State as Log, StepOutcome, Trigger,
};

/// A thread in which somebody began, an agent asks, another agent may answer, and one declares nothing.
struct Thread {
    log: Log,
    ledger: Ledger,
    records: Vec<Record>,
    at: Timestamp,
}

/// Who says something: `metadata.actor` and the role.
#[derive(Clone, Copy)]
struct PartyBinding<'a> {
    actor: Option<&'a str>,
    role: Option<Role>,
}

const ASKER: PartyBinding<'static> = PartyBinding {
    actor: Some("shop"),
    role: Some(Role::Assistant),
};
const USER: PartyBinding<'static> = PartyBinding {
    actor: None,
    role: Some(Role::User),
};
const AGENT: PartyBinding<'static> = PartyBinding {
    actor: Some("assistant"),
    role: Some(Role::Assistant),
};
const GUEST: PartyBinding<'static> = PartyBinding {
    actor: None,
    role: Some(Role::Assistant),
};
const MUTE: PartyBinding<'static> = PartyBinding {
    actor: Some("mute"),
    role: Some(Role::Assistant),
};

impl Thread {
    fn empty() -> Self {
        let mut thread = Self {
            log: Log::default(),
            ledger: Ledger::default(),
            records: Vec::new(),
            at: "2026-01-05T08:00:00Z".parse().unwrap(),
        };
        thread.run(Command::Create {
            thread: NewThread::new("t", None),
            context_id: "c".into(),
        });
        thread
    }

    fn new() -> Self {
        let mut thread = Self::empty();
        // Somebody without an id began it.
        thread.record(&[], USER);
        let declared = [Kind::Decision, Kind::Data, Kind::Payment].map(|kind| sample(kind).schema);
        for (id, schemas) in [("shop", 0), ("assistant", 3), ("mute", 0)] {
            let schemas = declared.iter().take(schemas).map(String::as_str);
            let change = ParticipantChange::Join {
                actor: Actor::new(id, schemas),
                principal: None,
                initiator: false,
            };
            let item = change.into_item(id).unwrap();
            thread.run(Command::Record { item });
        }
        thread
    }

    fn run(&mut self, command: Command) {
        for event in self.log.decide(command, self.at).unwrap() {
            self.log.apply(&event);
            let event = Event::decode(&event.encode().unwrap()).unwrap();
            let seq = Seq(self.records.len() as u64 + 1);
            let at = self.at;
            let record = Record { seq, at, event };
            self.ledger.apply(&record);
            self.records.push(record);
        }
    }

    fn party(&self, speaker: PartyBinding<'_>) -> Option<Party> {
        self.ledger
            .participants()
            .party(speaker.actor, speaker.role)
    }

    fn check(
        &self,
        message: &Message,
        speaker: PartyBinding<'_>,
    ) -> Result<RequestEffect, RequestRefusal> {
        let party = self.party(speaker).unwrap();
        match self.ledger.check(message, &party, self.at)? {
            MessageVerdict::Does { effect, .. } => Ok(effect),
            MessageVerdict::Passes => panic!("it does nothing"),
        }
    }

    /// Checks a message, and records it whatever comes of that.
    fn say(
        &mut self,
        message: &Message,
        speaker: PartyBinding<'_>,
    ) -> Result<RequestEffect, RequestRefusal> {
        let checked = self.check(message, speaker);
        let before = self.ledger.clone();
        self.record(&[message], speaker);
        if checked.is_err() && !matches!(checked, Err(RequestRefusal::Late { .. })) {
            let after = Ledger {
                seq: before.seq,
                ..self.ledger.clone()
            };
            assert_eq!(after, before, "what is refused changes nothing");
        }
        checked
    }

    fn record(&mut self, messages: &[&Message], speaker: PartyBinding<'_>) {
        let parts: Vec<Value> = messages.iter().map(|it| it.input_part()).collect();
        let item = NewItem {
            id: format!("i{}", self.records.len()).into(),
            item_type: ItemType::Message,
            role: speaker.role,
            channel: None,
            content: Some(Value::Array(parts).into()),
            metadata: speaker.actor.map(|actor| json!({"actor": actor}).into()),
        };
        self.run(Command::Record { item });
    }

    fn state(&self, topic: Topic, id: &str) -> RequestState {
        let id = id.to_owned();
        self.ledger
            .request(&Key { topic, id })
            .unwrap()
            .state(self.at)
    }

    fn later(&mut self, instant: &str) {
        self.at = instant.parse().unwrap();
    }
}

fn key(topic: Topic, id: &str) -> Key {
    let id = id.to_owned();
    Key { topic, id }
}

fn late(topic: Topic, id: &str, state: RequestState) -> Result<RequestEffect, RequestRefusal> {
    let request = key(topic, id);
    Err(RequestRefusal::Late { request, state })
}

#[test]
fn a_request_is_open_until_it_is_answered() {
    let mut thread = Thread::new();
    let (ask, answer) = (sample(Kind::RequestDecision), sample(Kind::Decision));
    assert_eq!(
        thread.check(&answer, USER),
        Err(RequestRefusal::Unknown("d1".into()))
    );
    assert_eq!(thread.say(&ask, ASKER), Ok(RequestEffect::Opens));
    assert_eq!(thread.ledger.pending(thread.at).len(), 1);
    assert_eq!(thread.say(&answer, AGENT), Ok(RequestEffect::Answers));
    assert_eq!(thread.state(Topic::Decision, "d1"), RequestState::Answered);
    assert!(thread.ledger.pending(thread.at).is_empty());
    let request = thread.ledger.request(&key(Topic::Decision, "d1")).unwrap();
    let given = request.answer().unwrap();
    assert_eq!(given.by, Party::Actor("assistant".into()));
    assert_eq!(
        given.payload.as_ref().map(Payload::value).as_ref(),
        answer.payload()
    );
}

#[test]
fn what_was_removed_asks_nothing_and_what_answered_stands() {
    let mut thread = Thread::new();
    let answered = sample_with(Kind::RequestDecision, |it| it["id"] = "d2".into());
    let answer = sample_with(Kind::Decision, |it| it["request_decision_id"] = "d2".into());
    thread.say(&sample(Kind::RequestDecision), ASKER).unwrap();
    thread.say(&answered, ASKER).unwrap();
    thread.say(&answer, USER).unwrap();
    for place in (thread.records.len() - 3)..thread.records.len() {
        let Event::ItemCreated { item } = &thread.records[place].event else {
            panic!("{:?}", thread.records[place]);
        };
        let what = Removed::Item(item.id.clone());
        thread.run(Command::Remove { what });
    }
    assert_eq!(thread.state(Topic::Decision, "d1"), RequestState::Cancelled);
    assert_eq!(thread.state(Topic::Decision, "d2"), RequestState::Answered);
    let late = late(Topic::Decision, "d1", RequestState::Cancelled);
    assert_eq!(thread.check(&sample(Kind::Decision), USER), late);
}

#[test]
fn the_last_of_several_answers_counts_and_all_are_kept() {
    let mut thread = Thread::new();
    thread.say(&sample(Kind::RequestData), ASKER).unwrap();
    assert_eq!(
        thread.say(&sample(Kind::Data), USER),
        Ok(RequestEffect::Answers)
    );
    let edited = sample_with(Kind::Data, |it| it["fields"][0]["value"] = "fr".into());
    assert_eq!(thread.say(&edited, USER), Ok(RequestEffect::Replaces));
    let request = thread.ledger.request(&key(Topic::Data, "f1")).unwrap();
    assert_eq!(request.answers.len(), 2);
    let kept: Vec<Option<Value>> = request
        .answers
        .iter()
        .map(|it| it.payload.as_ref().map(Payload::value))
        .collect();
    assert_eq!(
        kept,
        [None, edited.payload().cloned()],
        "what does not count any more is in the log"
    );
}

#[test]
fn an_answer_without_an_id_is_for_the_only_open_request() {
    let mut thread = Thread::new();
    let nameless = sample_with(Kind::Decision, |it| {
        it.as_object_mut().unwrap().remove("request_decision_id");
    });
    assert_eq!(
        thread.check(&nameless, USER),
        Err(RequestRefusal::NothingOpen(Topic::Decision))
    );
    thread.say(&sample(Kind::RequestDecision), ASKER).unwrap();
    thread.say(&sample(Kind::RequestData), ASKER).unwrap();
    assert_eq!(thread.check(&nameless, USER), Ok(RequestEffect::Answers));
    let second = sample_with(Kind::RequestDecision, |it| it["id"] = "d2".into());
    thread.say(&second, ASKER).unwrap();
    let both = vec![key(Topic::Decision, "d1"), key(Topic::Decision, "d2")];
    assert_eq!(
        thread.check(&nameless, USER),
        Err(RequestRefusal::Ambiguous(both))
    );
}

#[test]
fn an_id_of_two_topics_needs_the_type_of_the_request() {
    let mut thread = Thread::new();
    thread.say(&sample(Kind::RequestDecision), ASKER).unwrap();
    let form = sample_with(Kind::RequestData, |it| it["id"] = "d1".into());
    thread.say(&form, ASKER).unwrap();
    assert!(matches!(
        thread.say(&sample(Kind::Decline), USER),
        Err(RequestRefusal::Ambiguous(_))
    ));
    let clear = sample_with(Kind::Decline, |it| {
        it["request_type"] = "request_data".into();
    });
    assert_eq!(thread.say(&clear, USER), Ok(RequestEffect::Declines));
    assert_eq!(thread.state(Topic::Data, "d1"), RequestState::Declined);
    assert_eq!(
        thread.say(&sample(Kind::Decline), USER),
        Ok(RequestEffect::Declines),
        "one is open"
    );
}

#[test]
fn unknown_capabilities_and_notices_pass() {
    let thread = Thread::new();
    let other = json!({"$schema": "https://example.com/poll.json", "poll": 1});
    let other = Message::from_value(other.as_object().unwrap().clone()).unwrap();
    let mute = thread.party(MUTE).unwrap();
    for message in [other, sample(Kind::ChainNotification)] {
        let verdict = thread.ledger.check(&message, &mute, thread.at);
        assert_eq!(verdict, Ok(MessageVerdict::Passes));
    }
    let empty = json!({"$schema": REQUESTS});
    let empty = Message::from_value(empty.as_object().unwrap().clone()).unwrap();
    let refused = thread.ledger.check(&empty, &mute, thread.at);
    assert_eq!(refused, Err(RequestRefusal::NotOneMessage));
}

#[test]
fn a_fork_goes_on_with_what_was_open() {
    let mut thread = Thread::new();
    thread.say(&sample(Kind::RequestDecision), ASKER).unwrap();
    let fork = thread.ledger.clone().continued();
    assert_eq!(fork.seq(), Seq::ZERO);
    let verdict = fork.check(&sample(Kind::Decision), &Party::Initiator, thread.at);
    assert!(verdict.is_ok());
}

proptest! {
    #[test]
    fn the_fold_does_what_the_check_says_and_can_be_kept_anywhere(steps in prop::collection::vec((0usize..31, 0usize..4, 0u8..3, any::<bool>()), 0..30)) {
        let mut thread = Thread::new();
        let speakers = [ASKER, USER, AGENT, MUTE];
        for (kind, speaker, id, kept) in steps {
            let kind = Kind::ALL[kind];
            let message = sample_with(kind, |it| {
                if kind != Kind::WrappedQuote {
                    it[kind.id_field()] = format!("id{id}").into();
                }
            });
            let speaker = speakers[speaker];
            let party = thread.party(speaker).unwrap();
            let checked = thread.ledger.check(&message, &party, thread.at);
            let before = thread.ledger.requests().filter(|it| it.state(thread.at) == RequestState::Answered).count();
            thread.record(&[&message], speaker);
            let after = thread.ledger.requests().filter(|it| it.state(thread.at) == RequestState::Answered).count();
            let answers = matches!(checked, Ok(MessageVerdict::Does { effect: RequestEffect::Answers, .. }));
            prop_assert_eq!(after - before, usize::from(answers));
            if kept {
                let text = serde_json::to_string(&thread.ledger).unwrap();
                thread.ledger = serde_json::from_str(&text).unwrap();
            }
            thread.at += jiff::SignedDuration::from_mins(5);
        }
        // The same records give the same ledger, also to one that sees some of them twice.
        let mut again = Ledger::default();
        for record in thread.records.iter().chain(&thread.records) {
            again.apply(record);
        }
        prop_assert_eq!(&again, &thread.ledger);
        let open = again.pending(thread.at).len();
        prop_assert_eq!(open, again.requests().filter(|it| it.state(thread.at) == RequestState::Open).count());
    }
}
