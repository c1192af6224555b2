//! Who may see and make what.

use super::{invalid, not_found, refusal, text_of};
use crate::harness::{Server, two_tenants};
use crate::tenants::all_guarded_routes;
use axum::body::Body;
use http::{StatusCode, header};
use loomline_server::auth::hash_text;
use serde_json::{Value, json};

/// The routes of this view, from the generated document, so that none is forgotten.
fn routes() -> Vec<(String, String)> {
    let mut routes = all_guarded_routes();
    let of_view = ["/v1/responses", "/v1/conversations", "/v1/models"];
    routes.retain(|(_, path)| of_view.iter().any(|of| path.starts_with(of)));
    assert!(routes.len() >= 18, "{routes:?}");
    routes
}

#[tokio::test]
async fn every_route_asks_for_a_key_and_tells_strangers_nothing() {
    let owner = Server::new(&two_tenants()).await.with_key("llk_a");
    let made = owner.post("/v1/conversations", json!({})).await.json();
    let response = owner
        .respond(json!({"input": "swordfish", "conversation": made["id"]}))
        .await;
    let items = format!("/v1/conversations/{}/items", made["id"].as_str().unwrap());
    let items = owner.get(&items).await.json();
    for (method, path) in routes() {
        let filled = path
            .replace("{response_id}", response["id"].as_str().unwrap())
            .replace("{conversation_id}", made["id"].as_str().unwrap())
            .replace("{item_id}", items["data"][0]["id"].as_str().unwrap())
            .replace("{model}", "demo");
        let body = json!({
            "model": "demo", "input": "mine", "metadata": {}, "items": [{"role": "user", "content": "mine"}],
        });
        for key in ["llk_none", "llk_b"] {
            let request = owner.with_key(key).request(&method, &filled);
            let request = request.header(header::CONTENT_TYPE, "application/json");
            let answer = owner
                .send(request.body(Body::from(body.to_string())).unwrap())
                .await;
            let told = format!("{method} {path}: {}", answer.text);
            assert!(!answer.text.contains("swordfish"), "{told}");
            if key == "llk_none" {
                assert_eq!(answer.status, 401, "{told}");
                assert_eq!(answer.json()["error"]["type"], "authentication_error");
            } else if path.contains("{response_id}") || path.contains("{conversation_id}") {
                assert_eq!(answer.status, 404, "{told}");
            }
        }
    }
    assert_eq!(text_of(&response), "You said: swordfish");
    let id = response["id"].as_str().unwrap();
    assert_eq!(
        owner.get(&format!("/v1/responses/{id}")).await.json(),
        response
    );
    let path = format!("/v1/conversations/{}/items", made["id"].as_str().unwrap());
    assert_eq!(owner.get(&path).await.json(), items);
}

#[tokio::test]
async fn another_tenants_ids_lead_nowhere() {
    let owner = Server::new(&two_tenants()).await.with_key("llk_a");
    let made = owner.post("/v1/conversations", json!({})).await.json();
    let response = owner
        .respond(json!({"input": "swordfish", "conversation": made["id"]}))
        .await;
    let other = owner.with_key("llk_b");
    let (response, conversation) = (
        response["id"].as_str().unwrap(),
        made["id"].as_str().unwrap(),
    );
    let path = format!("/v1/responses/{response}");
    for answer in [
        other.get(&path).await,
        other.get(&format!("{path}?stream=true")).await,
        other.get(&format!("{path}/input_items")).await,
        other.post_text(&format!("{path}/cancel"), "").await,
        other.delete(&path).await,
    ] {
        assert_eq!(refusal(&answer), not_found("response_not_found"));
    }
    let path = format!("/v1/conversations/{conversation}");
    for answer in [
        other.get(&path).await,
        other.get(&format!("{path}/items")).await,
        other
            .post(&format!("{path}/items"), json!({"items": []}))
            .await,
        other.delete(&path).await,
        other
            .post(
                "/v1/responses",
                json!({"input": "x", "conversation": conversation}),
            )
            .await,
    ] {
        assert_eq!(refusal(&answer), not_found("conversation_not_found"));
    }
    for path in [
        "/v1/responses",
        "/v1/responses/input_tokens",
        "/v1/responses/compact",
    ] {
        let body = json!({"model": "demo", "input": "x", "previous_response_id": response});
        let answer = other.post(path, body).await;
        assert_eq!(
            refusal(&answer),
            invalid("previous_response_not_found", "previous_response_id")
        );
    }
    assert_eq!(
        owner.get(&format!("/v1/responses/{response}")).await.status,
        200
    );
}

#[tokio::test]
async fn a_key_for_some_threads_goes_on_with_these_alone() {
    let (all, some) = (hash_text("llk_all"), hash_text("llk_some"));
    let config = format!(
        "[tenants.a]\nkey_hashes = [\"{all}\"]\n[tenants.a.keys.some]\nhash = \"{some}\"\nthreads = [\"support-*\"]\n"
    );
    let all = Server::new(&config).await.with_key("llk_all");
    let some = all.with_key("llk_some");
    all.say("support-1", "hello").await;
    all.say("secret", "swordfish").await;
    let first = some
        .respond(json!({"input": "hi", "conversation": "support-1"}))
        .await;
    some.respond(json!({"input": "hi", "previous_response_id": first["id"]}))
        .await;
    let forbidden = |body: Value| {
        let some = &some;
        async move {
            let answer = some.post("/v1/responses", body).await;
            assert_eq!(answer.status, StatusCode::FORBIDDEN, "{}", answer.text);
            assert_eq!(answer.json()["error"]["type"], "permission_error");
        }
    };
    // It may make no thread of another name, and so no fork either.
    forbidden(json!({"input": "hi"})).await;
    forbidden(json!({"input": "hi", "store": false})).await;
    forbidden(json!({"input": "hi", "previous_response_id": first["id"]})).await;
    assert_eq!(
        some.post("/v1/conversations", json!({})).await.status,
        StatusCode::FORBIDDEN
    );
    let hidden = some
        .post(
            "/v1/responses",
            json!({"input": "hi", "conversation": "secret"}),
        )
        .await;
    assert_eq!(refusal(&hidden), not_found("conversation_not_found"));
}

#[tokio::test]
async fn a_key_that_only_reads_counts_and_makes_nothing() {
    let config = format!(
        "[tenants.a.keys.one]\nhash = \"{}\"\nscopes = [\"read\"]\n",
        hash_text("llk_a")
    );
    let reader = Server::new(&config).await.with_key("llk_a");
    let body = json!({"model": "demo", "input": "x"});
    let counted = reader
        .post("/v1/responses/input_tokens", body.clone())
        .await;
    assert_eq!(counted.json()["object"], "response.input_tokens");
    for path in [
        "/v1/responses",
        "/v1/responses/compact",
        "/v1/conversations",
    ] {
        let answer = reader.post(path, body.clone()).await;
        assert_eq!(
            answer.status,
            StatusCode::FORBIDDEN,
            "{path}: {}",
            answer.text
        );
    }
}
