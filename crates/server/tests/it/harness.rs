//! A server in this process, and requests to it.

use axum::Router;
use axum::body::Body;
use bytes::Bytes;
use futures_util::StreamExt as _;
use http::{HeaderMap, Request, StatusCode, header};
use http_body_util::BodyExt;
use loomline_server::{App, Config, OpenMode, Sockets, router, serve};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;
use tempfile::TempDir;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

/// An agent with a sub-agent whose tool needs approval, and one to hand over to.
pub(crate) const TEAM: &str = r#"
default_agent = "lead"
[models.m]
provider = "scripted"
[agents.lead]
model = "m"
handoffs = ["closer"]
[[agents.lead.subagents]]
agent = "finder"
name = "find"
description = "Finds something."
parameters = { type = "object", properties = { query = { type = "string" } }, required = ["query"] }
prompt = "{query}"
[agents.finder]
model = "m"
tools = ["compute"]
requires_approval = ["compute"]
[agents.closer]
model = "m"
"#;

/// The SHA-256 of `llk_a` and of `llk_b`, as tenants.
pub(crate) fn two_tenants() -> String {
    let [a, b] = ["llk_a", "llk_b"].map(loomline_server::auth::hash_text);
    format!("[tenants.a]\nkey_hashes = [\"{a}\"]\n[tenants.b]\nkey_hashes = [\"{b}\"]\n")
}

pub(crate) struct Server {
    pub(crate) app: App,
    pub(crate) router: Router,
    pub(crate) directory: TempDir,
    pub(crate) key: Option<&'static str>,
}

pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    /// After how many seconds the same may be asked again.
    pub(crate) fn retry_after(&self) -> u64 {
        let seconds = self.headers["retry-after"].to_str().unwrap();
        seconds.parse().unwrap()
    }

    /// The code and the pointer of a typed error.
    pub(crate) fn error(&self) -> (u16, String, Option<String>) {
        let error = self.json()["error"].clone();
        assert!(
            error["message"].is_string() && error["requestId"].is_string(),
            "{error}"
        );
        let text = |field: &str| error[field].as_str().map(str::to_owned);
        (self.status.as_u16(), text("code").unwrap(), text("pointer"))
    }

    /// The positions and the data of the events of a stream.
    pub(crate) fn events(&self) -> Vec<(u64, Value)> {
        frames(&self.text)
    }
}

/// The positions and the data of the events of a stream.
pub(crate) fn frames(text: &str) -> Vec<(u64, Value)> {
    let frames = text
        .split_terminator("\n\n")
        .filter(|frame| !frame.starts_with(':'));
    let read = |frame: &str| {
        let line = |name: &str| frame.lines().find_map(|line| line.strip_prefix(name));
        // A chunk that is not stored yet counts from the last stored event.
        let id = line("id: ").unwrap_or("0").split('~').next().unwrap();
        let mut parts = id.split('.');
        let seq: u64 = parts.next().unwrap().parse().unwrap();
        let n_ahead: u64 = parts.nth(1).map_or(0, |part| part.parse().unwrap());
        (
            seq + n_ahead,
            serde_json::from_str(line("data: ").unwrap()).unwrap_or(Value::Null),
        )
    };
    frames.map(read).collect()
}

impl Server {
    pub(crate) async fn new(config: &str) -> Self {
        Self::at(tempfile::tempdir().unwrap(), config).await
    }

    pub(crate) async fn at(directory: TempDir, config: &str) -> Self {
        Self::with(directory, config, &|_| None).await
    }

    /// A server in an environment.
    pub(crate) async fn with(
        directory: TempDir,
        config: &str,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Self {
        let config = Config::parse(config, env).unwrap();
        let app = App::open(config, directory.path(), OpenMode::ReadWrite)
            .await
            .unwrap();
        app.recover().await.unwrap();
        let router = router(app.clone(), CancellationToken::new());
        Self {
            app,
            router,
            directory,
            key: None,
        }
    }

    /// A client of this server that sends a key.
    pub(crate) fn with_key(&self, key: &'static str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        Self {
            app: self.app.clone(),
            router: self.router.clone(),
            directory,
            key: Some(key),
        }
    }

    pub(crate) fn request(&self, method: &str, path: &str) -> http::request::Builder {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, "localhost");
        match self.key {
            Some(key) => request.header(header::AUTHORIZATION, format!("Bearer {key}")),
            None => request,
        }
    }

    /// Sends a request, and checks what the native API answers against the OpenAPI document.
    pub(crate) async fn send(&self, request: Request<Body>) -> Answer {
        let (method, path) = (
            request.method().to_string(),
            request.uri().path().to_owned(),
        );
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let collected = tokio::time::timeout(Duration::from_secs(20), body.collect())
            .await
            .expect("the body ends");
        let text = String::from_utf8(collected.unwrap().to_bytes().into()).unwrap();
        let kind = parts.headers.get(header::CONTENT_TYPE);
        let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        crate::documented::check(&method, &path, parts.status.as_u16(), kind, &text);
        Answer {
            status: parts.status,
            headers: parts.headers,
            text,
        }
    }

    /// Opens a stream that may not end.
    pub(crate) async fn open(
        &self,
        request: Request<Body>,
    ) -> (StatusCode, axum::body::BodyDataStream) {
        let response = self.router.clone().oneshot(request).await.unwrap();
        (response.status(), response.into_body().into_data_stream())
    }

    /// Reads a stream until its text `is_enough`.
    pub(crate) async fn read_until(
        &self,
        request: Request<Body>,
        is_enough: impl Fn(&str) -> bool,
    ) -> String {
        let (status, mut body) = self.open(request).await;
        assert_eq!(status, 200);
        let mut text = String::new();
        let end = tokio::time::Instant::now() + Duration::from_secs(20);
        while !is_enough(&text) {
            let piece = tokio::time::timeout_at(end, body.next()).await;
            let piece = piece.unwrap_or_else(|_| panic!("not in time: {text}"));
            let piece = piece.unwrap_or_else(|| panic!("the stream has ended: {text}"));
            text.push_str(std::str::from_utf8(&piece.unwrap()).unwrap());
        }
        text
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send(self.request("GET", path).body(Body::empty()).unwrap())
            .await
    }

    pub(crate) async fn delete(&self, path: &str) -> Answer {
        self.send(self.request("DELETE", path).body(Body::empty()).unwrap())
            .await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Answer {
        self.post_text(path, body.to_string()).await
    }

    pub(crate) async fn post_text(&self, path: &str, body: impl Into<Bytes>) -> Answer {
        let request = self
            .request("POST", path)
            .header(header::CONTENT_TYPE, "application/json");
        self.send(request.body(Body::from(body.into())).unwrap())
            .await
    }

    /// Says something on a thread, and waits for the end of the answer.
    pub(crate) async fn say(&self, key: &str, content: &str) -> Answer {
        let answer = self
            .post(
                &format!("/api/v1/threads/{key}/messages"),
                json!({ "content": content, "stream": true }),
            )
            .await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        answer
    }

    /// Says something and does not wait.
    pub(crate) async fn begin(&self, key: &str, content: &str) -> Value {
        let answer = self
            .post(
                &format!("/api/v1/threads/{key}/messages"),
                json!({ "content": content }),
            )
            .await;
        assert_eq!(answer.status, 202, "{}", answer.text);
        answer.json()
    }

    pub(crate) async fn seq(&self, key: &str) -> u64 {
        self.get(&format!("/api/v1/threads/{key}")).await.json()["seq"]
            .as_u64()
            .unwrap()
    }

    /// All events, once the thread is at rest.
    pub(crate) async fn at_rest(&self, key: &str) -> Vec<(u64, Value)> {
        self.get(&format!("/api/v1/threads/{key}/events?until=rest"))
            .await
            .events()
    }
}

/// What comes of a request by the time that it has been polled so often and is to be polled once more;
/// it may be gone on with, or dropped as by a client that hangs up.
pub(crate) async fn polled<F: Future>(mut request: Pin<&mut F>, times: usize) -> Option<F::Output> {
    let mut n_polls = 0;
    let polled = std::future::poll_fn(|cx| {
        if n_polls == times {
            return Poll::Ready(None);
        }
        n_polls += 1;
        request.as_mut().poll(cx).map(Some)
    });
    polled.await
}

/// A server on a socket.
pub(crate) struct Served {
    pub(crate) addr: SocketAddr,
    pub(crate) shutdown: CancellationToken,
    pub(crate) tasks: JoinSet<()>,
}

impl Served {
    pub(crate) async fn new(app: App) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        Self::on(app, listener.into())
    }

    pub(crate) fn on(app: App, sockets: Sockets) -> Self {
        let addr = sockets.local_addr().unwrap();
        let shutdown = CancellationToken::new();
        let mut tasks = JoinSet::new();
        let stop = shutdown.clone();
        tasks.spawn(async move { serve(app, sockets, stop).await.unwrap() });
        Self {
            addr,
            shutdown,
            tasks,
        }
    }

    pub(crate) async fn stop(mut self) {
        self.shutdown.cancel();
        self.tasks.join_next().await.unwrap().unwrap();
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.addr)
    }
}

/// The names of events, in order.
pub(crate) fn names(events: &[(u64, Value)]) -> Vec<&str> {
    events
        .iter()
        .map(|(_, event)| event["type"].as_str().unwrap())
        .collect()
}
