//! Workers: other processes that answer the steps of an agent over HTTP (EK-8).

use crate::harness::{Answer, Server};
use loomline_server::auth::hash_text;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Two tenants. The key `llk_w` may work for the tenant `a`, and `llk_one` for its thread `one`.
fn config() -> String {
    let [all, work, one, other] = ["llk_all", "llk_w", "llk_one", "llk_b"].map(hash_text);
    format!(
        r#"
default_agent = "desk"
[models.m]
provider = "scripted"
[agents.desk]
worker = {{ lease_s = 20 }}
system = "You are brief."
tools = ["compute"]
[agents.local]
model = "m"
[tenants.a]
key_hashes = ["{all}"]
[tenants.a.keys.worker]
hash = "{work}"
scopes = ["work"]
[tenants.a.keys.one]
hash = "{one}"
scopes = ["work"]
threads = ["one"]
[tenants.b]
key_hashes = ["{other}"]
"#
    )
}

struct Desk {
    client: Server,
    worker: Server,
}

impl Desk {
    async fn new() -> Self {
        let server = Server::new(&config()).await;
        Self {
            worker: server.with_key("llk_w"),
            client: Server {
                key: Some("llk_all"),
                ..server
            },
        }
    }

    async fn lease(&self, wanted: Value) -> Answer {
        self.worker.post("/api/v1/steps/lease", wanted).await
    }

    async fn leased(&self) -> Value {
        let leased = self
            .lease(json!({ "waitMs": 20_000, "worker": "w-1" }))
            .await;
        assert_eq!(leased.status, 200, "{}", leased.text);
        leased.json()
    }

    async fn send(&self, step: &Value, action: &str, mut body: Value) -> Answer {
        body["lease"] = step["lease"].clone();
        let id = step["stepId"].as_str().unwrap();
        let path = format!("/api/v1/steps/{id}/{action}");
        self.worker.post(&path, body).await
    }

    async fn complete(&self, step: &Value, answer: Value) {
        let completed = self
            .send(step, "complete", json!({ "answer": answer }))
            .await;
        assert_eq!(completed.status, 204, "{}", completed.text);
    }
}

fn says(text: &str) -> Value {
    let content = json!([{ "type": "output_text", "text": text }]);
    json!({ "assistantEvent": { "type": "message", "content": content } })
}

#[tokio::test]
async fn a_worker_answers_the_steps_of_a_run_over_http() {
    let desk = Desk::new().await;
    desk.client.begin("t", "double it").await;
    let step = desk.leased().await;
    assert_eq!(
        (&step["agent"], &step["threadKey"]),
        (&json!("desk"), &json!("t"))
    );
    assert_eq!(
        (&step["attempt"], &step["leaseMs"]),
        (&json!(1), &json!(20_000))
    );
    let request = &step["request"];
    assert_eq!(request["system"], "You are brief.");
    assert_eq!(request["messages"][0]["content"][0]["text"], "double it");
    assert_eq!(request["tools"][0]["name"], "compute");
    let beat = desk.send(&step, "heartbeat", json!({})).await.json();
    assert_eq!(beat, json!({ "state": "running", "leaseMs": 20_000 }));
    let call =
        json!({ "toolCallId": "c1", "toolName": "compute", "input": { "expression": "21*2" } });
    let answer = json!({
        "assistantEvent": { "type": "message", "role": "assistant", "content": [] },
        "toolCalls": [call],
        "usage": { "provider": "acme-ai", "model": "loom-9", "inputTokens": 7, "outputTokens": 5 },
    });
    desk.complete(&step, answer).await;
    let next = desk.leased().await;
    assert_eq!(next["iteration"], 1);
    assert!(next["request"]["messages"].to_string().contains("42"));
    let deltas = json!([{ "type": "output_text", "index": 0, "delta": "It is " }]);
    let streamed = desk
        .send(&next, "deltas", json!({ "seq": 0, "deltas": deltas }))
        .await;
    assert_eq!(streamed.status, 204, "{}", streamed.text);
    desk.complete(&next, says("It is 42.")).await;
    let events = desk.client.at_rest("t").await;
    let shown: Vec<&Value> = events.iter().map(|(_, event)| event).collect();
    assert!(json!(shown).to_string().contains("acme-ai"));
    let messages = desk.client.get("/api/v1/threads/t/messages").await.text;
    assert!(messages.contains("It is 42."), "{messages}");
}

#[tokio::test]
async fn a_request_for_a_step_waits_until_one_comes() {
    let desk = Desk::new().await;
    let nothing = desk.lease(json!({ "waitMs": 50 })).await;
    assert_eq!((nothing.status.as_u16(), nothing.text.as_str()), (204, ""));
    let at = Instant::now();
    let posted = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        desk.client.begin("t", "hello").await;
    };
    let (step, ()) = tokio::join!(desk.leased(), posted);
    assert!(at.elapsed() < Duration::from_secs(10));
    desk.complete(&step, says("hi")).await;
    desk.client.at_rest("t").await;
}

#[tokio::test]
async fn a_worker_sees_no_step_of_another_tenant_thread_or_local_agent() {
    let desk = Desk::new().await;
    let local = json!({ "content": "hello", "agent": "local", "stream": true });
    desk.client
        .post("/api/v1/threads/local/messages", local)
        .await;
    desk.client.begin("secret", "hello").await;
    for key in ["llk_b", "llk_one"] {
        let stranger = desk.worker.with_key(key);
        let leased = stranger.post("/api/v1/steps/lease", json!({})).await;
        assert_eq!(leased.status, 204, "{key}");
    }
    let step = desk.leased().await;
    assert_eq!(step["threadKey"], "secret");
    assert_eq!(desk.lease(json!({})).await.status, 204);
    let path = format!(
        "/api/v1/steps/{}/heartbeat",
        step["stepId"].as_str().unwrap()
    );
    for key in ["llk_b", "llk_one"] {
        let stranger = desk.worker.with_key(key);
        let beat = stranger
            .post(&path, json!({ "lease": step["lease"] }))
            .await;
        assert_eq!(beat.error(), (409, "lease_ended".into(), None), "{key}");
    }
    desk.complete(&step, says("hi")).await;
    desk.client.at_rest("secret").await;
}

#[tokio::test]
async fn a_cancelled_run_ends_the_work_of_its_worker() {
    let desk = Desk::new().await;
    desk.client.begin("t", "hello").await;
    let step = desk.leased().await;
    desk.client.post_text("/api/v1/threads/t/cancel", "").await;
    let told = async {
        loop {
            let beat = desk.send(&step, "heartbeat", json!({})).await.json();
            if beat["state"] == "cancelled" {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), told)
        .await
        .unwrap();
    let late = desk
        .send(&step, "complete", json!({ "answer": says("late") }))
        .await;
    assert_eq!(late.error(), (409, "step_cancelled".into(), None));
}

#[tokio::test]
async fn a_worker_answers_a_step_of_an_ephemeral_thread() {
    let desk = Desk::new().await;
    let messages = json!([{ "role": "user", "content": "hello" }]);
    let body = json!({ "model": "desk", "messages": messages });
    let asked = desk.client.post("/v1/chat/completions", body);
    let worked = async {
        let step = desk.leased().await;
        let beat = desk.send(&step, "heartbeat", json!({})).await.json();
        assert_eq!(beat["state"], "running");
        desk.complete(&step, says("hi there")).await;
    };
    let (reply, ()) = tokio::join!(asked, worked);
    assert!(reply.text.contains("hi there"), "{}", reply.text);
}

#[tokio::test]
async fn wrong_requests_of_a_worker_are_refused_at_their_place() {
    let desk = Desk::new().await;
    for (wanted, pointer) in [
        (json!({ "waitMs": 30_001 }), "/waitMs"),
        (json!({ "agents": ["desk", "local"] }), "/agents/1"),
        (json!({ "agents": ["nobody"] }), "/agents/0"),
        (json!({ "worker": "w".repeat(129) }), "/worker"),
    ] {
        let refused = desk.lease(wanted).await.error();
        assert_eq!(refused, (422, "invalid_field".into(), Some(pointer.into())));
    }
    desk.client.begin("t", "hello").await;
    let step = desk.leased().await;
    let wrong = json!({ "answer": { "assistantEvent": { "type": "message" } } });
    let refused = desk.send(&step, "complete", wrong).await.error();
    let place = Some("/answer/assistantEvent/content".into());
    assert_eq!(refused, (422, "invalid_field".into(), place));
    let failed = desk
        .send(&step, "fail", json!({ "message": "no model" }))
        .await;
    assert_eq!(failed.status, 204);
    let events = desk.client.at_rest("t").await;
    assert!(format!("{events:?}").contains("no model"));
}
