//! Messages that an agent elsewhere does not take.

use super::gate::{Asked, Gate};
use super::{PROTOCOLS, texts, threads};
use axum::response::{IntoResponse, Response};
use futures_util::future::BoxFuture;
use http::StatusCode;
use serde_json::{Value, json};
use std::sync::Arc;

/// The thread goes on there after a message that was refused.
async fn goes_on(gate: &Gate, protocol: &str) {
    gate.say("helper", "hello").await;
    gate.say("helper", "the bad one").await;
    let (reason, detail) = gate.why().await;
    assert_eq!(reason, "error", "{protocol}");
    assert!(detail.contains("not like that"), "{protocol}: {detail}");
    assert!(
        detail.contains("it is not sent this message again"),
        "{protocol}: {detail}"
    );
    gate.say("helper", "the good one").await;
    assert_eq!(
        gate.last().await,
        "You said: the good one",
        "{protocol}: {:?}",
        gate.why().await
    );
    let told = [
        "hello",
        "You said: hello",
        "the good one",
        "You said: the good one",
    ];
    assert_eq!(gate.there().await, [told], "{protocol}");
}

#[tokio::test]
async fn a_message_that_is_refused_for_good_does_not_keep_the_next_from_being_heard() {
    for protocol in PROTOCOLS {
        for status in [400, 413, 415, 422] {
            let gate = Gate::refusing(protocol, "the bad one", status).await;
            goes_on(&gate, protocol).await;
        }
    }
}

#[tokio::test]
async fn a_message_that_a2a_refuses_in_its_own_words_does_not_keep_the_next_from_being_heard() {
    for code in [-32_600, -32_602, -32_005] {
        let refuse = move |asked: Asked| -> BoxFuture<'static, Option<Response>> {
            let error = json!({"code": code, "message": "not like that"});
            let body = json!({"jsonrpc": "2.0", "id": "1", "error": error});
            let refusal = asked.says("the bad one");
            let refusal = refusal.then(|| axum::Json(body).into_response());
            Box::pin(std::future::ready(refusal))
        };
        let gate = Gate::new("a2a", Arc::new(refuse)).await;
        goes_on(&gate, "a2a").await;
    }
}

#[tokio::test]
async fn a_message_that_fails_for_another_reason_is_told_with_the_next() {
    for protocol in PROTOCOLS {
        for status in [401, 404, 409, 429, 500, 503] {
            let refuse = move |asked: Asked| -> BoxFuture<'static, Option<Response>> {
                let is_alone = asked.says("the first") && !asked.says("the second");
                let refusal = is_alone.then(|| super::gate::refusal(status));
                Box::pin(std::future::ready(refusal))
            };
            let gate = Gate::new(protocol, Arc::new(refuse)).await;
            gate.say("helper", "the first").await;
            let (_, detail) = gate.why().await;
            assert!(
                detail.contains(&format!("it answered {status}")),
                "{protocol}: {detail}"
            );
            gate.say("helper", "the second").await;
            let there = gate.there().await.concat().join("\n");
            assert!(
                there.contains("the first") && there.contains("the second"),
                "{protocol}, {status}: {there}"
            );
        }
    }
}

#[tokio::test]
async fn a_message_to_a_conversation_that_is_locked_is_told_with_the_next() {
    let refuse = |asked: Asked| -> BoxFuture<'static, Option<Response>> {
        let error = json!({"code": "conversation_locked", "message": "not now"});
        let locked = (
            StatusCode::BAD_REQUEST,
            axum::Json(json!({ "error": error })),
        );
        let is_alone = asked.says("the first") && !asked.says("the second");
        Box::pin(std::future::ready(is_alone.then(|| locked.into_response())))
    };
    let gate = Gate::new("responses", Arc::new(refuse)).await;
    gate.say("helper", "the first").await;
    let (_, detail) = gate.why().await;
    assert!(detail.contains("not now"), "{detail}");
    gate.say("helper", "the second").await;
    let there = gate.there().await.concat();
    assert!(there.contains(&"the first".to_owned()), "{there:?}");
}

#[tokio::test]
async fn an_answer_that_is_refused_for_good_does_not_keep_the_next_message_from_being_heard() {
    for protocol in PROTOCOLS {
        let gate = Gate::refusing(protocol, "hailstones", 422).await;
        gate.say("asker", "lookup {\"what\": \"the weather\"}")
            .await;
        let pending = gate.near.get("/api/v1/threads/t/pending").await.json();
        let call = &pending["calls"][0]["toolCallId"];
        let answer = json!({"toolCallId": call, "output": "hailstones"});
        let body = json!({"answers": [answer], "stream": true});
        let answered = gate.near.post("/api/v1/threads/t/answers", body).await;
        assert_eq!(answered.status, 200, "{}", answered.text);
        let (_, detail) = gate.why().await;
        assert!(detail.contains("not like that"), "{protocol}: {detail}");
        gate.say("asker", "never mind").await;
        assert_eq!(
            gate.last().await,
            "You said: never mind",
            "{protocol}: {:?}",
            gate.why().await
        );
    }
}

#[tokio::test]
async fn a_message_to_a_thread_that_is_busy_elsewhere_is_told_with_the_next() {
    let gate = Gate::refusing("threads", "nothing is refused", 400).await;
    gate.say("helper", "hello").await;
    let [key] = threads(&gate.far).await.try_into().unwrap();
    // Somebody else has it answer there.
    gate.far.begin(&key, "slow 20ms say 5000 words").await;
    gate.say("helper", "the first").await;
    let (_, detail) = gate.why().await;
    assert!(detail.contains("it answered 400"), "{detail}");
    assert!(!detail.contains("again"), "{detail}");
    let path = format!("/api/v1/threads/{key}/cancel");
    assert_eq!(gate.far.post(&path, json!({})).await.status, 200);
    gate.say("helper", "the second").await;
    let there = gate.there().await.concat();
    assert!(there.contains(&"the first".to_owned()), "{there:?}");
    assert_eq!(gate.last().await, "You said: the second");
}

#[tokio::test]
async fn a_message_that_was_refused_is_told_when_it_is_answered_anew() {
    for protocol in PROTOCOLS {
        let n_asked = Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let refuse = move |asked: Asked| -> BoxFuture<'static, Option<Response>> {
            use std::sync::atomic::Ordering::SeqCst;
            let is_first = asked.says("the one") && n_asked.fetch_add(1, SeqCst) == 0;
            let refusal = is_first.then(|| super::gate::refusal(422));
            Box::pin(std::future::ready(refusal))
        };
        let gate = Gate::new(protocol, Arc::new(refuse)).await;
        let message = json!({"id": "m1", "role": "user",
            "parts": [{"type": "text", "text": "the one"}]});
        let mut body: Value = json!({"id": "t", "messages": [message]});
        gate.near.post("/api/chat", body.clone()).await;
        let (_, detail) = gate.why().await;
        assert!(detail.contains("not like that"), "{protocol}: {detail}");
        body["trigger"] = "regenerate-message".into();
        let answer = gate.near.post("/api/chat", body).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        let messages = gate.near.get("/api/v1/threads/t/messages").await.json();
        let said = texts(&messages["messages"]);
        assert_eq!(
            said,
            ["the one", "You said: the one"],
            "{protocol}: {:?}",
            gate.why().await
        );
    }
}
