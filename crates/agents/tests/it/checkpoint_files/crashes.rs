//! What is left after crashes, damage and saves at once.

use super::*;

#[tokio::test]
async fn a_damaged_file_is_an_error_and_never_none() {
    for (store, name) in [
        (plain as fn(&Path) -> FileCheckpoints, "checkpoint.json"),
        (gzip, "checkpoint.json.gz"),
    ] {
        let temp = temp();
        let store = store(temp.path());
        store.save("my-session", json(1)).await.unwrap();
        let path = session(&temp).join(name);
        let whole = fs::read(&path).unwrap();
        for damaged in [
            &whole[..0],
            &whole[..whole.len() / 2],
            &whole[..whole.len() - 1],
            b"\xff\xfe",
        ] {
            fs::write(&path, damaged).unwrap();
            let error = store.load("my-session").await.unwrap_err();
            assert!(matches!(error, CheckpointError::Corrupt { path: p, .. } if p == path));
        }
        fs::write(session(&temp).join("metadata.json"), "{").unwrap();
        let error = store.load_metadata("my-session").await.unwrap_err();
        assert!(matches!(error, CheckpointError::Corrupt { .. }));
        store.save("my-session", json(2)).await.unwrap();
        assert!(
            store.load("my-session").await.unwrap().is_some(),
            "a save mends it"
        );
    }
}

#[tokio::test]
async fn a_crash_while_writing_leaves_the_old_checkpoint() {
    let temp = temp();
    let store = plain(temp.path());
    let old = json(1);
    store.save("my-session", old.clone()).await.unwrap();
    // What a crash before the rename leaves: a part of the new file beside the old one.
    let new = json(2);
    fs::write(session(&temp).join(".new-a1B2c3"), &new[..new.len() / 2]).unwrap();
    assert_eq!(store.load("my-session").await.unwrap(), Some(old));
    assert_eq!(
        store
            .load_metadata("my-session")
            .await
            .unwrap()
            .unwrap()
            .step,
        1
    );
    store.save("my-session", new.clone()).await.unwrap();
    assert_eq!(store.load("my-session").await.unwrap(), Some(new));
    store.delete("my-session").await.unwrap();
    assert!(files(&temp.path().join("checkpoints")).is_empty());
}

#[tokio::test]
async fn a_crash_before_the_metadata_leaves_the_new_checkpoint_with_older_metadata() {
    let temp = temp();
    let store = plain(temp.path());
    store.save("my-session", json(1)).await.unwrap();
    let old = fs::read(session(&temp).join("metadata.json")).unwrap();
    store.save("my-session", json(2)).await.unwrap();
    fs::write(session(&temp).join("metadata.json"), old).unwrap();
    let loaded = store.load("my-session").await.unwrap().unwrap();
    assert_eq!(AgentState::from_json(&loaded).unwrap().step(), 2);
    assert_eq!(
        store
            .load_metadata("my-session")
            .await
            .unwrap()
            .unwrap()
            .step,
        1
    );
}

#[tokio::test]
async fn a_crash_between_two_forms_leaves_the_younger_to_be_read() {
    let temp = temp();
    let (first, second) = (json(1), json(2));
    plain(temp.path())
        .save("my-session", first.clone())
        .await
        .unwrap();
    let path = session(&temp).join("checkpoint.json");
    let hour = std::time::Duration::from_hours(1);
    let earlier = fs::metadata(&path).unwrap().modified().unwrap() - hour;
    gzip(temp.path())
        .save("my-session", second.clone())
        .await
        .unwrap();
    fs::write(&path, &first).unwrap();
    let file = fs::File::options().write(true).open(&path).unwrap();
    file.set_modified(earlier).unwrap();
    assert_eq!(
        plain(temp.path()).load("my-session").await.unwrap(),
        Some(second)
    );
}

#[tokio::test]
async fn one_form_under_the_others_name_is_read() {
    let temp = temp();
    let json = json(1);
    gzip(temp.path())
        .save("my-session", json.clone())
        .await
        .unwrap();
    let dir = session(&temp);
    fs::rename(dir.join("checkpoint.json.gz"), dir.join("checkpoint.json")).unwrap();
    assert_eq!(
        plain(temp.path()).load("my-session").await.unwrap(),
        Some(json)
    );
}

/// As several processes would: stores of their own on one directory, at once.
#[test]
fn stores_on_one_directory_never_show_a_torn_checkpoint() {
    let temp = temp();
    let dir = temp.path();
    let states: Vec<String> = (0..8)
        .map(|n| "x".repeat(n * 5000))
        .map(|text| AgentState::initial().with_message(text).to_json().unwrap())
        .collect();
    std::thread::scope(|scope| {
        for (n, state) in states.iter().enumerate() {
            let store = if n % 2 == 0 { plain(dir) } else { gzip(dir) };
            scope.spawn(move || {
                for _ in 0..10 {
                    futures_util::FutureExt::now_or_never(store.save("s", state.clone()))
                        .unwrap()
                        .unwrap();
                    let loaded = futures_util::FutureExt::now_or_never(store.load("s"))
                        .unwrap()
                        .unwrap();
                    AgentState::from_json(&loaded.unwrap()).unwrap();
                }
            });
        }
    });
    let left = files(&dir.join("checkpoints/s"));
    assert!(
        left.iter().all(|name| !name.starts_with(".new-")),
        "{left:?}"
    );
}

#[test]
fn saves_and_deletes_at_once_end_in_a_whole_checkpoint_or_none() {
    let temp = temp();
    let dir = temp.path();
    std::thread::scope(|scope| {
        for n in 0..4 {
            scope.spawn(move || {
                let store = plain(dir);
                for _ in 0..20 {
                    if n == 0 {
                        futures_util::FutureExt::now_or_never(store.delete("s"))
                            .unwrap()
                            .unwrap();
                    } else {
                        futures_util::FutureExt::now_or_never(store.save("s", json(1)))
                            .unwrap()
                            .unwrap();
                    }
                    let loaded = futures_util::FutureExt::now_or_never(store.load("s"))
                        .unwrap()
                        .unwrap();
                    if let Some(loaded) = loaded {
                        AgentState::from_json(&loaded).unwrap();
                    }
                }
            });
        }
    });
}
