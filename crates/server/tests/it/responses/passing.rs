//! Responses that are not stored.

use super::{ASKS, invalid, last, not_found, output, refusal, text_of, weather};
use crate::harness::Server;
use axum::body::Body;
use futures_util::StreamExt;
use http::header;
use loomline_server::DEV_TENANT;
use runtime::ThreadRows;
use serde_json::json;

#[tokio::test]
async fn what_is_not_stored_leaves_nothing() {
    let server = Server::new("").await;
    let made = server
        .respond(json!({"input": "swordfish", "store": false}))
        .await;
    assert_eq!(
        (made["store"].as_bool(), text_of(&made)),
        (Some(false), "You said: swordfish".to_owned())
    );
    let events = server
        .respond_streaming(json!({"input": "swordfish", "store": false}))
        .await;
    for response in [&made, last(&events)] {
        let id = response["id"].as_str().unwrap();
        let path = format!("/v1/responses/{id}");
        assert_eq!(
            refusal(&server.get(&path).await),
            not_found("response_not_found")
        );
        let body = json!({"input": "x", "previous_response_id": id});
        let answer = server.post("/v1/responses", body).await;
        assert_eq!(
            refusal(&answer),
            invalid("previous_response_not_found", "previous_response_id")
        );
    }
    assert_eq!(server.n_threads().await, 0);
    server.app.shutdown().await.unwrap();
    for file in std::fs::read_dir(server.directory.path()).unwrap() {
        let path = file.unwrap().path();
        if path.is_file() {
            let bytes = std::fs::read(&path).unwrap();
            assert!(
                !bytes.windows(9).any(|it| it == b"swordfish"),
                "{}",
                path.display()
            );
        }
    }
}

#[tokio::test]
async fn it_knows_what_it_goes_on_with_and_changes_nothing_there() {
    let server = Server::new("").await;
    let one = server.respond(json!({"input": "one"})).await;
    let two = server
        .respond(json!({"input": "two", "previous_response_id": one["id"]}))
        .await;
    let id = format!("conv_{}", &one["id"].as_str().unwrap()[5..37]);
    let before = server
        .get(&format!("/v1/conversations/{id}/items"))
        .await
        .text;
    for body in [
        json!({"input": "and?", "previous_response_id": one["id"], "store": false}),
        json!({"input": "and?", "previous_response_id": two["id"], "store": false}),
        json!({"input": "and?", "conversation": id, "store": false}),
    ] {
        let response = server.respond(body.clone()).await;
        assert_eq!(text_of(&response), "You said: and?");
        assert_eq!(
            response["previous_response_id"],
            body["previous_response_id"]
        );
    }
    assert_eq!(
        server
            .get(&format!("/v1/conversations/{id}/items"))
            .await
            .text,
        before
    );
    assert_eq!(server.n_threads().await, 1);
}

#[tokio::test]
async fn a_call_that_is_stored_is_answered_by_a_response_that_is_not() {
    let server = Server::new("").await;
    let asked = server
        .respond(json!({"input": ASKS, "tools": [weather()]}))
        .await;
    let output = output(&asked["output"][0]["call_id"], "sun");
    let body =
        json!({"previous_response_id": asked["id"], "input": [output], "tools": [weather()]});
    let mut passing = body.clone();
    passing["store"] = false.into();
    let said = server.respond(passing).await;
    assert_eq!(text_of(&said), "get_weather gave sun.");
    // The call itself still waits.
    assert_eq!(
        text_of(&server.respond(body).await),
        "get_weather gave sun."
    );
}

#[tokio::test]
async fn what_is_not_stored_goes_on_from_a_call_that_nobody_has_answered() {
    let server = Server::new("").await;
    let asked = server
        .respond(json!({"input": ASKS, "tools": [weather()]}))
        .await;
    let body = json!({
        "previous_response_id": asked["id"], "input": "never mind", "store": false, "tools": [weather()],
    });
    assert_eq!(text_of(&server.respond(body).await), "You said: never mind");
    for store in [true, false] {
        let body = json!({"previous_response_id": asked["id"], "input": "and?", "store": store});
        assert_eq!(text_of(&server.respond(body).await), "You said: and?");
    }
    let body = json!({"model": "demo", "previous_response_id": asked["id"]});
    let brief = server.post("/v1/responses/compact", body).await;
    assert_eq!(brief.status, 200, "{}", brief.text);
    // With nothing said, somebody must answer first.
    let body = json!({"previous_response_id": asked["id"], "input": [], "store": false});
    assert_eq!(server.post("/v1/responses", body).await.status, 400);
}

#[tokio::test]
#[expect(
    clippy::disallowed_methods,
    reason = "no way in takes what an older version has kept"
)]
async fn a_result_that_was_kept_for_no_call_does_no_harm() {
    let server = Server::new("").await;
    let made = server.post("/api/v1/threads", json!({"key": "k"})).await;
    assert_eq!(made.status, 201);
    let stray = timeline::NewItem {
        id: "stray".into(),
        item_type: timeline::ItemType::ActionResult,
        role: None,
        channel: None,
        content: Some(output(&json!("none"), "x").into()),
        metadata: None,
    };
    let runtime = server.app.default_runtime();
    let kept = runtime.record(&DEV_TENANT.into(), "k", stray).await;
    kept.unwrap();
    let body = json!({"input": "hi", "conversation": "k", "store": false});
    assert_eq!(text_of(&server.respond(body).await), "You said: hi");
}

#[tokio::test]
async fn what_is_not_stored_names_the_conversation_that_was_asked_for() {
    let server = Server::new("").await;
    let made = server.post("/v1/conversations", json!({})).await.json();
    for store in [true, false] {
        let body = json!({"input": "hi", "conversation": made["id"], "store": store});
        let said = server.respond(body.clone()).await;
        assert_eq!(said["conversation"]["id"], made["id"]);
        for event in server.respond_streaming(body).await {
            if let Some(response) = event.get("response") {
                assert_eq!(response["conversation"]["id"], made["id"]);
            }
        }
    }
}

#[tokio::test]
async fn a_client_that_goes_away_leaves_nothing_in_memory() {
    let server = Server::new("").await;
    let body = json!({"input": "slow 5ms say 40 words", "store": false, "stream": true});
    let request = server
        .request("POST", "/v1/responses")
        .header(header::CONTENT_TYPE, "application/json");
    let (status, mut stream) = server
        .open(request.body(Body::from(body.to_string())).unwrap())
        .await;
    assert_eq!(status, 200);
    stream.next().await.unwrap().unwrap();
    drop(stream);
    // It is made to its end, and then deleted.
    let page = || ThreadRows {
        limit: 1,
        ..ThreadRows::default()
    };
    let passing = server.app.ephemeral();
    while !passing
        .list(&DEV_TENANT.into(), page())
        .await
        .unwrap()
        .is_empty()
    {
        tokio::task::yield_now().await;
    }
}
