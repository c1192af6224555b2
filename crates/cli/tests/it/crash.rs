//! Kills the real binary at random moments and holds what is left against what was acknowledged.
//!
//! The seed decides when. A failure prints it; `LOOMLINE_SEED=<n> cargo test --test it crash::` runs it
//! again. `scripts/soak` kills more often, with more seeds. Threads run with tools that write to a ledger, so that a tool that ran twice shows.
#![allow(
    clippy::print_stdout,
    clippy::similar_names,
    reason = "a failure is read with the seed that was printed"
)]

use crate::support::server::{self, Server};
use crate::support::{seed_or, soak_repeats};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;
use timeline::{Event, Record, Seq, Transcript, verify};

const THREADS: usize = 4;
const KILLS: usize = 30;

/// What the server said is so: it must be so for ever.
#[derive(Default)]
pub(crate) struct Acknowledged {
    executions: BTreeSet<(String, String)>,
    items: BTreeSet<(String, String)>,
    events: BTreeMap<(String, u64), Value>,
    /// The last event id of each thread that was shown.
    last_ids: BTreeMap<String, String>,
}

impl Acknowledged {
    /// A message was accepted with this answer.
    pub(crate) fn accepted(&mut self, key: &str, answer: &Value) {
        let id = |member: &str| Some((key.to_owned(), answer[member].as_str()?.to_owned()));
        self.items.insert(id("itemId").unwrap());
        self.executions.extend(id("executionId"));
    }

    pub(crate) fn n_items(&self) -> usize {
        self.items.len()
    }

    pub(crate) fn n_events(&self) -> usize {
        self.events.len()
    }
}

/// What the kills met.
#[derive(Debug, Default)]
pub(crate) struct Hit {
    pub(crate) models: usize,
    pub(crate) tools: usize,
}

impl Hit {
    pub(crate) fn add(&mut self, records: &[Record]) {
        for record in records {
            match &record.event {
                Event::ChunkEmitted { chunk_type, .. } if chunk_type == "data-step-reset" => {
                    self.models += 1;
                }
                Event::PartUpdated { part, .. }
                    if part.text().contains("\"outcome\":\"interrupted\"") =>
                {
                    self.tools += 1;
                }
                _ => {}
            }
        }
    }
}

struct Bed {
    data: tempfile::TempDir,
    config: PathBuf,
    ledger: PathBuf,
}

impl Bed {
    fn new(effect: &str) -> Self {
        let data = tempfile::tempdir().unwrap();
        let ledger = data.path().join("ledger.txt");
        let config = data.path().join("loomline.toml");
        let text = format!(
            "default_agent = \"worker\"\n[limits]\nrestart_pause_ms = 10\n\
             [models.offline]\nprovider = \"scripted\"\ndelay_ms = 2\n\
             [agents.worker]\nmodel = \"offline\"\ntools = [\"record\", \"compute\"]\n\
             [tools]\nledger = \"{}\"\nledger_effect = {effect:?}\n",
            ledger.display()
        );
        std::fs::write(&config, text).unwrap();
        Self {
            data,
            config,
            ledger,
        }
    }

    fn start(&self) -> Server {
        Server::start(self.data.path(), Some(&self.config), &[])
    }
}

pub(crate) fn prompt(random: &mut fastrand::Rng, name: &str) -> String {
    let pause = random.u32(0..15);
    match random.u8(0..3) {
        0 => format!("slow 2ms say {} words", random.u32(5..40)),
        1 => format!("record line={name}a ms={pause} then record line={name}b ms={pause}"),
        _ => format!("slow 1ms record line={name}a ms={pause} record line={name}b ms=1"),
    }
}

/// Posts to one thread until the server is gone; notes what it acknowledges.
fn post_until_gone(
    base: &str,
    key: &str,
    mut random: fastrand::Rng,
    round: usize,
    seen: &Mutex<Acknowledged>,
) {
    for n in 0.. {
        let name = format!("{key}r{round}n{n}");
        let body = json!({"content": prompt(&mut random, &name), "policy": "queue"});
        let answer = server::agent()
            .post(format!("{base}/api/v1/threads/{key}/messages"))
            .header("content-type", "application/json")
            .send(body.to_string());
        let Ok(mut response) = answer else { return };
        let Ok(text) = response.body_mut().read_to_string() else {
            return;
        };
        let accepted: Value = serde_json::from_str(&text).unwrap();
        seen.lock().unwrap().accepted(key, &accepted);
        std::thread::sleep(Duration::from_millis(random.u64(5..60)));
    }
}

/// Follows one thread for a time, or until the server is gone, from the last id that was shown; notes every stored
/// event that was shown. A chunk that is not stored yet may be lost.
pub(crate) fn follow(base: &str, key: &str, time: Option<Duration>, seen: &Mutex<Acknowledged>) {
    let last_id = seen.lock().unwrap().last_ids.get(key).cloned();
    let mut last_id = last_id.unwrap_or_else(|| "0".to_owned());
    let url = format!("{base}/api/v1/threads/{key}/events?until=forever");
    let request = server::agent_for(time.unwrap_or(server::PATIENCE))
        .get(url)
        .header("accept", "text/event-stream")
        .header("last-event-id", &last_id);
    let Ok(response) = request.call() else { return };
    let mut id = String::new();
    for line in BufReader::new(response.into_body().into_reader()).lines() {
        let Ok(line) = line else { return };
        if let Some(text) = line.strip_prefix("id: ") {
            text.clone_into(&mut id);
        }
        // The stream ends, and the client connects again.
        if line == "event: error" {
            return;
        }
        let Some(data) = line.strip_prefix("data: ") else {
            continue;
        };
        // The last line may be cut off by the kill.
        let Ok(event) = serde_json::from_str::<Value>(data) else {
            return;
        };
        let (before, now) = (server::position(&last_id), server::position(&id));
        assert!(now > before, "{key}: {id} follows {last_id}");
        let mut seen = seen.lock().unwrap();
        let seq = event["seq"].as_u64().unwrap();
        // Another event can be stored before chunks that the reader has.
        if now.1 == 0 || (now.0 > before.0 && seq == now.0) {
            assert_eq!(seq, now.0);
            let is_next = seq <= before.0 + before.1 + 1;
            assert!(
                is_next,
                "a follower of {key} missed an event: {id} follows {last_id}"
            );
            seen.events.insert((key.to_owned(), seq), event);
        } else {
            assert_eq!(event["type"], "chunk.emitted");
            let is_first = now.1 == 1 && now.0 <= before.0 + before.1;
            let is_next = is_first || now == (before.0, before.1 + 1);
            assert!(
                is_next,
                "a follower of {key} missed a chunk: {id} follows {last_id}"
            );
        }
        id.clone_into(&mut last_id);
        seen.last_ids.insert(key.to_owned(), id.clone());
    }
}

/// Waits until the model of a thread speaks, or a stored event of the thread is this chunk.
pub(crate) fn wait_for_chunk(server: &Server, key: &str, after: usize, chunk: &str) {
    let url = server.url(&format!("/api/v1/threads/{key}/events?after={after}"));
    let request = server::agent().get(url);
    let response = request.header("accept", "text/event-stream").call();
    let body = response.unwrap().into_body().into_reader();
    let chunk = format!("\"chunkType\":{chunk:?}");
    let mut lines = BufReader::new(body).lines();
    assert!(lines.any(|line| line.unwrap().contains(&chunk)));
}

/// Kills once while the model speaks and once while an effect runs, as random kills on a slow machine
/// may meet neither. The log marks the start of effects only.
fn kill_at_chosen_moments(mut server: Server, bed: &Bed, key: &str, effect: &str) -> Server {
    let model = ("slow 20ms say 100 words", "text-delta");
    let tool = ("record line=chosen ms=1000", "data-tool-started");
    let moments = [Some(model), (effect == "effect").then_some(tool)];
    for (prompt, chunk) in moments.into_iter().flatten() {
        server.rest(key);
        let before = server.log(key).len();
        let body = json!({"content": prompt, "policy": "queue"});
        server
            .post(&format!("/api/v1/threads/{key}/messages"), &body)
            .unwrap();
        wait_for_chunk(&server, key, before, chunk);
        server.kill();
        server = bed.start();
    }
    server
}

fn kill_with_seed(seed: u64, effect: &str) {
    println!("seed {seed}: {KILLS} kills");
    let bed = Bed::new(effect);
    let mut random = fastrand::Rng::with_seed(seed);
    let seen = Mutex::new(Acknowledged::default());
    let keys: Vec<String> = (0..THREADS).map(|n| format!("t{n}")).collect();
    let mut server = bed.start();
    for key in &keys {
        server
            .post("/api/v1/threads", &json!({ "key": key }))
            .unwrap();
    }
    for round in 0..KILLS {
        std::thread::scope(|scope| {
            for key in &keys {
                let (base, own, seen) = (server.base.clone(), random.fork(), &seen);
                let base_of_follower = base.clone();
                scope.spawn(move || post_until_gone(&base, key, own, round, seen));
                scope.spawn(move || follow(&base_of_follower, key, None, seen));
            }
            std::thread::sleep(Duration::from_millis(random.u64(10..250)));
            server.kill();
        });
        server = bed.start();
    }
    server = kill_at_chosen_moments(server, &bed, &keys[0], effect);
    for key in &keys {
        wait_for_all(&server, key);
    }
    let seen = seen.lock().unwrap();
    let mut hit = Hit::default();
    for key in &keys {
        hit.add(&check(&server, key, &seen, &bed.ledger, effect));
    }
    println!(
        "seed {seed}: {} messages, {} events shown, kills hit {hit:?}",
        seen.items.len(),
        seen.events.len()
    );
    // The kills must have met what they are meant to meet, or the test shows nothing.
    assert!(hit.models > 0, "no kill met a model that was speaking");
    assert!(
        effect != "effect" || hit.tools > 0,
        "no kill met an effect that had started"
    );
}

/// Every trigger is answered and the thread at rest.
pub(crate) fn wait_for_all(server: &Server, key: &str) {
    server.rest(key);
    let state = server.get(&format!("/api/v1/threads/{key}")).unwrap();
    assert_ne!(state["status"], "streaming");
}

pub(crate) fn check(
    server: &Server,
    key: &str,
    seen: &Acknowledged,
    ledger: &Path,
    effect: &str,
) -> Vec<Record> {
    let log = server.log(key);
    for ((_, seq), event) in seen
        .events
        .range((key.to_owned(), 0)..=(key.to_owned(), u64::MAX))
    {
        let index = usize::try_from(*seq).unwrap() - 1;
        assert_eq!(
            log.get(index),
            Some(event),
            "event {seq} of {key} was shown and is not in the log"
        );
    }
    let records: Vec<Record> = log
        .iter()
        .map(|event| Record {
            seq: Seq(event["seq"].as_u64().unwrap()),
            at: event["at"].as_str().unwrap().parse().unwrap(),
            event: Event::decode(&event.to_string()).unwrap(),
        })
        .collect();
    // Numbers without gaps or repeats, things made once, every move legal: one execution at a time.
    assert_eq!(verify(&records), Ok(()));
    let mut transcript = Transcript::default();
    let mut made = BTreeMap::new();
    for record in &records {
        transcript.apply(record);
        if let Event::PartCreated { part_key, .. } = &record.event {
            *made.entry(part_key.clone()).or_insert(0) += 1;
        }
    }
    assert!(
        made.values().all(|times| *times == 1),
        "a part of {key} was written twice: {made:?}"
    );
    let runs = server
        .get(&format!("/api/v1/threads/{key}/runs?limit=1000"))
        .unwrap();
    let runs = runs["runs"].as_array().unwrap();
    // On a slow machine the kills may meet one step five times in a row, which ends its run.
    let is_poisoned = |run: &&Value| run["interruption"]["reason"] == "poisoned";
    let n_poisoned = runs.iter().filter(is_poisoned).count();
    let n_completed = runs
        .iter()
        .filter(|run| run["status"] == "completed")
        .count();
    assert_eq!(
        n_completed + n_poisoned,
        runs.len(),
        "an execution of {key} is not complete: {runs:?}"
    );
    assert!(
        n_poisoned * 10 <= runs.len(),
        "{key}: {n_poisoned} runs are poisoned"
    );
    let ids: BTreeSet<&str> = runs.iter().map(|run| run["id"].as_str().unwrap()).collect();
    let triggers: BTreeSet<&str> = runs
        .iter()
        .map(|run| run["triggerItemId"].as_str().unwrap())
        .collect();
    for (of, id) in &seen.executions {
        assert!(
            of != key || ids.contains(id.as_str()),
            "execution {id} of {key} was acknowledged and is gone"
        );
    }
    for (of, id) in &seen.items {
        assert!(
            of != key || triggers.contains(id.as_str()),
            "message {id} of {key} was acknowledged and not answered"
        );
    }
    tools_ran_once(&records, ledger, effect);
    let document = server
        .get(&format!("/api/v1/threads/{key}/document"))
        .unwrap();
    let document = thread::Thread::decode(&document.to_string()).unwrap();
    let errors: Vec<_> = thread::validate(&document, thread::Profile::Strict)
        .into_iter()
        .filter(|violation| violation.severity == thread::Severity::Error)
        .collect();
    assert!(
        errors.is_empty(),
        "the document of {key} is not valid: {errors:?}"
    );
    records
}

/// A call with a result ran exactly once; a call whose outcome is unknown at most once.
fn tools_ran_once(records: &[Record], ledger: &Path, effect: &str) {
    let text = std::fs::read_to_string(ledger).unwrap_or_default();
    let mut entries: BTreeMap<String, usize> = BTreeMap::new();
    for entry in text.lines() {
        let entry: Value = serde_json::from_str(entry).unwrap();
        *entries
            .entry(entry["line"].as_str().unwrap().to_owned())
            .or_default() += 1;
    }
    let ran = |line: &str| entries.get(line).copied().unwrap_or(0);
    for record in records {
        let Event::PartUpdated { part, .. } = &record.event else {
            continue;
        };
        let part = part.value();
        if part["type"] != "tool-record" {
            continue;
        }
        let line = part["input"]["line"].as_str().unwrap();
        let times = ran(line);
        match part["state"].as_str() {
            Some("output-available") => assert!(
                times == 1 || (effect == "pure" && times >= 1),
                "{line} has a result and is {times} times in the ledger"
            ),
            _ => assert!(times <= 1, "{line} is {times} times in the ledger: {part}"),
        }
    }
}

/// Kills with the seed of a test, and in a soak with seeds of its own.
fn kill_at_random_moments(seed: u64, effect: &str) {
    for n in 0..u64::from(soak_repeats()) {
        kill_with_seed(seed_or(seed + 100 * n), effect);
    }
}

#[test]
fn thirty_kills_with_idempotent_tools_lose_nothing_seed_1() {
    kill_at_random_moments(1, "idempotent");
}

#[test]
fn thirty_kills_with_idempotent_tools_lose_nothing_seed_2() {
    kill_at_random_moments(2, "idempotent");
}

#[test]
fn thirty_kills_with_effect_tools_lose_nothing_seed_3() {
    kill_at_random_moments(3, "effect");
}

#[test]
fn thirty_kills_with_effect_tools_lose_nothing_seed_4() {
    kill_at_random_moments(4, "effect");
}

#[test]
fn thirty_kills_with_effect_tools_lose_nothing_seed_5() {
    kill_at_random_moments(5, "effect");
}

#[test]
fn thirty_kills_with_idempotent_tools_lose_nothing_seed_6() {
    kill_at_random_moments(6, "idempotent");
}

#[test]
fn thirty_kills_with_effect_tools_lose_nothing_seed_7() {
    kill_at_random_moments(7, "effect");
}
