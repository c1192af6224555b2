//! Checkpoints of agents, in the same file.

use super::{open, place, read_only};
use loomline_stores::SqliteStore;
use runtime::checkpoint::CheckpointMetadata;
use runtime::{Store, StoreError};

#[tokio::test]
async fn rebuilding_the_tables_leaves_checkpoints_alone() {
    let (_directory, path) = place();
    let store = open(&path);
    let state = r#"{"version":"1.0.0","id":"i","messages":[],"step":4,"metadata":{}}"#;
    let about = CheckpointMetadata::of("s", state).unwrap();
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
    let state = r#"{"version":"1.0.0","id":"i","messages":[],"step":4,"metadata":{}}"#;
    let about = CheckpointMetadata::of("s", state).unwrap();
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
