//! Responses over a WebSocket.

use super::{ASKS, check_events, fits, kinds, last, output, text_of, weather};
use crate::harness::{Served, Server};
use futures_util::{SinkExt, StreamExt};
use http::{Request, header};
use loomline_server::auth::hash_text;
use loomline_server::{App, Config};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{self, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

pub(crate) struct Socket(pub(crate) WebSocketStream<MaybeTlsStream<TcpStream>>);

impl Socket {
    pub(crate) async fn open(listening: &Served) -> Self {
        Self::with_key(listening, None).await
    }

    pub(super) async fn with_key(listening: &Served, key: Option<&str>) -> Self {
        Self(
            connect_async(Self::request(listening, key))
                .await
                .unwrap()
                .0,
        )
    }

    fn request(listening: &Served, key: Option<&str>) -> Request<()> {
        let url = listening.url("/v1/responses").replace("http://", "ws://");
        let mut request = url.into_client_request().unwrap();
        if let Some(key) = key {
            let value = format!("Bearer {key}").parse().unwrap();
            request.headers_mut().insert(header::AUTHORIZATION, value);
        }
        request
    }

    pub(crate) async fn ask(&mut self, mut body: Value) {
        body["type"] = "response.create".into();
        self.0.send(Message::text(body.to_string())).await.unwrap();
    }

    /// The next message that is a text; none when the connection is closed.
    pub(super) async fn next(&mut self) -> Option<Value> {
        while let Some(message) = self.0.next().await {
            match message.unwrap() {
                Message::Text(text) => return Some(serde_json::from_str(&text).unwrap()),
                Message::Close(_) => return None,
                Message::Ping(_) | Message::Pong(_) | Message::Binary(_) | Message::Frame(_) => {}
            }
        }
        None
    }

    /// The events of the next response.
    pub(crate) async fn events(&mut self) -> Vec<Value> {
        let mut events = Vec::new();
        loop {
            let event = self.next().await.unwrap();
            let kind = event["type"].as_str().unwrap().to_owned();
            assert!(event.get("status").is_none(), "{event}");
            events.push(event);
            if [
                "response.completed",
                "response.failed",
                "response.incomplete",
            ]
            .contains(&kind.as_str())
            {
                check_events(&events);
                return events;
            }
        }
    }

    /// The response to a request.
    pub(crate) async fn respond(&mut self, body: Value) -> Value {
        self.ask(body).await;
        last(&self.events().await).clone()
    }

    /// The status and the code of the error that a request gets.
    pub(crate) async fn refused(&mut self, body: Value) -> (u64, String) {
        self.ask(body).await;
        self.error().await
    }

    pub(crate) async fn error(&mut self) -> (u64, String) {
        let frame = self.next().await.unwrap();
        assert_eq!(frame["type"], "error", "{frame}");
        assert!(
            frame.get("sequence_number").is_none() && frame["error"]["message"].is_string(),
            "{frame}"
        );
        fits("WebSocketErrorEvent", &frame);
        (
            frame["status"].as_u64().unwrap(),
            frame["error"]["code"].as_str().unwrap().to_owned(),
        )
    }
}

pub(super) fn gone() -> (u64, String) {
    (400, "previous_response_not_found".to_owned())
}

#[tokio::test]
async fn responses_are_made_one_after_the_other() {
    let server = Server::new("").await;
    let listening = Served::new(server.app.clone()).await;
    let mut socket = Socket::open(&listening).await;
    for text in ["slow 1ms say 20 words", "two", "three"] {
        socket.ask(json!({"model": "demo", "input": text})).await;
    }
    let first = socket.events().await;
    assert_eq!(
        kinds(&first)[..2],
        ["response.created", "response.in_progress"]
    );
    assert_eq!(text_of(last(&socket.events().await)), "You said: two");
    assert_eq!(text_of(last(&socket.events().await)), "You said: three");
    let id = last(&first)["id"].as_str().unwrap();
    assert_eq!(
        &server.get(&format!("/v1/responses/{id}")).await.json(),
        last(&first)
    );
    listening.stop().await;
}

#[tokio::test]
async fn the_last_response_that_is_not_stored_is_gone_on_with_on_its_connection_alone() {
    let server = Server::new("").await;
    let listening = Served::new(server.app.clone()).await;
    let mut socket = Socket::open(&listening).await;
    let one = socket
        .respond(json!({"input": "one", "store": false}))
        .await;
    let mut other = Socket::open(&listening).await;
    let after = json!({"input": "two", "store": false, "previous_response_id": one["id"]});
    assert_eq!(other.refused(after.clone()).await, gone());
    let two = socket.respond(after.clone()).await;
    assert_eq!(text_of(&two), "You said: two");
    // Only the last one is held.
    assert_eq!(socket.refused(after).await, gone());
    // It can be stored from here on.
    let kept = socket
        .respond(json!({"input": "three", "previous_response_id": two["id"]}))
        .await;
    let id = format!("conv_{}", &kept["id"].as_str().unwrap()[5..37]);
    let items = server
        .get(&format!("/v1/conversations/{id}/items"))
        .await
        .json();
    assert_eq!(items["data"].as_array().unwrap().len(), 6);
    let four = socket
        .respond(json!({"input": "four", "previous_response_id": kept["id"]}))
        .await;
    assert_eq!(four["status"], "completed");
    listening.stop().await;
}

#[tokio::test]
async fn a_response_that_was_gone_on_with_in_vain_is_held_no_longer() {
    let server = Server::new("").await;
    let listening = Served::new(server.app.clone()).await;
    let mut socket = Socket::open(&listening).await;
    let call = json!([output(&json!("call_none"), "x")]);
    for (wrong, status) in [
        (json!({"input": call}), 400),
        (json!({"input": 7}), 400),
        (json!({"input": "x", "model": "nobody"}), 400),
    ] {
        let one = socket
            .respond(json!({"input": "one", "store": false}))
            .await;
        let mut body = wrong;
        body["previous_response_id"] = one["id"].clone();
        body["store"] = false.into();
        assert_eq!(socket.refused(body).await.0, status);
        let again = json!({"input": "x", "store": false, "previous_response_id": one["id"]});
        assert_eq!(socket.refused(again).await, gone());
    }
    listening.stop().await;
}

#[tokio::test]
async fn a_response_is_held_no_longer_once_a_message_after_it_can_not_be_read() {
    let server = Server::new("[server]\nmax_depth = 16\n").await;
    let listening = Served::new(server.app.clone()).await;
    let mut socket = Socket::open(&listening).await;
    let one = socket
        .respond(json!({"input": "one", "store": false}))
        .await;
    let after = json!({"input": "x", "store": false, "previous_response_id": one["id"]});
    let mut deep = after.clone();
    deep["metadata"] =
        serde_json::from_str(&format!("{}{}", "[".repeat(40), "]".repeat(40))).unwrap();
    assert_eq!(socket.refused(deep).await, (400, "too_deep".to_owned()));
    assert_eq!(socket.refused(after).await, gone());
    listening.stop().await;
}

#[tokio::test]
async fn calls_are_answered_over_a_connection() {
    let server = Server::new("").await;
    let listening = Served::new(server.app.clone()).await;
    let mut socket = Socket::open(&listening).await;
    for store in [true, false] {
        let asked = socket
            .respond(json!({"input": ASKS, "tools": [weather()], "store": store}))
            .await;
        let output = output(&asked["output"][0]["call_id"], "hail");
        let said = socket
            .respond(json!({
                "previous_response_id": asked["id"], "input": [output], "tools": [weather()], "store": store,
            }))
            .await;
        assert_eq!(text_of(&said), "get_weather gave hail.");
    }
    listening.stop().await;
}

#[tokio::test]
async fn messages_that_make_no_sense_are_refused_and_the_connection_goes_on() {
    let server = Server::new("[server]\nmax_depth = 16\n").await;
    let listening = Served::new(server.app.clone()).await;
    let mut socket = Socket::open(&listening).await;
    for (text, code) in [
        ("no JSON".to_owned(), "malformed_json"),
        ("[".repeat(40), "too_deep"),
        (
            json!({"type": "response.cancel"}).to_string(),
            "unsupported_value",
        ),
        (
            json!({"type": "response.create", "stream": true}).to_string(),
            "invalid_value",
        ),
    ] {
        socket.0.send(Message::text(text)).await.unwrap();
        let (status, told) = socket.error().await;
        assert_eq!((status, told.as_str()), (400, code));
    }
    socket.0.send(Message::binary(vec![1, 2])).await.unwrap();
    assert_eq!(socket.error().await, (400, "invalid_request".to_owned()));
    assert_eq!(
        socket.respond(json!({"input": "hi"})).await["status"],
        "completed"
    );
    listening.stop().await;
}

#[tokio::test]
async fn a_connection_ends_with_the_server() {
    let server = Server::new("").await;
    let listening = Served::new(server.app.clone()).await;
    let mut socket = Socket::open(&listening).await;
    socket.respond(json!({"input": "hi"})).await;
    let (closed, ()) = tokio::join!(socket.next(), listening.stop());
    assert_eq!(closed, None);
}

#[tokio::test]
async fn a_key_that_is_taken_away_makes_no_more_responses() {
    let config = |key: &str| {
        format!(
            "[tenants.a.keys.{key}]\nhash = \"{}\"\n",
            hash_text("llk_a")
        )
    };
    let parse = |text: &str| Config::parse(text, &|_| None).unwrap();
    let server = Server::new(&config("one")).await;
    let listening = Served::new(server.app.clone()).await;
    let mut socket = Socket::with_key(&listening, Some("llk_a")).await;
    socket.respond(json!({"input": "hi"})).await;
    let app: &App = &server.app;
    app.replace_tenants(&parse(&config("two")).tenants).unwrap();
    assert_eq!(
        socket.refused(json!({"input": "hi"})).await,
        (401, "unauthorized".to_owned())
    );
    listening.stop().await;
}

#[tokio::test]
async fn a_key_that_only_reads_opens_no_socket() {
    let config = format!(
        "[tenants.a.keys.one]\nhash = \"{}\"\nscopes = [\"read\"]\n",
        hash_text("llk_a")
    );
    let server = Server::new(&config).await;
    let listening = Served::new(server.app.clone()).await;
    let refused = connect_async(Socket::request(&listening, Some("llk_a"))).await;
    let Err(tungstenite::Error::Http(answer)) = refused else {
        panic!("the socket is open");
    };
    assert_eq!(answer.status(), 403);
    let body: Value = serde_json::from_slice(answer.body().as_ref().unwrap()).unwrap();
    assert_eq!(body["error"]["code"], "missing_scope");
    listening.stop().await;
}

#[tokio::test]
async fn what_can_not_be_read_is_counted_like_every_message() {
    let config = format!(
        "[tenants.a.keys.one]\nhash = \"{}\"\nrequests_per_minute = 3\n",
        hash_text("llk_a")
    );
    let server = Server::new(&config).await;
    let listening = Served::new(server.app.clone()).await;
    // The first of the three.
    let mut socket = Socket::with_key(&listening, Some("llk_a")).await;
    for expected in [
        (400, "malformed_json"),
        (400, "malformed_json"),
        (429, "rate_limited"),
    ] {
        socket.0.send(Message::text("no JSON")).await.unwrap();
        let (status, code) = socket.error().await;
        assert_eq!((status, code.as_str()), expected);
    }
    listening.stop().await;
}

#[tokio::test]
async fn a_get_that_opens_no_socket_is_told_so() {
    let server = Server::new("").await;
    let answer = server.get("/v1/responses").await;
    assert_eq!(
        super::refusal(&answer),
        super::invalid("invalid_request", "")
    );
}

#[tokio::test]
async fn a_response_is_held_whatever_else_is_made_on_its_connection() {
    let server = Server::new("").await;
    let listening = Served::new(server.app.clone()).await;
    let mut socket = Socket::open(&listening).await;
    let one = socket
        .respond(json!({"input": "one", "store": false}))
        .await;
    socket.respond(json!({"input": "aside"})).await;
    let after = json!({"input": "two", "store": false, "previous_response_id": one["id"]});
    let two = socket.respond(after.clone()).await;
    assert_eq!(text_of(&two), "You said: two");
    assert_eq!(socket.refused(after).await, gone());
    // Stored, it goes on elsewhere and is no longer here.
    let kept = json!({"input": "three", "previous_response_id": two["id"]});
    socket.respond(kept.clone()).await;
    assert_eq!(socket.refused(kept).await, gone());
    listening.stop().await;
}
