//! The binding to HTTP and JSON.

use super::{CONFIG, frames, says, state, told};
use crate::harness::Server;
use axum::body::Body;
use futures_util::StreamExt as _;
use serde_json::json;

#[tokio::test]
async fn the_same_task_is_read_listed_and_streamed_by_its_path() {
    let server = Server::new(CONFIG).await;
    let sent = server
        .a2a("POST", "/a2a/v1/message:send", Some(&says(json!("hi"))))
        .await;
    assert_eq!(sent.headers["content-type"], "application/a2a+json");
    let task = sent.json()["task"].clone();
    let path = format!("/a2a/v1/tasks/{}", task["id"].as_str().unwrap());
    assert_eq!(server.a2a("GET", &path, None).await.json(), task);
    let short = server
        .a2a("GET", &format!("{path}?historyLength=0"), None)
        .await
        .json();
    assert!(short.get("history").is_none());
    let context = task["contextId"].as_str().unwrap();
    let query = format!("/a2a/v1/tasks?contextId={context}&status=TASK_STATE_COMPLETED&pageSize=5");
    let listed = server.a2a("GET", &query, None).await.json();
    assert_eq!(listed["tasks"][0]["id"], task["id"]);
    assert!(listed["tasks"][0].get("artifacts").is_none());
    let said = told(
        &server
            .a2a(
                "POST",
                "/a2a/clerk/v1/message:stream",
                Some(&says(json!("hi"))),
            )
            .await,
    );
    assert_eq!(state(&said.last().unwrap()["statusUpdate"]), "COMPLETED");
}

#[tokio::test]
async fn what_runs_is_followed_from_its_beginning_by_whoever_comes_later() {
    let server = Server::new(CONFIG).await;
    server.begin("t", "slow 20ms say 30 words").await;
    let listed = server.a2a("GET", "/a2a/v1/tasks", None).await.json();
    let id = listed["tasks"][0]["id"].as_str().unwrap();
    for method in ["GET", "POST"] {
        let path = format!("/a2a/v1/tasks/{id}:subscribe");
        let answer = server.a2a(method, &path, None).await;
        if method == "POST" {
            // It is over by now.
            let error = answer.json()["error"].clone();
            assert_eq!(
                (answer.status.as_u16(), &error["status"]),
                (400, &json!("FAILED_PRECONDITION"))
            );
            assert_eq!(error["details"][0]["reason"], "UNSUPPORTED_OPERATION");
            continue;
        }
        let said = told(&answer);
        assert_eq!(said[0]["task"]["id"], id);
        let text: String = said
            .iter()
            .filter_map(|said| said["artifactUpdate"]["artifact"]["parts"][0]["text"].as_str())
            .collect();
        assert_eq!(text.split_whitespace().count(), 30);
        assert_eq!(state(&said.last().unwrap()["statusUpdate"]), "COMPLETED");
    }
}

#[tokio::test]
async fn a_task_that_asks_is_followed_until_it_goes_on_and_ends() {
    let server = Server::new(CONFIG).await;
    let task = server.task("/a2a/clerk", json!("use compute 6 * 7")).await;
    let id = task["id"].as_str().unwrap();
    let path = format!("/a2a/v1/tasks/{id}:subscribe");
    let request = server.request("POST", &path).header("a2a-version", "1.0");
    let (status, mut stream) = server.open(request.body(Body::empty()).unwrap()).await;
    assert_eq!(status, 200);
    let call = &task["status"]["message"]["parts"][1]["data"]["calls"][0]["toolCallId"];
    let answer = json!({"taskId": id, "messageId": "m2", "parts": [{"data": {"toolCallId": call, "approved": true}}]});
    let done = server.task("/a2a", answer).await;
    let mut followed = Vec::new();
    while let Some(piece) = stream.next().await {
        followed.extend_from_slice(&piece.unwrap());
    }
    let said = frames(std::str::from_utf8(&followed).unwrap());
    assert_eq!(said[0]["task"], task);
    assert_eq!(state(&said.last().unwrap()["statusUpdate"]), "COMPLETED");
    assert_eq!(state(&done), "COMPLETED");
}

#[tokio::test]
async fn refusals_have_a_status_a_reason_and_a_place() {
    let server = Server::new(CONFIG).await;
    let no_parts = json!({"message": {"messageId": "m", "role": "ROLE_USER"}});
    for (method, path, body, status, reason) in [
        ("GET", "/a2a/v1/tasks/x", None, 404, "TASK_NOT_FOUND"),
        (
            "POST",
            "/a2a/v1/tasks/x:cancel",
            None,
            404,
            "TASK_NOT_FOUND",
        ),
        ("POST", "/a2a/v1/tasks/x", None, 404, "ROUTE_NOT_FOUND"),
        (
            "GET",
            "/a2a/v1/tasks?pageSize=x",
            None,
            400,
            "INVALID_PARAMS",
        ),
        (
            "GET",
            "/a2a/v1/tasks?status=DONE",
            None,
            400,
            "INVALID_PARAMS",
        ),
        (
            "POST",
            "/a2a/v1/message:send",
            Some(&no_parts),
            400,
            "INVALID_PARAMS",
        ),
        (
            "GET",
            "/a2a/v1/tasks/x/pushNotificationConfigs",
            None,
            400,
            "PUSH_NOTIFICATION_NOT_SUPPORTED",
        ),
        (
            "DELETE",
            "/a2a/v1/tasks/x/pushNotificationConfigs/y",
            None,
            400,
            "PUSH_NOTIFICATION_NOT_SUPPORTED",
        ),
        ("GET", "/a2a/nobody/v1/tasks", None, 404, "ROUTE_NOT_FOUND"),
        ("GET", "/a2a/v1/nothing", None, 404, "ROUTE_NOT_FOUND"),
        ("DELETE", "/a2a/v1/tasks/x", None, 405, "METHOD_NOT_ALLOWED"),
    ] {
        let answer = server.a2a(method, path, body).await;
        let error = answer.json()["error"].clone();
        assert_eq!(
            (answer.status.as_u16(), &error["code"]),
            (status, &json!(status)),
            "{method} {path}"
        );
        assert_eq!(error["details"][0]["reason"], reason, "{method} {path}");
    }
    let answer = server
        .a2a("POST", "/a2a/v1/message:send", Some(&no_parts))
        .await
        .json();
    let field = &answer["error"]["details"][1]["fieldViolations"][0]["field"];
    assert_eq!(field, "/message/parts");
}

#[tokio::test]
async fn a_body_that_is_said_to_be_no_json_has_the_wrong_content_type_in_both_bindings() {
    let server = Server::new(CONFIG).await;
    let call =
        json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": says(json!("hi"))});
    let said = says(json!("hi"));
    for (path, body, status) in [
        ("/a2a", &call, 200),
        ("/a2a/v1/message:send", &said, 400),
        ("/a2a/v1/message:stream", &said, 400),
        ("/a2a/v1/tasks/x:cancel", &said, 400),
    ] {
        for kind in ["text/plain", "application/xml"] {
            let request = server.request("POST", path).header("a2a-version", "1.0");
            let request = request.header("content-type", kind);
            let answer = server
                .send(request.body(body.to_string().into()).unwrap())
                .await;
            assert_eq!(answer.status, status, "{path} {kind}: {}", answer.text);
            let error = answer.json()["error"].clone();
            let details = if path == "/a2a" {
                assert_eq!(error["code"], -32005);
                &error["data"]
            } else {
                &error["details"]
            };
            assert_eq!(details[0]["reason"], "CONTENT_TYPE_NOT_SUPPORTED");
        }
    }
    assert_eq!(
        server.get("/api/v1/threads").await.json()["threads"],
        json!([])
    );
}

#[tokio::test]
async fn a_stream_has_as_much_history_as_is_wanted() {
    let server = Server::new(CONFIG).await;
    for (wanted, n_messages) in [(json!(null), 1), (json!(0), 0), (json!(1), 1)] {
        let mut body = says(json!("hi"));
        body["configuration"] = json!({"historyLength": wanted});
        let answer = server.a2a("POST", "/a2a/v1/message:stream", Some(&body));
        let said = told(&answer.await);
        let history = said[0]["task"]["history"].as_array();
        assert_eq!(history.map_or(0, Vec::len), n_messages, "{wanted}");
    }
    let task = server.task("/a2a/clerk", json!("use compute 6 * 7")).await;
    let call = &task["status"]["message"]["parts"][1]["data"]["calls"][0]["toolCallId"];
    let mut answer = says(json!({
        "taskId": task["id"], "messageId": "m2",
        "parts": [{"data": {"toolCallId": call, "approved": true}}],
    }));
    answer["configuration"] = json!({"historyLength": 0});
    let said = told(
        &server
            .a2a("POST", "/a2a/v1/message:stream", Some(&answer))
            .await,
    );
    assert!(said[0]["task"].get("history").is_none(), "{}", said[0]);
}

#[tokio::test]
async fn a_colon_in_a_path_may_be_encoded() {
    let server = Server::new(CONFIG).await;
    for path in ["/a2a/v1/message", "/a2a/clerk/v1/message"] {
        for colon in ["%3A", "%3a"] {
            let said = says(json!("hi"));
            let path = format!("{path}{colon}send");
            let sent = server.a2a("POST", &path, Some(&said)).await;
            assert_eq!(sent.status, 200, "{path}: {}", sent.text);
            let task = sent.json()["task"]["id"].as_str().unwrap().to_owned();
            let path = format!("/a2a/v1/tasks/{task}{colon}cancel");
            let over = server.a2a("POST", &path, None).await;
            let reason = &over.json()["error"]["details"][0]["reason"];
            assert_eq!(reason, "TASK_NOT_CANCELABLE", "{}", over.text);
        }
        let path = format!("{path}%3Astream");
        let said = told(&server.a2a("POST", &path, Some(&says(json!("hi")))).await);
        assert_eq!(state(&said.last().unwrap()["statusUpdate"]), "COMPLETED");
    }
}

#[tokio::test]
async fn every_path_accepts_a_trailing_slash() {
    let server = Server::new(CONFIG).await;
    for base in ["/a2a", "/a2a/clerk"] {
        let said = says(json!("hi"));
        let path = format!("{base}/v1/message:send/");
        let sent = server.a2a("POST", &path, Some(&said)).await;
        assert_eq!(sent.status, 200, "{}", sent.text);
        let task = sent.json()["task"].clone();
        let id = task["id"].as_str().unwrap();
        let path = format!("{base}/v1/message:stream/");
        let streamed = server.a2a("POST", &path, Some(&said)).await;
        assert_eq!(streamed.status, 200);
        for (path, status) in [
            (format!("/v1/tasks/{id}/"), 200),
            ("/v1/tasks/".to_owned(), 200),
            ("/v1/extendedAgentCard/".to_owned(), 200),
            (format!("/v1/tasks/{id}:subscribe/"), 400),
            (format!("/v1/tasks/{id}/pushNotificationConfigs/"), 400),
            (format!("/v1/tasks/{id}/pushNotificationConfigs/x/"), 400),
        ] {
            let answer = server.a2a("GET", &format!("{base}{path}"), None).await;
            assert_eq!(answer.status, status, "{base}{path}: {}", answer.text);
        }
        let path = format!("{base}/");
        let read = server.rpc(&path, "GetTask", json!({ "id": id })).await;
        assert_eq!(read["result"], task);
    }
    for card in ["", "/a2a/clerk"] {
        let card = format!("{card}/.well-known/agent-card.json/");
        assert_eq!(server.get(&card).await.status, 200, "{card}");
    }
}
