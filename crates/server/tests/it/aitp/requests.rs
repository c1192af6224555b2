//! The life of requests: asked, answered, declined, taken back, too late.

use super::{Meeting, address, paid, quote, reason, seat, window};
use serde_json::{Value, json};

#[tokio::test]
async fn a_decision_goes_round_and_its_last_answer_counts() {
    let meeting = Meeting::new().await;
    meeting.ask(&seat(None)).await;
    let asked = meeting.request("decision:seat").await;
    assert_eq!(
        (&asked["state"], &asked["title"], &asked["by"]),
        (
            &json!("open"),
            &json!("Which seat?"),
            &json!({"kind": "actor", "id": "shop"})
        )
    );
    let answerers = json!([{"kind": "initiator"}, {"kind": "actor", "id": "helper"}]);
    assert_eq!(asked["answerers"], answerers);
    assert_eq!(asked["answerSchema"]["required"], json!(["option"]));
    // The user fills in a form; the other actor speaks AITP.
    let body = json!({"value": {"option": "aisle"}});
    let said = meeting
        .about(&meeting.user, "decision:seat", "answer", body)
        .await;
    assert_eq!(said.status, 200, "{}", said.text);
    assert_eq!(said.json()["request"]["state"], "answered");
    let text = window().to_string();
    let said = meeting
        .record(&meeting.helper, "assistant", Some("helper"), &text)
        .await;
    assert_eq!(said.status, 200, "{}", said.text);
    let answered = meeting.request("decision:seat").await;
    assert_eq!(answered["nAnswers"], 2);
    assert_eq!(answered["answer"]["payload"]["options"][0]["id"], "window");
    assert_eq!(answered["answer"]["by"]["id"], "helper");
    // What was filled in is a capability message that everyone can read.
    let texts = meeting.texts().await;
    let form: Value = serde_json::from_str(&texts[texts.len() - 2]).unwrap();
    let expected = json!({"$schema": super::DECISIONS, "decision": {
        "request_decision_id": "seat", "options": [{"id": "aisle"}],
    }});
    assert_eq!(form, expected);
    assert!(meeting.listed("").await.is_empty());
    assert_eq!(meeting.listed("?state=answered").await, ["decision:seat"]);
}

#[tokio::test]
async fn a_form_goes_round_and_is_held_to_its_fields() {
    let meeting = Meeting::new().await;
    meeting.ask(&address()).await;
    let answer = |value: Value| {
        let body = json!({ "value": value });
        meeting.about(&meeting.user, "data:address", "answer", body)
    };
    let wrong = answer(json!({"floor": 3})).await;
    let refused = (422, "invalid_request_answer".into(), Some("/value".into()));
    assert_eq!(wrong.error(), refused);
    assert!(wrong.text.contains("city"), "{}", wrong.text);
    let wrong = answer(json!({"city": "Bonn", "floor": "third"})).await;
    assert_eq!(wrong.error().2.as_deref(), Some("/value/floor"));
    assert!(!wrong.text.contains("third"), "what is filled in stays out");
    let said = answer(json!({"city": "Bonn", "floor": 3})).await.json();
    let fields = json!([{"id": "city", "value": "Bonn"}, {"id": "floor", "value": "3"}]);
    assert_eq!(said["request"]["answer"]["payload"]["fields"], fields);
    // The other actor did not declare that it reads forms.
    let text = json!({"$schema": super::DATA, "data": {"request_data_id": "address", "fields": [{"id": "city", "value": "Rome"}]}});
    let refused = meeting
        .record(
            &meeting.helper,
            "assistant",
            Some("helper"),
            &text.to_string(),
        )
        .await;
    let message = refused.json()["error"]["code"].clone();
    assert_eq!(
        (refused.status.as_u16(), message),
        (403, json!("request_forbidden"))
    );
}

#[tokio::test]
async fn a_payment_is_made_once() {
    let meeting = Meeting::new().await;
    meeting.ask(&quote()).await;
    let asked = meeting.request("payment:hat").await;
    assert!(asked["description"].as_str().unwrap().contains("12.50"));
    assert_eq!(asked["signed"]["quote_id"], "hat");
    let pay = || {
        let body = json!({ "value": paid() });
        meeting.about(&meeting.user, "payment:hat", "answer", body)
    };
    let said = pay().await.json();
    assert_eq!(said["request"]["answer"]["messageType"], "payment");
    let again = pay().await;
    let twice = (409, "request_refused".into(), json!("answered_before"));
    assert_eq!(reason(&again), twice);
    // The shop says what came of it; a payment that failed can be made again.
    let result = |result: &str| {
        json!({"$schema": super::PAYMENTS, "payment_confirmation": {
            "quote_id": "hat", "payment_id": "p", "result": result,
            "timestamp": "2026-01-05T08:00:00Z", "merchant_signature": "ed25519:z",
        }})
    };
    meeting.ask(&result("failure")).await;
    assert_eq!(
        meeting.request("payment:hat").await["settlement"],
        "failure"
    );
    assert_eq!(pay().await.status, 200);
    meeting.ask(&result("success")).await;
    assert_eq!(reason(&pay().await), twice);
}

#[tokio::test]
async fn of_payments_at_once_one_is_taken() {
    let meeting = Meeting::new().await;
    meeting.ask(&quote()).await;
    let pay = || {
        let body = json!({ "value": paid() });
        meeting.about(&meeting.user, "payment:hat", "answer", body)
    };
    let all = futures_util::future::join_all((0..8).map(|_| pay())).await;
    let mut taken = 0;
    for answer in all {
        if answer.status == 200 {
            taken += 1;
        } else {
            let twice = (409, "request_refused".into(), json!("answered_before"));
            assert_eq!(reason(&answer), twice);
        }
    }
    assert_eq!(taken, 1);
    assert_eq!(meeting.request("payment:hat").await["nAnswers"], 1);
    let texts = meeting.texts().await;
    let payments = texts.iter().filter(|text| text.contains("\"payment\""));
    assert_eq!(payments.count(), 1, "the others are not recorded");
}

#[tokio::test]
async fn a_request_is_declined_reported_and_taken_back() {
    let meeting = Meeting::new().await;
    meeting.ask(&seat(None)).await;
    let why = json!({"reason": "I'd rather not fly."});
    let said = meeting
        .about(&meeting.user, "decision:seat", "decline", why)
        .await
        .json();
    assert_eq!(said["request"]["state"], "declined");
    assert_eq!(said["request"]["reason"], "I'd rather not fly.");
    assert_eq!(said["request"]["declinedBy"]["kind"], "initiator");
    // The same id asks again; now nobody can show it.
    meeting.ask(&seat(None)).await;
    let why = json!({"code": "unsupported", "reason": "No screen."});
    let said = meeting
        .about(&meeting.helper, "decision:seat", "decline", why)
        .await
        .json();
    assert_eq!(
        (
            &said["request"]["code"],
            &said["request"]["declinedBy"]["id"]
        ),
        (&json!("unsupported"), &json!("helper"))
    );
    meeting.ask(&seat(None)).await;
    let refused = meeting
        .about(&meeting.user, "decision:seat", "cancel", json!({}))
        .await;
    let expected = (403, "request_forbidden".into(), json!("not_the_asker"));
    assert_eq!(reason(&refused), expected);
    // There is no reason in the body that could be wrong.
    assert_eq!(refused.error().2, None);
    let own = meeting.about(&meeting.shop, "decision:seat", "decline", json!({}));
    let refused = own.await;
    let expected = (403, "request_forbidden".into(), json!("own_request"));
    assert_eq!((reason(&refused), refused.error().2), (expected, None));
    let code = json!({"code": "", "reason": "No screen."});
    let wrong = meeting.about(&meeting.helper, "decision:seat", "decline", code);
    let expected = (
        422,
        "invalid_capability_message".into(),
        Some("/code".into()),
    );
    assert_eq!(wrong.await.error(), expected);
    let why = json!({"reason": "The flight is full."});
    let said = meeting
        .about(&meeting.shop, "decision:seat", "cancel", why)
        .await
        .json();
    assert_eq!(said["request"]["state"], "cancelled");
    assert_eq!(said["request"]["reason"], "The flight is full.");
    let all = meeting.listed("?state=all").await;
    assert_eq!(all, ["decision:seat"; 3]);
    let refused = meeting
        .about(
            &meeting.user,
            "decision:seat",
            "answer",
            json!({"value": {"option": "aisle"}}),
        )
        .await;
    assert_eq!(reason(&refused).2, "late");
}

#[tokio::test]
async fn an_answer_that_comes_late_is_refused_and_the_state_said() {
    let meeting = Meeting::new().await;
    meeting.ask(&seat(Some("2020-01-01T00:00:00Z"))).await;
    assert!(meeting.listed("").await.is_empty());
    assert_eq!(meeting.listed("?state=expired").await, ["decision:seat"]);
    let asked = meeting.request("decision:seat").await;
    assert_eq!(
        (&asked["state"], &asked["expiresAt"]),
        (&json!("expired"), &json!("2020-01-01T00:00:00Z"))
    );
    let texts = meeting.texts().await;
    let body = json!({"value": {"option": "aisle"}});
    let refused = meeting
        .about(&meeting.user, "decision:seat", "answer", body)
        .await;
    assert_eq!(
        reason(&refused),
        (409, "request_refused".into(), json!("late"))
    );
    let details = &refused.json()["error"]["details"];
    assert_eq!(
        (&details["request"], &details["state"]),
        (&json!("decision:seat"), &json!("expired"))
    );
    // Also where the capability message comes by itself.
    let text = window().to_string();
    let refused = meeting.record(&meeting.user, "user", None, &text).await;
    assert_eq!(
        (
            refused.status.as_u16(),
            refused.json()["error"]["code"].clone()
        ),
        (409, json!("request_refused"))
    );
    assert_eq!(meeting.texts().await, texts, "nothing was recorded");
}

#[tokio::test]
async fn an_end_that_is_still_to_come_is_shown_and_can_be_moved() {
    let meeting = Meeting::new().await;
    meeting.ask(&seat(Some("2999-01-01T00:00:00Z"))).await;
    let list = meeting.user.get("/api/v1/threads/t/requests").await.json();
    assert_eq!(list["nextEnd"], "2999-01-01T00:00:00Z");
    let over = json!({"$schema": interop::aitp::REQUESTS, "expire": {
        "request_id": "seat", "expires_at": "2020-01-01T00:00:00Z",
    }});
    meeting.ask(&over).await;
    assert_eq!(meeting.request("decision:seat").await["state"], "expired");
}

#[tokio::test]
async fn what_was_never_asked_is_not_found() {
    let meeting = Meeting::new().await;
    let not_found = (404, "request_not_found".to_owned(), None);
    for request in ["decision:seat", "nonsense", "poll:1"] {
        let path = format!("/api/v1/threads/t/requests/{request}");
        assert_eq!(meeting.user.get(&path).await.error(), not_found);
        let body = json!({"value": {}});
        let answer = meeting.about(&meeting.user, request, "answer", body).await;
        assert_eq!(answer.error(), not_found);
    }
    let wrong = meeting
        .user
        .get("/api/v1/threads/t/requests?state=new")
        .await;
    assert_eq!(wrong.error().1, "invalid_query");
}

#[tokio::test]
async fn an_answer_that_is_repeated_under_its_token_is_given_once() {
    let meeting = Meeting::new().await;
    meeting.ask(&quote()).await;
    let pay = || {
        let request = meeting
            .user
            .request("POST", "/api/v1/threads/t/requests/payment:hat/answer")
            .header("content-type", "application/json")
            .header("idempotency-key", "once");
        let body = json!({ "value": paid() }).to_string();
        meeting.user.send(request.body(body.into()).unwrap())
    };
    let (first, again) = (pay().await, pay().await);
    assert_eq!((first.status.as_u16(), again.status.as_u16()), (200, 200));
    assert_eq!(first.json()["itemId"], again.json()["itemId"]);
    assert_eq!(again.headers["idempotent-replayed"], "true");
    assert_eq!(meeting.request("payment:hat").await["nAnswers"], 1);
}

#[tokio::test]
async fn requests_come_in_pages_and_for_whom_may_answer_them() {
    let meeting = Meeting::new().await;
    for n in 0..5 {
        let mut ask = seat(None);
        ask["request_decision"]["id"] = json!(format!("seat-{n}"));
        meeting.ask(&ask).await;
    }
    meeting.ask(&address()).await;
    let mut found = Vec::new();
    let mut after = 0;
    loop {
        let path = format!("/api/v1/threads/t/requests?limit=2&after={after}");
        let page = meeting.user.get(&path).await.json();
        let requests = page["requests"].as_array().unwrap();
        assert!(requests.len() <= 2);
        found.extend(requests.iter().map(|it| it["id"].clone()));
        match page["next"].as_u64() {
            Some(next) => after = next,
            None => break,
        }
    }
    assert_eq!(found.len(), 6);
    assert_eq!(found[5], "data:address");
    assert_eq!(meeting.listed("?actor=helper").await.len(), 5);
    assert!(meeting.listed("?actor=shop").await.is_empty());
    assert!(meeting.listed("?actor=stranger").await.is_empty());
}
