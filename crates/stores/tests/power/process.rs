//! The process that loses its power: it writes, and says what it is about to write and what is done.

use crate::known::{KINDS, content_of, is_large, json_of};
use crate::{DATABASE, LATE, told_number};
use jiff::{SignedDuration, Timestamp};
use loomline_stores::{SqliteOptions, SqliteStore};
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use store::objects::NewObject;
use store::suite::rolled;
use store::suite::script::{first, record, tenant};
use store::{
    Append, EventLog as _, NewRecord, Ownership, Store as _, StoreError, ThreadTable as _, Token,
};
use timeline::{Command, NewItem, NewThread, Seq, ThreadId};
use tokio::task::JoinSet;

/// Writes one line, whole or not at all: a line that is cut off lacks its end.
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("{line}\t.\n").as_bytes()).unwrap();
    out.flush().unwrap();
}

/// The token of an append to a log with this tail, if it has one.
pub(crate) fn token(tail: Seq) -> Option<Token> {
    tail.0.is_multiple_of(2).then(|| Token {
        token: format!("at {tail}"),
        answer: format!("answer {tail}"),
    })
}

fn announce(thread: &str, tail: Seq, records: &[NewRecord]) {
    let texts: Vec<&str> = records.iter().map(|record| &**record.text()).collect();
    say(&format!("append\t{thread}\t{tail}\t{}", texts.join("\t")));
}

/// Goes on with a thread, or creates it.
async fn write_thread(store: Arc<SqliteStore>, name: String, mut random: fastrand::Rng) {
    let thread = ThreadId::from(name.as_str());
    if let Err(StoreError::NotFound) = store.row(&thread).await {
        let new = NewThread::new(name.as_str(), Some(&name));
        let records = first(new, Timestamp::UNIX_EPOCH);
        let tail = records.len();
        announce(&name, Seq::ZERO, &records);
        let token = token(Seq::ZERO);
        let created = store.get_or_create(&tenant(), records, token, None).await;
        assert!(created.unwrap().is_new());
        say(&format!("appended\t{name}\t{tail}"));
    }
    let head = store.head(&thread).await.unwrap();
    let (mut state, mut tail) = (head.state, head.tail);
    let mut at = head.last_at;
    // Each number gives the ids of one command only: a log that grew has left these behind.
    let n = u32::try_from(tail.0).unwrap() * 100;
    let commands = rolled(random.u64(1..), n..n + random.u32(1..50));
    for command in commands {
        at += SignedDuration::from_secs(1);
        let command = if random.u8(..) < 20 {
            let text = "x".repeat(random.usize(..20_000));
            let content = serde_json::json!([{"type": "input_text", "text": text}]);
            let item = NewItem::user(format!("long-{tail}"), content.into());
            Command::Record { item }
        } else {
            command
        };
        let events = state.decide(command, at).unwrap_or_default();
        if events.is_empty() {
            continue;
        }
        for event in &events {
            state.apply(event);
        }
        let records: Vec<_> = events.into_iter().map(|event| record(event, at)).collect();
        announce(&name, tail, &records);
        let append = Append {
            thread: thread.clone(),
            epoch: head.epoch,
            tail,
            records,
            token: token(tail),
            is_limited: true,
            ownership: Ownership::Keep,
            unmoved: Vec::new(),
        };
        tail = store.append(append).await.unwrap().tail;
        say(&format!("appended\t{name}\t{tail}"));
    }
}

/// Puts and deletes objects, some with equal contents.
async fn write_objects(store: Arc<SqliteStore>, kind: &'static str, mut random: fastrand::Rng) {
    let n_writes = if is_large(kind) { 400 } else { 15 };
    for _ in 0..random.u16(1..n_writes) {
        let (id, n) = (random.u8(..8).to_string(), random.usize(..30));
        let name = format!("{kind}\t{id}\t{n}");
        say(&format!("put\t{name}"));
        if n == 0 {
            let objects = store.objects();
            objects.delete(&tenant(), kind, &id, None).await.unwrap();
        } else {
            let object = NewObject {
                json: json_of(n),
                content: content_of(kind, n),
                kind: kind.to_owned(),
                id,
                created_at: Timestamp::UNIX_EPOCH,
                thread: None,
                is_limited: true,
            };
            store.objects().put(&tenant(), object).await.unwrap();
        }
        say(&format!("stored\t{name}"));
    }
}

/// Never returns.
#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
pub(crate) async fn write_until_the_power_is_lost(directory: &str) {
    let path = Path::new(directory).join(DATABASE);
    let mut random = fastrand::Rng::with_seed(told_number("LOSE_POWER_SEED").unwrap());
    let is_late = told_number("LOSE_POWER_AT").unwrap() > LATE;
    println!();
    loop {
        let store = Arc::new(SqliteStore::open(&path, &SqliteOptions::default()).unwrap());
        let mut writers = JoinSet::new();
        for n in 0..6 {
            writers.spawn(write_thread(store.clone(), format!("t{n}"), random.fork()));
        }
        for kind in KINDS.into_iter().filter(|kind| is_late || !is_large(kind)) {
            writers.spawn(write_objects(store.clone(), kind, random.fork()));
        }
        while let Some(written) = writers.join_next().await {
            written.unwrap();
        }
        store.close().await.unwrap();
    }
}
