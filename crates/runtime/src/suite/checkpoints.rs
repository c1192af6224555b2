//! Checkpoints: what every store of them is held to, and what is a database's own.

use super::Subject;
use super::script::{Author, tenant};
use crate::checkpoint::StoreCheckpoints;
use crate::store::{Page, StoreError, TenantId};
use agents::AgentState;
use agents::checkpoint::{CheckpointError, CheckpointStore, suite};
use std::sync::Arc;
use timeline::NewThread;

fn checkpoints(subject: &impl Subject, tenant: &str) -> Arc<StoreCheckpoints> {
    let tenant = TenantId::from(tenant);
    Arc::new(StoreCheckpoints::new(subject.store(), tenant))
}

fn state(step: u64) -> String {
    let state = AgentState::initial().with_message("hello").with_step(step);
    state.to_json().unwrap()
}

macro_rules! promises {
    ($($name:ident)*) => {
        $(
            #[doc = concat!("`", stringify!($name), "`, of the suite of checkpoint stores.")]
            pub async fn $name(subject: impl Subject) {
                suite::$name(checkpoints(&subject, "acme")).await;
            }
        )*
    };
}

promises! {
    a_saved_state_is_loaded_to_the_byte
    the_latest_save_replaces_the_one_before
    what_was_not_saved_is_none
    metadata_tells_session_step_agent_and_instant
    every_checkpoint_has_an_id_of_its_own
    a_deleted_session_is_gone_and_can_be_saved_again
    sessions_are_listed_sorted_and_apart
    any_session_id_is_kept_as_it_is
    what_is_no_state_is_refused_and_keeps_what_was_saved
    concurrent_sessions_do_not_disturb_each_other
    concurrent_saves_of_one_session_leave_one_of_them_whole
}

/// One session name in two tenants is two sessions.
pub async fn checkpoints_never_cross_tenants(subject: impl Subject) {
    let acme = checkpoints(&subject, "acme");
    acme.save("s", state(1)).await.unwrap();
    for other in ["globex", "acm", "acme2", ""] {
        let other = checkpoints(&subject, other);
        assert_eq!(other.load("s").await.unwrap(), None);
        assert_eq!(other.load_metadata("s").await.unwrap(), None);
        assert_eq!(other.list().await.unwrap(), Vec::<String>::new());
        other.save("s", state(2)).await.unwrap();
        other.delete("s").await.unwrap();
    }
    assert_eq!(acme.load_metadata("s").await.unwrap().unwrap().step, 1);
}

/// What was saved is there when the store is opened again.
pub async fn a_reopened_store_has_its_checkpoints(mut subject: impl Subject) {
    let json = state(3);
    let saved = checkpoints(&subject, "acme");
    saved.save("s", json.clone()).await.unwrap();
    let about = saved.load_metadata("s").await.unwrap();
    drop(saved);
    subject.reopen().await;
    let again = checkpoints(&subject, "acme");
    assert_eq!(again.load("s").await.unwrap(), Some(json));
    assert_eq!(again.load_metadata("s").await.unwrap(), about);
}

/// Threads and checkpoints lie side by side and say nothing of each other.
pub async fn checkpoints_and_threads_do_not_disturb_each_other(subject: impl Subject) {
    let store = subject.store();
    let author = Author::new(&store, "acme", NewThread::new("t", Some("k"))).await;
    let saved = checkpoints(&subject, "acme");
    saved.save("k", state(1)).await.unwrap();
    let page = || Page {
        limit: 9,
        ..Page::default()
    };
    let threads = store.list(&tenant(), page()).await.unwrap();
    assert_eq!(threads.len(), 1);
    store.delete(&tenant(), &author.thread).await.unwrap();
    assert_eq!(saved.list().await.unwrap(), ["k"]);
}

/// After closing, checkpoints are neither saved nor read.
pub async fn a_closed_store_has_no_checkpoints_to_give(subject: impl Subject) {
    let saved = checkpoints(&subject, "acme");
    saved.save("s", state(1)).await.unwrap();
    subject.store().close().await.unwrap();
    let closed = |error: &CheckpointError| {
        let CheckpointError::Store(cause) = error else {
            return false;
        };
        matches!(cause.downcast_ref(), Some(StoreError::Closed))
    };
    assert!(closed(&saved.save("s", state(2)).await.unwrap_err()));
    assert!(closed(&saved.load("s").await.unwrap_err()));
    assert!(closed(&saved.load_metadata("s").await.unwrap_err()));
    assert!(closed(&saved.delete("s").await.unwrap_err()));
    assert!(closed(&saved.list().await.unwrap_err()));
}
