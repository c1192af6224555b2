//! Connections: timeouts, caps, and what is closed to make room.

mod raw;
mod room;
mod shutdown;
mod timeouts;

use crate::harness::{Served, Server};
use raw::Client;

/// A server on a socket, with these lines in `[limits]`.
struct Site {
    server: Server,
    served: Served,
}

impl Site {
    async fn new(limits: &str) -> Self {
        let server = Server::new(&format!("[limits]\n{limits}")).await;
        Self {
            served: Served::new(server.app.clone()).await,
            server,
        }
    }

    async fn connect(&self) -> Client {
        Client::connect(self.served.addr).await
    }

    /// A connection on which one request was answered, so that it is idle.
    async fn idle(&self) -> Client {
        let mut client = self.connect().await;
        assert_eq!(client.get("/healthz").await.status, 200);
        client
    }

    /// A connection with an event stream on a thread that has a run.
    async fn follower(&self) -> Client {
        self.server.say("t", "hello").await;
        let mut client = self.connect().await;
        client
            .send("GET /api/v1/threads/t/events HTTP/1.1\r\nhost: localhost\r\n\r\n")
            .await;
        client.read_until("thread.finished").await;
        client
    }

    /// A figure of `/metrics`.
    async fn figure(&self, name: &str) -> u64 {
        let text = self.server.get("/metrics").await.text;
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(&format!("loomline_{name} ")));
        line.unwrap().parse().unwrap()
    }

    /// Waits until a figure has a value.
    async fn reaches(&self, name: &str, value: u64) {
        for _ in 0..1_000 {
            if self.figure(name).await == value {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        panic!("{name} is {} and not {value}", self.figure(name).await);
    }
}

/// A client that speaks HTTP/2 without TLS.
fn http2() -> reqwest::Client {
    let builder = upp::http_client_builder("test").unwrap();
    builder.http2_prior_knowledge().build().unwrap()
}
