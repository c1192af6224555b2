//! Load that no well-behaved client makes, against a real server in its own process.
//!
//! The short form runs with all other tests: it asserts memory, descriptors, release of resources and that
//! `/healthz` answers. `scripts/soak-hostile` runs the full form, which also asserts times.
#![cfg(target_os = "linux")]
#![allow(
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a failed expectation is the test's failure, and a table of figures is its output"
)]

mod attacks;
mod monitor;
mod server;
mod wire;

use attacks::{Attack, Ends};
use monitor::{Figures, Monitor};
use server::Server;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

/// Reads how the suite is to run: `LOOMLINE_SOAK` for the full form, `LOOMLINE_BIN` for another program,
/// `LOOMLINE_ATTACK` for some attacks only, `LOOMLINE_WITHOUT_LIMITS` for a program that has none.
#[expect(
    clippy::disallowed_methods,
    reason = "the environment selects the form of the suite"
)]
pub(crate) fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// How much load the suite makes, and which limits it holds the server to.
pub(crate) struct Scale {
    /// Whether all counts are as the full form has them, and times are asserted.
    pub(crate) is_full: bool,
}

impl Scale {
    fn new() -> Self {
        Self {
            is_full: environment("LOOMLINE_SOAK").is_some(),
        }
    }

    /// A count of the full form, or a part of it.
    pub(crate) fn of(&self, full: usize, short: usize) -> usize {
        if self.is_full { full } else { short }
    }

    /// How long an attack lasts once it is set up.
    fn hold(&self) -> Duration {
        Duration::from_secs(if self.is_full { 10 } else { 2 })
    }
}

/// Within this time after an attack the server has released what the attack took.
const RELEASE: Duration = Duration::from_mins(1);
/// Maximum number of descriptors above the quiet server's that count as released.
const SLACK: usize = 24;
/// Maximum time for an answer of `/healthz` in the full form.
const HEALTH: Duration = Duration::from_millis(100);
/// Maximum p99 of the other tenant during an attack, as a multiple of its quiet p99.
const FACTOR: u32 = 5;

/// What an attack came to.
struct Row {
    name: &'static str,
    max_rss: u64,
    note: String,
    figures: Figures,
    /// The time until everything was released; none where it was not.
    released: Option<Duration>,
    rss_after: u64,
}

fn run(server: &Server, attack: &Attack, scale: &Scale) -> Row {
    (attack.prepare)(server, scale);
    let quiet = server.descriptors();
    let monitor = Monitor::start(server);
    let mut held = (attack.run)(server, scale);
    std::thread::sleep(scale.hold());
    let figures = monitor.stop();
    if attack.ends == Ends::ByClient {
        held.sockets.clear();
    }
    let begin = Instant::now();
    let is_released = || server.descriptors() <= quiet + SLACK && server.is_at_rest();
    let mut released = None;
    while begin.elapsed() < RELEASE {
        if is_released() {
            released = Some(begin.elapsed());
            break;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    drop(held.sockets);
    Row {
        name: attack.name,
        max_rss: attack.max_rss,
        note: held.note,
        figures,
        released,
        rss_after: server.rss(),
    }
}

fn table(quiet: &Figures, rows: &[Row]) -> String {
    let mut text = format!(
        "{:<34} {:>9} {:>9} {:>6} {:>9} {:>9} {:>9} {:>8}  note\n",
        "attack", "peak MiB", "after MiB", "fds", "healthz", "p50", "p99", "released"
    );
    let mut line = |name: &str, figures: &Figures, after: u64, released: &str, note: &str| {
        let _ = writeln!(
            text,
            "{name:<34} {:>9} {after:>9} {:>6} {:>6} ms {:>6} ms {:>6} ms {released:>8}  {note}",
            figures.rss,
            figures.descriptors,
            figures.health.as_millis(),
            figures.p50().as_millis(),
            figures.p99().as_millis(),
        );
    };
    line("(none)", quiet, quiet.rss, "", "");
    for row in rows {
        let released = row.released.map_or("never".to_owned(), |it| {
            format!("{:.1} s", it.as_secs_f32())
        });
        line(row.name, &row.figures, row.rss_after, &released, &row.note);
    }
    text
}

/// Everything that a row breaks.
fn breaches(row: &Row, quiet: &Figures, scale: &Scale) -> Vec<String> {
    let mut all = Vec::new();
    let mut check = |is_held: bool, what: String| {
        if !is_held {
            all.push(format!("{}: {what}", row.name));
        }
    };
    let figures = &row.figures;
    check(
        figures.rss <= row.max_rss,
        format!("{} MiB of memory, allowed {}", figures.rss, row.max_rss),
    );
    check(
        row.released.is_some(),
        "resources are still held".to_owned(),
    );
    check(
        figures.n_unhealthy == 0,
        format!("/healthz failed {} times", figures.n_unhealthy),
    );
    check(
        figures.n_refused == 0,
        format!("the other tenant was refused {} times", figures.n_refused),
    );
    if scale.is_full {
        let allowed = quiet.p99() * FACTOR;
        check(
            figures.health <= HEALTH,
            format!("/healthz took {:?}", figures.health),
        );
        check(
            figures.p99() <= allowed,
            format!(
                "the other tenant's p99 is {:?}, allowed {allowed:?}",
                figures.p99()
            ),
        );
    }
    all
}

#[test]
fn hostile_load_keeps_the_server_within_its_budgets() {
    let scale = Scale::new();
    let server = Server::start();
    let monitor = Monitor::start(&server);
    std::thread::sleep(scale.hold());
    let quiet = monitor.stop();
    let wanted = environment("LOOMLINE_ATTACK").unwrap_or_default();
    let chosen = attacks::all().into_iter();
    let chosen = chosen.filter(|attack| attack.name.contains(&wanted));
    let rows: Vec<Row> = chosen.map(|attack| run(&server, &attack, &scale)).collect();
    println!("{}", table(&quiet, &rows));
    assert!(!rows.is_empty(), "no attack is named like {wanted:?}");
    let breaches: Vec<String> = rows
        .iter()
        .flat_map(|row| breaches(row, &quiet, &scale))
        .collect();
    assert!(breaches.is_empty(), "{}", breaches.join("\n"));
}
