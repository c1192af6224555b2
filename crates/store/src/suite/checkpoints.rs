//! Tests of the checkpoints of agents in memory.

use super::Subject;
use super::script::{Author, tenant};
use crate::{CheckpointRow, StoreError, TenantId, ThreadRows};
use futures_util::future::join_all;
use jiff::Timestamp;
use timeline::NewThread;

fn row(session_id: &str, step: u64) -> CheckpointRow {
    CheckpointRow {
        session_id: session_id.to_owned(),
        checkpoint_id: format!("{session_id}-{step}"),
        timestamp: Timestamp::constant(1_767_323_045, 123_456_789),
        step,
        agent_id: (step % 2 == 1).then(|| "agent-1".to_owned()),
    }
}

fn state(step: u64) -> String {
    format!("{{ \"z\": {step}.0,  \"a\": [\"ünï\u{1f600}\", null, 1e2]}}")
}

async fn save(subject: &impl Subject, session: &str, step: u64) {
    let store = subject.store();
    let (tenant, row) = (tenant(), row(session, step));
    let saved = store.checkpoints().save(&tenant, row, state(step)).await;
    saved.unwrap();
}

async fn load(subject: &impl Subject, session: &str) -> Option<String> {
    let store = subject.store();
    let loaded = store.checkpoints().load(&tenant(), session).await;
    loaded.unwrap()
}

async fn row_of(subject: &impl Subject, session: &str) -> Option<CheckpointRow> {
    let store = subject.store();
    let found = store.checkpoints().row(&tenant(), session).await;
    found.unwrap()
}

async fn forget(subject: &impl Subject, session: &str) {
    let store = subject.store();
    let forgotten = store.checkpoints().forget(&tenant(), session).await;
    forgotten.unwrap();
}

async fn sessions(subject: &impl Subject) -> Vec<String> {
    let store = subject.store();
    let sessions = store.checkpoints().sessions(&tenant()).await;
    sessions.unwrap()
}

/// State and row come back as they were.
pub async fn a_checkpoint_is_stored_byte_for_byte(subject: impl Subject) {
    for step in [7, 8] {
        save(&subject, "s", step).await;
        assert_eq!(load(&subject, "s").await, Some(state(step)));
        assert_eq!(row_of(&subject, "s").await, Some(row("s", step)));
    }
}

/// The order of the saves counts, not their steps.
pub async fn the_latest_save_replaces_the_one_before(subject: impl Subject) {
    for step in [2, 3, 1] {
        save(&subject, "s", step).await;
        assert_eq!(load(&subject, "s").await, Some(state(step)));
        assert_eq!(row_of(&subject, "s").await.unwrap().step, step);
    }
}

/// Without a checkpoint, loading returns nothing, forgetting succeeds, and the list is empty.
pub async fn a_session_without_a_checkpoint_is_empty(subject: impl Subject) {
    assert_eq!(load(&subject, "s").await, None);
    assert_eq!(row_of(&subject, "s").await, None);
    forget(&subject, "s").await;
    assert_eq!(sessions(&subject).await, Vec::<String>::new());
}

/// Others stay as they are.
pub async fn a_forgotten_session_is_gone_and_can_be_saved_again(subject: impl Subject) {
    save(&subject, "s", 1).await;
    save(&subject, "other", 2).await;
    forget(&subject, "s").await;
    assert_eq!(load(&subject, "s").await, None);
    assert_eq!(row_of(&subject, "s").await, None);
    assert_eq!(sessions(&subject).await, ["other"]);
    save(&subject, "s", 3).await;
    assert_eq!(load(&subject, "s").await, Some(state(3)));
}

/// In the order of their names' bytes.
pub async fn sessions_are_listed_sorted_and_apart(subject: impl Subject) {
    for (step, session) in [(1, "b"), (2, "c"), (3, "a")] {
        save(&subject, session, step).await;
    }
    assert_eq!(sessions(&subject).await, ["a", "b", "c"]);
    assert_eq!(row_of(&subject, "c").await.unwrap().step, 2);
}

/// Ids are UUIDs or the user's own (UAP §12.4.2); no two get into each other's way.
pub async fn any_session_id_is_stored_unchanged(subject: impl Subject) {
    let mut ids = [
        "",
        "..",
        "../escape",
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
        "naïve",
        "nai\u{308}ve",
        "\u{1f600}",
        "*?:|<>\"",
    ];
    for (step, id) in (0..).zip(ids) {
        save(&subject, id, step).await;
    }
    for (step, id) in (0..).zip(ids) {
        assert_eq!(load(&subject, id).await, Some(state(step)), "{id:?}");
        assert_eq!(row_of(&subject, id).await, Some(row(id, step)), "{id:?}");
    }
    ids.sort_unstable();
    assert_eq!(sessions(&subject).await, ids);
}

/// UAP §12.4.8, 2.
pub async fn concurrent_sessions_do_not_disturb_each_other(subject: impl Subject) {
    let ids: Vec<String> = (0..16).map(|n| format!("session-{n:02}")).collect();
    join_all((0..).zip(&ids).map(|(step, id)| save(&subject, id, step))).await;
    for (step, id) in (0..).zip(&ids) {
        assert_eq!(load(&subject, id).await, Some(state(step)));
    }
    assert_eq!(sessions(&subject).await, ids);
}

/// UAP §12.4.8, 2.
pub async fn concurrent_saves_of_one_session_leave_one_of_them_whole(subject: impl Subject) {
    join_all((0..16).map(|step| save(&subject, "s", step))).await;
    let found = row_of(&subject, "s").await.unwrap();
    assert_eq!(load(&subject, "s").await, Some(state(found.step)));
    assert_eq!(found, row("s", found.step));
}

/// One session name in two tenants is two sessions.
pub async fn checkpoints_never_cross_tenants(subject: impl Subject) {
    let store = subject.store();
    let checkpoints = store.checkpoints();
    save(&subject, "s", 1).await;
    for other in ["globex", "acm", "acme2", ""] {
        let other = TenantId::from(other);
        assert_eq!(checkpoints.load(&other, "s").await.unwrap(), None);
        assert_eq!(checkpoints.row(&other, "s").await.unwrap(), None);
        assert_eq!(
            checkpoints.sessions(&other).await.unwrap(),
            Vec::<String>::new()
        );
        let saved = checkpoints.save(&other, row("s", 2), state(2));
        saved.await.unwrap();
        checkpoints.forget(&other, "s").await.unwrap();
    }
    assert_eq!(row_of(&subject, "s").await, Some(row("s", 1)));
}

/// A store that is opened again has what was saved.
pub async fn a_reopened_store_has_its_checkpoints(mut subject: impl Subject) {
    save(&subject, "s", 3).await;
    subject.reopen().await;
    assert_eq!(load(&subject, "s").await, Some(state(3)));
    assert_eq!(row_of(&subject, "s").await, Some(row("s", 3)));
}

/// A checkpoint does not belong to a thread, and is not deleted with one.
pub async fn checkpoints_and_threads_do_not_disturb_each_other(subject: impl Subject) {
    let store = subject.store();
    let author = Author::new(&store, "acme", NewThread::new("t", Some("k"))).await;
    save(&subject, "k", 1).await;
    let page = ThreadRows {
        limit: 9,
        ..ThreadRows::default()
    };
    let threads = store.list(&tenant(), page).await.unwrap();
    assert_eq!(threads.len(), 1);
    store.delete(&tenant(), &author.thread, None).await.unwrap();
    assert_eq!(sessions(&subject).await, ["k"]);
}

/// After closing, checkpoints are neither saved nor read.
pub async fn a_closed_store_has_no_checkpoints_to_give(subject: impl Subject) {
    save(&subject, "s", 1).await;
    let store = subject.store();
    store.close().await.unwrap();
    let (checkpoints, tenant) = (store.checkpoints(), tenant());
    let closed = |error: Option<StoreError>| matches!(error, Some(StoreError::Closed));
    let saved = checkpoints.save(&tenant, row("s", 2), state(2)).await;
    assert!(closed(saved.err()));
    assert!(closed(checkpoints.load(&tenant, "s").await.err()));
    assert!(closed(checkpoints.row(&tenant, "s").await.err()));
    assert!(closed(checkpoints.forget(&tenant, "s").await.err()));
    assert!(closed(checkpoints.sessions(&tenant).await.err()));
}
