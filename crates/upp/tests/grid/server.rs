//! A local server that answers as a vendor would.

use crate::vendor::{Reply, Scenario, Seen, Vendor};
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::Response;
use futures_util::StreamExt;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};

#[derive(Clone)]
pub(crate) struct Server {
    vendor: Arc<dyn Vendor>,
    scenario: Scenario,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Server {
    /// Serves on a port of this machine until the test ends; gives the address.
    pub(crate) async fn start(vendor: Arc<dyn Vendor>, scenario: Scenario) -> (Self, String) {
        let server = Self {
            vendor,
            scenario,
            seen: Arc::default(),
        };
        let router = axum::Router::new()
            .fallback(handle)
            .with_state(server.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        #[expect(
            clippy::disallowed_methods,
            reason = "the test's server ends with the test's runtime"
        )]
        tokio::spawn(async move { axum::serve(listener, router).await });
        (server, format!("http://{address}"))
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }
}

async fn handle(State(server): State<Server>, request: Request) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, 64 << 20).await.unwrap();
    let text = String::from_utf8(body.to_vec()).unwrap();
    let n = {
        let mut seen = server.seen.lock().unwrap();
        seen.push(Seen {
            path: parts.uri.to_string(),
            headers: parts.headers,
            body: serde_json::from_str(&text).unwrap(),
            text,
        });
        seen.len() - 1
    };
    let Reply {
        status,
        headers,
        pieces,
        stalls,
    } = server.vendor.reply(server.scenario, n);
    let mut response = Response::builder().status(status);
    for (name, value) in headers {
        response = response.header(name, value);
    }
    let pieces = futures_util::stream::iter(pieces.into_iter().map(Ok::<_, Infallible>));
    let body = if stalls {
        Body::from_stream(pieces.chain(futures_util::stream::pending()))
    } else {
        Body::from_stream(pieces)
    };
    response.body(body).unwrap()
}
