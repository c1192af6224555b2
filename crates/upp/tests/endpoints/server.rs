//! A local server that answers single calls and remembers them.

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Uri};
use axum::response::Response;
use loomline_upp::ProviderConfig;
use serde_json::Value;
use std::sync::{Arc, Mutex};

/// A request that the server saw.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Seen {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("a JSON body")
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

type Answer = Arc<dyn Fn(&Seen) -> Response<Body> + Send + Sync>;

#[derive(Clone)]
pub(crate) struct Server {
    answer: Answer,
    seen: Arc<Mutex<Vec<Seen>>>,
    pub(crate) url: String,
}

impl Server {
    pub(crate) async fn new(
        answer: impl Fn(&Seen) -> Response<Body> + Send + Sync + 'static,
    ) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
            .await
            .expect("a test server");
        let address = listener.local_addr().expect("a test server");
        let server = Self {
            answer: Arc::new(answer),
            seen: Arc::default(),
            url: format!("http://{address}/v1"),
        };
        let router = axum::Router::new()
            .fallback(handle)
            .layer(axum::extract::DefaultBodyLimit::disable())
            .with_state(server.clone());
        #[expect(
            clippy::disallowed_methods,
            reason = "the test's server ends with the test's runtime"
        )]
        tokio::spawn(async move { axum::serve(listener, router).await });
        server
    }

    /// Always the same answer.
    pub(crate) async fn json(status: u16, body: Value) -> Self {
        Self::new(move |_| json(status, &body)).await
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().expect("a test server").clone()
    }

    /// How it is reached, with the key `sk-secret`.
    pub(crate) fn config(&self) -> ProviderConfig {
        ProviderConfig::default()
            .with_base_url(&self.url)
            .with_api_key("sk-secret".to_owned().into())
    }
}

async fn handle(
    State(server): State<Server>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response<Body> {
    let path = uri.path_and_query().map_or("", |it| it.as_str());
    let seen = Seen {
        path: path.to_owned(),
        headers,
        body,
    };
    let answer = (server.answer)(&seen);
    server.seen.lock().expect("a test server").push(seen);
    answer
}

/// A JSON answer that asks to wait seven seconds where it refuses.
pub(crate) fn json(status: u16, body: &Value) -> Response<Body> {
    let mut answer = Response::builder()
        .status(status)
        .header("content-type", "application/json");
    if status >= 400 {
        answer = answer.header("retry-after", "7");
    }
    answer
        .body(Body::from(body.to_string()))
        .expect("an answer")
}

/// An answer that never comes to its end.
pub(crate) fn stalled(content_type: &str, begin: impl Into<Bytes>) -> Response<Body> {
    use futures_util::StreamExt;
    let first = [Ok::<Bytes, std::convert::Infallible>(begin.into())];
    let body = futures_util::stream::iter(first).chain(futures_util::stream::pending());
    Response::builder()
        .header("content-type", content_type)
        .body(Body::from_stream(body))
        .expect("an answer")
}
