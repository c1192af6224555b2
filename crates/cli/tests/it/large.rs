//! A server over a store of many threads and one long thread: its start, its first page, its memory.
//!
//! `scripts/soak-large` has 100,000 threads and a thread of a gigabyte, and asserts times. The tests are short.
#![allow(clippy::print_stdout, reason = "the table")]

use crate::support::cli::Home;
use crate::support::http::get;
use crate::support::server::Server;
use jiff::Timestamp;
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::{Append, NewRecord, Ownership, Store};
use stores::{SqliteOptions, SqliteStore};
use timeline::{Command, Ending, NewItem, NewThread, Seq, State, StepOutcome, Trigger};
use tokio::task::JoinSet;

/// The tenant of a server without a configuration.
const TENANT: &str = "dev";
/// The text of one answer, in bytes.
const ANSWER: usize = 4_000;
/// The runs in one append.
const RUNS: usize = 64;
/// A server that is not ready after this time never is.
const DEADLINE: Duration = Duration::from_mins(1);

/// What `scripts/soak-large` asks for: the number of threads, and the megabytes of the long one.
fn sizes() -> Option<(usize, u32)> {
    #[allow(clippy::disallowed_methods, reason = "a soak sets it")]
    let sizes = std::env::var("LOOMLINE_LARGE").ok()?;
    let (threads, megabytes) = sizes.split_once(' ').unwrap();
    Some((threads.parse().unwrap(), megabytes.parse().unwrap()))
}

/// The commands of a run whose answer has this text.
fn run(id: &str, text: &str) -> [Command; 4] {
    let content = json!([{"type": "input_text", "text": "Go on."}]);
    [
        Command::Start {
            trigger: Trigger::New(NewItem::user(&*format!("{id}-t"), content.into())),
            run: None,
            execution_id: format!("{id}-e").into(),
            reaction_item_id: format!("{id}-r").into(),
            step_id: format!("{id}-s").into(),
            workflow_run_id: None,
        },
        Command::Respond {
            parts: vec![json!({"type": "output_text", "text": text}).into()],
            response: json!({"model": "offline", "provider": "scripted"}).into(),
        },
        Command::CompleteStep {
            outcome: StepOutcome::default(),
            next: None,
        },
        Command::End {
            ending: Ending::Completed,
        },
    ]
}

/// The records of the events of these commands.
fn records(state: &mut State, commands: impl IntoIterator<Item = Command>) -> Vec<NewRecord> {
    let at = Timestamp::UNIX_EPOCH;
    let mut records = Vec::new();
    for command in commands {
        for event in state.decide(command, at).unwrap() {
            state.apply(&event);
            records.push(NewRecord::new(at, event).unwrap());
        }
    }
    records
}

fn create(id: &str) -> Command {
    Command::Create {
        thread: NewThread::new(id, Some(id)),
        context_id: format!("{id}-c").into(),
    }
}

async fn add_threads(store: &Arc<dyn Store>, n: usize) {
    let mut adding = JoinSet::new();
    for writer in 0..32 {
        let store = Arc::clone(store);
        adding.spawn(async move {
            for n in (writer..n).step_by(32) {
                let id = format!("t-{n}");
                let commands = std::iter::once(create(&id)).chain(run(&id, "An answer."));
                let first = records(&mut State::default(), commands);
                let created = store.get_or_create(&TENANT.into(), first, None, None).await;
                created.unwrap();
            }
        });
    }
    adding.join_all().await;
}

/// Adds a thread with answers of this size in all. Returns the id of the last reaction.
async fn add_long_thread(store: &Arc<dyn Store>, bytes: usize) -> String {
    let mut random = fastrand::Rng::with_seed(27);
    let mut state = State::default();
    let first = records(&mut state, [create("long")]);
    let mut tail = Seq(first.len() as u64);
    let created = store.get_or_create(&TENANT.into(), first, None, None).await;
    let epoch = created.unwrap().epoch.unwrap();
    let n_runs = bytes / ANSWER;
    for first in (0..n_runs).step_by(RUNS) {
        let runs = (first..(first + RUNS).min(n_runs)).flat_map(|n| {
            let text: String = (0..ANSWER).map(|_| random.lowercase()).collect();
            run(&format!("long-{n}"), &text)
        });
        let append = Append {
            thread: "long".into(),
            epoch,
            tail,
            records: records(&mut state, runs),
            token: None,
            is_limited: true,
            ownership: Ownership::Keep,
            unmoved: Vec::new(),
        };
        tail = store.append(append).await.unwrap().tail;
    }
    format!("long-{}-r", n_runs - 1)
}

/// A line of the status of a process, in MB.
fn memory(server: &Server, name: &str) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    let kib: f64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kib * 1024.0 / 1e6
}

/// The bytes that a process has read, in MB.
fn read(server: &Server) -> f64 {
    let io = std::fs::read_to_string(format!("/proc/{}/io", server.pid())).unwrap();
    let bytes = io.lines().find_map(|line| line.strip_prefix("rchar: "));
    bytes.unwrap().parse::<f64>().unwrap() / 1e6
}

/// Milliseconds.
fn since(begun: Instant) -> f64 {
    begun.elapsed().as_secs_f64() * 1e3
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_store_starts_and_shows_the_end_of_a_long_thread_in_little_memory() {
    let soak = sizes();
    let (n_threads, megabytes) = soak.unwrap_or((1_000, 20));
    let home = Home::new();
    let path = home.data().join("loomline.db");
    let begun = Instant::now();
    let store = SqliteStore::open(&path, &SqliteOptions::default()).unwrap();
    let store: Arc<dyn Store> = Arc::new(store);
    add_threads(&store, n_threads).await;
    let last = add_long_thread(&store, megabytes as usize * 1_000_000).await;
    store.close().await.unwrap();
    drop(store);
    let file = std::fs::metadata(&path).unwrap().len() / 1_000_000;
    println!(
        "{n_threads} threads and one of {megabytes} MB: {file} MB, made in {:.1} s",
        begun.elapsed().as_secs_f64()
    );

    let empty = Home::new();
    let mut starts = Vec::new();
    let mut start = |home: &Home| {
        let begun = Instant::now();
        let server = home.server();
        let listening = since(begun);
        while get(&server, "/readyz", "application/json").status != 200 {
            assert!(begun.elapsed() < DEADLINE, "the server is not ready");
            std::thread::sleep(Duration::from_millis(1));
        }
        starts.push((listening, since(begun), memory(&server, "VmRSS:")));
        server
    };
    start(&empty).stop();
    start(&home).stop();
    let server = start(&home);
    println!(
        "start, ms until it listens and is ready, MB: empty, large, large again: {starts:.1?}"
    );

    let before = memory(&server, "VmHWM:");
    let mut pages = Vec::new();
    let mut page = |path: &str, needle: &str| {
        let (begun, before) = (Instant::now(), read(&server));
        let answer = get(&server, path, "application/json");
        let more = read(&server) - before;
        pages.push((path.to_owned(), since(begun), more));
        assert_eq!(answer.status, 200, "{path}");
        assert!(answer.text.contains(needle), "{path}");
    };
    page("/api/v1/threads/long/messages?limit=20", &last);
    page("/api/v1/threads/long/runs?limit=20", &last);
    page("/api/v1/threads/long/messages?limit=20", &last);
    page("/api/v1/threads?limit=50", "long");
    let more = memory(&server, "VmHWM:") - before;
    println!("pages, ms, MB that were read: {pages:.1?}; {more:.1} MB of memory");

    assert!(more < 50.0, "{more} MB");
    for (path, _, more) in pages.iter().filter(|(path, ..)| path.contains("/long/")) {
        // A page does not read the thread.
        assert!(*more < 2.0, "{path} reads {more} MB");
    }
    if soak.is_some() {
        let (listens, ..) = starts[2];
        assert!(listens <= 100.0, "the start takes {listens} ms");
        for (path, ms, _) in pages {
            assert!(ms <= 50.0, "{path} takes {ms} ms");
        }
    }
}
