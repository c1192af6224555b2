//! Requests that end without an answer, and answers that come late.

use super::*;

#[test]
fn an_answer_after_the_end_is_late() {
    let mut thread = Thread::new();
    thread.say(&sample(Kind::Quote), ASKER).unwrap();
    thread.later("2026-01-06T08:00:00Z");
    assert_eq!(
        thread.check(&sample(Kind::Payment), USER),
        Ok(RequestEffect::Answers),
        "the last instant"
    );
    thread.later("2026-01-06T08:00:00.001Z");
    assert_eq!(thread.state(Topic::Payment, "q1"), RequestState::Expired);
    assert!(thread.ledger.pending(thread.at).is_empty());
    let refused = late(Topic::Payment, "q1", RequestState::Expired);
    assert_eq!(thread.say(&sample(Kind::Payment), USER), refused);
    let request = thread.ledger.request(&key(Topic::Payment, "q1")).unwrap();
    assert_eq!((request.answers.len(), request.late.len()), (0, 1));
}

#[test]
fn the_asker_sets_an_end_to_any_request() {
    let mut thread = Thread::new();
    let limit = sample(Kind::Expire);
    assert_eq!(
        thread.check(&limit, ASKER),
        Err(RequestRefusal::Unknown("d1".into()))
    );
    // Both at once, as one item.
    let ask = sample(Kind::RequestDecision);
    let verdicts =
        thread
            .ledger
            .check_all([&ask, &limit], &thread.party(ASKER).unwrap(), thread.at);
    assert_eq!(verdicts.unwrap().len(), 2);
    thread.record(&[&ask, &limit], ASKER);
    thread.later("2026-01-05T09:00:01Z");
    let refused = late(Topic::Decision, "d1", RequestState::Expired);
    assert_eq!(thread.say(&sample(Kind::Decision), USER), refused);
    assert_eq!(
        thread.say(&limit, ASKER),
        refused,
        "nor can it be opened again"
    );
}

#[test]
fn requests_may_say_their_end_themselves() {
    let end = "2026-01-05T09:00:00Z";
    let form = sample_with(Kind::RequestData, |it| it["expires_at"] = end.into());
    let priced = sample_with(Kind::RequestDecision, |it| {
        let quote = |end: &str| json!({"valid_until": end});
        it["options"] = json!([{"id": "a", "quote": quote("2026-01-05T08:30:00Z")}, {"id": "b", "quote": quote(end)}]);
    });
    let mut near = near_quote();
    near.value["quote"]["valid_until"] = end.into();
    for (message, topic, id) in [
        (form, Topic::Data, "f1"),
        (priced, Topic::Decision, "d1"),
        (near, Topic::Payment, "q1"),
    ] {
        let mut thread = Thread::new();
        thread.say(&message, ASKER).unwrap();
        thread.later(end);
        assert_eq!(thread.state(topic, id), RequestState::Open);
        thread.later("2026-01-05T09:00:01Z");
        assert_eq!(thread.state(topic, id), RequestState::Expired);
    }
}

#[test]
fn a_declined_request_is_not_answered_any_more() {
    let mut thread = Thread::new();
    thread.say(&sample(Kind::RequestDecision), ASKER).unwrap();
    assert_eq!(
        thread.say(&sample(Kind::Decline), USER),
        Ok(RequestEffect::Declines)
    );
    let request = thread.ledger.request(&key(Topic::Decision, "d1")).unwrap();
    let declined = Refusing {
        by: Party::Initiator,
        reason: Some("Not hungry".into()),
        code: None,
    };
    assert_eq!(request.life.status, RequestStatus::Declined(declined));
    let refused = late(Topic::Decision, "d1", RequestState::Declined);
    assert_eq!(thread.say(&sample(Kind::Decision), USER), refused);
    let request = thread.ledger.request(&key(Topic::Decision, "d1")).unwrap();
    assert_eq!(
        (request.answers.len(), request.late.len()),
        (0, 1),
        "it is remembered"
    );
}

#[test]
fn an_error_says_why_there_is_no_answer() {
    let mut thread = Thread::new();
    thread.say(&sample(Kind::RequestDecision), ASKER).unwrap();
    assert_eq!(
        thread.say(&sample(Kind::Error), AGENT),
        Ok(RequestEffect::Fails)
    );
    let request = thread.ledger.request(&key(Topic::Decision, "d1")).unwrap();
    let RequestStatus::Declined(why) = &request.life.status else {
        panic!("{:?}", request.life);
    };
    assert_eq!(why.code.as_deref(), Some("unsupported"));
    assert_eq!(why.reason.as_deref(), Some("No screen"));
}

#[test]
fn an_answer_is_not_replaced_after_the_end() {
    let end = "2026-01-05T09:00:00Z";
    let form = sample_with(Kind::RequestData, |it| it["expires_at"] = end.into());
    let edited = |to: &str| sample_with(Kind::Data, |it| it["fields"][0]["value"] = to.into());
    let mut thread = Thread::new();
    thread.say(&form, ASKER).unwrap();
    thread.say(&sample(Kind::Data), USER).unwrap();
    thread.later(end);
    let last = thread.say(&edited("fr"), USER);
    assert_eq!(last, Ok(RequestEffect::Replaces), "the last instant");
    thread.later("2026-01-05T09:00:00.001Z");
    let refused = late(Topic::Data, "f1", RequestState::Expired);
    assert_eq!(thread.say(&edited("de"), USER), refused);
    let request = thread.ledger.request(&key(Topic::Data, "f1")).unwrap();
    let given = request.answer().unwrap().payload.as_ref();
    assert_eq!(given.map(Payload::value).as_ref(), edited("fr").payload());
    assert_eq!((request.answers.len(), request.late.len()), (2, 1));
}
