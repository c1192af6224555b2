//! Which request ids of clients are used.

use crate::harness::Server;
use axum::body::Body;
use http::HeaderValue;
use serde_json::json;

/// The id of the answer to a request with these ids, and whether the error's body has the same.
async fn answered(server: &Server, ids: &[&[u8]]) -> String {
    let mut request = server.request("GET", "/api/v1/threads/none");
    for id in ids {
        request = request.header("x-request-id", HeaderValue::from_bytes(id).unwrap());
    }
    let answer = server.send(request.body(Body::empty()).unwrap()).await;
    let mut sent = answer.headers.get_all("x-request-id").iter();
    let id = sent.next().unwrap().to_str().unwrap().to_owned();
    assert_eq!(sent.next(), None);
    assert_eq!(answer.json()["error"]["requestId"], json!(id));
    id
}

#[tokio::test]
async fn a_request_id_is_bounded() {
    let server = Server::new("").await;
    let longest = "x".repeat(128);
    for id in ["1-67891233-abcdef012345678912345678", &longest] {
        assert_eq!(answered(&server, &[id.as_bytes()]).await, id);
    }
    let (longer, long) = ("x".repeat(129), "x".repeat(60_000));
    let refused: [&[&[u8]]; 7] = [
        &[longer.as_bytes()],
        &[long.as_bytes()],
        &[b""],
        &[b"a b"],
        &[b"{\"level\":\"info\"}"],
        &[b"caf\xe9"],
        &[b"one", b"two"],
    ];
    for ids in refused {
        let made = answered(&server, ids).await;
        assert_eq!(made.len(), 36, "a UUID in place of {ids:?}: {made}");
    }
}
