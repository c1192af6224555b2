//! Checkpoints in files (UAP §12.4.3).

use crate::support::*;
use loomline_agents::AgentState;
use loomline_agents::checkpoint::{
    CheckpointError, CheckpointStore, Compression, FileCheckpointOptions, FileCheckpoints,
};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;

fn plain(dir: &Path) -> FileCheckpoints {
    FileCheckpoints::in_dir(dir.join("checkpoints"))
}

fn gzip(dir: &Path) -> FileCheckpoints {
    FileCheckpoints::new(FileCheckpointOptions {
        dir: dir.join("checkpoints"),
        compression: Some(Compression::Gzip),
        ..FileCheckpointOptions::default()
    })
}

mod crashes;

mod suite_plain {
    loomline_agents::checkpoint_suite!({
        let dir = tempfile::tempdir().unwrap();
        (std::sync::Arc::new(super::plain(dir.path())), dir)
    });
}

mod suite_gzip {
    loomline_agents::checkpoint_suite!({
        let dir = tempfile::tempdir().unwrap();
        (std::sync::Arc::new(super::gzip(dir.path())), dir)
    });
}

fn temp() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn json(step: u64) -> String {
    AgentState::initial().with_step(step).to_json().unwrap()
}

fn files(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn session(temp: &TempDir) -> PathBuf {
    temp.path().join("checkpoints/my-session")
}

#[test]
fn the_default_directory_is_that_of_section_12_4_3() {
    let options = FileCheckpointOptions::default();
    assert_eq!(
        (options.dir.to_str(), options.compression),
        (Some(".checkpoints"), None)
    );
}

#[tokio::test]
async fn files_are_laid_out_as_section_12_4_3_says() {
    let temp = temp();
    let store = plain(temp.path());
    store.save("my-session", json(1)).await.unwrap();
    store.save("my-session", json(2)).await.unwrap();
    assert_eq!(files(&session(&temp)), ["checkpoint.json", "metadata.json"]);
    let state: serde_json::Value =
        serde_json::from_slice(&fs::read(session(&temp).join("checkpoint.json")).unwrap()).unwrap();
    assert_eq!(
        (&state["version"], &state["step"]),
        (&"1.0.0".into(), &2.into())
    );
    let metadata: serde_json::Value =
        serde_json::from_slice(&fs::read(session(&temp).join("metadata.json")).unwrap()).unwrap();
    assert_eq!(
        (&metadata["sessionId"], &metadata["step"]),
        (&"my-session".into(), &2.into())
    );
    assert!(metadata["timestamp"].as_str().unwrap().ends_with('Z'));
}

#[tokio::test]
async fn no_session_id_leads_out_of_the_directory() {
    let temp = temp();
    let store = plain(temp.path());
    for id in [
        "../escape",
        "..",
        "/escape",
        "a/../../escape",
        "..\\escape",
        "\0",
        "",
    ] {
        store.save(id, json(1)).await.unwrap();
        assert!(store.load(id).await.unwrap().is_some(), "{id:?}");
    }
    assert_eq!(files(temp.path()), ["checkpoints"]);
    let sessions = files(&temp.path().join("checkpoints"));
    assert_eq!(
        sessions.len(),
        7,
        "each is a directory of its own: {sessions:?}"
    );
}

#[tokio::test]
async fn a_session_id_that_is_too_long_is_refused_by_every_call() {
    let temp = temp();
    let store = plain(temp.path());
    let long = "x".repeat(201);
    let is_refused = |error: CheckpointError| {
        assert!(matches!(
            error,
            CheckpointError::SessionIdTooLong {
                length: 201,
                limit: 200
            }
        ));
    };
    is_refused(store.save(&long, json(1)).await.unwrap_err());
    is_refused(store.load(&long).await.unwrap_err());
    is_refused(store.load_metadata(&long).await.unwrap_err());
    is_refused(store.delete(&long).await.unwrap_err());
    store.save(&"x".repeat(200), json(1)).await.unwrap();
}

#[tokio::test]
async fn either_form_is_read_whatever_is_set_and_only_one_is_kept() {
    let temp = temp();
    for (store, other, name) in [
        (plain(temp.path()), gzip(temp.path()), "checkpoint.json"),
        (gzip(temp.path()), plain(temp.path()), "checkpoint.json.gz"),
        (plain(temp.path()), gzip(temp.path()), "checkpoint.json"),
    ] {
        let json = json(1);
        store.save("my-session", json.clone()).await.unwrap();
        assert_eq!(other.load("my-session").await.unwrap(), Some(json));
        assert_eq!(files(&session(&temp)), [name, "metadata.json"]);
        assert_eq!(other.list().await.unwrap(), ["my-session"]);
    }
}

#[tokio::test]
async fn a_compressed_checkpoint_is_smaller() {
    let temp = temp();
    let state = AgentState::initial().with_message("word ".repeat(10_000));
    let json = state.to_json().unwrap();
    gzip(temp.path())
        .save("my-session", json.clone())
        .await
        .unwrap();
    let file = fs::metadata(session(&temp).join("checkpoint.json.gz")).unwrap();
    assert!(file.len() * 10 < u64::try_from(json.len()).unwrap());
}

#[tokio::test]
async fn a_directory_without_a_checkpoint_is_no_session() {
    let temp = temp();
    let store = plain(temp.path());
    let dir = temp.path().join("checkpoints");
    for name in ["crashed", ".new-x1", "Not-A-Name"] {
        fs::create_dir_all(dir.join(name)).unwrap();
    }
    fs::write(dir.join("file"), "").unwrap();
    fs::write(dir.join("Not-A-Name/checkpoint.json"), json(1)).unwrap();
    store.save("s", json(1)).await.unwrap();
    assert_eq!(store.list().await.unwrap(), ["s"]);
    assert_eq!(store.load("crashed").await.unwrap(), None);
}

#[tokio::test]
async fn a_checkpoint_beyond_the_limit_is_neither_written_nor_read() {
    let temp = temp();
    let limited = |max_bytes| {
        FileCheckpoints::new(FileCheckpointOptions {
            dir: temp.path().join("checkpoints"),
            compression: Some(Compression::Gzip),
            max_bytes,
        })
    };
    let long = AgentState::initial()
        .with_message("x".repeat(100_000))
        .to_json()
        .unwrap();
    limited(1 << 20)
        .save("my-session", long.clone())
        .await
        .unwrap();
    let read = limited(1000).load("my-session").await;
    assert!(matches!(
        read,
        Err(CheckpointError::TooLarge { limit: 1000, .. })
    ));
    let written = limited(1000).save("my-session", long.clone()).await;
    assert!(matches!(written, Err(CheckpointError::TooLarge { .. })));
    assert_eq!(
        limited(1 << 20).load("my-session").await.unwrap(),
        Some(long)
    );
}

#[tokio::test]
async fn a_directory_that_can_not_be_made_is_an_error_with_its_path() {
    let temp = temp();
    fs::write(temp.path().join("checkpoints"), "a file").unwrap();
    let error = plain(temp.path()).save("s", json(1)).await.unwrap_err();
    assert!(
        matches!(error, CheckpointError::Io { doing: "write", path, .. } if path.ends_with("s/checkpoint.json"))
    );
}

#[cfg(unix)]
#[tokio::test]
async fn only_the_owner_may_read_a_checkpoint() {
    use std::os::unix::fs::PermissionsExt;
    let temp = temp();
    plain(temp.path())
        .save("my-session", json(1))
        .await
        .unwrap();
    for path in [session(&temp), session(&temp).join("checkpoint.json")] {
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{}", path.display());
    }
}

#[tokio::test]
async fn a_run_is_resumed_from_files_by_another_agent() {
    let temp = temp();
    let mut options = adding();
    let checkpoints: loomline_agents::checkpoint::Checkpoints = gzip(temp.path()).into();
    options.checkpoints = Some(checkpoints.clone());
    options.session_id = Some("my-session".to_owned());
    let state = generate(options).await.state;
    checkpoints.flush().await;

    let store: Arc<dyn CheckpointStore> = Arc::new(plain(temp.path()));
    let json = store.load("my-session").await.unwrap().unwrap();
    let restored = AgentState::from_json(&json).unwrap();
    assert_eq!(restored, state);
    let resumed = agent(adding())
        .ask("Continue", restored)
        .await
        .unwrap()
        .state;
    assert_eq!(resumed.metadata()["sessionId"], "my-session");
    assert_eq!(resumed.step(), 8);
}
