mod voices;

use super::*;
use crate::aitp::actors::Actor;
use crate::aitp::form::read_form_document;
use crate::aitp::kind::{Kind, Topic};
use crate::aitp::ledger::{RequestEffect, RequestRefusal, RequestState};
use crate::aitp::message::MAX_MESSAGES;
use crate::aitp::participants::MayNotSpeak;
use crate::aitp::samples::{sample, sample_with};
use serde_json::{Value, json};
use timeline::{Command, NewThread, State as Log};

/// A thread that a user began, in which `shop` (`key_1`) asks and `helper` (`key_2`) may answer choices.
struct Thread {
    log: Log,
    desk: AitpState,
    seq: Seq,
    at: Timestamp,
}

impl Thread {
    fn new() -> Self {
        let mut thread = Self {
            log: Log::default(),
            desk: AitpState::default(),
            seq: Seq::ZERO,
            at: "2026-01-05T08:00:00Z".parse().unwrap(),
        };
        thread.run(Command::Create {
            thread: NewThread::new("t", None),
            context_id: "c".into(),
        });
        let hello = NewItem::user("hello", json!([]).into());
        thread.run(Command::Record { item: hello });
        let decisions = sample(Kind::Decision).schema;
        thread.join("key_1", Actor::new("shop", []));
        thread.join("key_2", Actor::new("helper", [decisions.as_str()]));
        thread
    }

    fn join(&mut self, principal: &str, actor: Actor) {
        let id = format!("join-{}", actor.id);
        let join = ParticipantChange::Join {
            actor,
            principal: None,
            initiator: false,
        };
        let accepted = self.desk.judge_change(principal, join, &id).unwrap();
        assert!(accepted.is_bound);
        self.run(Command::Record {
            item: accepted.item,
        });
    }

    fn run(&mut self, command: Command) {
        for event in self.log.decide(command, self.at).unwrap() {
            self.log.apply(&event);
            self.seq = self.seq.next();
            let (seq, at) = (self.seq, self.at);
            self.desk.apply(&Record { seq, at, event });
        }
    }

    fn judge(
        &self,
        principal: &str,
        actor: Option<&str>,
        all: &[Message],
    ) -> Result<AcceptedMessage, MessageRefusal> {
        let parts: Vec<Value> = all.iter().map(Message::input_part).collect();
        let text = json!({"type": "input_text", "text": "Please."});
        let parts: Vec<Value> = std::iter::once(text).chain(parts).collect();
        let item = NewItem {
            id: format!("i{}", self.seq.0).into(),
            item_type: ItemType::Message,
            role: actor.is_none().then_some(Role::User),
            channel: None,
            content: Some(Value::Array(parts).into()),
            metadata: actor.map(|actor| json!({"actor": actor}).into()),
        };
        self.desk.check(principal, &item, self.at)
    }

    /// Judges a message and records it if it is accepted.
    fn say(
        &mut self,
        principal: &str,
        actor: Option<&str>,
        message: &Message,
    ) -> Result<RequestEffect, MessageRefusal> {
        let accepted = self.judge(principal, actor, std::slice::from_ref(message))?;
        let verdict = accepted.messages[0].verdict.clone();
        assert_eq!(accepted.messages[0].index, 1, "after the text");
        self.run(Command::Record {
            item: accepted.item,
        });
        match verdict {
            MessageVerdict::Does { effect, .. } => Ok(effect),
            MessageVerdict::Passes => panic!("it does nothing"),
        }
    }

    fn shop(&mut self, message: &Message) -> RequestEffect {
        self.say("key_1", Some("shop"), message).unwrap()
    }

    fn state(&self) -> RequestState {
        let request = self.desk.ledger().requests().next_back();
        request.unwrap().state(self.at)
    }
}

fn refusal(found: Result<RequestEffect, MessageRefusal>) -> RequestRefusal {
    match found {
        Err(MessageRefusal::Refused { place: 1, refusal }) => refusal,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_is_asked_is_shown_and_its_answer_taken() {
    let mut thread = Thread::new();
    assert_eq!(
        thread.shop(&sample(Kind::RequestDecision)),
        RequestEffect::Opens
    );
    let pending = thread.desk.pending(thread.at);
    assert_eq!(pending.len(), 1);
    let clicked = json!({"option": "soup"});
    let schemas = Schemas::shared().unwrap();
    let answer = pending[0].answer(schemas, &clicked, thread.at).unwrap();
    let found = thread.say("user", None, &answer);
    assert_eq!(found.unwrap(), RequestEffect::Answers);
    assert_eq!(thread.state(), RequestState::Answered);
    assert!(thread.desk.pending(thread.at).is_empty());
    let key = &pending[0].ask.key;
    assert!(thread.desk.question(key).is_some(), "it can still be shown");
}

#[test]
fn a_question_is_shown_to_those_who_may_answer_it() {
    let mut thread = Thread::new();
    thread.shop(&sample(Kind::RequestDecision));
    thread.shop(&sample(Kind::RequestData));
    let n = |party: Party| thread.desk.pending_for(&party, thread.at).len();
    assert_eq!(n(Party::Initiator), 2);
    assert_eq!(
        n(Party::Actor("helper".into())),
        1,
        "it declared only choices"
    );
    assert_eq!(n(Party::Actor("shop".into())), 0);
}

#[test]
fn an_answer_that_comes_late_is_turned_away() {
    let mut thread = Thread::new();
    thread.shop(&sample_with(Kind::RequestDecision, |it| {
        it["expires_at"] = "2026-01-05T09:00:00Z".into();
    }));
    let end = "2026-01-05T09:00:00Z".parse().unwrap();
    assert_eq!(thread.desk.next_end(thread.at), Some(end));
    thread.at = "2026-01-05T09:00:01Z".parse().unwrap();
    assert!(thread.desk.pending(thread.at).is_empty());
    assert_eq!(thread.desk.next_end(thread.at), None);
    let found = refusal(thread.say("user", None, &sample(Kind::Decision)));
    assert!(matches!(
        found,
        RequestRefusal::Late {
            state: RequestState::Expired,
            ..
        }
    ));
    assert_eq!(thread.state(), RequestState::Expired);
}

#[test]
fn a_request_is_declined_reported_and_taken_back() {
    for (principal, actor, kind, state) in [
        ("user", None, Kind::Decline, RequestState::Declined),
        ("key_2", Some("helper"), Kind::Error, RequestState::Declined),
        ("key_1", Some("shop"), Kind::Cancel, RequestState::Cancelled),
    ] {
        let mut thread = Thread::new();
        thread.shop(&sample(Kind::RequestDecision));
        thread.say(principal, actor, &sample(kind)).unwrap();
        assert_eq!(thread.state(), state, "{kind:?}");
        assert!(thread.desk.pending(thread.at).is_empty());
        let found = refusal(thread.say("user", None, &sample(Kind::Decision)));
        assert!(matches!(found, RequestRefusal::Late { .. }), "{found:?}");
    }
}

#[test]
fn nobody_speaks_through_anothers_credential() {
    let thread = Thread::new();
    let ask = [sample(Kind::RequestDecision)];
    let speaker = |found: Result<AcceptedMessage, MessageRefusal>| match found {
        Err(MessageRefusal::PartyBinding(why)) => why,
        other => panic!("{other:?}"),
    };
    let found = speaker(thread.judge("key_2", Some("shop"), &ask));
    assert_eq!(found, MayNotSpeak::NotBoundToIt("shop".into()));
    let found = speaker(thread.judge("key_2", None, &ask));
    assert_eq!(found, MayNotSpeak::Unnamed("helper".into()));
    let found = speaker(thread.judge("key_2", Some("stranger"), &[]));
    assert_eq!(
        found,
        MayNotSpeak::Unknown("stranger".into()),
        "nor plain text"
    );
    let accepted = thread.judge("key_1", Some("shop"), &ask).unwrap();
    assert_eq!(accepted.item.role, Some(Role::Assistant), "the role it has");
    assert!(accepted.voice.is_bound);
}

#[test]
fn what_does_not_fit_is_turned_away_where_it_stands() {
    let mut thread = Thread::new();
    let ask = sample(Kind::RequestDecision);
    let wrong = sample_with(Kind::RequestDecision, |it| it["title"] = 7.into());
    match thread.judge("key_1", Some("shop"), &[ask.clone(), wrong]) {
        Err(MessageRefusal::Unfit { place: 2, wrong }) => {
            assert_eq!(wrong[0].pointer, "/request_decision/title");
        }
        other => panic!("{other:?}"),
    }
    let many = vec![ask.clone(); MAX_MESSAGES + 1];
    let found = thread.judge("key_1", Some("shop"), &many);
    assert!(matches!(found, Err(MessageRefusal::TooManyMessages(_))));
    let mut odd = NewItem::user("odd", json!([]).into());
    odd.metadata = Some(json!({"actor": {"id": "shop"}}).into());
    let found = thread.desk.check("key_1", &odd, thread.at);
    assert!(matches!(found, Err(MessageRefusal::Actor(_))));
    odd.item_type = ItemType::ItemReference;
    let found = thread.desk.check("key_1", &odd, thread.at);
    assert!(matches!(found, Err(MessageRefusal::NotAMessage)));
    thread.shop(&ask);
    let steak = sample_with(Kind::Decision, |it| it["options"][0]["id"] = "steak".into());
    let found = refusal(thread.say("user", None, &steak));
    assert!(matches!(found, RequestRefusal::Unfit(_)));
}

#[test]
fn answers_of_any_client_are_held_to_a_fetched_form() {
    let mut thread = Thread::new();
    thread.shop(&sample_with(Kind::RequestData, |it| {
        it["form"] = json!({"json_url": "https://forms.example/a.json"});
    }));
    let key = Key {
        topic: Topic::Data,
        id: "f1".to_owned(),
    };
    let url = "https://forms.example/a.json".to_owned();
    assert_eq!(thread.desk.to_fetch(thread.at), [(key.clone(), url)]);
    let document = json!({"fields": [{"id": "street", "required": true}]});
    thread
        .desk
        .fetched(&key, read_form_document(&document).unwrap());
    assert!(thread.desk.to_fetch(thread.at).is_empty());
    let asked = &thread.desk.pending(thread.at)[0];
    assert_eq!(asked.schema["required"], json!(["street"]));
    let found = thread.say("user", None, &sample(Kind::Data));
    assert!(
        matches!(found, Err(MessageRefusal::Unfit { place: 1, .. })),
        "{found:?}"
    );
    let street = sample_with(Kind::Data, |it| {
        it["fields"] = json!([{"id": "street", "value": "x"}]);
    });
    assert_eq!(
        thread.say("user", None, &street).unwrap(),
        RequestEffect::Answers
    );
    // Who asks again under the id asks with another form.
    thread.shop(&sample(Kind::RequestData));
    let found = thread.say("user", None, &sample(Kind::Data));
    assert_eq!(found.unwrap(), RequestEffect::Answers);
}

#[test]
fn a_desk_goes_on_from_what_was_kept() {
    let mut thread = Thread::new();
    thread.shop(&sample(Kind::RequestDecision));
    let text = serde_json::to_string(&thread.desk).unwrap();
    let kept: AitpState = serde_json::from_str(&text).unwrap();
    assert_eq!(kept, thread.desk);
    assert_eq!(kept.seq(), thread.seq);
    thread.desk = kept;
    let found = thread.say("user", None, &sample(Kind::Decision));
    assert_eq!(found.unwrap(), RequestEffect::Answers);
    assert_eq!(thread.desk.clone().continued().seq(), Seq::ZERO);
}

#[test]
fn an_actor_is_changed_only_through_its_credential() {
    let thread = Thread::new();
    let judge = |principal: &str, change: ParticipantChange| {
        thread.desk.judge_change(principal, change, "i")
    };
    let leave = || ParticipantChange::Leave {
        actor_id: "shop".to_owned(),
    };
    assert!(judge("key_1", leave()).is_ok_and(|it| it.is_bound));
    assert!(matches!(
        judge("key_2", leave()),
        Err(ChangeTurned::PartyBinding(_))
    ));
    let join = |id: &str, principal: &str| ParticipantChange::Join {
        actor: Actor::new(id, []),
        principal: Some(principal.to_owned()),
        initiator: false,
    };
    let found = judge("key_3", join("c", "key_1"));
    assert!(matches!(found, Err(ChangeTurned::OtherPrincipal(_))));
    let found = judge("key_3", join("shop", "key_3"));
    assert!(matches!(found, Err(ChangeTurned::Refused(_))));
    assert!(judge("key_3", join("c", "key_3")).is_ok());
}
