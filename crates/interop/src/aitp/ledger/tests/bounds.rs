//! Bounds on the ledger's size and on the cost of a record.

use super::*;
use crate::aitp::{MAX_ID, MAX_MESSAGES};

#[test]
fn each_party_has_a_bounded_number_of_open_requests() {
    let mut thread = Thread::new();
    let ask = |n: usize| {
        sample_with(Kind::RequestData, |it| {
            it["id"] = n.to_string().into();
            it["expires_at"] = "2026-01-05T09:00:00Z".into();
            it["form"] = json!({"fields": [{"id": "a"}]});
        })
    };
    for n in 0..MAX_OPEN {
        thread.record(&[&ask(n)], ASKER);
    }
    assert_eq!(
        thread.say(&ask(MAX_OPEN), ASKER),
        Err(RequestRefusal::TooManyOpen)
    );
    let own = sample(Kind::RequestDecision);
    assert_eq!(
        thread.check(&own, AGENT),
        Ok(RequestEffect::Opens),
        "nobody's are counted for another"
    );
    let again = thread.say(&ask(0), ASKER);
    assert_eq!(
        again,
        Ok(RequestEffect::Supersedes),
        "which is one as before"
    );
    let cancel = sample_with(Kind::Cancel, |it| it["request_id"] = "7".into());
    let party = thread.party(ASKER).unwrap();
    let checked = thread
        .ledger
        .check_all([&cancel, &ask(MAX_OPEN)], &party, thread.at);
    assert!(checked.is_ok(), "one goes and one comes: {checked:?}");
    thread.later("2026-01-05T10:00:00Z");
    let open = sample(Kind::RequestDecision);
    assert_eq!(
        thread.say(&open, ASKER),
        Ok(RequestEffect::Opens),
        "the rest is over"
    );
    assert_eq!(thread.ledger.pending(thread.at).len(), 1);
}

fn ask(id: usize) -> Message {
    sample_with(Kind::RequestDecision, |it| it["id"] = id.to_string().into())
}

#[test]
fn of_what_somebody_asked_the_last_is_remembered() {
    let mut thread = Thread::new();
    let others = sample_with(Kind::RequestDecision, |it| it["id"] = "other".into());
    thread.say(&others, AGENT).unwrap();
    let cancel = |id: &str| sample_with(Kind::Cancel, |it| it["request_id"] = id.to_owned().into());
    thread.say(&cancel("other"), AGENT).unwrap();
    for id in 0..MAX_CLOSED + 5 {
        thread.say(&ask(id), ASKER).unwrap();
        thread.say(&cancel(&id.to_string()), ASKER).unwrap();
    }
    assert_eq!(thread.ledger.requests().count(), MAX_CLOSED + 1);
    let known = |id: &str| thread.ledger.request(&key(Topic::Decision, id)).is_some();
    assert!(
        !known("4") && known("5"),
        "what was asked first is forgotten"
    );
    assert!(known("other"), "nobody's is forgotten for another's");
}

#[test]
fn a_request_that_was_open_for_long_is_remembered_when_it_is_answered() {
    let mut thread = Thread::new();
    thread.say(&sample(Kind::Quote), ASKER).unwrap();
    let cancel =
        |id: usize| sample_with(Kind::Cancel, |it| it["request_id"] = id.to_string().into());
    for id in 0..MAX_CLOSED {
        thread.say(&ask(id), ASKER).unwrap();
        thread.say(&cancel(id), ASKER).unwrap();
    }
    thread.say(&sample(Kind::Payment), USER).unwrap();
    let confirmed = thread.say(&sample(Kind::PaymentConfirmation), ASKER);
    assert_eq!(confirmed, Ok(RequestEffect::Settles(Settlement::Success)));
}

#[test]
fn an_item_with_too_many_messages_counts_for_nothing() {
    let mut thread = Thread::new();
    let asks: Vec<Message> = (0..=MAX_MESSAGES).map(ask).collect();
    let all: Vec<&Message> = asks.iter().collect();
    thread.record(&all, ASKER);
    assert_eq!(thread.ledger.requests().count(), 0);
    thread.record(&all[1..], ASKER);
    assert_eq!(thread.ledger.requests().count(), MAX_MESSAGES);
}

#[test]
fn only_the_first_few_are_named_where_many_could_be_meant() {
    let mut thread = Thread::new();
    for id in 0..20 {
        thread.say(&ask(id), ASKER).unwrap();
    }
    let nameless = sample_with(Kind::Decision, |it| {
        it.as_object_mut().unwrap().remove("request_decision_id");
    });
    let Err(RequestRefusal::Ambiguous(first)) = thread.check(&nameless, USER) else {
        panic!("many are open");
    };
    assert_eq!(first.len(), 8);
    assert_eq!(first[0], key(Topic::Decision, "0"));
}

#[test]
fn ids_and_reasons_have_a_length() {
    let mut thread = Thread::new();
    let long = sample_with(Kind::RequestDecision, |it| {
        it["id"] = "x".repeat(MAX_ID + 1).into();
    });
    let Err(RequestRefusal::Unfit(wrong)) = thread.say(&long, ASKER) else {
        panic!("it is too long");
    };
    assert_eq!(wrong[0].pointer, "/request_decision/id");
    thread.say(&sample(Kind::RequestDecision), ASKER).unwrap();
    // Nor is an answer with such an id one without an id.
    let answer = sample_with(Kind::Decision, |it| {
        it["request_decision_id"] = "x".repeat(MAX_ID + 1).into();
    });
    assert!(matches!(
        thread.say(&answer, USER),
        Err(RequestRefusal::Unfit(_))
    ));
    let decline = sample_with(Kind::Decline, |it| {
        it["reason"] = "x".repeat(MAX_REASON + 1).into();
    });
    let Err(RequestRefusal::Unfit(wrong)) = thread.say(&decline, USER) else {
        panic!("it is too long");
    };
    assert_eq!(wrong[0].pointer, "/decline/reason");
}

#[test]
fn a_request_has_a_bounded_number_of_answers() {
    let mut thread = Thread::new();
    thread.say(&sample(Kind::RequestDecision), ASKER).unwrap();
    let answer = sample(Kind::Decision);
    for _ in 0..MAX_ANSWERS {
        thread.say(&answer, USER).unwrap();
    }
    assert_eq!(
        thread.say(&answer, USER),
        Err(RequestRefusal::TooManyAnswers)
    );
    let request = thread.ledger.requests().next().unwrap();
    let n_kept = request.answers.iter().filter(|it| it.payload.is_some());
    assert_eq!((request.answers.len(), n_kept.count()), (MAX_ANSWERS, 1));
}
