//! Who may say what.

use super::*;

#[test]
fn only_those_who_declared_it_and_the_one_who_began_may_answer() {
    let mut thread = Thread::new();
    thread.say(&sample(Kind::RequestDecision), ASKER).unwrap();
    let answer = sample(Kind::Decision);
    let own = Refusal::OwnRequest(key(Topic::Decision, "d1"));
    assert_eq!(thread.say(&answer, ASKER), Err(own));
    assert!(matches!(
        thread.say(&answer, MUTE),
        Err(Refusal::NotDeclared { .. })
    ));
    let stranger = Speaker {
        actor: Some("stranger"),
        ..AGENT
    };
    assert!(matches!(
        thread.say(&answer, stranger),
        Err(Refusal::NotAnActor { .. })
    ));
    let nobody = Speaker {
        actor: None,
        ..AGENT
    };
    assert!(matches!(
        thread.say(&answer, nobody),
        Err(Refusal::NotAnActor { .. })
    ));
    let ask = thread
        .ledger
        .request(&key(Topic::Decision, "d1"))
        .unwrap()
        .ask
        .clone();
    let agent = Party::Actor("assistant".into());
    assert_eq!(thread.ledger.answerers(&ask), [Party::Initiator, agent]);
    let decline = sample(Kind::Decline);
    assert!(
        thread.say(&decline, MUTE).is_err(),
        "nor may others decline"
    );
    assert_eq!(thread.say(&answer, USER), Ok(Effect::Answers));
}

#[test]
fn in_a_thread_without_actors_everyone_else_may_answer() {
    let mut thread = Thread::empty();
    thread.say(&sample(Kind::RequestDecision), USER).unwrap();
    assert!(thread.check(&sample(Kind::Decision), USER).is_err());
    assert_eq!(
        thread.say(&sample(Kind::Decision), AGENT),
        Ok(Effect::Answers)
    );
}

#[test]
fn only_the_asker_takes_a_request_back() {
    let mut thread = Thread::new();
    thread.say(&sample(Kind::RequestDecision), ASKER).unwrap();
    let cancel = sample(Kind::Cancel);
    let refused = Refusal::NotTheAsker(key(Topic::Decision, "d1"));
    assert_eq!(thread.say(&cancel, USER), Err(refused));
    assert_eq!(thread.say(&cancel, ASKER), Ok(Effect::Cancels));
    let refused = late(Topic::Decision, "d1", State::Cancelled);
    assert_eq!(thread.say(&sample(Kind::Decision), USER), refused);
    assert_eq!(thread.say(&cancel, ASKER), refused);
}

#[test]
fn who_asks_again_under_an_id_takes_back_what_was_asked() {
    let mut thread = Thread::new();
    let ask = sample(Kind::RequestDecision);
    thread.say(&ask, ASKER).unwrap();
    assert_eq!(
        thread.say(&ask, AGENT),
        Ok(Effect::Forwards),
        "it is passed on"
    );
    let other = sample_with(Kind::RequestDecision, |it| {
        it["options"] = json!([{"id": "x"}]);
    });
    let in_use = Refusal::IdInUse(key(Topic::Decision, "d1"));
    assert_eq!(thread.say(&other, AGENT), Err(in_use));
    assert_eq!(thread.say(&other, ASKER), Ok(Effect::Supersedes));
    let states: Vec<State> = thread
        .ledger
        .requests()
        .map(|it| it.state(thread.at))
        .collect();
    assert_eq!(states, [State::Superseded, State::Open]);
    let unfit = thread.say(&sample(Kind::Decision), USER);
    assert!(
        matches!(unfit, Err(Refusal::Unfit(_))),
        "the options are others now"
    );
}
