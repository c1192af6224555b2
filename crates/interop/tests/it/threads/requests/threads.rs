//! Threads that are to be made or changed.

use super::told;
use crate::threads::logs::{THREAD, start};
use loomline_interop::threads::{CreateThread, ModifyThread, metadata_of};
use serde_json::{Value, json};
use timeline::{Payload, Role};

#[test]
fn a_thread_may_begin_with_nothing_with_messages_or_as_aitp_has_it() {
    assert_eq!(CreateThread::read(None).unwrap(), CreateThread::default());
    let actors = json!([{"id": "a.near", "capabilities": [{"schema": "https://x"}]}, 7]);
    let many: Vec<Value> = (0..60)
        .map(|n| json!({"id": n.to_string(), "capabilities": ["https://x"]}))
        .collect();
    let read = |n: usize| json!({"id": n.to_string(), "capabilities": [{"schema": "https://x"}]});
    let structural: Vec<Value> = (0..60).map(read).collect();
    for (actors, kept_actors) in [
        (actors.clone(), actors),
        (json!(json!(many).to_string()), json!(structural)),
    ] {
        let body = json!({"messages": ["Book a flight", {"role": "assistant", "content": ["Where to?"]}],
            "metadata": {"k": "v", "actors": actors, "parent_id": null}});
        let thread = CreateThread::read(Some(&body)).unwrap();
        let roles: Vec<Role> = thread.messages.iter().map(|it| it.role).collect();
        assert_eq!(roles, [Role::User, Role::Assistant]);
        let kept = thread.stored().unwrap().value();
        let expected = json!({"k": "v", "actors": kept_actors, "parent_id": null});
        assert_eq!(kept, expected);
    }
    let body = json!({"metadata": {"actors": "me and you"}});
    let (message, param) = told(CreateThread::read(Some(&body)));
    assert_eq!(param.as_deref(), Some("metadata.actors"));
    assert!(message.contains("a list of actors"), "{message}");
    let resources = json!({"code_interpreter": {"file_ids": ["f"]}});
    let body = json!({"tool_resources": resources});
    let thread = CreateThread::read(Some(&body)).unwrap();
    assert_eq!(
        thread.stored().unwrap().value(),
        json!({"threads": {"tool_resources": resources}})
    );
    let body = json!({"tool_resources": {"code_interpreter": {"file_ids": vec!["f"; 21]}}});
    assert!(CreateThread::read(Some(&body)).is_err());
    let body = json!({"messages": [{"role": "user"}]});
    assert_eq!(
        told(CreateThread::read(Some(&body))).1.unwrap(),
        "messages[0].content"
    );
}

#[test]
fn a_client_can_not_note_what_is_the_servers_own_on_a_thread() {
    for key in ["threadprotocol", "uap", "loomline", "responses", "threads"] {
        let body = json!({"metadata": {key: "x"}});
        let expected = format!("metadata.{key}");
        let (message, param) = told(CreateThread::read(Some(&body)));
        assert_eq!(param.as_deref(), Some(expected.as_str()));
        assert!(message.contains("the server's own"), "{message}");
        assert!(ModifyThread::read(Some(&body)).is_err());
        // Notes on runs and messages are kept apart, and may be called anything.
        for of_message in [true, false] {
            let noted = metadata_of(&body, of_message).unwrap().unwrap();
            assert_eq!(json!(noted.map()), body["metadata"]);
        }
    }
}

#[test]
fn what_is_the_servers_own_on_a_thread_is_neither_shown_nor_lost() {
    let link = json!({"relation": "spawned_from", "thread_id": "t"});
    let own = json!({"threadprotocol": {"root": {"relationships": {"links": [link]}}},
        "uap": "odd", "old": "x"});
    let mut new = timeline::NewThread::new(THREAD, None);
    new.metadata = Some(own.clone().into());
    let log = crate::log::Log::new(new, start());
    let thread = log.state.thread().unwrap();
    let shown = loomline_interop::threads::thread_object(thread);
    assert_eq!(json!(shown.value.metadata.map()), json!({"old": "x"}));
    assert!(shown.losses.is_empty());
    let change = ModifyThread::read(Some(&json!({"metadata": {}}))).unwrap();
    let kept = change.stored(thread.metadata.as_ref()).value();
    let expected = json!({"threadprotocol": own["threadprotocol"], "uap": "odd"});
    assert_eq!(kept, expected);
}

#[test]
fn a_thread_is_modified_without_losing_what_others_keep() {
    let before = Payload::from(json!({"old": "x", "actors": [1], "app": {"n": 1}}));
    let none = ModifyThread::read(None).unwrap();
    assert!(none.is_empty());
    assert_eq!(none.stored(Some(&before)).value(), before.value());
    let body = json!({"metadata": {"new": "y"}, "tool_resources": {}});
    let change = ModifyThread::read(Some(&body)).unwrap();
    let kept = change.stored(Some(&before)).value();
    assert_eq!(
        kept,
        json!({"actors": [1], "app": {"n": 1}, "new": "y", "threads": {"tool_resources": {}}})
    );
    let kept = Payload::from(kept);
    let cleared = ModifyThread::read(Some(&json!({"tool_resources": null}))).unwrap();
    assert!(!cleared.is_empty());
    assert_eq!(
        cleared.stored(Some(&kept)).value(),
        json!({"actors": [1], "app": {"n": 1}, "new": "y"})
    );
    assert_eq!(metadata_of(&json!({}), true), Ok(None));
    assert!(metadata_of(&json!({"metadata": {"actor": 1}}), true).is_ok());
    assert!(metadata_of(&json!({"metadata": {"actor": 1}}), false).is_err());
}
