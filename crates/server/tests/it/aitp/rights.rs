//! Who may speak as whom.

use super::{Meeting, reason, seat, window};
use crate::harness::Answer;
use serde_json::{Value, json};

fn error(answer: &Answer) -> (u16, Value, Value) {
    let error = answer.json()["error"].clone();
    (
        answer.status.as_u16(),
        error["code"].clone(),
        error["param"].clone(),
    )
}

#[tokio::test]
async fn nobody_speaks_through_another_key() {
    let meeting = Meeting::new().await;
    let actor = json!("metadata.actor");
    let forbidden = (403, json!("forbidden_actor"), actor.clone());
    let invalid = (422, json!("invalid_actor"), actor);
    for (client, role, named, expected) in [
        (&meeting.helper, "assistant", Some("shop"), &forbidden),
        (&meeting.user, "assistant", Some("shop"), &forbidden),
        // Who is an actor says so.
        (&meeting.helper, "assistant", None, &forbidden),
        (&meeting.helper, "user", None, &forbidden),
        (&meeting.user, "assistant", Some("stranger"), &invalid),
        (&meeting.shop, "user", Some("shop"), &invalid),
    ] {
        let refused = meeting.record(client, role, named, "hello").await;
        assert_eq!(&error(&refused), expected, "{role} {named:?}");
    }
    let texts = meeting.texts().await;
    assert_eq!(texts.iter().filter(|text| *text == "hello").count(), 1);
    let said = meeting
        .record(&meeting.shop, "assistant", Some("shop"), "welcome")
        .await;
    assert_eq!(said.json()["metadata"]["actor"], "shop");
}

#[tokio::test]
async fn a_key_that_may_speak_only_as_its_actor_does_nothing_else() {
    let meeting = Meeting::keys("").await;
    meeting.user.say("t", "hello").await;
    let join = |id: &str| {
        let body = json!({"actor": {"id": id, "capabilities": [super::DECISIONS]}});
        meeting.only.post("/api/v1/threads/t/actors", body)
    };
    let refused = join("shop").await;
    let expected = (403, "forbidden_actor".into(), Some("/actor/id".into()));
    assert_eq!(refused.error(), expected);
    assert_eq!(join("helper").await.status, 201);
    super::join(&meeting.shop, "shop", &[]).await;
    meeting.ask(&seat(None)).await;
    for named in [Some("shop"), Some("other")] {
        let refused = meeting
            .record(&meeting.only, "assistant", named, "hello")
            .await;
        assert_eq!(error(&refused).0, 403, "{}", refused.text);
    }
    let text = window().to_string();
    let said = meeting
        .record(&meeting.only, "assistant", Some("helper"), &text)
        .await;
    assert_eq!(said.status, 200, "{}", said.text);
    // The form's answer is its actor's without saying so.
    let body = json!({"value": {"option": "aisle"}});
    let said = meeting
        .about(&meeting.only, "decision:seat", "answer", body)
        .await;
    assert_eq!(said.json()["request"]["answer"]["by"]["id"], "helper");
    let body = json!({"value": {"option": "aisle"}, "actor": "shop"});
    let refused = meeting
        .about(&meeting.only, "decision:seat", "answer", body)
        .await;
    let expected = (403, "forbidden_actor".into(), Some("/actor".into()));
    assert_eq!(refused.error(), expected);
}

#[tokio::test]
async fn who_may_not_speak_as_the_one_who_began_a_thread_does_not_do_so_namelessly() {
    let meeting = Meeting::keys("").await;
    let body = json!({"metadata": {"actors": [{"id": "ada"}]}, "messages": [
        {"role": "user", "content": "hello", "metadata": {"actor": "ada"}},
    ]});
    let made = meeting.user.post("/v1/threads", body).await.json();
    let path = format!("/v1/threads/{}/messages", made["id"].as_str().unwrap());
    let body = json!({"role": "user", "content": "me, too"});
    let refused = meeting.only.post(&path, body.clone()).await;
    assert_eq!(error(&refused).1, "forbidden_actor");
    assert_eq!(meeting.user.post(&path, body).await.status, 200);
}

#[tokio::test]
async fn appended_messages_do_not_speak_as_the_one_who_began_a_thread() {
    let meeting = Meeting::keys("").await;
    let body = json!({"metadata": {"actors": [{"id": "ada"}]}, "messages": [
        {"role": "user", "content": "hello", "metadata": {"actor": "ada"}},
    ]});
    assert_eq!(meeting.user.post("/v1/threads", body).await.status, 200);
    let threads = meeting.user.get("/api/v1/threads").await.json();
    let key = threads["threads"][0]["key"].as_str().unwrap();
    let path = format!("/api/v1/threads/{key}/import?from=pydantic-ai");
    let body =
        json!([{"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "me, too"}]}]);
    let refused = meeting.only.post(&path, body.clone()).await;
    assert_eq!(refused.error().1, "forbidden_actor");
    let taken = meeting.user.post(&path, body).await;
    assert_eq!(taken.status, 200, "{}", taken.text);
}

#[tokio::test]
async fn nobody_answers_their_own_request_or_one_that_is_not_for_them() {
    let meeting = Meeting::new().await;
    meeting.ask(&seat(None)).await;
    let body = json!({"value": {"option": "aisle"}});
    let own = meeting
        .about(&meeting.shop, "decision:seat", "answer", body)
        .await;
    let expected = |why: &str| (403, "request_forbidden".to_owned(), json!(why));
    assert_eq!(reason(&own), expected("own_request"));
    super::join(&meeting.user, "mute", &[]).await;
    let body = json!({"value": {"option": "aisle"}, "actor": "mute"});
    let mute = meeting
        .about(&meeting.user, "decision:seat", "answer", body)
        .await;
    assert_eq!(reason(&mute), expected("not_declared"));
}

#[tokio::test]
async fn who_answers_a_call_is_nobody_who_is_bound_to_another_key() {
    let meeting = Meeting::keys("[models.s]\nprovider = \"scripted\"\n[agents.a]\nmodel = \"s\"\ntools = [\"compute\"]\nrequires_approval = [\"compute\"]\n").await;
    meeting.user.say("t", "use compute 6 * 7").await;
    super::join(&meeting.shop, "shop", &[]).await;
    let pending = meeting.user.get("/api/v1/threads/t/pending").await.json();
    let call = pending["calls"][0]["toolCallId"].clone();
    let answers = |actor: &str| {
        let answer = json!({"toolCallId": call, "approved": true});
        let body = json!({"answers": [answer], "actor": actor});
        meeting.user.post("/api/v1/threads/t/answers", body)
    };
    let expected = (403, "forbidden_actor".into(), Some("/actor".into()));
    assert_eq!(answers("shop").await.error(), expected);
    assert_eq!(answers("ada").await.status, 202, "somebody is nobody here");
}

#[tokio::test]
async fn an_actor_stays_bound_to_the_successor_of_its_key() {
    let meeting = Meeting::new().await;
    let keys = super::keys(&[
        ("user", "llk_user", ""),
        ("shop", "llk_next", ""),
        ("other", "llk_shop", ""),
    ]);
    let config = loomline_server::Config::parse(&keys, &|_| None).unwrap();
    meeting.user.app.replace_tenants(&config.tenants).unwrap();
    let next = meeting.user.with_key("llk_next");
    let said = meeting
        .record(&next, "assistant", Some("shop"), "still me")
        .await;
    assert_eq!(said.status, 200, "{}", said.text);
    let former = meeting
        .record(&meeting.shop, "assistant", Some("shop"), "me, too")
        .await;
    assert_eq!(error(&former).1, "forbidden_actor");
}
