//! Quotes, payments, confirmations.

use super::*;

#[test]
fn a_wrapped_quote_is_the_quote_passed_on() {
    let mut thread = Thread::new();
    thread.say(&sample(Kind::Quote), ASKER).unwrap();
    assert_eq!(
        thread.say(&sample(Kind::WrappedQuote), AGENT),
        Ok(RequestEffect::Forwards)
    );
    let mut alone = Thread::new();
    assert_eq!(
        alone.say(&sample(Kind::WrappedQuote), AGENT),
        Ok(RequestEffect::Opens)
    );
    assert_eq!(
        alone.say(&sample(Kind::Payment), USER),
        Ok(RequestEffect::Answers)
    );
}

#[test]
fn a_quote_is_paid_once_unless_the_payment_failed() {
    let mut thread = Thread::new();
    let confirm =
        |result: &str| sample_with(Kind::PaymentConfirmation, |it| it["result"] = result.into());
    let paid = sample(Kind::Payment);
    thread.say(&sample(Kind::Quote), ASKER).unwrap();
    let q1 = || key(Topic::Payment, "q1");
    assert_eq!(
        thread.say(&confirm("success"), ASKER),
        Err(RequestRefusal::NotAnswered(q1()))
    );
    assert_eq!(thread.say(&paid, USER), Ok(RequestEffect::Answers));
    let twice = Err(RequestRefusal::AnsweredBefore(q1()));
    assert_eq!(thread.say(&paid, USER), twice);
    assert_eq!(
        thread.say(&confirm("success"), USER),
        Err(RequestRefusal::NotTheAsker(q1()))
    );
    assert_eq!(
        thread.say(&confirm("pending"), ASKER),
        Ok(RequestEffect::Settles(Settlement::Pending))
    );
    assert_eq!(thread.say(&paid, USER), twice);
    assert_eq!(
        thread.say(&confirm("failure"), ASKER),
        Ok(RequestEffect::Settles(Settlement::Failure))
    );
    assert_eq!(thread.say(&paid, USER), Ok(RequestEffect::Replaces));
    assert_eq!(
        thread.say(&confirm("success"), ASKER),
        Ok(RequestEffect::Settles(Settlement::Success))
    );
    assert_eq!(thread.say(&paid, USER), twice);
}

#[test]
fn two_payments_in_one_item_are_refused() {
    let mut thread = Thread::new();
    thread.say(&sample(Kind::Quote), ASKER).unwrap();
    let paid = sample(Kind::Payment);
    let refused = thread
        .ledger
        .check_all([&paid, &paid], &Party::Initiator, thread.at);
    let twice = RequestRefusal::AnsweredBefore(key(Topic::Payment, "q1"));
    assert_eq!(refused, Err((1, twice)));
}

#[test]
fn a_payment_that_the_payer_says_has_failed_can_be_made_again() {
    let mut thread = Thread::new();
    let failed = sample_with(Kind::PaymentAuthorization, |it| {
        it["result"] = "failure".into();
    });
    let paid = sample(Kind::PaymentAuthorization);
    thread.say(&near_quote(), ASKER).unwrap();
    assert_eq!(thread.say(&failed, USER), Ok(RequestEffect::Answers));
    assert_eq!(thread.say(&failed, USER), Ok(RequestEffect::Replaces));
    assert_eq!(thread.say(&paid, USER), Ok(RequestEffect::Replaces));
    let twice = Err(RequestRefusal::AnsweredBefore(key(Topic::Payment, "q1")));
    assert_eq!(thread.say(&paid, USER), twice);
    assert_eq!(thread.say(&failed, USER), twice);
}
