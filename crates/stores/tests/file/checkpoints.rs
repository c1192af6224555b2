//! Checkpoints of agents, in the same file.

use super::{open, place, read_only};
use jiff::Timestamp;
use loomline_stores::SqliteStore;
use loomline_stores::Upkeep as _;
use store::{CheckpointRow, Store, StoreError};

pub(crate) fn row(session_id: &str) -> CheckpointRow {
    CheckpointRow {
        session_id: session_id.to_owned(),
        checkpoint_id: "c".to_owned(),
        timestamp: Timestamp::UNIX_EPOCH,
        step: 4,
        agent_id: None,
    }
}

#[tokio::test]
async fn rebuilding_the_tables_leaves_checkpoints_alone() {
    let (_directory, path) = place();
    let store = open(&path);
    let state = r#"{"step":4}"#;
    let about = row("s");
    let acme = "acme".into();
    let table = store.checkpoints();
    table.save(&acme, about, state.into()).await.unwrap();
    store.rebuild_tables().await.unwrap();
    assert_eq!(table.sessions(&acme).await.unwrap(), ["s"]);
}

#[tokio::test]
async fn a_store_that_is_open_for_reading_shows_checkpoints_and_takes_none() {
    let (_directory, path) = place();
    let served = open(&path);
    let state = r#"{"step":4}"#;
    let about = row("s");
    let acme = "acme".into();
    let table = served.checkpoints();
    table
        .save(&acme, about.clone(), state.into())
        .await
        .unwrap();
    let looking = SqliteStore::open(&path, &read_only()).unwrap();
    let table = looking.checkpoints();
    assert_eq!(table.sessions(&acme).await.unwrap(), ["s"]);
    let refused = table.save(&acme, about, state.into()).await;
    assert!(matches!(refused, Err(StoreError::InUse(_))), "{refused:?}");
}
