//! Backups, restores, exports, imports and erasures of a large store, with their times and memory.
//! `scripts/soak-backup` and `scripts/soak-erase` run it with a gigabyte; alone it has some megabytes.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "tests")]
#![allow(clippy::print_stdout, reason = "the table")]

use jiff::Timestamp;
use loomline_stores::Erasure as _;
use loomline_stores::{
    Samples, SqliteOptions, SqliteStore, back_up, export_tenant, import_tenant, restore_backup,
    verify_backups,
};
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;
use store::objects::NewObject;
use store::suite::Author;
use store::{Store, TenantId, ThreadTable as _};
use timeline::{Command, NewItem, NewThread, Removed, ThreadId};

const MIB: u64 = 1 << 20;
/// The text of one thread, in bytes.
const THREAD: u64 = 256 << 10;

fn megabytes() -> u64 {
    #[allow(clippy::disallowed_methods, reason = "a test may be told its size")]
    let told = std::env::var("LOOMLINE_BACKUP_MB").ok();
    told.map_or(4, |megabytes| megabytes.parse().unwrap())
}

/// Words that compress as badly as conversations.
fn text(random: &mut fastrand::Rng, n: u64) -> String {
    let mut text = String::new();
    while (text.len() as u64) < n {
        for _ in 0..random.usize(3..9) {
            text.push(random.lowercase());
        }
        text.push(' ');
    }
    text
}

/// Adds threads and files of this size: three quarters are events.
async fn fill(store: &Arc<SqliteStore>, name: &str, bytes: u64, random: &mut fastrand::Rng) {
    let shared: Arc<dyn Store> = store.clone();
    for n in 0..(bytes * 3 / 4).div_ceil(THREAD) {
        let id = format!("{name}-{n}");
        let mut author = Author::new(&shared, "acme", NewThread::new(&*id, Some(&id))).await;
        for part in 0..8 {
            let mut append = author.append_with(Vec::new());
            let mut state = author.state.clone();
            for nth in 0..8 {
                let said = serde_json::json!([
                    {"type": "input_text", "text": text(random, THREAD / 64)}
                ]);
                let item = NewItem::user(&*format!("{id}-{part}-{nth}"), said.into());
                let events = state.decide(Command::Record { item }, Timestamp::UNIX_EPOCH);
                for event in events.unwrap() {
                    state.apply(&event);
                    append
                        .records
                        .extend(author.append_with(vec![event]).records);
                }
            }
            author.append(append).await.unwrap();
        }
    }
    for n in 0..(bytes / 4).div_ceil(MIB) {
        let mut content = vec![0; 1 << 20];
        random.fill(&mut content);
        let file = NewObject {
            kind: "file".into(),
            id: format!("{name}-{n}"),
            created_at: Timestamp::UNIX_EPOCH,
            json: "{}".to_owned(),
            content: Some(content),
            thread: None,
            is_limited: false,
        };
        let put = store.objects().put(&TenantId::from("acme"), file).await;
        put.unwrap();
    }
}

/// Does something, and prints its time, the largest memory of the process meanwhile, and a size.
fn measured<T>(name: &str, work: impl FnOnce() -> T, size: impl FnOnce(&T) -> u64) -> T {
    // The kernel forgets the largest size so far.
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    let before = memory("VmRSS:");
    let begun = Instant::now();
    let done = work();
    let seconds = begun.elapsed().as_secs_f64();
    let more = memory("VmHWM:").saturating_sub(before);
    let size = size(&done) / MIB;
    println!("| {name} | {seconds:.1} | {size} | {more} |");
    done
}

/// A line of the process's status, in MiB.
fn memory(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    let kib: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kib / 1024
}

fn size(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |file| file.len())
}

#[tokio::test]
async fn a_large_store_is_backed_up_restored_exported_and_imported() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let (path, backups) = (at("loomline.db"), at("backups"));
    let bytes = megabytes() * MIB;
    let mut random = fastrand::Rng::with_seed(48);
    let store = SqliteStore::open(&path, &SqliteOptions::default()).unwrap();
    let store = Arc::new(store);
    let begun = Instant::now();
    fill(&store, "t", bytes, &mut random).await;
    let made = begun.elapsed().as_secs_f64();
    println!("\nmade {} MiB in {made:.1} s", size(&path) / MIB);
    println!("\n| step | seconds | MiB written | MiB of memory |\n|---|---|---|---|");
    let backup = || back_up(&path, None, &backups, false).unwrap();
    measured("full backup", backup, |taken| taken.bytes);
    fill(&store, "u", bytes / 100, &mut random).await;
    let acme = TenantId::from("acme");
    store.delete(&acme, &"t-0".into(), None).await.unwrap();
    measured("increment, 1 % more", backup, |taken| taken.bytes);
    measured("increment, nothing new", backup, |taken| taken.bytes);
    let to = at("restored/loomline.db");
    let restore = || restore_backup(&backups, &to, None, None).unwrap();
    let restored = measured("restore", restore, |_| size(&to));
    assert_eq!(restored.counts, restored.backup.counts);
    let verify = || verify_backups(&backups, None).unwrap();
    let verified = measured("verify", verify, |_| 0);
    assert_eq!(verified.backups.len(), 3);
    let lines = at("acme.jsonl");
    let export = || {
        let mut file = BufWriter::new(File::create(&lines).unwrap());
        export_tenant(&path, None, "acme", &mut file).unwrap()
    };
    let exported = measured("tenant export", export, |_| size(&lines));
    let imported = at("imported/loomline.db");
    let import = || {
        let mut file = File::open(&lines).unwrap();
        import_tenant(&imported, &SqliteOptions::default(), &mut file).unwrap()
    };
    let counts = measured("tenant import", import, |_| size(&imported));
    assert_eq!(counts, exported);
}

/// Does something that waits, and prints its time, the largest memory of the process meanwhile, and a size.
async fn awaited<T>(name: &str, work: impl Future<Output = T>, size: impl FnOnce(&T) -> u64) -> T {
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    let before = memory("VmRSS:");
    let begun = Instant::now();
    let done = work.await;
    let seconds = begun.elapsed().as_secs_f64();
    let more = memory("VmHWM:").saturating_sub(before);
    let size = size(&done) / MIB;
    println!("| {name} | {seconds:.1} | {size} | {more} |");
    done
}

#[tokio::test]
async fn a_part_of_a_large_store_is_erased() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("loomline.db");
    let bytes = megabytes() * MIB;
    let mut random = fastrand::Rng::with_seed(49);
    let store = SqliteStore::open(&path, &SqliteOptions::default()).unwrap();
    let store = Arc::new(store);
    fill(&store, "t", bytes, &mut random).await;
    store.reclaim().await.unwrap();
    let acme = TenantId::from("acme");
    let n_threads = (bytes * 3 / 4).div_ceil(THREAD);
    let id = |n: u64| ThreadId::from(format!("t-{n}").as_str());
    let fifth = || (0..n_threads).filter(|n| n % 5 == 1);
    let shared: Arc<dyn Store> = store.clone();
    // A tenth of all threads has removed messages.
    let tenth = || (0..n_threads).filter(|n| n % 10 == 5);
    for n in tenth() {
        let mut author = Author::of(&shared, id(n), Timestamp::UNIX_EPOCH).await;
        for nth in 0..4 {
            let what = Removed::Item(format!("t-{n}-0-{nth}").as_str().into());
            author.commit(Command::Remove { what }).await;
        }
    }
    println!("\nmade {} MiB\n", size(&path) / MIB);
    println!("| step | seconds | MiB | MiB of memory |\n|---|---|---|---|");
    let taking = async {
        let mut samples = Samples::default();
        for n in fifth() {
            samples.append(store.samples_of_thread(&id(n)).await.unwrap());
        }
        for n in tenth() {
            samples.append(store.samples_of_removed(&id(n)).await.unwrap());
        }
        samples
    };
    let samples = awaited("samples", taking, |_| 0).await;
    let deleted = async {
        store.announce_deletions(bytes * 3 / 20);
        for n in fifth() {
            store.delete(&acme, &id(n), None).await.unwrap();
        }
    };
    awaited("delete a fifth of the threads", deleted, |()| 0).await;
    let erased = async {
        for n in tenth() {
            let erased = store.erase_removed(&id(n)).await.unwrap();
            assert_eq!(erased.entries, 4);
        }
    };
    awaited("erase removed messages of a tenth", erased, |()| 0).await;
    let returned = async { store.reclaim().await.unwrap() };
    let returned = awaited("return the space", returned, |it| it.bytes).await;
    assert_eq!(returned.is_log_empty, Some(true));
    let search = async { store.search_for(Arc::new(samples.clone())).await.unwrap() };
    let found = awaited("search", search, |_| size(&path)).await;
    println!("{found:?}");
    let compact = async { store.compact().await.unwrap() };
    awaited("write the file anew", compact, |()| size(&path)).await;
    let search = async { store.search_for(Arc::new(samples)).await.unwrap() };
    let found = awaited("search", search, |_| size(&path)).await;
    assert_eq!(found.left, 0, "{found:?}");
    let check = async { store.check().await.unwrap() };
    let found = awaited("check", check, |_| 0).await;
    assert_eq!(found, Vec::<String>::new());
}
