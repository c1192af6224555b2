mod voice;

use super::*;
use crate::aitp::actors::Capability;
use serde_json::json;
use timeline::{Command, NewItem, NewThread, Seq, State};

struct Log {
    state: State,
    roster: Participants,
    seq: u64,
}

impl Log {
    fn new(metadata: Option<Value>) -> Self {
        let mut log = Self {
            state: State::default(),
            roster: Participants::default(),
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
    fn change(&mut self, change: ParticipantChange) -> Result<(), ChangeRefused> {
        let checked = self.roster.check(&change);
        let item = change.into_item(&format!("i{}", self.seq)).unwrap();
        let before = self.roster.clone();
        self.run(Command::Record { item });
        assert_eq!(checked.is_err(), before == self.roster, "{checked:?}");
        checked
    }
}

fn speaks(log: &Log, principal: &str, id: &str) -> Result<bool, MayNotSpeak> {
    let voice = log.roster.may_speak(principal, Some(id), None)?;
    Ok(voice.is_bound)
}

/// Says something in the role `user`.
fn say(log: &mut Log, actor: Option<Value>) {
    let mut item = NewItem::user(
        format!("u{}", log.seq),
        json!([{"type": "input_text", "text": "hi"}]).into(),
    );
    item.metadata = actor.map(|actor| json!({"actor": actor}).into());
    log.run(Command::Record { item });
}

fn join(id: &str, principal: Option<&str>) -> ParticipantChange {
    ParticipantChange::Join {
        actor: Actor::new(id, ["https://aitp.dev/v1/decisions/schema.json"]),
        principal: principal.map(str::to_owned),
        initiator: false,
    }
}

fn leave(id: &str) -> ParticipantChange {
    ParticipantChange::Leave {
        actor_id: id.to_owned(),
    }
}

#[test]
fn joining_declaring_and_leaving_are_facts_of_the_thread() {
    let mut log = Log::new(None);
    assert_eq!(log.change(join("a", Some("key_1"))), Ok(()));
    assert!(
        log.roster
            .readers(Family::Decisions, FamilyVersion::V1)
            .next()
            .is_some()
    );
    let declare = |id: &str| ParticipantChange::Declare {
        actor_id: id.to_owned(),
        capabilities: vec![Capability::of(Family::Payments, FamilyVersion::V1)],
    };
    assert_eq!(log.change(declare("a")), Ok(()));
    assert!(
        log.roster
            .readers(Family::Decisions, FamilyVersion::V1)
            .next()
            .is_none()
    );
    assert_eq!(speaks(&log, "key_1", "a"), Ok(true));
    assert_eq!(log.change(leave("a")), Ok(()));
    assert_eq!(
        speaks(&log, "key_1", "a"),
        Err(MayNotSpeak::Left("a".into()))
    );
    assert_eq!(log.roster.present().count(), 0);
    let absent = Err(ChangeRefused::Absent("a".to_owned()));
    assert_eq!(log.change(leave("a")), absent);
    assert_eq!(log.change(declare("a")), absent);
}

#[test]
fn an_actor_speaks_only_through_the_credential_it_is_bound_to() {
    let mut log = Log::new(Some(json!({"actors": [{"id": "a"}, {"id": "b"}]})));
    assert_eq!(speaks(&log, "key_1", "a"), Ok(false));
    assert_eq!(log.change(join("a", Some("key_1"))), Ok(()), "binds it");
    assert_eq!(speaks(&log, "key_1", "a"), Ok(true));
    let others = Err(MayNotSpeak::NotBoundToIt("a".into()));
    assert_eq!(speaks(&log, "key_2", "a"), others);
    let unknown = Err(MayNotSpeak::Unknown("nobody".into()));
    assert_eq!(speaks(&log, "key_1", "nobody"), unknown);
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
    let begin = |id: &str| ParticipantChange::Join {
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
        Some(Party::Initiator)
    );
    assert_eq!(roster.party(None, Some(Role::User)), Some(Party::Initiator));
    // The role is claimed; the id is what counts.
    let b = Party::Actor("b".to_owned());
    assert_eq!(roster.party(Some("b"), Some(Role::User)), Some(b));
}

#[test]
fn the_first_actor_that_speaks_as_user_began_the_thread() {
    let mut log = Log::new(Some(json!({"actors": [{"id": "a"}, {"id": "b"}]})));
    say(&mut log, Some(json!("b")));
    say(&mut log, Some(json!("a")));
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
    assert_eq!(
        serde_json::from_str::<Participants>(&text).unwrap(),
        log.roster
    );
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

#[test]
fn a_user_without_an_id_who_speaks_first_began_the_thread() {
    let mut log = Log::new(Some(json!({"actors": [{"id": "a"}]})));
    say(&mut log, Some(json!("stranger")));
    say(&mut log, Some(json!({"id": "a"})));
    say(&mut log, None);
    say(&mut log, Some(json!("a")));
    assert_eq!(log.roster.initiator(), None);
    let begin = |id: &str| ParticipantChange::Join {
        actor: Actor::new(id, []),
        principal: Some("key_1".to_owned()),
        initiator: true,
    };
    let refused = Err(ChangeRefused::UnnamedInitiator);
    assert_eq!(log.change(begin("b")), refused);
    let other = Err(MayNotSpeak::OtherRole {
        id: "a".to_owned(),
        has: Role::Assistant,
    });
    let found = log.roster.may_speak("key_1", Some("a"), Some(Role::User));
    assert_eq!(found, other);
}

#[test]
fn a_change_that_could_not_be_read_back_is_refused() {
    let too_long = "x".repeat(crate::aitp::MAX_ID + 1);
    let capability = Capability {
        schema: String::new(),
    };
    let declare = |capabilities: Vec<Capability>| ParticipantChange::Declare {
        actor_id: "a".to_owned(),
        capabilities,
    };
    let mut log = Log::new(Some(json!({"actors": [{"id": "a"}]})));
    for (change, pointer) in [
        (join(&too_long, None), "/actor/id"),
        (join("", None), "/actor/id"),
        (leave(""), "/actor_id"),
        (declare(vec![capability.clone()]), "/capabilities/0/schema"),
        (declare(vec![capability; 65]), "/capabilities"),
    ] {
        match log.change(change) {
            Err(ChangeRefused::Unfit(wrong)) => assert_eq!(wrong.pointer, pointer),
            other => panic!("{pointer}: {other:?}"),
        }
    }
}

#[test]
fn metadata_is_kept_where_its_actors_can_not_be_read() {
    let metadata = json!({"colour": "red", "actors": "not json", "parent_id": 7});
    let mut log = Log::new(Some(metadata.clone()));
    let thread = log.state.thread().unwrap().clone();
    assert_eq!(Value::Object(log.roster.metadata(&thread)), metadata);
    log.change(join("a", None)).unwrap();
    let written = log.roster.metadata(&thread);
    assert_eq!(written["colour"], "red");
    assert_eq!(written["actors"][0]["id"], "a");
}

#[test]
fn actors_are_read_whatever_else_the_metadata_says() {
    let log = Log::new(Some(json!({"actors": [{"id": "a"}], "parent_id": 7})));
    assert!(log.roster.member("a").is_some());
}
