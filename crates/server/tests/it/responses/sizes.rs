//! How long requests may be.

use super::refusal;
use super::socket::{Socket, gone};
use crate::harness::{Served, Server};
use serde_json::{Value, json};

/// A request with an image of so many bytes.
fn with_image(n: usize) -> Value {
    let url = format!("https://a.example/{}", "a".repeat(n));
    let image = json!({"type": "input_image", "image_url": url});
    json!({"input": [{"role": "user", "content": [image]}]})
}

#[tokio::test]
async fn a_part_that_is_longer_than_a_body_may_be_is_refused_with_it() {
    let server = Server::new("[server]\nmax_body_bytes = 4096\n").await;
    let answer = server.post("/v1/responses", with_image(1_000)).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    let answer = server.post("/v1/responses", with_image(5_000)).await;
    let (status, _, code, param) = refusal(&answer);
    assert_eq!(
        (status, code.as_str(), param),
        (413, "body_too_large", None)
    );
    let message = answer.json()["error"]["message"].clone();
    assert!(message.as_str().unwrap().contains("4096"), "{message}");
}

#[tokio::test]
async fn a_message_that_is_too_long_is_told_so_and_the_connection_goes_on() {
    let server = Server::new("[server]\nmax_body_bytes = 4096\n").await;
    let listening = Served::new(server.app.clone()).await;
    let mut socket = Socket::open(&listening).await;
    let one = socket
        .respond(json!({"input": "one", "store": false}))
        .await;
    let mut long = with_image(5_000);
    long["previous_response_id"] = one["id"].clone();
    long["store"] = false.into();
    let too_long = (413, "body_too_large".to_owned());
    assert_eq!(socket.refused(long).await, too_long);
    // Which response it was to go on with was not read.
    let after = json!({"input": "x", "store": false, "previous_response_id": one["id"]});
    assert_eq!(socket.refused(after).await, gone());
    let again = socket.respond(with_image(1_000)).await;
    assert_eq!(again["status"], "completed");
    listening.stop().await;
}
