//! What a run costs on the disk.

use super::{open, place};
use jiff::Timestamp;
use loomline_stores::Upkeep as _;
use rusqlite::Connection;
use serde_json::{Value, json};
use std::path::Path;
use store::{Append, NewRecord, Ownership, Store};
use timeline::{Command, Ending, NewChunk, NewItem, NewThread, Seq, State, StepOutcome, Trigger};

/// The ids of a thread, as the runtime makes them.
struct Ids(u32, u32);

impl Ids {
    fn next(&mut self) -> String {
        self.1 += 1;
        format!("01932c07-{:04x}-7{:03x}-8a3b-4d5e6f708192", self.0, self.1)
    }
}

/// A thread with one plain run, in the two commits of the runtime. The model streams 265 characters in `n_deltas` chunks.
async fn plain_run(store: &dyn Store, n: u32, n_deltas: u32) {
    let at = Timestamp::UNIX_EPOCH;
    let mut ids = Ids(n, 0);
    let thread = NewThread::new(ids.next().as_str(), Some(&format!("thread-{n}")));
    let id = thread.id.clone();
    let content = json!([{"type": "input_text", "text": "say 50 words"}]);
    let create = Command::Create {
        thread,
        context_id: ids.next().into(),
    };
    let start = Command::Start {
        trigger: Trigger::New(NewItem::user(ids.next(), content.into())),
        run: Some(json!({"agent": "demo"}).into()),
        execution_id: ids.next().into(),
        reaction_item_id: ids.next().into(),
        step_id: ids.next().into(),
        workflow_run_id: None,
    };
    let word = "word ";
    let text = word.repeat(53);
    let emit = |chunk_type: &str, data: Value| Command::Emit {
        chunks: vec![NewChunk {
            chunk_type: chunk_type.to_owned(),
            data: Some(data.into()),
        }],
    };
    let mut end_of_run = vec![emit("text-start", json!({"id": "t0-0"}))];
    end_of_run.extend((0..n_deltas).map(|n| {
        let words = 53 / n_deltas + u32::from(n < 53 % n_deltas);
        let delta = word.repeat(words as usize);
        emit("text-delta", json!({"id": "t0-0", "delta": delta}))
    }));
    end_of_run.push(emit("text-end", json!({"id": "t0-0"})));
    let respond = Command::Respond {
        parts: vec![json!({"type": "output_text", "text": text}).into()],
        response: json!({
            "model": "offline", "provider": "scripted", "stopReason": "end_turn",
            "usage": {"inputTokens": 12, "outputTokens": 53},
        })
        .into(),
    };
    let complete = Command::CompleteStep {
        outcome: StepOutcome::default(),
        next: None,
    };
    let end = Command::End {
        ending: Ending::Completed,
    };
    end_of_run.extend([respond, complete, end]);
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
    let first = records(vec![create, start]);
    let tail = Seq(first.len() as u64);
    let created = store.get_or_create(&"acme".into(), first, None, None).await;
    let append = Append {
        thread: id,
        epoch: created.unwrap().epoch.unwrap(),
        tail,
        records: records(end_of_run),
        token: None,
        is_limited: true,
        ownership: Ownership::Keep,
        unmoved: Vec::new(),
    };
    store.append(append).await.unwrap();
}

/// The bytes that each table and index uses in its pages.
fn payload(path: &Path) -> Vec<(String, u64)> {
    let conn = Connection::open(path).unwrap();
    let sql = "SELECT name, sum(payload + 4 * ncell) FROM dbstat GROUP BY name ORDER BY 2 DESC";
    let mut select = conn.prepare(sql).unwrap();
    let rows = select.query_map([], |row| Ok((row.get(0)?, row.get::<_, i64>(1)?)));
    rows.unwrap()
        .map(Result::unwrap)
        .map(|(name, bytes)| (name, bytes.unsigned_abs()))
        .collect()
}

/// What a run takes of the store.
struct Cost {
    /// The bytes of the file.
    bytes: u64,
    /// The frames of the write-ahead log.
    frames: u64,
    /// The bytes of each table and index.
    tables: Vec<(String, u64)>,
}

async fn cost_of_a_run(n_deltas: u32) -> Cost {
    const RUNS: u32 = 1000;
    let (_directory, path) = place();
    let store = open(&path);
    plain_run(&*store, 0, n_deltas).await;
    store.close().await.unwrap();
    let empty = std::fs::metadata(&path).unwrap().len();
    let store = open(&path);
    let mut frames = 0;
    for n in 1..=RUNS {
        plain_run(&*store, n, n_deltas).await;
        if n == 200 {
            // A frame is a page of the write-ahead log with its header. Later the log begins anew.
            frames = store.activity().wal_bytes / (4096 + 24) / 200;
        }
    }
    store.close().await.unwrap();
    let bytes = (std::fs::metadata(&path).unwrap().len() - empty) / u64::from(RUNS);
    let tables = payload(&path).into_iter();
    let tables = tables.map(|(name, bytes)| (name, bytes / u64::from(RUNS)));
    let tables = tables.filter(|(_, bytes)| *bytes > 0).collect();
    Cost {
        bytes,
        frames,
        tables,
    }
}

#[tokio::test]
async fn a_plain_run_takes_at_most_two_and_a_half_kilobytes() {
    for n_deltas in [1, 53] {
        let cost = cost_of_a_run(n_deltas).await;
        let Cost {
            bytes,
            frames,
            tables,
        } = &cost;
        println!("{n_deltas} deltas: {bytes} bytes and {frames} frames a run: {tables:?}");
        assert!((10..=45).contains(frames), "{frames} frames a run");
        assert!(*bytes <= 2560, "{bytes} bytes a run");
    }
}
