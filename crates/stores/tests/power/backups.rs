//! Power losses while a store is backed up.

use crate::{DATABASE, Loss, Place, n_losses, told, told_number};
use jiff::Timestamp;
use loomline_stores::{
    BackupError, SqliteOptions, SqliteStore, back_up, restore_backup, verify_backups,
};
use std::path::Path;
use store::suite::script::{first, record, tenant};
use store::{Append, EventLog as _, Filter, Ownership, Store as _, StoreError, ThreadTable as _};
use timeline::{Command, NewItem, NewThread, Seq, ThreadId};

const THREAD: &str = "backed-up";

/// The process: it writes to a store, whose files are safe, and adds backups of it to a directory.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn back_up_again(directory: &str) {
    let store = told("LOSE_POWER_STORE").unwrap();
    println!();
    for n in 0..4 {
        let tail = write(Path::new(&store)).await;
        let backup = back_up(Path::new(&store), None, Path::new(directory), n == 2).unwrap();
        println!("backed up\t{}\t{tail}\t.", backup.number);
    }
}

/// Appends one event, and returns the end of the log.
async fn write(path: &Path) -> Seq {
    let store = SqliteStore::open(path, &SqliteOptions::default()).unwrap();
    let thread = ThreadId::from(THREAD);
    if let Err(StoreError::NotFound) = store.row(&thread).await {
        let records = first(NewThread::new(THREAD, Some(THREAD)), Timestamp::UNIX_EPOCH);
        store
            .get_or_create(&tenant(), records, None, None)
            .await
            .unwrap();
    }
    let head = store.head(&thread).await.unwrap();
    let content = serde_json::json!([{"type": "input_text", "text": "x".repeat(3_000)}]);
    let item = NewItem::user(format!("item-{}", head.tail), content.into());
    let at = head.last_at;
    let events = head.state.decide(Command::Record { item }, at);
    let records = events.unwrap().into_iter();
    let append = Append {
        thread,
        epoch: head.epoch,
        tail: head.tail,
        records: records.map(|event| record(event, at)).collect(),
        token: None,
        is_limited: true,
        ownership: Ownership::Keep,
        unmoved: Vec::new(),
    };
    let appended = store.append(append).await.unwrap();
    store.close().await.unwrap();
    appended.tail
}

/// The numbers of the backups that the process has acknowledged, with the ends of the log.
fn acknowledged(said: &str) -> Vec<(u64, u64)> {
    let lines = said.lines().filter_map(|line| line.strip_suffix("\t."));
    let read = |line: &str| {
        let mut parts = line.strip_prefix("backed up\t")?.split('\t');
        Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
    };
    lines.filter_map(read).collect()
}

/// The end of the log of a restored store.
#[tokio::main(flavor = "current_thread")]
async fn restored_tail(backups: &Path, to: &Path) -> u64 {
    restore_backup(backups, to, None, None).unwrap();
    let store = SqliteStore::open(to, &SqliteOptions::default()).unwrap();
    assert_eq!(store.check().await.unwrap(), Vec::<String>::new());
    let tail = store.head(&ThreadId::from(THREAD)).await.unwrap().tail;
    let thread = ThreadId::from(THREAD);
    let log = store.read(&thread, Seq::ZERO, 10_000, Filter::All).await;
    assert_eq!(log.unwrap().len() as u64, tail.0);
    store.close().await.unwrap();
    tail.0
}

#[test]
fn a_power_loss_during_a_backup_takes_no_backup_that_was_taken() {
    let place = Place::new();
    let [mut n_lost, mut n_done, mut n_kept] = [0; 3];
    let one = told_number("LOOMLINE_POWER_SEED");
    let mut seeds = one.map_or(1..u64::MAX, |seed| seed..seed + 1);
    while n_lost < n_losses(15) {
        let Some(seed) = seeds.next() else { break };
        let mut random = fastrand::Rng::with_seed(seed);
        let (source, backups) = (place.empty("source"), place.empty("backups"));
        let source = source.join(DATABASE);
        let mut taken: Vec<(u64, u64)> = Vec::new();
        for n in 0..3 {
            let most = [20, 100, 400][random.usize(..3)];
            let loss = Loss {
                job: "back up",
                directory: &backups,
                at: random.u64(1..most),
                seed: random.u64(..),
                lie: "",
            };
            let named = format!("seed {seed}, loss {n} at operation {}", loss.at);
            let ended = loss.of_process(&place, &[("LOSE_POWER_STORE", &source)]);
            let (end, said) = ended.unwrap_or_else(|error| panic!("{named}: {error}"));
            match end {
                crate::End::Lost => n_lost += 1,
                crate::End::Done => n_done += 1,
            }
            taken.extend(acknowledged(&said));
            let found = match verify_backups(&backups, None) {
                Ok(verified) => verified.backups,
                Err(BackupError::None(_)) => Vec::new(),
                Err(error) => panic!("{named}: {error:?}"),
            };
            for (number, _) in &taken {
                let is_there = found.iter().any(|it| it.number == *number);
                assert!(is_there, "{named}: backup {number} is lost");
            }
            if let Some((_, tail)) = taken.last() {
                let restored = place.empty("restored").join(DATABASE);
                let found = restored_tail(&backups, &restored);
                assert!(
                    found >= *tail,
                    "{named}: the log ends at {found}, not {tail}"
                );
                n_kept += 1;
            }
        }
    }
    println!("backups: {n_lost} losses, {n_done} processes ended, {n_kept} restores");
    assert!(one.is_some() || n_kept > 0);
}
