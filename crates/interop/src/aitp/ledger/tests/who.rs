//! The parties that may post each message.

use super::*;

#[test]
fn only_those_who_declared_it_and_the_one_who_began_may_answer() {
    let mut thread = Thread::new();
    thread.say(&sample(Kind::RequestDecision), ASKER).unwrap();
    let answer = sample(Kind::Decision);
    let own = RequestRefusal::OwnRequest(key(Topic::Decision, "d1"));
    assert_eq!(thread.say(&answer, ASKER), Err(own));
    assert!(matches!(
        thread.say(&answer, MUTE),
        Err(RequestRefusal::NotDeclared { .. })
    ));
    let stranger = PartyBinding {
        actor: Some("stranger"),
        ..AGENT
    };
    assert_eq!(thread.party(stranger), None);
    thread.record(&[&answer], stranger);
    assert_eq!(thread.state(Topic::Decision, "d1"), RequestState::Open);
    assert!(matches!(
        thread.say(&answer, GUEST),
        Err(RequestRefusal::NotAnActor { .. })
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
    assert_eq!(thread.say(&answer, USER), Ok(RequestEffect::Answers));
}

#[test]
fn in_a_thread_without_actors_everyone_else_may_answer() {
    let mut thread = Thread::empty();
    thread.say(&sample(Kind::RequestDecision), USER).unwrap();
    assert!(thread.check(&sample(Kind::Decision), USER).is_err());
    assert_eq!(
        thread.say(&sample(Kind::Decision), GUEST),
        Ok(RequestEffect::Answers)
    );
}

#[test]
fn only_the_asker_takes_a_request_back() {
    let mut thread = Thread::new();
    thread.say(&sample(Kind::RequestDecision), ASKER).unwrap();
    let cancel = sample(Kind::Cancel);
    let refused = RequestRefusal::NotTheAsker(key(Topic::Decision, "d1"));
    assert_eq!(thread.say(&cancel, USER), Err(refused));
    assert_eq!(thread.say(&cancel, ASKER), Ok(RequestEffect::Cancels));
    let refused = late(Topic::Decision, "d1", RequestState::Cancelled);
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
        Ok(RequestEffect::Forwards),
        "it is passed on"
    );
    let other = sample_with(Kind::RequestDecision, |it| {
        it["options"] = json!([{"id": "x"}]);
    });
    let in_use = RequestRefusal::IdInUse(key(Topic::Decision, "d1"));
    assert_eq!(thread.say(&other, AGENT), Err(in_use));
    assert_eq!(thread.say(&other, ASKER), Ok(RequestEffect::Supersedes));
    let states: Vec<RequestState> = thread
        .ledger
        .requests()
        .map(|it| it.state(thread.at))
        .collect();
    assert_eq!(states, [RequestState::Superseded, RequestState::Open]);
    let unfit = thread.say(&sample(Kind::Decision), USER);
    assert!(
        matches!(unfit, Err(RequestRefusal::Unfit(_))),
        "the options are others now"
    );
}

#[test]
fn nobody_takes_the_id_of_anothers_request_also_when_that_is_closed() {
    let mut thread = Thread::new();
    let ask = sample(Kind::RequestDecision);
    thread.say(&ask, ASKER).unwrap();
    thread.say(&sample(Kind::Decision), USER).unwrap();
    let other = sample_with(Kind::RequestDecision, |it| {
        it["options"] = json!([{"id": "soup"}]);
    });
    let taken = RequestRefusal::IdInUse(key(Topic::Decision, "d1"));
    assert_eq!(thread.say(&other, AGENT), Err(taken));
    let refused = late(Topic::Decision, "d1", RequestState::Answered);
    assert_eq!(thread.say(&ask, AGENT), refused, "nor passed on");
    assert_eq!(
        thread.say(&other, ASKER),
        Ok(RequestEffect::Opens),
        "its own"
    );
}

#[test]
fn an_actor_is_not_the_agent_of_its_name() {
    let mut thread = Thread::empty();
    thread.run(Command::Start {
        trigger: Trigger::New(NewItem::user("u", json!([]).into())),
        run: Some(json!({"agent": "shop"}).into()),
        execution_id: "e".into(),
        reaction_item_id: "a".into(),
        step_id: "s".into(),
        workflow_run_id: None,
    });
    thread.run(Command::Respond {
        parts: vec![sample(Kind::RequestDecision).output_part().into()],
        response: json!({}).into(),
    });
    thread.run(Command::ImportStep {
        outcome: StepOutcome::default(),
        next: None,
    });
    thread.run(Command::End {
        ending: Ending::Completed,
    });
    let agent = Party::Agent("shop".into());
    assert_eq!(thread.ledger.requests().next().unwrap().ask.by, agent);
    let change = ParticipantChange::Join {
        actor: Actor::new("shop", []),
        principal: Some("key_1".to_owned()),
        initiator: false,
    };
    let item = change.into_item("join").unwrap();
    thread.run(Command::Record { item });
    let refused = RequestRefusal::NotTheAsker(key(Topic::Decision, "d1"));
    assert_eq!(thread.say(&sample(Kind::Cancel), ASKER), Err(refused));
}

#[test]
fn what_an_actor_asked_who_left_is_open_no_longer() {
    let mut thread = Thread::new();
    thread.say(&sample(Kind::RequestDecision), ASKER).unwrap();
    let others = sample(Kind::RequestData);
    thread.say(&others, AGENT).unwrap();
    let leave = ParticipantChange::Leave {
        actor_id: "shop".to_owned(),
    };
    let item = leave.into_item("leave").unwrap();
    thread.run(Command::Record { item });
    assert_eq!(thread.state(Topic::Decision, "d1"), RequestState::Cancelled);
    assert_eq!(thread.state(Topic::Data, "f1"), RequestState::Open);
    let refused = late(Topic::Decision, "d1", RequestState::Cancelled);
    assert_eq!(thread.say(&sample(Kind::Decision), USER), refused);
    assert_eq!(thread.party(ASKER), None, "nor does it ask any more");
}

#[test]
fn the_actor_that_began_the_thread_is_one_party_under_both_names() {
    let mut thread = Thread::empty();
    let join = ParticipantChange::Join {
        actor: Actor::new("shop", []),
        principal: None,
        initiator: false,
    };
    let item = join.into_item("join").unwrap();
    thread.run(Command::Record { item });
    // It asks before anybody knows that it began the thread, and then speaks as user.
    thread.say(&sample(Kind::RequestDecision), ASKER).unwrap();
    let ask = thread.ledger.requests().next().unwrap().ask.clone();
    assert_eq!(ask.by, Party::Actor("shop".into()));
    let as_user = PartyBinding {
        role: Some(Role::User),
        ..ASKER
    };
    thread.record(&[], as_user);
    let own = RequestRefusal::OwnRequest(key(Topic::Decision, "d1"));
    for party in [Party::Initiator, Party::Actor("shop".into())] {
        let found = thread.ledger.may_answer(&ask, &party);
        assert_eq!(found, Err(own.clone()));
        let cancel = thread
            .ledger
            .check(&sample(Kind::Cancel), &party, thread.at);
        assert!(cancel.is_ok(), "{cancel:?}");
    }
    assert_eq!(thread.say(&sample(Kind::Decision), USER), Err(own));
    assert_eq!(
        thread.say(&sample(Kind::Cancel), USER),
        Ok(RequestEffect::Cancels)
    );
}

#[test]
fn wallets_of_two_chains_are_told_apart_by_the_schema_of_the_request() {
    let mut thread = Thread::new();
    let both = [Kind::NearRequestSigning, Kind::EvmRequestSigning];
    for kind in both {
        thread.say(&sample(kind), ASKER).unwrap();
    }
    let decline = |schema: Option<String>| {
        sample_with(Kind::Decline, |it| {
            it["request_id"] = "r1".into();
            it["request_type"] = "request_message_signing".into();
            if let Some(schema) = schema {
                it["request_schema"] = schema.into();
            }
        })
    };
    let unclear = thread.say(&decline(None), USER);
    assert!(matches!(unclear, Err(RequestRefusal::Ambiguous(_))));
    let other = decline(Some("https://example.com/poll.json".to_owned()));
    assert!(matches!(
        thread.say(&other, USER),
        Err(RequestRefusal::Unknown(_))
    ));
    let evm = decline(Some(sample(Kind::EvmRequestSigning).schema));
    assert_eq!(thread.say(&evm, USER), Ok(RequestEffect::Declines));
    assert_eq!(
        thread.state(Topic::EvmSigning, "r1"),
        RequestState::Declined
    );
    assert_eq!(thread.state(Topic::NearSigning, "r1"), RequestState::Open);
}

#[test]
fn an_asker_takes_back_its_own_of_two_requests_of_an_id() {
    let mut thread = Thread::new();
    thread.say(&sample(Kind::RequestDecision), ASKER).unwrap();
    let form = sample_with(Kind::RequestData, |it| it["id"] = "d1".into());
    thread.say(&form, AGENT).unwrap();
    assert_eq!(
        thread.say(&sample(Kind::Cancel), ASKER),
        Ok(RequestEffect::Cancels)
    );
    assert_eq!(thread.state(Topic::Decision, "d1"), RequestState::Cancelled);
    assert_eq!(thread.state(Topic::Data, "d1"), RequestState::Open);
    let refused = RequestRefusal::NotTheAsker(key(Topic::Data, "d1"));
    assert!(matches!(
        thread.say(&sample(Kind::Cancel), MUTE),
        Err(RequestRefusal::NotTheAsker(_))
    ));
    let expire = sample_with(Kind::Expire, |it| {
        it["request_type"] = "request_data".into();
    });
    assert_eq!(thread.say(&expire, ASKER), Err(refused));
}
