//! What a commit leaves in the file, and who shares it.

use super::{open, place, written};
use loomline_stores::Upkeep as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use store::suite::script;
use store::{EventLog as _, Filter, ThreadRows, ThreadTable as _};
use timeline::{Command, NewItem, Seq};
use tokio::task::JoinSet;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_of_the_files_in_mid_run_has_every_acknowledged_append() {
    const ROUNDS: u64 = 5;
    let (directory, path) = place();
    let store = open(&path);
    let acknowledged: Arc<Vec<AtomicU64>> = Arc::new((0..8).map(|_| AtomicU64::new(0)).collect());
    // How many appends each writer may have made.
    let allowed = Arc::new(AtomicU64::new(0));
    let mut writers = JoinSet::new();
    for n in 0..8 {
        let (store, acknowledged) = (store.clone(), acknowledged.clone());
        let allowed = allowed.clone();
        writers.spawn(async move {
            let mut author = written(&store, &format!("t{n}"), vec![]).await;
            for i in 0..ROUNDS * 40 {
                while i >= allowed.load(Ordering::SeqCst) {
                    tokio::task::yield_now().await;
                }
                let content = serde_json::json!([{"type": "input_text", "text": "x".repeat(300)}]);
                let item = NewItem::user(format!("i{i}"), content.into());
                author.commit(Command::Record { item }).await;
                acknowledged[n].store(author.tail.0, Ordering::SeqCst);
            }
        });
    }
    let mut n_known = 0;
    for round in 0..ROUNDS {
        allowed.fetch_add(40, Ordering::SeqCst);
        // Each round sees more than the one before.
        let known = loop {
            let tails = acknowledged.iter().map(|tail| tail.load(Ordering::SeqCst));
            let known: Vec<u64> = tails.collect();
            if known.iter().sum::<u64>() > n_known {
                break known;
            }
            tokio::task::yield_now().await;
        };
        n_known = known.iter().sum();
        let copy = directory.path().join(format!("copy-{round}"));
        std::fs::copy(&path, &copy).unwrap();
        std::fs::copy(wal(&path), wal(&copy)).unwrap();
        assert_holds(&copy, &known).await;
        // A write-ahead log that ends anywhere: less is there, nothing is broken.
        let torn = directory.path().join(format!("torn-{round}"));
        std::fs::copy(&path, &torn).unwrap();
        let bytes = std::fs::read(wal(&path)).unwrap();
        std::fs::write(
            wal(&torn),
            &bytes[..bytes.len() / 5 * usize::try_from(round).unwrap()],
        )
        .unwrap();
        assert_holds(&torn, &[]).await;
    }
    assert!(n_known > 0 && !writers.is_empty());
    writers.join_all().await;
}

/// The transactions of a write-ahead log, each as the range of its frames' bytes.
fn transactions(log: &[u8]) -> Vec<std::ops::Range<usize>> {
    let word = |at: usize| u32::from_be_bytes(log[at..at + 4].try_into().unwrap());
    let frame = 24 + word(8) as usize;
    let mut found = Vec::new();
    let mut start = 32;
    for at in (32..log.len()).step_by(frame) {
        if word(at + 4) != 0 {
            found.push(start..at + frame);
            start = at + frame;
        }
    }
    found
}

#[tokio::test]
async fn a_second_power_loss_is_no_damage_because_a_torn_log_is_emptied() {
    let (directory, path) = place();
    let store = open(&path);
    for n in 0..12 {
        written(&store, &format!("t{n}"), vec![]).await;
    }
    let torn = directory.path().join("torn");
    std::fs::copy(&path, &torn).unwrap();
    let mut log = std::fs::read(wal(&path)).unwrap();
    // The fourth transaction from the end is broken, and three follow it.
    let fourth = transactions(&log).into_iter().rev().nth(3).unwrap();
    log[fourth.start + 100] ^= 1;
    std::fs::write(wal(&torn), &log).unwrap();

    let opened = open(&torn);
    let n_left = std::fs::metadata(wal(&torn)).unwrap().len();
    assert_eq!(n_left, 0);

    // A loss of the first transaction since, which is as long as the broken one.
    written(&opened, "after", vec![]).await;
    let again = directory.path().join("again");
    std::fs::copy(&torn, &again).unwrap();
    let mut log = std::fs::read(wal(&torn)).unwrap();
    let last = transactions(&log).pop().unwrap();
    log[last.start + 100] ^= 1;
    std::fs::write(wal(&again), &log).unwrap();
    let (again, tenant) = (open(&again), "acme".into());
    let all = ThreadRows {
        limit: 100,
        ..ThreadRows::default()
    };
    let rows = again.list(&tenant, all).await;
    assert!(rows.unwrap().len() >= 8);
}

fn wal(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push("-wal");
    name.into()
}

async fn assert_holds(path: &Path, known: &[u64]) {
    let store = open(path);
    assert_eq!(store.check().await.unwrap(), Vec::<String>::new());
    let all = ThreadRows {
        limit: 100,
        ..ThreadRows::default()
    };
    for row in store.list(&"acme".into(), all).await.unwrap() {
        let mut log = Vec::new();
        let mut after = Seq::ZERO;
        loop {
            let page = store.read(&row.thread.id, after, 10_000, Filter::All).await;
            let page = page.unwrap();
            let Some(last) = page.last() else { break };
            after = last.record.seq;
            log.extend(page.into_iter().map(|logged| logged.record));
        }
        assert_eq!(timeline::verify(&log), Ok(()));
        assert_eq!(log.len() as u64, row.tail.0);
    }
    for (n, tail) in known.iter().enumerate().filter(|(_, tail)| **tail > 0) {
        let row = store.row(&format!("t{n}").into()).await.unwrap();
        assert!(
            row.tail.0 >= *tail,
            "{} of {tail} acknowledged events",
            row.tail
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn appends_of_many_writers_share_commits() {
    let (_directory, path) = place();
    let store = open(&path);
    let mut writers = JoinSet::new();
    for n in 0..64 {
        let store = store.clone();
        writers.spawn(async move { written(&store, &format!("t{n}"), script()).await });
    }
    writers.join_all().await;
    let stats = store.stats().await.unwrap();
    let activity = store.activity();
    assert!(
        activity.n_requests >= 64 * 30 && activity.n_commits < activity.n_requests,
        "{activity:?}"
    );
    assert!(activity.file_bytes > 0 && activity.wal_bytes > stats.event_bytes);
    assert_eq!((stats.n_threads, stats.schema_version), (64, 12));
}
