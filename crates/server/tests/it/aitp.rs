//! AITP over the network: actors, capability messages and the life of requests.

mod actors;
mod desks;
mod every_way;
mod examples;
mod forks;
mod forms;
mod interface;
mod interrupts;
mod requests;
mod rights;
mod tasks;
mod ways;
#[cfg(feature = "web")]
mod web_requests;

use crate::harness::{Answer, Server};
use axum::body::Body;
use http::header;
use serde_json::{Value, json};

const DECISIONS: &str = "https://aitp.dev/v1/decisions/schema.json";
const DATA: &str = "https://aitp.dev/v1/data/schema.json";
const PAYMENTS: &str = "https://aitp.dev/capabilities/aitp-01-payments/v1.0.0/schema.json";

/// A thread `t` that somebody without an id has begun, in which `shop` (`llk_shop`) asks and `helper`
/// (`llk_helper`) may answer choices. A third key (`llk_only`) may speak as `helper` alone.
struct Meeting {
    user: Server,
    shop: Server,
    helper: Server,
    only: Server,
}

/// Keys by name, each with what it may do.
fn keys(keys: &[(&str, &str, &str)]) -> String {
    let tables = keys.iter().map(|(name, key, rights)| {
        let hash = loomline_server::auth::hash_text(key);
        format!("[tenants.a.keys.{name}]\nhash = \"{hash}\"\n{rights}\n")
    });
    tables.collect()
}

impl Meeting {
    /// The keys of a tenant and no thread.
    async fn keys(config: &str) -> Self {
        let keys = keys(&[
            ("user", "llk_user", ""),
            ("shop", "llk_shop", ""),
            ("helper", "llk_helper", ""),
            ("only", "llk_only", "actors = [\"helper\"]"),
        ]);
        let server = Server::new(&format!("{config}\n{keys}")).await;
        Self {
            shop: server.with_key("llk_shop"),
            helper: server.with_key("llk_helper"),
            only: server.with_key("llk_only"),
            user: Server {
                key: Some("llk_user"),
                ..server
            },
        }
    }

    async fn new() -> Self {
        let meeting = Self::keys("").await;
        meeting.user.say("t", "hello").await;
        join(&meeting.shop, "shop", &[]).await;
        join(&meeting.helper, "helper", &[DECISIONS]).await;
        meeting
    }

    /// Says something on the thread, which nobody answers.
    async fn record(&self, client: &Server, role: &str, actor: Option<&str>, text: &str) -> Answer {
        let mut body = json!({"role": role, "content": text});
        if let Some(actor) = actor {
            body["metadata"] = json!({"actor": actor});
        }
        client.post("/v1/threads/t/messages", body).await
    }

    /// The shop says a capability message.
    async fn ask(&self, message: &Value) -> Value {
        let text = message.to_string();
        let answer = self
            .record(&self.shop, "assistant", Some("shop"), &text)
            .await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        answer.json()
    }

    /// What the one who began the thread says of a request.
    async fn about(&self, client: &Server, request: &str, what: &str, body: Value) -> Answer {
        let path = format!("/api/v1/threads/t/requests/{request}/{what}");
        client.post(&path, body).await
    }

    /// A request as it stands.
    async fn request(&self, request: &str) -> Value {
        let path = format!("/api/v1/threads/t/requests/{request}");
        let answer = self.user.get(&path).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        answer.json()
    }

    /// The ids of the requests in a state.
    async fn listed(&self, query: &str) -> Vec<String> {
        let path = format!("/api/v1/threads/t/requests{query}");
        let list = self.user.get(&path).await.json();
        let requests = list["requests"].as_array().unwrap().iter();
        requests
            .map(|request| request["id"].as_str().unwrap().to_owned())
            .collect()
    }

    /// The texts of what was said, in order.
    async fn texts(&self) -> Vec<String> {
        let list = self.user.get("/api/v1/threads/t/messages").await.json();
        let messages = list["messages"].as_array().unwrap().iter();
        let parts = messages.flat_map(|message| message["content"].as_array().unwrap());
        parts
            .filter_map(|part| part["text"].as_str().map(str::to_owned))
            .collect()
    }
}

/// Has an actor join `t` with this key.
async fn join(client: &Server, id: &str, capabilities: &[&str]) {
    let actor = json!({"id": id, "capabilities": capabilities});
    let body = json!({ "actor": actor });
    let answer = client.post("/api/v1/threads/t/actors", body).await;
    assert_eq!(answer.status, 201, "{}", answer.text);
}

/// Sends a body with another method than POST.
async fn patch(client: &Server, path: &str, body: &Value) -> Answer {
    let request = client
        .request("PATCH", path)
        .header(header::CONTENT_TYPE, "application/json");
    client
        .send(request.body(Body::from(body.to_string())).unwrap())
        .await
}

/// Which of two seats: until an instant, if one is given.
fn seat(expires_at: Option<&str>) -> Value {
    let mut asked = json!({"id": "seat", "title": "Which seat?", "options": [{"id": "window"}, {"id": "aisle"}]});
    if let Some(end) = expires_at {
        asked["expires_at"] = end.into();
    }
    json!({"$schema": DECISIONS, "request_decision": asked})
}

/// The window, please.
fn window() -> Value {
    json!({"$schema": DECISIONS, "decision": {"request_decision_id": "seat", "options": [{"id": "window"}]}})
}

/// Where to?
fn address() -> Value {
    json!({"$schema": DATA, "request_data": {
        "id": "address", "description": "Where to?",
        "form": {"fields": [{"id": "city", "required": true}, {"id": "floor", "type": "number"}]},
    }})
}

/// What a hat costs.
fn quote() -> Value {
    json!({"$schema": PAYMENTS, "quote": {
        "quote_id": "hat", "merchant_id": "shop", "description": "A hat", "merchant_signature": "ed25519:x",
        "payment_options": [{"currency": "USD", "amount": "12.50", "payment_methods": [
            {"type": "near_payment_channel", "token": "usdc", "recipient": "shop.near"},
        ]}],
    }})
}

/// How the hat is paid.
fn paid() -> Value {
    json!({"payment_option": "0.0", "channel_id": "c", "payer_id": "ada.near", "payer_signature": "ed25519:y"})
}

/// The status, the code and the reason of a refusal.
fn reason(answer: &Answer) -> (u16, String, Value) {
    let (status, code, _) = answer.error();
    (
        status,
        code,
        answer.json()["error"]["details"]["reason"].clone(),
    )
}
