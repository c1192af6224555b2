//! Backups, restores, exports and imports of a large store, with their times and memory. `scripts/soak-backup` runs
//! it with a gigabyte; alone it has some megabytes.
#![cfg(all(feature = "sqlite", target_os = "linux"))]
#![allow(clippy::unwrap_used, reason = "tests")]
#![allow(clippy::print_stdout, reason = "the table")]

use jiff::Timestamp;
use loomline_stores::{
    SqliteOptions, SqliteStore, back_up, export_tenant, import_tenant, restore_backup,
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
use timeline::{Command, NewItem, NewThread};

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
    store.delete(&acme, &"t-0".into()).await.unwrap();
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
