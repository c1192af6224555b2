//! The audit log.

use crate::harness::Server;
use axum::body::Body;
use futures_util::FutureExt;
use http::{Request, header};
use loomline_server::auth::hash_text;
use serde_json::json;
use std::sync::{Arc, Mutex};
use tower::ServiceExt;
use tracing::subscriber::DefaultGuard;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

/// Where log lines go.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

impl Lines {
    /// Notes what this thread logs, with the filter that the documentation names and in the form that
    /// the program has.
    fn read() -> (Self, DefaultGuard) {
        let lines = Self::default();
        let subscriber = tracing_subscriber::fmt()
            .with_env_filter(EnvFilter::new("warn,audit=info"))
            .with_writer(lines.clone())
            .with_ansi(false)
            .with_target(false)
            .finish();
        let guard = tracing::subscriber::set_default(subscriber);
        (lines, guard)
    }

    /// The lines from the word "audit" on, without those before.
    fn taken(&self) -> Vec<String> {
        let text = String::from_utf8(std::mem::take(&mut *self.0.lock().unwrap())).unwrap();
        assert!(!text.contains("llk_"), "{text}");
        let line = |line: &str| line.find("audit: ").map(|at| line[at..].to_owned());
        text.lines().filter_map(line).collect()
    }
}

async fn server() -> Server {
    let some = hash_text("llk_some");
    let config = format!(
        "[tenants.a.keys.some]\nhash = \"{some}\"\nthreads = [\"mine\"]\nrequests_per_minute = 3\n"
    );
    Server::new(&config).await.with_key("llk_some")
}

fn request(server: &Server, method: &str, path: &str) -> http::request::Builder {
    let request = server.request(method, path);
    request
        .header("x-request-id", "r-1")
        .header(header::CONTENT_TYPE, "application/json")
}

#[tokio::test]
async fn who_changes_something_or_is_refused_is_noted_with_the_request_and_without_the_key() {
    let (lines, _guard) = Lines::read();
    let server = server().await;
    let send = |method, path, body: &'static str| {
        let request = request(&server, method, path);
        server.send(request.body(Body::from(body)).unwrap())
    };
    let of = |method: &str, path: &str, status: u16| {
        format!(
            "tenant=a key=some method={method} path=\"{path}\" status={status} request_id=\"r-1\""
        )
    };
    send("POST", "/api/v1/threads", "{\"key\":\"mine\"}").await;
    let made = of("POST", "/api/v1/threads", 201);
    assert_eq!(lines.taken(), [format!("audit: answered {made}")]);
    send("GET", "/api/v1/threads/mine", "").await;
    assert_eq!(lines.taken(), Vec::<String>::new());
    send("GET", "/api/v1/threads/theirs", "").await;
    let forbidden = of("GET", "/api/v1/threads/theirs", 403);
    assert_eq!(lines.taken(), [format!("audit: refused {forbidden}")]);
    // The fourth in this minute.
    assert_eq!(send("GET", "/api/v1/threads/mine", "").await.status, 429);
    let limited = of("GET", "/api/v1/threads/mine", 429);
    assert_eq!(lines.taken(), [format!("audit: refused {limited}")]);
}

#[tokio::test]
async fn a_key_that_nobody_knows_is_noted_as_nobody_s() {
    let (lines, _guard) = Lines::read();
    let server = server().await.with_key("llk_guessed");
    let request = request(&server, "GET", "/api/v1/threads/mine");
    let refused = server.send(request.body(Body::empty()).unwrap()).await;
    assert_eq!(refused.status, 401);
    let line =
        "audit: refused method=GET path=\"/api/v1/threads/mine\" status=401 request_id=\"r-1\"";
    assert_eq!(lines.taken(), [line]);
}

#[tokio::test]
async fn a_client_that_leaves_before_the_answer_is_noted_all_the_same() {
    let (lines, _guard) = Lines::read();
    let server = server().await;
    // Its body never comes to an end.
    let body = Body::from_stream(futures_util::stream::pending::<Result<&str, std::io::Error>>());
    let request: Request<Body> = request(&server, "POST", "/api/v1/threads/mine/messages")
        .body(body)
        .unwrap();
    let mut answer = Box::pin(server.router.clone().oneshot(request));
    assert!((&mut answer).now_or_never().is_none());
    assert_eq!(lines.taken(), Vec::<String>::new());
    drop(answer);
    let line = "audit: cut off before the answer tenant=a key=some method=POST path=\"/api/v1/threads/mine/messages\" request_id=\"r-1\"";
    assert_eq!(lines.taken(), [line]);
    // One that is done is noted once.
    server.post("/api/v1/threads", json!({"key": "mine"})).await;
    assert_eq!(lines.taken().len(), 1);
}
