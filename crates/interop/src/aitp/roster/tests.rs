use super::*;
use crate::aitp::actors::Capability;
use serde_json::json;
use timeline::{Command, NewItem, NewThread, Seq, State};

struct Log {
    state: State,
    roster: Roster,
    seq: u64,
}

impl Log {
    fn new(metadata: Option<Value>) -> Self {
        let mut log = Self {
            state: State::default(),
            roster: Roster::default(),
            seq: 0,
        };
        let mut thread = NewThread::new("t", None);
        thread.metadata = metadata.map(Payload::from);
        log.run(Command::Create {
            thread,
            context_id: "c".into(),
        });
        log
    }

    fn run(&mut self, command: Command) {
        let at = jiff::Timestamp::UNIX_EPOCH;
        for event in self.state.decide(command, at).unwrap() {
            self.state.apply(&event);
            let event = Event::decode(&event.encode().unwrap()).unwrap();
            self.seq += 1;
            let seq = Seq(self.seq);
            self.roster.apply(&Record { seq, at, event });
        }
    }

    /// Checks a change, and records it whatever comes of that.
    fn change(&mut self, change: Change) -> Result<(), ChangeRefused> {
        let checked = self.roster.check(&change);
        let item = change.into_item(&format!("i{}", self.seq)).unwrap();
        let before = self.roster.clone();
        self.run(Command::Record { item });
        assert_eq!(checked.is_err(), before == self.roster);
        checked
    }
}

fn join(id: &str, principal: Option<&str>) -> Change {
    Change::Join {
        actor: Actor::new(id, ["https://aitp.dev/v1/decisions/schema.json"]),
        principal: principal.map(str::to_owned),
        initiator: false,
    }
}

fn leave(id: &str) -> Change {
    Change::Leave {
        actor_id: id.to_owned(),
    }
}

#[test]
fn joining_declaring_and_leaving_are_facts_of_the_thread() {
    let mut log = Log::new(None);
    assert_eq!(log.change(join("a", Some("key_1"))), Ok(()));
    assert!(
        log.roster
            .readers(Family::Decisions, Version::V1)
            .next()
            .is_some()
    );
    let declare = |id: &str| Change::Declare {
        actor_id: id.to_owned(),
        capabilities: vec![Capability::of(Family::Payments, Version::V1)],
    };
    assert_eq!(log.change(declare("a")), Ok(()));
    assert!(
        log.roster
            .readers(Family::Decisions, Version::V1)
            .next()
            .is_none()
    );
    assert_eq!(log.roster.may_speak("key_1", "a"), MaySpeak::Yes);
    assert_eq!(log.change(leave("a")), Ok(()));
    assert_eq!(log.roster.may_speak("key_1", "a"), MaySpeak::Left);
    assert_eq!(log.roster.present().count(), 0);
    let absent = Err(ChangeRefused::Absent("a".to_owned()));
    assert_eq!(log.change(leave("a")), absent);
    assert_eq!(log.change(declare("a")), absent);
}

#[test]
fn an_actor_speaks_only_through_the_credential_it_is_bound_to() {
    let mut log = Log::new(Some(json!({"actors": [{"id": "a"}, {"id": "b"}]})));
    assert_eq!(log.roster.may_speak("key_1", "a"), MaySpeak::Unbound);
    assert_eq!(log.change(join("a", Some("key_1"))), Ok(()), "binds it");
    assert_eq!(log.roster.may_speak("key_1", "a"), MaySpeak::Yes);
    assert_eq!(log.roster.may_speak("key_2", "a"), MaySpeak::NotBoundToIt);
    assert_eq!(log.roster.may_speak("key_1", "nobody"), MaySpeak::Unknown);
    let present = Err(ChangeRefused::Present("a".to_owned()));
    assert_eq!(log.change(join("a", Some("key_2"))), present);
    assert_eq!(
        log.change(join("b", None)),
        Err(ChangeRefused::Present("b".to_owned()))
    );
}

#[test]
fn nobody_takes_the_id_of_one_who_left() {
    let mut log = Log::new(None);
    log.change(join("a", Some("key_1"))).unwrap();
    log.change(leave("a")).unwrap();
    let taken = Err(ChangeRefused::Taken("a".to_owned()));
    assert_eq!(log.change(join("a", Some("key_2"))), taken);
    assert_eq!(log.change(join("a", None)), taken);
    assert_eq!(log.change(join("a", Some("key_1"))), Ok(()));
}

#[test]
fn the_one_who_began_the_thread_has_the_role_user() {
    let begin = |id: &str| Change::Join {
        actor: Actor::new(id, []),
        principal: None,
        initiator: true,
    };
    let mut log = Log::new(None);
    log.change(begin("a")).unwrap();
    log.change(join("b", None)).unwrap();
    assert_eq!(log.roster.role("a"), Role::User);
    assert_eq!(log.roster.role("b"), Role::Assistant);
    let other = Err(ChangeRefused::OtherInitiator("a".to_owned()));
    assert_eq!(log.change(begin("c")), other);
    let roster = &log.roster;
    assert_eq!(
        roster.party(Some("a"), Some(Role::Assistant)),
        Party::Initiator
    );
    assert_eq!(roster.party(None, Some(Role::User)), Party::Initiator);
    // The role is claimed; the id is what counts.
    let b = Party::Actor("b".to_owned());
    assert_eq!(roster.party(Some("b"), Some(Role::User)), b);
}

#[test]
fn the_first_actor_that_speaks_as_user_began_the_thread() {
    let mut log = Log::new(Some(json!({"actors": [{"id": "a"}, {"id": "b"}]})));
    let mut item = NewItem::user("u", json!([{"type": "input_text", "text": "hi"}]).into());
    item.metadata = Some(json!({"actor": "b"}).into());
    log.run(Command::Record { item: item.clone() });
    item.id = "v".into();
    item.metadata = Some(json!({"actor": "a"}).into());
    log.run(Command::Record { item });
    assert_eq!(log.roster.initiator(), Some("b"));
}

#[test]
fn a_user_can_not_write_a_change() {
    let mut item = join("a", Some("key_1")).into_item("i").unwrap();
    item.item_type = timeline::ItemType::Message;
    item.role = Some(Role::User);
    let mut log = Log::new(None);
    log.run(Command::Record { item });
    assert!(log.roster.is_empty());
}

#[test]
fn a_threads_metadata_names_those_who_are_there_now() {
    let mut log = Log::new(Some(
        json!({"colour": "red", "actors": "[{\"id\":\"a\"},{\"id\":\"b\"}]"}),
    ));
    log.change(leave("a")).unwrap();
    log.change(join("c", Some("key_1"))).unwrap();
    let thread = log.state.thread().unwrap().clone();
    let written = Value::Object(log.roster.metadata(&thread));
    let decisions = json!([{"schema": "https://aitp.dev/v1/decisions/schema.json"}]);
    assert_eq!(
        written,
        json!({"colour": "red", "actors": [{"id": "b", "capabilities": []}, {"id": "c", "capabilities": decisions}]})
    );
    assert!(
        !written.to_string().contains("key_1"),
        "the credential is nobody's business"
    );
}

#[test]
fn a_roster_can_be_kept() {
    let mut log = Log::new(None);
    log.change(join("a", Some("key_1"))).unwrap();
    let text = serde_json::to_string(&log.roster).unwrap();
    assert_eq!(serde_json::from_str::<Roster>(&text).unwrap(), log.roster);
}

#[test]
fn a_thread_has_a_bounded_number_of_actors() {
    let actors: Vec<Value> = (0..MAX_ACTORS)
        .map(|n| json!({"id": n.to_string()}))
        .collect();
    let mut log = Log::new(Some(json!({"actors": actors})));
    assert_eq!(
        log.change(join("one more", None)),
        Err(ChangeRefused::TooMany)
    );
}
