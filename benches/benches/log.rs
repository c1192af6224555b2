//! Measures the cost of runs: the store alone, the store with the runtime, and raw writes with a sync.
//!
//! The store alone gets the commits that the runtime makes: two for a plain run, five for three rounds of a pure tool,
//! 22 and 49 events. Events are made beforehand, so they are not in the figures. The processor time is that of the whole
//! process, in ticks of 10 ms. `cargo bench -p loomline-benches --bench log`
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    clippy::disallowed_types,
    reason = "a bench"
)]

use futures_util::StreamExt;
use loomline_benches::{THREE_ROUNDS, durable, percentile, post_request, runtime_over};
use runtime::{Append, NewRecord, Ownership, Store, Until};
use serde_json::json;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use stores::Upkeep as _;
use stores::{SqliteOptions, SqliteStore};
use timeline::{
    Command, Ending, Event, NewChunk, NewItem, NewThread, Seq, State, StepOutcome, ThreadId,
    Trigger,
};
use tokio::task::JoinSet;

/// The bytes of the raw loop, in the size of a block.
const RAW_BYTES: usize = 1_000;
/// The runs of each case, shared by its writers.
const RUNS: usize = 12_000;
/// The runs of a single writer.
const RUNS_ALONE: usize = 1_500;

/// A kind of run.
#[derive(Clone, Copy)]
enum Kind {
    Plain,
    ThreeRounds,
}

/// A run: the records of each commit, and their thread.
struct Run {
    thread: ThreadId,
    commits: Vec<Vec<NewRecord>>,
}

/// The ids of a run, as the runtime makes them.
struct Ids {
    run: usize,
    n: u32,
}

impl Ids {
    fn next(&mut self) -> String {
        self.n += 1;
        let (high, low) = ((self.run >> 16) & 0xffff, self.run);
        format!("01932c07-{high:04x}-7{:03x}-8a3b-{low:012x}", self.n)
    }
}

fn response(n_output: u32) -> timeline::Payload {
    json!({
        "model": "offline", "provider": "scripted", "stopReason": "end_turn",
        "usage": {"inputTokens": 12, "outputTokens": n_output},
    })
    .into()
}

fn substate(key: Option<&str>) -> Command {
    let chunk = NewChunk {
        chunk_type: timeline::chunk_type::CONTEXT_SUBSTATE.to_owned(),
        data: Some(json!({ "key": key }).into()),
    };
    Command::Emit {
        chunks: vec![chunk],
    }
}

/// The commands of a round with a tool, whose result has 1 KB.
fn round(n: usize, next: String) -> Vec<Command> {
    let call = format!("call_{n}_0123456789abcdef");
    let text = "0123456789abcdef".repeat(64);
    let part = |state: &str, output: Option<serde_json::Value>| {
        let mut part = json!({
            "type": "tool-lookup", "toolCallId": call, "state": state, "input": {"key": "a"},
        });
        if let (Some(output), Some(part)) = (output, part.as_object_mut()) {
            part.insert("output".into(), output);
        }
        part.into()
    };
    let outcome = StepOutcome {
        tool_calls: Some(json!([{"id": call, "name": "lookup"}]).into()),
        tool_execution_results: Some(json!([{"id": call, "state": "output-available"}]).into()),
        continue_loop: Some(true),
        agent_state: Some(json!({"step": n + 1}).into()),
        ..StepOutcome::default()
    };
    vec![
        Command::Respond {
            parts: vec![part("input-available", None)],
            response: response(12),
        },
        substate(Some("actions")),
        Command::PutPart {
            idx: 0,
            part: part("output-available", Some(json!({"key": "a", "text": text}))),
        },
        substate(None),
        Command::CompleteStep {
            outcome,
            next: Some(next.into()),
        },
    ]
}

/// The run of this number.
fn run(kind: Kind, number: usize) -> Run {
    let at = jiff::Timestamp::UNIX_EPOCH;
    let mut ids = Ids { run: number, n: 0 };
    let thread = NewThread::new(ids.next().as_str(), Some(&format!("thread-{number}")));
    let id = thread.id.clone();
    let content = json!([{"type": "input_text", "text": "say 50 words"}]);
    let begin = vec![
        Command::Create {
            thread,
            context_id: ids.next().into(),
        },
        Command::Start {
            trigger: Trigger::New(NewItem::user(ids.next(), content.into())),
            run: Some(json!({"agent": "demo"}).into()),
            execution_id: ids.next().into(),
            reaction_item_id: ids.next().into(),
            step_id: ids.next().into(),
            workflow_run_id: None,
        },
    ];
    let end = vec![
        Command::Respond {
            parts: vec![json!({"type": "output_text", "text": "word ".repeat(53)}).into()],
            response: response(53),
        },
        Command::CompleteStep {
            outcome: StepOutcome::default(),
            next: None,
        },
        Command::End {
            ending: Ending::Completed,
        },
    ];
    let n_rounds = match kind {
        Kind::Plain => 0,
        Kind::ThreeRounds => 3,
    };
    let mut commits = vec![begin];
    commits.extend((0..n_rounds).map(|n| round(n, ids.next())));
    commits.push(end);
    let mut state = State::default();
    let mut records = |commands: Vec<Command>| {
        let mut records = Vec::new();
        for command in commands {
            for event in state.decide(command, at).unwrap() {
                state.apply(&event);
                records.push(NewRecord::new(at, event).unwrap());
            }
        }
        records
    };
    Run {
        thread: id,
        commits: commits.into_iter().map(&mut records).collect(),
    }
}

/// Writes a run. Returns how long each commit took.
async fn write(store: &dyn Store, run: Run) -> Vec<Duration> {
    let mut commits = run.commits.into_iter();
    let first = commits.next().unwrap();
    let mut tail = Seq(first.len() as u64);
    let begun = Instant::now();
    let created = store
        .get_or_create(&"bench".into(), first, None, None)
        .await;
    let mut samples = vec![begun.elapsed()];
    let epoch = created.unwrap().epoch.unwrap();
    for records in commits {
        let append = Append {
            thread: run.thread.clone(),
            epoch,
            tail,
            records,
            token: None,
            is_limited: true,
            ownership: Ownership::Keep,
            unmoved: Vec::new(),
        };
        let begun = Instant::now();
        tail = store.append(append).await.unwrap().tail;
        samples.push(begun.elapsed());
    }
    samples
}

/// The processor time of this process so far, in microseconds.
fn processor_time() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    // The name of the process may have spaces; it ends with the last parenthesis.
    let fields = stat.rsplit_once(") ").unwrap().1;
    let ticks = fields.split(' ').skip(11).take(2);
    ticks
        .map(|ticks| ticks.parse::<f64>().unwrap())
        .sum::<f64>()
        * 10_000.0
}

/// How often threads of this process waited so far, until something woke them.
fn waits() -> f64 {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let of_task = |task: std::io::Result<std::fs::DirEntry>| {
        let status = std::fs::read_to_string(task.unwrap().path().join("status"));
        let status = status.unwrap_or_default();
        let mut lines = status.lines();
        let n = lines.find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        n.and_then(|n| n.trim().parse::<f64>().ok()).unwrap_or(0.0)
    };
    tasks.map(of_task).sum()
}

/// Writes blocks, each with a sync: over a file that has its size, or at the end of one that grows.
fn raw(directory: &Path, grows: bool) {
    let file = std::fs::File::create(directory.join("raw")).unwrap();
    let size = 8 << 20;
    if !grows {
        file.write_all_at(&vec![0; size], 0).unwrap();
    }
    file.sync_all().unwrap();
    let block = [7; RAW_BYTES];
    let (before, mut samples) = (processor_time(), Vec::new());
    for n in 0..3_000 {
        let begun = Instant::now();
        let offset = n * RAW_BYTES % (size - RAW_BYTES);
        file.write_all_at(&block, offset as u64).unwrap();
        file.sync_data().unwrap();
        samples.push(begun.elapsed());
    }
    let each = (processor_time() - before) / samples.len() as f64;
    println!(
        "raw write of {RAW_BYTES} B + fdatasync, {}: p50 {:.0} µs, best 2 % {:.0} µs, CPU {each:.0} µs",
        if grows {
            "the file grows"
        } else {
            "the file has its size"
        },
        percentile(&mut samples, 0.5),
        percentile(&mut samples, 0.02)
    );
}

/// Runs with as many writers, written to a store of their own.
async fn store_alone(directory: &Path, kind: Kind, n_writers: usize) {
    let path = directory.join(format!("{n_writers}.db"));
    let store = Arc::new(SqliteStore::open(&path, &SqliteOptions::default()).unwrap());
    let n_each = if n_writers == 1 {
        RUNS_ALONE
    } else {
        RUNS / n_writers
    };
    let n_runs = n_each * n_writers;
    let mut prepared: Vec<Vec<Run>> = (0..n_writers)
        .map(|w| (0..n_each).map(|n| run(kind, w * n_each + n)).collect())
        .collect();
    let n_events: usize = prepared
        .iter()
        .flatten()
        .flat_map(|run| &run.commits)
        .map(Vec::len)
        .sum();
    // A frame is a page of the write-ahead log with its header. These runs fit into it once.
    let frames = (n_writers == 1).then(|| {
        let first: Vec<Run> = prepared[0].drain(..200).collect();
        (first, store.activity().wal_bytes)
    });
    let mut n_frames = None;
    if let Some((first, before)) = frames {
        for run in first {
            write(&*store, run).await;
        }
        n_frames = Some((store.activity().wal_bytes - before) / 4_120 / 200);
    }
    let n_measured = prepared.iter().map(Vec::len).sum::<usize>() as f64;
    let (commits, cpu, begun) = (store.activity().n_commits, processor_time(), Instant::now());
    let mut set = JoinSet::new();
    for runs in prepared {
        let store = Arc::clone(&store);
        set.spawn(async move {
            let mut samples = Vec::new();
            for run in runs {
                samples.extend(write(&*store, run).await);
            }
            samples
        });
    }
    let mut samples: Vec<Duration> = set.join_all().await.into_iter().flatten().collect();
    let (seconds, cpu) = (begun.elapsed().as_secs_f64(), processor_time() - cpu);
    let commits = (store.activity().n_commits - commits) as f64 / n_measured;
    store.close().await.unwrap();
    let bytes = std::fs::metadata(&path).unwrap().len() / n_runs as u64;
    let events = n_events as f64 / n_runs as f64 * n_measured / seconds;
    print!(
        "  {n_writers:>3} writers: {:>6.0} runs/s {events:>7.0} events/s, CPU {:>4.0} µs a run, {commits:.2} commits, \
         commit p50 {:.0} µs, best 2 % {:.0} µs, {bytes} bytes",
        n_measured / seconds,
        cpu / n_measured,
        percentile(&mut samples, 0.5),
        percentile(&mut samples, 0.02)
    );
    println!(
        "{}",
        n_frames.map_or(String::new(), |n| format!(", {n} frames"))
    );
    std::fs::remove_file(path).unwrap();
}

/// Runs of an agent with as many threads at once, followed to their end. Each is the first run of its thread.
async fn with_the_runtime(directory: &Path, text: &'static str, n_threads: usize) {
    let directory = tempfile::tempdir_in(directory).unwrap();
    let path = directory.path().join("runtime.db");
    let store = Arc::new(SqliteStore::open(&path, &SqliteOptions::default()).unwrap());
    let runtime = Arc::new(runtime_over(Arc::clone(&store) as Arc<dyn Store>));
    let n_each = if n_threads == 1 { 500 } else { 60 };
    let n_runs = (n_each * n_threads) as f64;
    let (commits, cpu, begun) = (store.activity().n_commits, processor_time(), Instant::now());
    let n_waits = waits();
    let mut set = JoinSet::new();
    for w in 0..n_threads {
        let runtime = Arc::clone(&runtime);
        set.spawn(async move {
            for n in 0..n_each {
                durable(&runtime, &format!("{w}-{n}"), text).await;
            }
        });
    }
    set.join_all().await;
    let (seconds, cpu) = (begun.elapsed().as_secs_f64(), processor_time() - cpu);
    println!(
        "  {n_threads:>3} threads: {:>6.0} runs/s, CPU {:>4.0} µs a run, {:.2} commits, {:.1} waits of threads",
        n_runs / seconds,
        cpu / n_runs,
        (store.activity().n_commits - commits) as f64 / n_runs,
        (waits() - n_waits) / n_runs
    );
}

/// How long the first delta of an answer takes, from the request on.
async fn first_delta(directory: &Path) {
    let path = directory.join("first.db");
    let store = Arc::new(SqliteStore::open(&path, &SqliteOptions::default()).unwrap());
    let runtime = runtime_over(Arc::clone(&store) as Arc<dyn Store>);
    let mut samples = Vec::new();
    for n in 0..500 {
        let key = n.to_string();
        let begun = Instant::now();
        let accepted = runtime.react(post_request(&runtime, &key, "say 50 words"));
        let accepted = accepted.await.unwrap();
        let until = Until::Execution(accepted.execution_id.unwrap());
        let tenant = "bench".into();
        let follow = runtime.follow(&tenant, &key, accepted.after, until);
        let mut follow = follow.await.unwrap();
        let mut has_delta = false;
        while let Some(event) = follow.next().await {
            let followed = event.unwrap();
            let Event::ChunkEmitted { chunk_type, .. } = &followed.record.event else {
                continue;
            };
            if !has_delta && chunk_type == "text-delta" {
                samples.push(begun.elapsed());
                has_delta = true;
            }
        }
    }
    println!(
        "first delta of an answer: p50 {:.0} µs, best 2 % {:.0} µs",
        percentile(&mut samples, 0.5),
        percentile(&mut samples, 0.02)
    );
}

fn main() {
    let directory = tempfile::tempdir_in(".").unwrap();
    let directory = directory.path();
    let tokio = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    raw(directory, true);
    raw(directory, false);
    for (kind, name) in [
        (Kind::Plain, "plain run"),
        (Kind::ThreeRounds, "three rounds"),
    ] {
        println!("store alone, {name}");
        for n_writers in [1, 16, 50, 256] {
            tokio.block_on(store_alone(directory, kind, n_writers));
        }
    }
    for (text, name) in [
        ("say 50 words", "plain run"),
        (THREE_ROUNDS, "three rounds"),
    ] {
        println!("store and runtime, {name}");
        for n_threads in [1, 50] {
            tokio.block_on(with_the_runtime(directory, text, n_threads));
        }
    }
    tokio.block_on(first_delta(directory));
    raw(directory, false);
}
