//! Logs of runs with fixed ids and a fixed clock. The views of all protocols are tested with them.

mod answered;
mod broken;
mod chunks;
mod delegated;
mod plain;
mod requested;
mod rig;

use rig::{Rig, logs};
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;

type Recorded = Pin<Box<dyn Future<Output = Rig>>>;

/// A conversation, and what its log is called.
struct Scene {
    name: &'static str,
    play: fn() -> Recorded,
}

/// The scenes of these functions, under their names.
macro_rules! scenes {
    ($($scene:ident),* $(,)?) => {
        pub(super) const SCENES: &[super::Scene] = &[
            $(super::Scene { name: stringify!($scene), play: || Box::pin($scene()) }),*
        ];
    };
}
use scenes;

fn scenes_of_all() -> impl Iterator<Item = &'static Scene> {
    let all = [
        plain::SCENES,
        answered::SCENES,
        delegated::SCENES,
        broken::SCENES,
        chunks::SCENES,
        requested::SCENES,
    ];
    all.into_iter().flatten()
}

fn folder() -> PathBuf {
    PathBuf::from(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../tests/runs/logs"
    ))
}

/// Plays a scene; gives the logs of its threads by their names.
fn played(scene: &Scene) -> BTreeMap<String, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(async {
        let rig = (scene.play)().await;
        logs(scene.name, &rig).await
    })
}

/// Run with `UPDATE_RUNS=1` to write the logs anew.
#[test]
fn the_runtime_writes_the_recorded_logs() {
    let (folder, update) = (folder(), std::env::var_os("UPDATE_RUNS").is_some());
    let mut names = BTreeSet::new();
    for scene in scenes_of_all() {
        for (name, log) in played(scene) {
            let file = folder.join(format!("{name}.log"));
            if update {
                std::fs::create_dir_all(&folder).unwrap();
                std::fs::write(&file, &log).unwrap();
            }
            let recorded = std::fs::read_to_string(&file).unwrap_or_default();
            for (line, (now, then)) in log.lines().zip(recorded.lines()).enumerate() {
                assert_eq!(now, then, "{name}, line {}", line + 1);
            }
            assert!(log == recorded, "{name} has another length");
            assert!(names.insert(format!("{name}.log")), "{name} is there twice");
        }
    }
    let files = std::fs::read_dir(&folder).unwrap();
    let files: BTreeSet<String> = files
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(files, names);
    assert!(names.len() >= 30);
}
