//! Power losses. Afterwards the store has everything that it acknowledged, and no half of anything else.
//!
//! A process of its own writes to a store until `lose_power.c`, which it has loaded, loses the power for
//! it. That library decides which changes since the last sync are on the disk. Each store survives several
//! losses, also in mid-recovery: the tests look at copies. A failure prints the store's seed;
//! `LOOMLINE_POWER_SEED=<n> cargo test -p loomline-stores --test power` runs that store alone. The seed
//! decides what is written, at which operation the power is lost, and the fate of each sector. Which of the
//! concurrent requests share a commit is up to the scheduler.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]
#![allow(clippy::print_stdout, reason = "seeds and counts")]

mod backups;
mod known;
mod migration;
mod process;
#[path = "../older_stores/shown.rs"]
mod shown;
mod store_after;

use known::Known;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

const LOSSES_PER_STORE: u64 = 5;
/// A process that loses the power after more operations writes much more, for SQLite's own checkpoints.
const LATE: u64 = 20_000;
const DATABASE: &str = "loomline.db";
/// The beginning of the library's last words.
const LOST: &str = "lost ";

/// The settings of the tests, from the environment.
fn told(name: &str) -> Option<String> {
    #[allow(clippy::disallowed_methods, reason = "a test may be told its seed")]
    std::env::var(name).ok()
}

fn told_number(name: &str) -> Option<u64> {
    told(name).map(|number| number.parse().unwrap())
}

/// A directory with the library that loses the power, a store, and copies of it.
struct Place {
    directory: TempDir,
}

impl Place {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/power/lose_power.c");
        let options = "-shared -fPIC -O2 -std=gnu17 -Wall -Wextra -Werror -pthread";
        let compiled = Command::new("cc")
            .args(options.split(' '))
            .arg("-o")
            .arg(directory.path().join("lose_power.so"))
            .arg(source)
            .output()
            .expect("this test needs a C compiler that is called `cc`");
        assert!(compiled.status.success(), "{compiled:?}");
        Self { directory }
    }

    /// An empty directory, absolute and without links.
    fn empty(&self, name: &str) -> PathBuf {
        let path = self.directory.path().canonicalize().unwrap().join(name);
        if path.exists() {
            std::fs::remove_dir_all(&path).unwrap();
        }
        std::fs::create_dir(&path).unwrap();
        path
    }

    fn copy(&self, of: &Path) -> PathBuf {
        let copy = self.empty("copy");
        for entry in std::fs::read_dir(of).unwrap() {
            let entry = entry.unwrap();
            std::fs::copy(entry.path(), copy.join(entry.file_name())).unwrap();
        }
        copy
    }
}

/// What happened to a store.
#[derive(Default)]
struct Report {
    n_losses: u64,
    n_acknowledged: usize,
    // Sectors kept, undone and torn, and entries of the directory undone.
    fates: [u64; 4],
    findings: Vec<String>,
}

impl Report {
    /// Adds the fates that the library has told.
    fn count(&mut self, said: &str) {
        let fates = said.lines().find_map(|line| line.strip_prefix(LOST));
        for (sum, n) in self.fates.iter_mut().zip(fates.unwrap().split(' ')) {
            *sum += n.parse::<u64>().unwrap();
        }
    }

    fn add(&mut self, other: Self) {
        self.n_losses += other.n_losses;
        self.n_acknowledged += other.n_acknowledged;
        for (sum, n) in self.fates.iter_mut().zip(other.fates) {
            *sum += n;
        }
        self.findings.extend(other.findings);
    }

    fn print(&self, of: &str) {
        let [kept, undone, torn, entries] = self.fates;
        println!(
            "{of}: {} losses, {} writes acknowledged; sectors {kept} kept, {undone} undone, {torn} torn; \
             {entries} directory entries undone; {} findings",
            self.n_losses,
            self.n_acknowledged,
            self.findings.len()
        );
        for finding in &self.findings {
            println!("  {finding}");
        }
    }
}

/// One store with its losses, up to the first finding. Syncs of files whose paths end with `lie` have no
/// effect.
fn survived(place: &Place, seed: u64, lie: &str) -> Report {
    let mut random = fastrand::Rng::with_seed(seed);
    let store = place.empty("store");
    let mut known = Known::default();
    let mut report = Report::default();
    for n in 0..LOSSES_PER_STORE {
        // Early losses meet the creation of a store, or its recovery from the loss before.
        let most = if seed.is_multiple_of(10) {
            4 * LATE
        } else {
            [20, 60, 400, 4_000, LATE][random.usize(..5)]
        };
        let at = random.u64(1..most);
        let loss = random.u64(..);
        let found = lost(place, &store, at, loss, lie).and_then(|said| {
            report.count(&said);
            known.learn(&said);
            let copy = place.copy(&store).join(DATABASE);
            store_after::findings(&copy, &mut known)
        });
        report.n_losses += 1;
        if let Err(finding) = found {
            let finding = format!("seed {seed}, loss {n} at operation {at}: {finding}");
            report.findings.push(finding);
            break;
        }
    }
    report.n_acknowledged = known.n_acknowledged;
    report
}

/// The end of a process.
enum End {
    /// The power was lost.
    Lost,
    /// The process was done before.
    Done,
}

/// Lets a process write until the power is lost. Returns what it said.
fn lost(place: &Place, store: &Path, at: u64, seed: u64, lie: &str) -> Result<String, String> {
    let loss = Loss {
        job: "write",
        directory: store,
        at,
        seed,
        lie,
    };
    match loss.of_process(place, &[])? {
        (End::Lost, said) => Ok(said),
        (End::Done, _) => Err("the process ended by itself".into()),
    }
}

/// A power loss for the files of one directory, at an operation of a process.
struct Loss<'a> {
    job: &'a str,
    directory: &'a Path,
    at: u64,
    seed: u64,
    lie: &'a str,
}

impl Loss<'_> {
    /// Starts the process, with more variables. Returns how it ended and what it said.
    fn of_process(
        &self,
        place: &Place,
        variables: &[(&str, &Path)],
    ) -> Result<(End, String), String> {
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["no_power_loss_takes_what_was_acknowledged", "--exact"])
            .args(["--nocapture", "--test-threads=1"])
            .env("LD_PRELOAD", place.directory.path().join("lose_power.so"))
            .env("LOSE_POWER_JOB", self.job)
            .env("LOSE_POWER_DIR", self.directory)
            .env("LOSE_POWER_AT", self.at.to_string())
            .env("LOSE_POWER_SEED", self.seed.to_string())
            .env("LOSE_POWER_LIE", self.lie)
            .envs(variables.iter().copied())
            .output()
            .unwrap();
        // A line that is cut off may end in mid-character.
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        if output.status.success() {
            return Ok((End::Done, said));
        }
        if output.status.signal() == Some(9) && said.lines().any(|line| line.starts_with(LOST)) {
            return Ok((End::Lost, said));
        }
        let why = String::from_utf8_lossy(&output.stderr);
        Err(format!(
            "the process ended by itself, {}: {said} {why}",
            output.status
        ))
    }
}

/// The work of the process that loses its power.
fn work(directory: &str) {
    match told("LOSE_POWER_JOB").as_deref() {
        Some("migrate") => migration::migrate(directory),
        Some("back up") => backups::back_up_again(directory),
        _ => process::write_until_the_power_is_lost(directory),
    }
}

/// The number of losses to simulate, and of stores for them.
fn n_losses(default: u64) -> u64 {
    told_number("LOOMLINE_POWER_LOSSES").unwrap_or(default)
}

#[test]
fn no_power_loss_takes_what_was_acknowledged() {
    if let Some(directory) = told("LOSE_POWER_DIR") {
        return work(&directory);
    }
    let place = Place::new();
    let one = told_number("LOOMLINE_POWER_SEED");
    let seeds = one.map_or(1..n_losses(25).div_ceil(LOSSES_PER_STORE) + 1, |seed| {
        seed..seed + 1
    });
    let mut all = Report::default();
    for seed in seeds {
        let report = survived(&place, seed, "");
        report.print(&format!("seed {seed}"));
        all.add(report);
    }
    all.print("all");
    assert!(all.findings.is_empty(), "{:#?}", all.findings);
    assert!(one.is_some() || (all.n_acknowledged > 0 && all.fates[..3].iter().all(|n| *n > 0)));
}

/// Shows that the test above would find a sync that is missing.
#[test]
fn syncs_without_effect_lose_what_was_acknowledged() {
    let place = Place::new();
    let lies = [
        ("-wal", "has lost events"),
        (DATABASE, ""),
        ("/store", "has lost events"),
    ];
    for (lie, expected) in lies {
        let shows = |report: &Report| report.findings.iter().any(|it| it.contains(expected));
        let report = (1..=30).map(|seed| survived(&place, seed, lie)).find(shows);
        let report = report.unwrap_or_else(|| panic!("syncs of {lie} seem to be needless"));
        report.print(&format!("syncs of {lie} have no effect"));
    }
}
