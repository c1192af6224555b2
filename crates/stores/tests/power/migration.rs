//! Power losses while a store of version 9 migrates.

use crate::shown::shown;
use crate::{DATABASE, End, Loss, Place, n_losses, told_number};
use loomline_stores::{SqliteOptions, SqliteStore};
use rusqlite::Connection;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use store::Store as _;

const FIXTURE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../cli/tests/fixtures/stores/library-v9"
);

fn unpacked(name: &str) -> Vec<u8> {
    let packed = Path::new(FIXTURE).join(format!("{name}.gz"));
    let unpacked = Command::new("gzip").arg("-dc").arg(&packed).output();
    let unpacked = unpacked.unwrap();
    assert!(unpacked.status.success(), "{}", packed.display());
    unpacked.stdout
}

/// The process: it opens the store.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn migrate(directory: &str) {
    let path = Path::new(directory).join(DATABASE);
    println!();
    let store = SqliteStore::open(&path, &SqliteOptions::default()).unwrap();
    store.close().await.unwrap();
}

/// The version of a store, which a start would read.
fn version(database: &Path) -> i64 {
    let conn = Connection::open(database).unwrap();
    let version = conn.query_row("PRAGMA user_version", [], |row| row.get(0));
    version.unwrap()
}

/// Asserts that the next start shows what the store had.
#[tokio::main(flavor = "current_thread")]
async fn assert_whole(database: &Path, had: &Value, loss: &str) {
    let store = SqliteStore::open(database, &SqliteOptions::default());
    let store = store.unwrap_or_else(|error| panic!("{loss}: {error:?}"));
    assert_eq!(shown(&store).await, had["tenants"], "{loss}");
    assert_eq!(store.check().await.unwrap(), Vec::<String>::new(), "{loss}");
    store.close().await.unwrap();
}

#[test]
fn a_power_loss_during_a_migration_leaves_the_old_or_the_new_store() {
    let place = Place::new();
    let had: Value = serde_json::from_slice(&unpacked("truth.json")).unwrap();
    let [mut n_old, mut n_new, mut n_done] = [0; 3];
    let one = told_number("LOOMLINE_POWER_SEED");
    let mut seeds = one.map_or(1..u64::MAX, |seed| seed..seed + 1);
    while n_old + n_new < n_losses(25) {
        let Some(seed) = seeds.next() else { break };
        let mut random = fastrand::Rng::with_seed(seed);
        let store = place.empty("store");
        let database: PathBuf = store.join(DATABASE);
        std::fs::write(&database, unpacked("loomline.db")).unwrap();
        // The next start begins again, and may lose its power too.
        for n in 0..4 {
            let most = [10, 100, 1_000, 4_000][random.usize(..4)];
            let loss = Loss {
                job: "migrate",
                directory: &store,
                at: random.u64(1..most),
                seed: random.u64(..),
                lie: "",
            };
            let named = format!("seed {seed}, loss {n} at operation {}", loss.at);
            let ended = loss.of_process(&place, &[]);
            let (end, _) = ended.unwrap_or_else(|error| panic!("{named}: {error}"));
            let is_lost = matches!(end, End::Lost);
            let is_old = version(&place.copy(&store).join(DATABASE)) == 9;
            n_old += u64::from(is_lost && is_old);
            n_new += u64::from(is_lost && !is_old);
            n_done += u64::from(!is_lost);
            assert!(is_lost || !is_old, "{named}: the migration did nothing");
            assert_whole(&place.copy(&store).join(DATABASE), &had, &named);
        }
    }
    println!(
        "migrations: {n_old} losses before the switch, {n_new} after it, {n_done} starts ended"
    );
    assert!(one.is_some() || (n_old > 0 && n_new > 0));
}
