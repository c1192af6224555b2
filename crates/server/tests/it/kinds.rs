//! EK-4: items of every type, role, channel and status, with parts of every kind, as the native API serves them.

use crate::harness::Server;
use loomline_server::DEV_TENANT;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use store::suite::kinds::{item_events, item_kinds, part_kinds};
use store::{Append, NewRecord, Ownership};

/// A thread with items of every kind.
async fn written(server: &Server) -> Vec<Value> {
    let made = server.post("/api/v1/threads", json!({"key": "t"})).await;
    assert_eq!(made.status, 201, "{}", made.text);
    let items = item_kinds();
    let store = server.app.default_store();
    let thread = store.find(&DEV_TENANT.into(), "t").await.unwrap().thread.id;
    let head = store.head(&thread).await.unwrap();
    let mut tail = head.tail;
    for events in item_events(&items).chunks(100) {
        let records = events
            .iter()
            .map(|event| NewRecord::new(jiff::Timestamp::UNIX_EPOCH, event.clone()).unwrap());
        let append = Append {
            thread: thread.clone(),
            epoch: head.epoch,
            tail,
            records: records.collect(),
            token: None,
            is_limited: true,
            ownership: Ownership::Keep,
            unmoved: Vec::new(),
        };
        tail = store.append(append).await.unwrap().tail;
    }
    let json = items.iter().map(|item| serde_json::to_value(item).unwrap());
    json.collect()
}

#[tokio::test]
async fn items_of_every_kind_are_served_as_they_were_written() {
    let server = Server::new("").await;
    let items = written(&server).await;
    let listed = server.get("/api/v1/threads/t/messages").await.json();
    let listed = listed["messages"].as_array().unwrap();
    let by_id: BTreeMap<&str, &Value> = listed
        .iter()
        .map(|item| (item["id"].as_str().unwrap(), item))
        .collect();
    assert_eq!((listed.len(), by_id.len()), (items.len(), items.len()));
    for item in &items {
        let found = by_id[item["id"].as_str().unwrap()];
        for field in ["type", "role", "channel", "status", "content", "createdAt"] {
            let expected = match (field, item.get(field)) {
                ("content", None) => Some(json!([])),
                // One object is a list of one.
                ("content", Some(object @ Value::Object(_))) => Some(json!([object])),
                (_, value) => value.cloned(),
            };
            assert_eq!(found.get(field), expected.as_ref(), "{field} of {item}");
        }
    }
}

#[tokio::test]
async fn events_of_items_of_every_kind_are_served_as_they_were_written() {
    let server = Server::new("").await;
    let items = written(&server).await;
    let mut after = 0;
    let mut created = Vec::new();
    let mut statuses = BTreeMap::new();
    loop {
        let path = format!("/api/v1/threads/t/events?after={after}&limit=1000");
        let request = server
            .request("GET", &path)
            .header("accept", "application/json");
        let page = server
            .send(request.body(axum::body::Body::empty()).unwrap())
            .await
            .json();
        for event in page["events"].as_array().unwrap() {
            if let Some(item) = event.get("item") {
                created.push(item.clone());
            }
            if event["type"] == "item.status.changed" {
                let id = event["itemId"].as_str().unwrap().to_owned();
                statuses.insert(id, event["to"].clone());
            }
        }
        after = page["last"].as_u64().unwrap();
        if page["more"] == false {
            break;
        }
    }
    for item in &mut created {
        if let Some(status) = statuses.get(item["id"].as_str().unwrap()) {
            item["status"] = status.clone();
        }
    }
    assert_eq!(created, items);
}

#[tokio::test]
async fn parts_that_are_posted_come_back_as_they_were() {
    let server = Server::new("").await;
    let channels = [
        None,
        Some("web"),
        Some("whatsapp"),
        Some("email"),
        Some("sms"),
    ];
    for (place, part) in part_kinds().into_iter().enumerate() {
        let kind = part["type"].as_str().unwrap().to_owned();
        let is_users = kind.starts_with("input_") && part.get("file_id").is_none()
            || kind.contains(['/', '.'])
            || kind.starts_with("app-");
        if !is_users {
            continue;
        }
        let key = format!("t{place}");
        let channel = channels[place % channels.len()];
        let mut body = json!({"content": [{"type": "input_text", "text": "Look."}, part]});
        if let Some(channel) = channel {
            body["channel"] = channel.into();
        }
        let path = format!("/api/v1/threads/{key}/messages");
        let posted = server.post(&path, body.clone()).await;
        assert_eq!(posted.status, 202, "{}", posted.text);
        server.at_rest(&key).await;
        let found = server.get(&path).await.json()["messages"][0].clone();
        assert_eq!(found["content"], body["content"]);
        assert_eq!(found.get("channel"), body.get("channel"));
    }
}
