//! Changes single bytes of a stopped store and looks at what is found, and at what is served.
//!
//! `LOOMLINE_FLIPS` is the number of changes, `LOOMLINE_FLIP_FROM` the seed of the first, `LOOMLINE_FLIP` that of a
//! single one; see `scripts/soak-flips`.
#![allow(clippy::unwrap_used, reason = "tests")]
#![allow(
    clippy::disallowed_methods,
    reason = "the environment says how many changes"
)]

mod reads;
mod written;

use loomline_stores::{OpenMode, SqliteOptions, SqliteStore};
use reads::{Read, Reads, reads};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;
use store::{Store as _, StoreError};

/// How long a store may take to be looked at.
const PATIENCE: Duration = Duration::from_mins(1);

/// The files of a store, and its reads.
struct Original {
    name: &'static str,
    files: Vec<(&'static str, Vec<u8>)>,
    reads: Reads,
    /// The reads without the last transaction of its write-ahead log, without the last two, up to [`UNSYNCED`]. A power
    /// loss leaves the same bytes as a change of these transactions.
    before_last: Vec<Reads>,
}

/// A change of one byte.
#[derive(Clone, Copy, Debug)]
struct Flip {
    file: usize,
    at: usize,
    mask: u8,
}

/// What came of a change.
#[derive(Debug)]
enum Outcome {
    /// The store does not open.
    Refused,
    /// The check has findings, or fails.
    Found,
    /// The check has findings, and until then a place, a list or a derived value is another.
    Misled,
    /// Everything is as before.
    Harmless,
    /// What should not be.
    Fault(String),
}

fn options(mode: OpenMode) -> SqliteOptions {
    SqliteOptions {
        mode,
        n_readers: NonZeroUsize::new(1),
        cache_kib: Some(2048),
        ..SqliteOptions::default()
    }
}

fn write(directory: &Path, files: &[(&str, Vec<u8>)]) -> PathBuf {
    for (suffix, bytes) in files {
        std::fs::write(directory.join(format!("loomline.db{suffix}")), bytes).unwrap();
    }
    directory.join("loomline.db")
}

/// Runs a look at a store, and gives up if it hangs.
fn within_patience<T: Send + 'static>(look: impl Future<Output = T> + Send + 'static) -> Option<T> {
    let (answer, answered) = mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let _ = answer.send(runtime.block_on(look));
    });
    answered.recv_timeout(PATIENCE).ok()
}

/// The reads of content. Each gives the written value, an error or nothing. Other reads give positions, lists and
/// derived values; the check must find their changes.
const CONTENT: [&str; 9] = [
    "events",
    "facts",
    "row",
    "find",
    "object",
    "content",
    "checkpoint",
    "state",
    "answer",
];

/// An answer that is not what was written.
enum Change {
    /// Content that nobody wrote.
    Content(String),
    /// A place, a list or a derived value.
    Place(String),
}

/// What is served, if it is not what was written. Content comes first.
fn changed(found: &Reads, original: &Reads) -> Option<Change> {
    let differs = |(name, value): (&String, &Read)| {
        let kind = name.split(' ').next().unwrap_or_default();
        let is_content = CONTENT.contains(&kind);
        match (value, &original[name]) {
            (Err(error), _) if error == "Closed" => {
                Some(Change::Content(format!("{name}: a reader panicked")))
            }
            (Ok(value), Ok(expected)) if value != expected => {
                let text = format!("{name}: served {value}, expected {expected}");
                Some(if is_content && value != "None" {
                    Change::Content(text)
                } else {
                    Change::Place(text)
                })
            }
            (Ok(value), Err(_)) => Some(Change::Content(format!("{name}: served {value}"))),
            _ => None,
        }
    };
    let changes = || found.iter().filter_map(differs);
    let is_content = |change: &Change| matches!(change, Change::Content(_));
    changes().find(is_content).or_else(|| changes().next())
}

fn is_missing(error: &StoreError) -> bool {
    matches!(
        error,
        StoreError::NotFound | StoreError::NoSuchObject { .. }
    )
}

async fn looked_at(path: PathBuf, original: Arc<Original>) -> Outcome {
    let checked = match SqliteStore::open(&path, &options(OpenMode::ReadOnly)) {
        Err(_) => None,
        Ok(store) => {
            let findings = store.check().await;
            if matches!(findings, Err(StoreError::Closed)) {
                return Outcome::Fault("the check panicked".to_owned());
            }
            let found = reads(&store).await;
            let is_torn = findings
                .as_ref()
                .is_ok_and(|it| it.iter().any(|one| one.contains("its last transactions")));
            if is_torn && original.before_last.contains(&found) {
                return Outcome::Found;
            }
            let is_sound = findings.as_ref().is_ok_and(Vec::is_empty);
            match changed(&found, &original.reads) {
                Some(Change::Content(change)) => {
                    return Outcome::Fault(format!("{change}; the check says {findings:?}"));
                }
                Some(Change::Place(change)) if is_sound => {
                    return Outcome::Fault(format!("{change}; nothing is found"));
                }
                Some(Change::Place(_)) => return Outcome::Misled,
                None => {}
            }
            let error = found.into_iter().find_map(|(name, read)| {
                let is_expected = original.reads[&name].is_err();
                Some((name, read.err().filter(|_| !is_expected)?))
            });
            if let (true, Some(error)) = (is_sound, error) {
                return Outcome::Fault(format!("nothing is found, but {error:?}"));
            }
            Some(is_sound)
        }
    };
    // A server opens the store for writing.
    match SqliteStore::open(&path, &options(OpenMode::ReadWrite)) {
        Err(error) if is_missing(&error) => Outcome::Fault(error.to_string()),
        Err(_) if checked != Some(true) => Outcome::Refused,
        Err(error) => Outcome::Fault(format!("nothing is found, but it is refused: {error}")),
        Ok(store) => {
            let found = reads(&store).await;
            let change = changed(&found, &original.reads);
            store.close().await.ok();
            match (change, checked) {
                (Some(Change::Place(_)), Some(false) | None) => Outcome::Misled,
                (Some(Change::Content(change) | Change::Place(change)), _) => {
                    Outcome::Fault(format!("a server: {change}"))
                }
                (None, Some(true)) => Outcome::Harmless,
                (None, _) => Outcome::Found,
            }
        }
    }
}

fn outcome(original: &Arc<Original>, flip: Flip) -> Outcome {
    let directory = tempfile::tempdir().unwrap();
    let mut files = original.files.clone();
    files[flip.file].1[flip.at] ^= flip.mask;
    let path = write(directory.path(), &files);
    let look = looked_at(path, original.clone());
    within_patience(look).unwrap_or_else(|| Outcome::Fault("it hangs".to_owned()))
}

fn original(name: &'static str, files: Vec<(&'static str, Vec<u8>)>) -> Arc<Original> {
    let directory = tempfile::tempdir().unwrap();
    let path = write(directory.path(), &files);
    let look = async move {
        let store = SqliteStore::open(&path, &options(OpenMode::ReadOnly)).unwrap();
        assert_eq!(store.check().await.unwrap(), Vec::<String>::new());
        reads(&store).await
    };
    let reads = within_patience(look).unwrap();
    let has_log = files.len() > 1;
    let before_last = (1..=UNSYNCED).filter(|_| has_log).map(|n| {
        let mut shorter = files.clone();
        cut_last(&mut shorter[1].1, n);
        let directory = tempfile::tempdir().unwrap();
        let path = write(directory.path(), &shorter);
        let look = async move {
            let store = SqliteStore::open(&path, &options(OpenMode::ReadOnly)).unwrap();
            reads::reads(&store).await
        };
        within_patience(look).unwrap()
    });
    let before_last = before_last.collect();
    Arc::new(Original {
        name,
        files,
        reads,
        before_last,
    })
}

/// The number of the last transactions that a power loss can break. The store has the same number.
const UNSYNCED: usize = 4;

/// Cuts the last `n` transactions off a write-ahead log.
fn cut_last(log: &mut Vec<u8>, n: usize) {
    let word = |at: usize| u32::from_be_bytes(log[at..at + 4].try_into().unwrap());
    let frame = word(8) as usize + 24;
    let frames: Vec<_> = (32..log.len()).step_by(frame).collect();
    let mut ends = frames.iter().rev().filter(|at| word(**at + 4) != 0);
    let before = ends.nth(n).map_or(32, |at| at + frame);
    log.truncate(before);
}

fn flips(original: &Original, seed: u64) -> Flip {
    let mut random = fastrand::Rng::with_seed(seed);
    let total: usize = original.files.iter().map(|(_, bytes)| bytes.len()).sum();
    let mut anywhere = || {
        let (mut at, mut file) = (random.usize(..total), 0);
        while at >= original.files[file].1.len() {
            at -= original.files[file].1.len();
            file += 1;
        }
        (file, at)
    };
    let (mut file, mut at) = anywhere();
    // Most bytes are free space: half of the changes are elsewhere.
    while seed % 4 < 2 && original.files[file].1[at] == 0 {
        (file, at) = anywhere();
    }
    Flip {
        file,
        at,
        mask: random.u8(1..),
    }
}

#[test]
fn a_changed_byte_is_found_and_never_served() {
    let number = |name: &str| std::env::var(name).ok().and_then(|it| it.parse().ok());
    let n_flips: u64 = number("LOOMLINE_FLIPS").unwrap_or(240);
    let first = number("LOOMLINE_FLIP_FROM").unwrap_or(0);
    let one = number("LOOMLINE_FLIP").map(|seed: u64| seed..seed + 1);
    let seeds = one.unwrap_or(first..first + n_flips);
    let [closed, killed] = written::stores();
    let originals = [original("closed", closed), original("killed", killed)];
    let (mut n_refused, mut n_found, mut n_misled, mut n_harmless) = (0, 0, 0, 0);
    let mut faults = Vec::new();
    for seed in seeds {
        let original = &originals[(seed % 2) as usize];
        let flip = flips(original, seed);
        match outcome(original, flip) {
            Outcome::Refused => n_refused += 1,
            Outcome::Found => n_found += 1,
            Outcome::Misled => n_misled += 1,
            Outcome::Harmless => n_harmless += 1,
            Outcome::Fault(fault) => {
                let file = original.files[flip.file].0;
                let (name, at, mask) = (original.name, flip.at, flip.mask);
                let fault: String = fault.chars().take(2000).collect();
                faults.push(format!(
                    "LOOMLINE_FLIP={seed} ({name}, file{file:?} byte {at} mask {mask:#x}): {fault}"
                ));
            }
        }
    }
    println!(
        "refused {n_refused}, found {n_found}, found with other places {n_misled}, harmless {n_harmless}, faults {}",
        faults.len()
    );
    for fault in &faults {
        println!("{fault}");
    }
    assert!(faults.is_empty(), "{} faults", faults.len());
}
