//! Items of every type, role, channel and status, with parts of every kind (EK §4.3, §4.4).

use super::{Author, Subject};
use crate::Filter;
use serde_json::{Value, json};
use timeline::{Event, Item, ItemStatus, ItemType, Machine as _, NewItem, NewThread, Role, Seq};

/// The channels of EK §4.3, no channel, and another name.
const CHANNELS: [Option<&str>; 5] = [
    None,
    Some("web"),
    Some("whatsapp"),
    Some("email"),
    Some("app:sms"),
];

/// A part of each kind of EK §4.4, with each of its forms; calls in each of their states.
pub fn part_kinds() -> Vec<Value> {
    let call = json!({"type": "tool-look", "toolCallId": "c", "input": {"at": 1.0, "deep": {"a": [null, "é"]}}});
    let state = |state: &str, more: Value| {
        let mut call = call.clone();
        call["state"] = state.into();
        for (key, value) in more.as_object().into_iter().flatten() {
            call[key] = value.clone();
        }
        call
    };
    vec![
        json!({"type": "input_text", "text": "héllo\n\"\u{1f9f5}\""}),
        json!({"type": "output_text", "text": "", "annotations": []}),
        json!({"type": "reasoning", "text": "Hm.", "signature": "s", "provider": "p"}),
        json!({"type": "input_image", "image_url": "https://a.example/b.png", "detail": "low"}),
        json!({"type": "input_image", "file_id": "file_1"}),
        json!({"type": "input_file", "file_url": "https://a.example/c.pdf"}),
        json!({"type": "input_file", "file_data": "YSxi", "media_type": "text/csv", "filename": "a.csv"}),
        json!({"type": "input_file", "file_id": "file_2"}),
        json!({"type": "refusal", "refusal": "No."}),
        call.clone(),
        state("input-available", json!({})),
        state("approval-requested", json!({"approval": {"id": "c"}})),
        state(
            "approval-responded",
            json!({"approval": {"id": "c", "approved": true}}),
        ),
        state(
            "output-available",
            json!({"output": {"big": 9_007_199_254_740_993_u64}}),
        ),
        state("output-error", json!({"errorText": "It broke."})),
        json!({"type": "app-note", "n": 1.50, "text": {"rich": true}}),
        json!({"type": "example.com/note", "nothing": null}),
    ]
}

/// One item of each combination of type, role, channel and status. The content of messages goes through
/// [`part_kinds`]: a part of each kind is in a message of each role.
pub fn item_kinds() -> Vec<Item> {
    let roles = [Role::User, Role::Assistant, Role::System, Role::Developer];
    let parts = part_kinds();
    let mut contents: Vec<(ItemType, Option<Role>, Option<Value>)> = Vec::new();
    for role in roles {
        let all = parts.iter().map(|part| Some(json!([part])));
        let all = all.chain([Some(json!(parts)), Some(json!([])), None]);
        contents.extend(all.map(|content| (ItemType::Message, Some(role), content)));
    }
    let call = json!({"type": "function_call", "call_id": "c", "name": "look", "arguments": "{\"at\": 1.0}"});
    let result =
        json!({"type": "function_call_output", "call_id": "c", "output": {"seen": [1.50, null]}});
    for (item_type, content) in [
        (ItemType::ActionExecute, call),
        (ItemType::ActionResult, result),
        (
            ItemType::ItemReference,
            json!({"type": "item_reference", "itemId": "item-0"}),
        ),
        (
            ItemType::ItemReference,
            json!({"type": "app-event", "data": {"n": 1}}),
        ),
    ] {
        contents.push((item_type, None, Some(content)));
        contents.push((item_type, None, Some(json!(parts))));
    }
    let mut items = Vec::new();
    for (item_type, role, content) in contents {
        for channel in CHANNELS {
            for status in [
                ItemStatus::Stored,
                ItemStatus::Pending,
                ItemStatus::Completed,
            ] {
                let id = format!("item-{}", items.len());
                let item = NewItem {
                    item_type,
                    role,
                    channel: channel.map(str::to_owned),
                    content: content.clone().map(Into::into),
                    metadata: None,
                    ..NewItem::user(id, json!([]).into())
                };
                items.push(Item {
                    status,
                    ..item.stored(jiff::Timestamp::UNIX_EPOCH)
                });
            }
        }
    }
    items
}

/// The events that write items: each is stored, and then moves to its status, step by step.
pub fn item_events(items: &[Item]) -> Vec<Event> {
    let mut events = Vec::new();
    for item in items {
        let mut from = ItemStatus::Stored;
        events.push(Event::ItemCreated {
            item: Item {
                status: from,
                ..item.clone()
            },
        });
        for to in [ItemStatus::Pending, ItemStatus::Completed] {
            if item.status != from && from.transition(to).is_ok() {
                let item_id = item.id.clone();
                events.push(Event::ItemStatusChanged { item_id, from, to });
                from = to;
            }
        }
    }
    events
}

/// Items of every kind are read back from the log as they were written, also after reopening.
pub async fn items_of_every_kind_are_read_back(mut subject: impl Subject) {
    let items = item_kinds();
    let store = subject.store();
    let mut author = Author::new(&store, "acme", NewThread::new("t", Some("t"))).await;
    let before = author.tail;
    let events = item_events(&items);
    for events in events.chunks(100) {
        let append = author.append_with(events.to_vec());
        author.append(append).await.unwrap();
    }
    drop(author);
    drop(store);
    subject.reopen().await;
    let store = subject.store();
    let mut found = Vec::new();
    let mut after = before;
    loop {
        let page = store
            .read(&"t".into(), after, 100, Filter::All)
            .await
            .unwrap();
        let Some(last) = page.last() else { break };
        after = last.record.seq;
        found.extend(page.into_iter().map(|logged| logged.record.event));
    }
    assert_eq!(after, Seq(before.0 + events.len() as u64));
    assert_eq!(found, events);
}
