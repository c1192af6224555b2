//! Threads as resources.

use super::{CONFIG, connect, lifecycles, served, stateless};
use rmcp::model::{
    PaginatedRequestParams, ReadResourceRequestParams, ServerNotification, SubscriptionFilter,
};
use serde_json::{Value, json};
use std::collections::BTreeSet;

#[tokio::test]
async fn threads_are_listed_in_pages_and_each_is_read_by_its_uri() {
    let (server, socket) = served(CONFIG).await;
    for n in 0..53 {
        let key = format!("t {n}");
        server
            .post(
                "/api/v1/threads",
                json!({"key": key, "title": format!("Number {n}")}),
            )
            .await;
    }
    for lifecycle in lifecycles() {
        let client = connect(&socket, None, lifecycle).await;
        let first = client.list_resources(None).await.unwrap();
        assert_eq!(first.resources.len(), 50);
        let mut next = PaginatedRequestParams::default();
        next.cursor = first.next_cursor;
        let second = client.list_resources(Some(next)).await.unwrap();
        assert_eq!((second.resources.len(), second.next_cursor), (3, None));
        let all = first.resources.into_iter().chain(second.resources);
        let mut uris = BTreeSet::new();
        for resource in all {
            assert!(resource.title.unwrap().starts_with("Number "));
            uris.insert(resource.uri);
        }
        assert_eq!(uris.len(), 53);
        for uri in uris {
            let read = client
                .read_resource(ReadResourceRequestParams::new(uri))
                .await;
            assert_eq!(read.unwrap().contents.len(), 1);
        }
    }
}

#[tokio::test]
async fn a_thread_is_read_as_a_document_as_messages_and_as_text() {
    let (server, socket) = served(CONFIG).await;
    server.say("a%2Fb", "compute 1+1").await;
    for lifecycle in lifecycles() {
        let client = connect(&socket, None, lifecycle).await;
        let templates = client.list_all_resource_templates().await.unwrap();
        let read = |template: &str| {
            let uri = template.replace("{key}", "a%2Fb");
            client.read_resource(ReadResourceRequestParams::new(uri))
        };
        let mut texts = Vec::new();
        for template in &templates {
            let read = serde_json::to_value(read(&template.uri_template).await.unwrap()).unwrap();
            let content = &read["contents"][0];
            assert_eq!(content["mimeType"].as_str(), template.mime_type.as_deref());
            texts.push(content["text"].as_str().unwrap().to_owned());
        }
        let [document, messages, text] = texts.as_slice() else {
            panic!("{templates:?}")
        };
        let native = server.get("/api/v1/threads/a%2Fb/document").await;
        assert_eq!(document, &native.text);
        let messages: Value = serde_json::from_str(messages).unwrap();
        assert_eq!(
            messages,
            server.get("/api/v1/threads/a%2Fb/messages").await.json()
        );
        assert!(
            text.starts_with("user: compute 1+1\n\nassistant: [compute {"),
            "{text}"
        );
        assert!(
            text.contains("→ 2]") && text.ends_with("compute gave 2.\n"),
            "{text}"
        );
    }
}

#[tokio::test]
async fn what_is_no_thread_is_not_found() {
    let (_, socket) = served(CONFIG).await;
    for lifecycle in lifecycles() {
        let client = connect(&socket, None, lifecycle.clone()).await;
        for uri in [
            "thread://none",
            "file:///etc/passwd",
            "thread://",
            "nonsense",
        ] {
            let refused = client
                .read_resource(ReadResourceRequestParams::new(uri))
                .await;
            let refused = refused.unwrap_err().to_string();
            // Since 2026-07-28 it is a wrong parameter.
            let code = if lifecycle == stateless() {
                "-32602"
            } else {
                "-32002"
            };
            assert!(refused.contains(code), "{uri}: {refused}");
        }
    }
}

fn watching(uris: &[&str]) -> SubscriptionFilter {
    let mut filter = SubscriptionFilter::new();
    filter.resource_subscriptions = Some(uris.iter().map(ToString::to_string).collect());
    filter
}

#[tokio::test]
async fn who_watches_a_thread_is_told_when_it_has_changed() {
    let (server, socket) = served(CONFIG).await;
    server.say("t", "hello").await;
    server.say("other", "hello").await;
    let client = connect(&socket, None, stateless()).await;
    let mut watched = client
        .listen(watching(&["thread://t", "nonsense://t"]))
        .await
        .unwrap();
    let accepted = watched.acknowledged().resource_subscriptions.clone();
    assert_eq!(accepted.unwrap(), ["thread://t"]);
    server.say("other", "not watched").await;
    server.say("t", "watched").await;
    let Some(ServerNotification::ResourceUpdatedNotification(told)) = watched.next().await.unwrap()
    else {
        panic!("nothing was told")
    };
    assert_eq!(told.params.uri, "thread://t");
    watched.cancel().await.unwrap();
}

#[tokio::test]
async fn a_thread_that_is_deleted_is_told_of_and_the_others_are_watched_on() {
    let (server, socket) = served(CONFIG).await;
    server.say("t", "hello").await;
    server.say("other", "hello").await;
    let client = connect(&socket, None, stateless()).await;
    let uris = ["thread://t", "thread://none", "thread://other/text"];
    let mut watched = client.listen(watching(&uris)).await.unwrap();
    let accepted = watched.acknowledged().resource_subscriptions.clone();
    assert_eq!(accepted.unwrap(), ["thread://t", "thread://other/text"]);
    let deleted = server.delete("/api/v1/threads/t").await;
    assert!(deleted.status.is_success(), "{}", deleted.text);
    let mut told = Vec::new();
    while told.last().is_none_or(|uri| uri != "thread://t") {
        told.push(updated(watched.next().await.unwrap()));
    }
    server.say("other", "watched").await;
    assert_eq!(
        updated(watched.next().await.unwrap()),
        "thread://other/text"
    );
    watched.cancel().await.unwrap();
}

/// The URI of what has changed.
fn updated(told: Option<ServerNotification>) -> String {
    let Some(ServerNotification::ResourceUpdatedNotification(told)) = told else {
        panic!("nothing was told: {told:?}")
    };
    told.params.uri
}

#[tokio::test]
async fn who_begins_a_session_is_not_promised_what_it_has_not() {
    let (_, socket) = served(CONFIG).await;
    let [session, stateless] = lifecycles();
    let client = connect(&socket, None, session).await;
    let resources = client.peer_info().unwrap().capabilities.resources.clone();
    assert_eq!(resources.unwrap().subscribe, None);
    let client = connect(&socket, None, stateless).await;
    let resources = client.peer_info().unwrap().capabilities.resources.clone();
    assert_eq!(resources.unwrap().subscribe, Some(true));
}
