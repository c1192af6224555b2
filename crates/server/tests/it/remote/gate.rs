//! A server elsewhere with somebody at its gate, who lets requests through or answers himself.

use super::{FAR, near, texts, threads};
use crate::harness::{Served, Server};
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{Request, StatusCode};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

/// A request on its way to the server elsewhere.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) path: String,
    pub(super) body: String,
}

impl Asked {
    /// Whether it says something to an agent.
    pub(super) fn says(&self, text: &str) -> bool {
        self.body.contains(text)
    }
}

/// What becomes of it: an answer, or none where it passes.
pub(super) type Rule = dyn Fn(Asked) -> BoxFuture<'static, Option<Response>> + Send + Sync;

/// Whose answer is held back, by a text of the request, until that is allowed.
type Held = Option<(&'static str, Arc<Notify>)>;

/// A server here and one elsewhere, with somebody between them.
pub(super) struct Gate {
    pub(super) near: Server,
    pub(super) far: Arc<Server>,
    _served: Served,
}

impl Gate {
    /// Whoever asks for something with this text in it is answered so.
    pub(super) async fn refusing(protocol: &str, text: &'static str, status: u16) -> Self {
        let answer = move |asked: Asked| -> BoxFuture<'static, Option<Response>> {
            let refusal = asked.says(text).then(|| refusal(status));
            Box::pin(std::future::ready(refusal))
        };
        Self::new(protocol, Arc::new(answer)).await
    }

    /// Whoever asks for something with this text in it is answered only when that is allowed.
    pub(super) async fn holding(protocol: &str, text: &'static str) -> (Self, Arc<Notify>) {
        let allowed = Arc::new(Notify::new());
        let pass: Arc<Rule> = Arc::new(|_| Box::pin(std::future::ready(None)));
        let held = Some((text, Arc::clone(&allowed)));
        let gate = Self::with(protocol, pass, held, "").await;
        (gate, allowed)
    }

    pub(super) async fn new(protocol: &str, rule: Arc<Rule>) -> Self {
        Self::with(protocol, rule, None, "").await
    }

    /// Who asks waits for a second at most until something is said.
    pub(super) async fn impatient(protocol: &str, rule: Arc<Rule>) -> Self {
        Self::with(protocol, rule, None, "idle_timeout_s = 1,").await
    }

    async fn with(protocol: &str, rule: Arc<Rule>, held: Held, more: &str) -> Self {
        let far = Arc::new(Server::new(FAR).await);
        let there = Arc::clone(&far);
        let pass = move |request: Request<Body>| {
            passed(Arc::clone(&there), Arc::clone(&rule), held.clone(), request)
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let mut tasks = JoinSet::new();
        let router = axum::Router::new().fallback(pass);
        tasks.spawn(async move { axum::serve(listener, router).await.unwrap() });
        let served = Served {
            addr,
            shutdown: CancellationToken::new(),
            tasks,
        };
        let config = near(protocol, &served).replace("remote = {", &format!("remote = {{ {more}"));
        let near = Server::new(&config).await;
        Self {
            near,
            far,
            _served: served,
        }
    }

    /// Has an agent answer, or fail.
    pub(super) async fn say(&self, agent: &str, content: &str) {
        let body = json!({"content": content, "agent": agent, "stream": true});
        let answer = self.near.post("/api/v1/threads/t/messages", body).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
    }

    /// The last text of the thread here.
    pub(super) async fn last(&self) -> String {
        let messages = self.near.get("/api/v1/threads/t/messages").await.json();
        texts(&messages["messages"]).pop().unwrap_or_default()
    }

    /// Why the last run here failed.
    pub(super) async fn why(&self) -> (String, String) {
        let events = self.near.at_rest("t").await;
        let ends = events
            .iter()
            .filter(|(_, event)| event["type"] == "execution.status.changed");
        let why: Vec<&Value> = ends.map(|(_, event)| &event["interruption"]).collect();
        let text = |field: &str| {
            let text = why.last().unwrap()[field].as_str();
            text.unwrap_or_default().to_owned()
        };
        (text("reason"), text("detail"))
    }

    /// What was said in the conversations elsewhere.
    pub(super) async fn there(&self) -> Vec<Vec<String>> {
        let mut said = Vec::new();
        for key in threads(&self.far).await {
            let path = format!("/api/v1/threads/{key}/messages");
            let messages = self.far.get(&path).await.json();
            said.push(texts(&messages["messages"]));
        }
        said
    }
}

/// A refusal in words of its own.
pub(super) fn refusal(status: u16) -> Response {
    let body = json!({"error": {"message": "not like that"}});
    (StatusCode::from_u16(status).unwrap(), axum::Json(body)).into_response()
}

async fn passed(far: Arc<Server>, rule: Arc<Rule>, held: Held, request: Request<Body>) -> Response {
    let (parts, body) = request.into_parts();
    let body: Bytes = body.collect().await.unwrap().to_bytes();
    let asked = Asked {
        path: parts.uri.path().to_owned(),
        body: String::from_utf8_lossy(&body).into_owned(),
    };
    let held = held.filter(|(text, _)| asked.says(text));
    if let Some(answer) = rule(asked).await {
        return answer;
    }
    let request = Request::from_parts(parts, Body::from(body));
    let answer = far.router.clone().oneshot(request).await.unwrap();
    if let Some((_, allowed)) = held {
        allowed.notified().await;
    }
    answer
}
