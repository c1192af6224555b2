//! The published examples, said over HTTP.

use super::Meeting;
use crate::reference::reference;
use interop::aitp::{Kind, Message, Purpose};
use serde_json::{Value, json};

fn examples() -> Option<Vec<Value>> {
    let path = reference("the published examples")?.join("schemas/aitp/doc-examples.json");
    let text = std::fs::read_to_string(path).unwrap();
    Some(serde_json::from_str(&text).unwrap())
}

/// Each example is said on a thread of its own. One that is not valid is refused at its part; one that
/// asks or tells something is taken; one that answers is refused because nothing was asked.
#[tokio::test]
async fn all_published_examples_get_the_right_verdict_over_http() {
    let Some(examples) = examples() else { return };
    assert_eq!(examples.len(), 67);
    for config in ["", "[aitp]\nstrict = true\n"] {
        let meeting = Meeting::keys(config).await;
        let (mut n_taken, mut n_lone, mut n_unfit) = (0, 0, 0);
        for (n, example) in examples.iter().enumerate() {
            let thread = format!("t{n}");
            let created = json!({ "key": thread });
            meeting.user.post("/api/v1/threads", created).await;
            let text = example["message"].to_string();
            let message = Message::read(&text).unwrap();
            let part = json!({"type": "text", "text": text});
            let body = json!({"role": "assistant", "content": ["See:", part]});
            let path = format!("/v1/threads/{thread}/messages");
            let answer = meeting.user.post(&path, body).await;
            let error = answer.json()["error"].clone();
            let found = (answer.status.as_u16(), error["code"].as_str());
            let asks = match message.kind.map(Kind::purpose) {
                Some(Purpose::Ask(_) | Purpose::Notice) => true,
                Some(Purpose::Answer(_) | Purpose::Outcome(_) | Purpose::Control) | None => false,
            };
            if example["valid"] == false {
                assert_eq!(found, (422, Some("invalid_capability_message")), "{text}");
                assert_eq!(error["param"], "content[1]");
                n_unfit += 1;
            } else if asks {
                assert_eq!(found.0, 200, "{text}: {error}");
                n_taken += 1;
            } else {
                assert_eq!(found, (409, Some("request_refused")), "{text}");
                n_lone += 1;
            }
        }
        assert_eq!((n_taken + n_lone, n_unfit), (66, 1));
        assert!(n_taken > 20 && n_lone > 20, "{n_taken} {n_lone}");
    }
}

#[tokio::test]
async fn strictly_no_unknown_member_is_taken_and_leniently_it_is_ignored() {
    let ask = json!({"$schema": super::PAYMENTS, "top_up_request": {
        "channel_id": "c", "currency": "USD", "merchant_id": "m", "merchant_signature": "s",
        "timestamp": "2026-01-05T08:00:00Z", "colour": "red",
    }});
    for (config, expected) in [("", 200), ("[aitp]\nstrict = true\n", 422)] {
        let meeting = Meeting::keys(config).await;
        meeting
            .user
            .post("/api/v1/threads", json!({"key": "t"}))
            .await;
        let said = meeting
            .record(&meeting.shop, "assistant", None, &ask.to_string())
            .await;
        assert_eq!(said.status, expected, "{}", said.text);
    }
}

#[tokio::test]
async fn a_capability_that_is_not_known_passes_untouched() {
    let meeting = Meeting::new().await;
    for poll in [
        json!({"$schema": "https://example.com/poll.json", "poll": {"odd": [1, {"a": null}]}}),
        json!({"$schema": "https://aitp.dev/capabilities/aitp-02-decisions/v2.0.0/schema.json", "request_decision": 7}),
    ] {
        let said = meeting.ask(&poll).await;
        let text = &said["content"][0]["text"]["value"];
        assert_eq!(text.as_str().unwrap(), poll.to_string());
    }
    assert!(meeting.listed("?state=all").await.is_empty());
}

#[tokio::test]
async fn a_message_that_does_not_fit_is_refused_with_what_is_wrong() {
    let meeting = Meeting::new().await;
    let wrong = json!({"$schema": super::DECISIONS, "request_decision": {"id": "x", "title": 7, "options": []}});
    let body = json!({"content": [
        {"type": "input_text", "text": "Please."}, {"type": "input_text", "text": wrong.to_string()},
    ]});
    let refused = meeting.user.post("/api/v1/threads/t/messages", body).await;
    let expected = (
        422,
        "invalid_capability_message".into(),
        Some("/content/1".into()),
    );
    assert_eq!(refused.error(), expected);
    let violations = refused.json()["error"]["details"]["violations"].clone();
    let pointers = violations
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["pointer"].clone());
    let pointers: Vec<Value> = pointers.collect();
    assert!(
        pointers.contains(&json!("/request_decision/title")),
        "{pointers:?}"
    );
}

#[tokio::test]
async fn who_began_a_thread_with_a_text_or_a_list_speaks_on_as_itself() {
    for content in [json!("A flight, please."), json!(["A flight, please."])] {
        let meeting = Meeting::keys("").await;
        let message = |actor: &str, role: &str| json!({"role": role, "content": content, "metadata": {"actor": actor}});
        let body = json!({
            "metadata": {"actors": [{"id": "me", "capabilities": []}, {"id": "shop", "capabilities": []}]},
            "messages": [message("me", "user"), message("shop", "assistant")],
        });
        let made = meeting.user.post("/v1/thread", body).await;
        assert_eq!(made.status, 200, "{}", made.text);
        let path = format!(
            "/v1/threads/{}/messages",
            made.json()["id"].as_str().unwrap()
        );
        for (actor, role) in [("me", "user"), ("shop", "assistant"), ("me", "user")] {
            let said = meeting.user.post(&path, message(actor, role)).await;
            assert_eq!(said.status, 200, "{}", said.text);
        }
    }
}
