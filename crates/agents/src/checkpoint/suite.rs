//! The tests that every checkpoint store must pass: one for each promise of [`CheckpointStore`].
//!
//! A store's tests expand [`checkpoint_suite!`](crate::checkpoint_suite), which makes one named
//! test of each function of this module.
#![allow(
    clippy::missing_panics_doc,
    clippy::unwrap_used,
    reason = "these functions are the bodies of tests"
)]

use super::{CheckpointError, CheckpointStore};
use crate::state::AgentState;
use std::collections::BTreeSet;
use std::sync::Arc;
use upp::{Media, MediaSource, MessageOptions, UserContent, UserMessage};

/// Makes a test of every function of [`suite`](crate::checkpoint::suite). The expression makes a
/// new store for each test: a tuple of an `Arc<dyn CheckpointStore>` and a guard that must live as
/// long as the store.
#[macro_export]
macro_rules! checkpoint_suite {
    ($subject:expr) => {
        $crate::checkpoint_suite! { @each $subject;
            a_saved_state_is_loaded_to_the_byte
            the_latest_save_replaces_the_one_before
            what_was_not_saved_is_none
            metadata_has_session_step_agent_and_instant
            every_checkpoint_has_an_id_of_its_own
            a_deleted_session_is_gone_and_can_be_saved_again
            sessions_are_listed_sorted_and_apart
            any_session_id_is_stored_unchanged
            what_is_no_state_is_refused_and_keeps_what_was_saved
            concurrent_sessions_do_not_disturb_each_other
            concurrent_saves_of_one_session_leave_one_of_them_whole
        }
    };
    (@each $subject:expr; $($name:ident)*) => {
        $(#[tokio::test]
        async fn $name() {
            let (store, _guard) = $subject;
            $crate::checkpoint::suite::$name(store).await;
        })*
    };
}

/// A store to be tested.
pub type Subject = Arc<dyn CheckpointStore>;

fn state(step: u64) -> AgentState {
    let options = MessageOptions {
        id: Some("m-1".into()),
        timestamp: Some("2026-01-02T03:04:05.123456789Z".parse().unwrap()),
        metadata: None,
    };
    let source = MediaSource::Base64 {
        data: "AP8=".to_owned(),
    };
    let bytes = Media::new(source, "application/octet-stream");
    AgentState::initial()
        .with_message(UserMessage::new(vec![UserContent::Binary(bytes)], options))
        .with_message("ünï\u{1f600}")
        .with_metadata("agentId", "agent-1")
        .with_step(step)
}

/// UAP §12.4.7, 4; §12.3: ids, times and bytes are restored unchanged.
pub async fn a_saved_state_is_loaded_to_the_byte(store: Subject) {
    let state = state(1);
    let json = state.to_json().unwrap();
    store.save("s", json.clone()).await.unwrap();
    let loaded = store.load("s").await.unwrap().unwrap();
    assert_eq!(loaded, json);
    assert_eq!(AgentState::from_json(&loaded).unwrap(), state);
}

/// UAP §12.4.1: load returns the most recent checkpoint.
pub async fn the_latest_save_replaces_the_one_before(store: Subject) {
    for step in [2, 3, 1] {
        let json = state(step).to_json().unwrap();
        store.save("s", json.clone()).await.unwrap();
        assert_eq!(store.load("s").await.unwrap(), Some(json));
        let metadata = store.load_metadata("s").await.unwrap().unwrap();
        assert_eq!(metadata.step, step);
    }
}

/// UAP §12.4.1: load and load metadata return nothing, delete does nothing, list is empty.
pub async fn what_was_not_saved_is_none(store: Subject) {
    assert_eq!(store.load("s").await.unwrap(), None);
    assert_eq!(store.load_metadata("s").await.unwrap(), None);
    assert_eq!(store.list().await.unwrap(), Vec::<String>::new());
    store.delete("s").await.unwrap();
}

/// UAP §12.4.2.
pub async fn metadata_has_session_step_agent_and_instant(store: Subject) {
    let before = jiff::Timestamp::now();
    let json = state(7).to_json().unwrap();
    store.save("s", json).await.unwrap();
    let metadata = store.load_metadata("s").await.unwrap().unwrap();
    assert_eq!((metadata.session_id.as_str(), metadata.step), ("s", 7));
    assert_eq!(metadata.agent_id.as_deref(), Some("agent-1"));
    assert!(metadata.timestamp >= before);
    assert!(metadata.timestamp <= jiff::Timestamp::now());
}

/// UAP §3.4: checkpoint ids are random UUIDs.
pub async fn every_checkpoint_has_an_id_of_its_own(store: Subject) {
    let mut ids = BTreeSet::new();
    for session in ["a", "b", "a"] {
        store
            .save(session, state(1).to_json().unwrap())
            .await
            .unwrap();
        let metadata = store.load_metadata(session).await.unwrap().unwrap();
        let id = uuid::Uuid::parse_str(&metadata.checkpoint_id).unwrap();
        assert_eq!(id.get_version_num(), 4);
        assert!(ids.insert(id));
    }
}

/// UAP §12.4.1.
pub async fn a_deleted_session_is_gone_and_can_be_saved_again(store: Subject) {
    let json = state(1).to_json().unwrap();
    store.save("s", json.clone()).await.unwrap();
    store.save("other", json.clone()).await.unwrap();
    store.delete("s").await.unwrap();
    assert_eq!(store.load("s").await.unwrap(), None);
    assert_eq!(store.load_metadata("s").await.unwrap(), None);
    assert_eq!(store.list().await.unwrap(), ["other"]);
    store.save("s", json.clone()).await.unwrap();
    assert_eq!(store.load("s").await.unwrap(), Some(json));
}

/// UAP §12.4.1.
pub async fn sessions_are_listed_sorted_and_apart(store: Subject) {
    for (step, session) in [(1, "b"), (2, "c"), (3, "a")] {
        let json = state(step).to_json().unwrap();
        store.save(session, json).await.unwrap();
    }
    assert_eq!(store.list().await.unwrap(), ["a", "b", "c"]);
    let metadata = store.load_metadata("c").await.unwrap().unwrap();
    assert_eq!(metadata.step, 2);
}

/// UAP §12.4.2: ids are UUIDs or the user's own; no two get into each other's way.
pub async fn any_session_id_is_stored_unchanged(store: Subject) {
    let mut ids = [
        "",
        ".",
        "..",
        "../escape",
        "/root",
        "a/b",
        "a\\b",
        "a\0b",
        "a b",
        "A",
        "a",
        "%",
        "%41",
        "CON",
        "con",
        "nul.txt",
        "naïve",
        "nai\u{308}ve",
        "\u{1f600}",
        ".hidden",
        "x.",
        "*?:|<>\"",
    ];
    for (step, id) in (0..).zip(ids) {
        let json = state(step).to_json().unwrap();
        store.save(id, json).await.unwrap();
    }
    for (step, id) in (0..).zip(ids) {
        let loaded = store.load(id).await.unwrap().unwrap();
        assert_eq!(
            AgentState::from_json(&loaded).unwrap().step(),
            step,
            "{id:?}"
        );
        let metadata = store.load_metadata(id).await.unwrap().unwrap();
        assert_eq!((metadata.session_id.as_str(), metadata.step), (id, step));
    }
    ids.sort_unstable();
    assert_eq!(store.list().await.unwrap(), ids);
}

/// UAP §15.3: structure is validated.
pub async fn what_is_no_state_is_refused_and_keeps_what_was_saved(store: Subject) {
    let json = state(1).to_json().unwrap();
    store.save("s", json.clone()).await.unwrap();
    for text in ["", "{", "[]", "{}", r#"{"version":"1.0.0"}"#] {
        let refused = store.save("s", text.to_owned()).await;
        assert!(
            matches!(refused, Err(CheckpointError::NotAState(_))),
            "{text}"
        );
    }
    assert_eq!(store.load("s").await.unwrap(), Some(json));
}

/// UAP §12.4.8, 2.
pub async fn concurrent_sessions_do_not_disturb_each_other(store: Subject) {
    let sessions: Vec<(String, String)> = (0..16)
        .map(|n| (format!("session-{n:02}"), state(n).to_json().unwrap()))
        .collect();
    let saves = sessions
        .iter()
        .map(|(id, json)| store.save(id, json.clone()));
    for saved in futures_util::future::join_all(saves).await {
        saved.unwrap();
    }
    for (id, json) in &sessions {
        assert_eq!(store.load(id).await.unwrap().as_ref(), Some(json));
    }
    assert_eq!(store.list().await.unwrap().len(), 16);
}

/// UAP §12.4.8, 2.
pub async fn concurrent_saves_of_one_session_leave_one_of_them_whole(store: Subject) {
    let states: Vec<String> = (0..16).map(|n| state(n).to_json().unwrap()).collect();
    let saves = states.iter().map(|json| store.save("s", json.clone()));
    for saved in futures_util::future::join_all(saves).await {
        saved.unwrap();
    }
    let loaded = store.load("s").await.unwrap().unwrap();
    assert!(states.contains(&loaded));
    assert!(store.load_metadata("s").await.unwrap().is_some());
}
