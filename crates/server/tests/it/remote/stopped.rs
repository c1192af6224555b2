//! What an agent elsewhere does when it is stopped, or waits for somebody there.

use super::gate::{Asked, Gate};
use super::{PROTOCOLS, threads, until};
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use futures_util::future::BoxFuture;
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

#[tokio::test]
async fn what_is_stopped_before_it_says_which_it_is_is_stopped_there_once_it_does() {
    for protocol in PROTOCOLS {
        let said = "slow 20ms say 5000 words";
        let (gate, allowed) = Gate::holding(protocol, said).await;
        gate.near.begin("t", said).await;
        // It runs there, and nobody here was told.
        until(async || gate.there().await.concat().contains(&said.to_owned())).await;
        let stopped = gate.near.post("/api/v1/threads/t/cancel", json!({})).await;
        assert_eq!(stopped.status, 200, "{}", stopped.text);
        // Here it is over at once.
        assert_eq!(gate.why().await.0, "user_cancelled", "{protocol}");
        allowed.notify_one();
        let [key] = threads(&gate.far).await.try_into().unwrap();
        let there = gate.far.at_rest(&key).await;
        let ends = there
            .iter()
            .filter(|(_, event)| event["type"] == "execution.status.changed");
        let ends: Vec<&Value> = ends.map(|(_, event)| &event["to"]).collect();
        assert_eq!(ends, ["failed"], "{protocol}");
    }
}

/// A stream that says of a run that it is at work, and then shows signs of life for ever.
fn alive() -> Response {
    let run = json!({"object": "thread.run", "id": "run_1", "status": "in_progress"});
    let begun = format!("event: thread.run.in_progress\ndata: {run}\n\n");
    let signs = stream::unfold((), |()| async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        Some((": alive\n\n".to_owned(), ()))
    });
    let said = stream::once(std::future::ready(begun)).chain(signs);
    let body = Body::from_stream(said.map(Ok::<_, Infallible>));
    ([(http::header::CONTENT_TYPE, "text/event-stream")], body).into_response()
}

#[tokio::test]
async fn a_run_that_waits_for_somebody_elsewhere_ends_here_when_its_time_is_up_there() {
    let answer = |asked: Asked| -> BoxFuture<'static, Option<Response>> {
        let answer = if asked.path.ends_with("/runs") {
            alive()
        } else if asked.path.ends_with("/messages") {
            axum::Json(json!({"object": "list", "data": []})).into_response()
        } else if asked.path.ends_with("/run_1") {
            let run = json!({"object": "thread.run", "id": "run_1", "status": "expired"});
            axum::Json(run).into_response()
        } else {
            axum::Json(json!({"object": "thread", "id": "thread_1"})).into_response()
        };
        Box::pin(std::future::ready(Some(answer)))
    };
    let gate = Gate::impatient("threads", Arc::new(answer)).await;
    gate.say("careful", "compute 6 * 7").await;
    let (reason, detail) = gate.why().await;
    assert_eq!(reason, "timeout", "{detail}");
    assert!(detail.contains("expired"), "{detail}");
}
