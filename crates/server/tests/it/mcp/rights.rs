//! Who may do what: tenants, scopes, threads.

use super::{call, connect, failure, lifecycles, served, stateless, structured, web};
use crate::harness::two_tenants;
use loomline_server::auth::hash_text;
use rmcp::model::{ReadResourceRequestParams, SubscriptionFilter};
use serde_json::json;

#[tokio::test]
async fn no_tenant_sees_or_touches_anothers_threads() {
    let (_, socket) = served(&two_tenants()).await;
    for lifecycle in lifecycles() {
        let a = connect(&socket, Some("llk_a"), lifecycle.clone()).await;
        let b = connect(&socket, Some("llk_b"), lifecycle).await;
        structured(
            &a,
            "run",
            json!({"key": "secret", "content": "the password is swordfish"}),
        )
        .await;
        assert_eq!(
            structured(&b, "list_threads", json!({})).await["threads"],
            json!([])
        );
        assert_eq!(b.list_resources(None).await.unwrap().resources, []);
        let read = b
            .call_tool(call("read_thread", json!({"key": "secret"})))
            .await
            .unwrap();
        assert_eq!(failure(&read).0, "thread_not_found");
        let read = b
            .read_resource(ReadResourceRequestParams::new("thread://secret"))
            .await;
        assert!(read.unwrap_err().to_string().contains("thread_not_found"));
        // The same key is a thread of its own.
        let own = structured(&b, "run", json!({"key": "secret", "content": "mine"})).await;
        assert!(!own.to_string().contains("swordfish"));
        served_delete(&socket, "llk_b").await;
    }
}

async fn served_delete(socket: &crate::harness::Served, key: &str) {
    let deleted = web()
        .delete(socket.url("/api/v1/threads/secret"))
        .bearer_auth(key)
        .send()
        .await;
    assert_eq!(deleted.unwrap().status(), 204);
}

#[tokio::test]
async fn a_session_of_one_key_is_none_of_another() {
    let (_, socket) = served(&two_tenants()).await;
    let post = |key: &'static str, session: Option<String>, message: serde_json::Value| {
        let mut request = web()
            .post(socket.url("/mcp"))
            .bearer_auth(key)
            .header("accept", "application/json, text/event-stream")
            .json(&message);
        if let Some(session) = session {
            request = request.header("mcp-session-id", session);
        }
        async move { request.send().await.unwrap() }
    };
    let begins = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"},
    }});
    let begun = post("llk_a", None, begins).await;
    let session = begun.headers()["mcp-session-id"]
        .to_str()
        .unwrap()
        .to_owned();
    let listed = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let own = post("llk_a", Some(session.clone()), listed.clone()).await;
    assert_eq!(own.status(), 200);
    for (key, session) in [("llk_b", session), ("llk_a", "made-up".to_owned())] {
        let refused = post(key, Some(session), listed.clone()).await;
        assert_eq!(refused.status(), 404);
        let told: serde_json::Value = refused.json().await.unwrap();
        assert_eq!(told["error"]["data"]["code"], "session_not_found");
    }
}

fn restricted(rights: &str) -> String {
    let (all, some) = (hash_text("llk_all"), hash_text("llk_some"));
    format!(
        "[tenants.a]\nkey_hashes = [\"{all}\"]\n[tenants.a.keys.some]\nhash = \"{some}\"\n{rights}\n"
    )
}

#[tokio::test]
async fn a_key_for_some_threads_sees_and_touches_those_alone() {
    let (_, socket) = served(&restricted("threads = [\"own-*\"]")).await;
    let all = connect(&socket, Some("llk_all"), stateless()).await;
    structured(
        &all,
        "run",
        json!({"key": "secret", "content": "swordfish"}),
    )
    .await;
    let some = connect(&socket, Some("llk_some"), stateless()).await;
    for (name, arguments, code) in [
        ("read_thread", json!({"key": "secret"}), "thread_not_found"),
        (
            "run",
            json!({"key": "secret", "content": "x"}),
            "forbidden_thread",
        ),
        (
            "post_message",
            json!({"key": "secret", "content": "x"}),
            "forbidden_thread",
        ),
        (
            "create_thread",
            json!({"key": "secret"}),
            "forbidden_thread",
        ),
        ("create_thread", json!({}), "forbidden_thread"),
        (
            "answer",
            json!({"key": "secret", "answers": [{"toolCallId": "c", "approved": true}]}),
            "thread_not_found",
        ),
    ] {
        let refused = some.call_tool(call(name, arguments)).await.unwrap();
        assert_eq!(failure(&refused).0, code, "{name}");
    }
    structured(&some, "run", json!({"key": "own-1", "content": "hello"})).await;
    let threads = structured(&some, "list_threads", json!({})).await;
    assert_eq!(threads["threads"].as_array().unwrap().len(), 1);
    let listed = some.list_resources(None).await.unwrap().resources;
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0].uri, "thread://own-1");
    let read = some
        .read_resource(ReadResourceRequestParams::new("thread://secret"))
        .await;
    assert!(read.is_err());
    let filter = SubscriptionFilter::builder()
        .resource_subscription("thread://secret")
        .build();
    let mut watched = some.listen(filter).await.unwrap();
    let accepted = watched.acknowledged().resource_subscriptions.clone();
    assert_eq!(accepted.unwrap_or_default(), Vec::<String>::new());
    watched.cancel().await.unwrap();
}

#[tokio::test]
async fn each_tool_needs_its_scope_and_reading_needs_no_other() {
    for (scope, reads, writes) in [("read", true, false), ("write", false, true)] {
        let (_, socket) = served(&restricted(&format!("scopes = [\"{scope}\"]"))).await;
        let all = connect(&socket, Some("llk_all"), stateless()).await;
        structured(&all, "run", json!({"key": "t", "content": "hello"})).await;
        for lifecycle in lifecycles() {
            let some = connect(&socket, Some("llk_some"), lifecycle).await;
            for (name, arguments, may) in [
                ("list_threads", json!({}), reads),
                ("read_thread", json!({"key": "t"}), reads),
                ("create_thread", json!({"key": "t"}), writes),
                ("post_message", json!({"key": "t", "content": "x"}), writes),
                ("run", json!({"key": "t", "content": "x"}), writes),
            ] {
                let result = some.call_tool(call(name, arguments)).await.unwrap();
                if may {
                    assert_ne!(result.is_error, Some(true), "{scope} {name}");
                } else {
                    assert_eq!(failure(&result).0, "missing_scope", "{scope} {name}");
                }
            }
            assert_eq!(some.list_resources(None).await.is_ok(), reads);
            let read = ReadResourceRequestParams::new("thread://t");
            assert_eq!(some.read_resource(read).await.is_ok(), reads);
        }
    }
}
