//! Logs of runs with fixed ids and a fixed clock. The views of all protocols are tested with them.

mod answered;
mod broken;
mod chunks;
#[path = "../../../interop/tests/it/recorded_runs/compact.rs"]
mod compact;
mod delegated;
mod plain;
mod requested;
mod rig;

use rig::{Rig, logs};
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::path::{Path, PathBuf};
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

fn folder(name: &str) -> PathBuf {
    let runs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/runs");
    Path::new(runs).join(name)
}

/// Plays a scene. Gives the logs of its threads by name, and the events that watchers received.
fn played(scene: &Scene) -> (BTreeMap<String, String>, String) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(async {
        let rig = (scene.play)().await;
        (logs(scene.name, &rig).await, rig.watched().await)
    })
}

#[expect(clippy::disallowed_methods, reason = "a test's own switch")]
fn is_updated() -> bool {
    std::env::var_os("UPDATE_RUNS").is_some()
}

/// Compares a text with its file; writes the file anew where that is wanted.
fn compare(file: &Path, text: &str) {
    if is_updated() {
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, compact::compact(text)).unwrap();
    }
    let recorded = compact::whole(&std::fs::read_to_string(file).unwrap_or_default());
    let name = file.display();
    for (line, (now, then)) in text.lines().zip(recorded.lines()).enumerate() {
        assert_eq!(now, then, "{name}:{}", line + 1);
    }
    assert!(text == recorded, "{name} has another length");
}

/// Run with `UPDATE_RUNS=1` to write the logs anew.
#[test]
fn the_runtime_writes_the_recorded_logs() {
    let mut names = BTreeSet::new();
    for scene in scenes_of_all() {
        let (logs, _) = played(scene);
        for (name, log) in logs {
            compare(&folder("logs").join(format!("{name}.log")), &log);
            assert!(names.insert(format!("{name}.log")), "{name} is there twice");
        }
    }
    let files = std::fs::read_dir(folder("logs")).unwrap();
    let files: BTreeSet<String> = files
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(files, names);
    assert!(names.len() >= 30);
}

/// Run with `UPDATE_RUNS=1` to write the files anew.
#[test]
fn watchers_of_a_parent_see_its_sub_agents_as_recorded() {
    let scenes = scenes_of_all().filter(|scene| scene.name.starts_with("subagent"));
    let mut n_scenes = 0;
    for scene in scenes {
        let (_, watched) = played(scene);
        compare(
            &folder("watched").join(format!("{}.txt", scene.name)),
            &watched,
        );
        n_scenes += 1;
    }
    assert!(n_scenes >= 8);
}
