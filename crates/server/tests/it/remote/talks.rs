//! What is said with an agent elsewhere.

#![expect(
    clippy::disallowed_methods,
    reason = "the tests look at the threads of the runtime itself"
)]

use super::{PROTOCOLS, Two, texts, until};
use crate::harness::names;
use loomline_server::DEV_TENANT;
use serde_json::{Value, json};
use timeline::{Event, Seq};

#[tokio::test]
async fn an_agent_elsewhere_answers_as_it_speaks_and_goes_on_in_its_conversation() {
    for protocol in PROTOCOLS {
        let two = Two::new(protocol).await;
        let body = json!({"content": "Good morning to you", "agent": "helper", "stream": true});
        let events = two.near.post("/api/v1/threads/t/messages", body).await;
        let deltas = events
            .events()
            .into_iter()
            .filter(|(_, event)| event["chunkType"] == "text-delta");
        let said: String = deltas
            .map(|(_, event)| event["data"]["delta"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(said, "You said: Good morning to you", "{protocol}");
        two.say("t", "helper", "And again").await;
        assert_eq!(
            texts(&two.messages("t").await),
            [
                "Good morning to you",
                "You said: Good morning to you",
                "And again",
                "You said: And again"
            ],
            "{protocol}"
        );
        // One conversation there, to which only what is new was said.
        let far = two.far_threads().await;
        assert_eq!(far.len(), 1, "{protocol}");
        let there = two
            .far
            .get(&format!("/api/v1/threads/{}/messages", far[0]))
            .await
            .json();
        assert_eq!(
            texts(&there["messages"]),
            texts(&two.messages("t").await),
            "{protocol}"
        );
    }
}

#[tokio::test]
async fn what_an_agent_elsewhere_does_with_its_tools_is_its_own() {
    for protocol in PROTOCOLS {
        let two = Two::new(protocol).await;
        let said = two.say("t", "helper", "compute 6 * 7").await;
        assert_eq!(
            texts(&said),
            ["compute 6 * 7", "compute gave 42."],
            "{protocol}"
        );
        let pending = two.near.get("/api/v1/threads/t/pending").await.json();
        assert_eq!(pending["calls"], json!([]), "{protocol}");
    }
}

/// The one call that waits.
async fn pending(two: &Two) -> Value {
    let pending = two.near.get("/api/v1/threads/t/pending").await.json();
    let calls = pending["calls"].as_array().unwrap();
    assert_eq!(calls.len(), 1, "{pending}");
    calls[0].clone()
}

#[tokio::test]
async fn what_an_agent_elsewhere_asks_is_answered_here_and_goes_on_there() {
    for protocol in PROTOCOLS {
        let two = Two::new(protocol).await;
        let asked = json!({"what": "the weather"});
        two.say("t", "asker", &format!("lookup {asked}")).await;
        let call = pending(&two).await;
        assert_eq!(
            (&call["toolName"], &call["input"]),
            (&json!("lookup"), &asked),
            "{protocol}"
        );
        let answer = json!({"toolCallId": call["toolCallId"], "output": "rain"});
        let body = json!({"answers": [answer], "stream": true});
        let events = two
            .near
            .post("/api/v1/threads/t/answers", body)
            .await
            .events();
        assert_eq!(
            names(&events).last(),
            Some(&"thread.finished"),
            "{protocol}"
        );
        let said = texts(&two.messages("t").await);
        assert_eq!(said.last().unwrap(), "lookup gave rain.", "{protocol}");
        assert_eq!(two.far_threads().await.len(), 1, "{protocol}");
    }
}

#[tokio::test]
async fn who_says_something_else_in_place_of_an_answer_is_heard() {
    for protocol in PROTOCOLS {
        let two = Two::new(protocol).await;
        two.say("t", "asker", "lookup {\"what\": \"it\"}").await;
        pending(&two).await;
        let said = texts(&two.say("t", "asker", "never mind").await);
        assert!(
            said.last().unwrap().contains("never mind"),
            "{protocol}: {said:?}"
        );
        assert_eq!(two.far_threads().await.len(), 1, "{protocol}");
    }
}

#[tokio::test]
async fn the_same_answer_twice_is_said_twice() {
    for protocol in PROTOCOLS {
        let two = Two::new(protocol).await;
        two.say("t", "helper", "Hello").await;
        let said = texts(&two.say("t", "helper", "Hello").await);
        let once = ["Hello", "You said: Hello"];
        assert_eq!(said, [once, once].concat(), "{protocol}");
    }
}

#[tokio::test]
async fn two_agents_of_one_server_have_a_conversation_each() {
    for protocol in PROTOCOLS {
        let two = Two::new(protocol).await;
        for (agent, said) in [("helper", "one"), ("asker", "two"), ("helper", "three")] {
            two.say("t", agent, said).await;
        }
        let threads = two.far_threads().await;
        assert_eq!(threads.len(), 2, "{protocol}: {threads:?}");
    }
}

#[tokio::test]
async fn who_says_something_else_than_whether_a_call_may_run_is_heard_from_there_on() {
    for protocol in ["responses", "a2a"] {
        let two = Two::new(protocol).await;
        two.say("t", "careful", "compute 2+2").await;
        pending(&two).await;
        for words in ["hello a", "hello b"] {
            let said = texts(&two.say("t", "careful", words).await);
            let last = said.last().unwrap();
            assert_eq!(last, &format!("You said: {words}"), "{protocol}: {said:?}");
        }
    }
}

#[tokio::test]
async fn leave_to_run_a_call_can_be_given_as_a_text() {
    let two = Two::new("a2a").await;
    two.say("t", "careful", "compute 6 * 7").await;
    let call = pending(&two).await;
    let answer = json!({"toolCallId": call["toolCallId"], "output": "{\"approved\": true}"});
    let body = json!({"answers": [answer], "stream": true});
    let answered = two.near.post("/api/v1/threads/t/answers", body).await;
    assert_eq!(answered.status, 200, "{}", answered.text);
    let said = texts(&two.messages("t").await);
    assert_eq!(said.last().unwrap(), "compute gave 42.");
}

#[tokio::test]
async fn who_cancels_here_cancels_there() {
    for protocol in PROTOCOLS {
        let two = Two::new(protocol).await;
        two.near.begin("t", "slow 20ms say 5000 words").await;
        // It is known there, and what it says has come.
        until(async || {
            let tenant = DEV_TENANT.into();
            let runtime = two.near.app.default_runtime();
            let read = runtime.read(&tenant, "t", Seq::ZERO, 500).await.unwrap();
            read.iter().any(|logged| {
                let event = &logged.record.event;
                matches!(event, Event::ChunkEmitted { chunk_type, .. } if chunk_type == "text-delta")
            })
        })
        .await;
        let stopped = two.near.post("/api/v1/threads/t/cancel", json!({})).await;
        assert_eq!(stopped.status, 200, "{}", stopped.text);
        let far = two.far_threads().await;
        let there = two.far.at_rest(&far[0]).await;
        let ends = there
            .iter()
            .filter(|(_, event)| event["type"] == "execution.status.changed");
        let ends: Vec<&Value> = ends.map(|(_, event)| &event["to"]).collect();
        assert_eq!(ends, ["failed"], "{protocol}");
        if protocol == "a2a" {
            // What was stopped is told again, in one message with what comes next.
            continue;
        }
        // The conversation goes on.
        let said = texts(&two.say("t", "helper", "still there?").await);
        assert_eq!(said.last().unwrap(), "You said: still there?", "{protocol}");
    }
}

#[tokio::test]
async fn what_another_conversation_is_asked_is_not_answered_in_a_fork_of_it() {
    for protocol in ["a2a", "threads"] {
        let two = Two::new(protocol).await;
        two.say("t", "asker", "lookup {\"what\": \"it\"}").await;
        let call = pending(&two).await;
        let forked = two
            .near
            .post("/api/v1/threads/t/fork", json!({"key": "f"}))
            .await;
        assert!(forked.status.is_success(), "{}", forked.text);
        let answer = json!({"toolCallId": call["toolCallId"], "output": "rain"});
        let body = json!({"answers": [answer], "stream": true});
        let in_fork = two.near.post("/api/v1/threads/f/answers", body.clone());
        assert_eq!(in_fork.await.status, 200, "{protocol}");
        let ends = two.near.at_rest("f").await;
        let ends: Vec<&Value> = ends
            .iter()
            .filter(|(_, event)| event["type"] == "execution.status.changed")
            .map(|(_, event)| &event["interruption"])
            .collect();
        let why = ends.last().unwrap()["detail"].as_str().unwrap_or_default();
        assert!(why.contains("forked off"), "{protocol}: {ends:?}");
        // Where it was asked it is answered, and the fork goes on by itself.
        let body = two.near.post("/api/v1/threads/t/answers", body).await;
        assert_eq!(body.status, 200, "{}", body.text);
        let said = texts(&two.messages("t").await);
        assert_eq!(said.last().unwrap(), "lookup gave rain.", "{protocol}");
        let said = texts(&two.say("f", "asker", "never mind").await);
        assert!(
            said.last().unwrap().contains("never mind"),
            "{protocol}: {said:?}"
        );
        assert_eq!(two.far_threads().await.len(), 2, "{protocol}");
    }
}

#[tokio::test]
async fn the_record_has_no_more_of_an_address_than_its_origin() {
    for (protocol, path) in [
        ("responses", "/v1"),
        ("a2a", "/a2a/helper"),
        ("threads", "/v1"),
    ] {
        let two = Two::new(protocol).await;
        two.say("t", "helper", "hello").await;
        let events = two.near.at_rest("t").await;
        let shown = format!("{events:?} {}", two.messages("t").await);
        assert!(shown.contains("http://127.0.0.1:"), "{protocol}: {shown}");
        assert!(!shown.contains(path), "{protocol}: {shown}");
    }
}
