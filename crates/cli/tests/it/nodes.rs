//! Servers of the real binary over one PostgreSQL database, killed, frozen and cut off at random moments.
//!
//! The seed decides what happens. A failure prints it; `LOOMLINE_SEED=<n>` runs it again. `scripts/soak-nodes` does more
//! of it. `LOOMLINE_POSTGRES` is the URL of a server for these tests, as `scripts/postgres` starts one.
#![allow(
    clippy::print_stdout,
    reason = "a failure is read with the seed that was printed"
)]

mod cluster;
#[path = "../../../runtime/tests/nodes/proxy.rs"]
pub(crate) mod proxy;

use crate::crash::{Acknowledged, Hit, check, follow, prompt, wait_for_all, wait_for_chunk};
use crate::support::{seed_or, server, soak_repeats};
use cluster::{Cluster, Trouble, former_program, program, trouble_of_database};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const THREADS: usize = 4;

/// What happens to the nodes until all troubles are over.
struct Campaign<'a> {
    cluster: &'a Cluster,
    seen: Mutex<Acknowledged>,
    is_over: AtomicBool,
    n_connections: AtomicU64,
}

impl Campaign<'_> {
    /// Posts to a thread, each time at any node; notes what is acknowledged.
    fn post(&self, key: &str, mut random: fastrand::Rng) {
        for n in 0.. {
            if self.is_over.load(Ordering::Relaxed) {
                return;
            }
            let base = self.cluster.any(&mut random);
            let body =
                json!({"content": prompt(&mut random, &format!("{key}n{n}")), "policy": "queue"});
            let sent = server::agent_for(Duration::from_secs(20))
                .post(format!("{base}/api/v1/threads/{key}/messages"))
                .header("content-type", "application/json")
                .send(body.to_string());
            let text = sent.and_then(|mut response| response.body_mut().read_to_string());
            if let Ok(text) = text {
                let accepted: Value = serde_json::from_str(&text).unwrap();
                self.seen.lock().unwrap().accepted(key, &accepted);
            }
            std::thread::sleep(Duration::from_millis(random.u64(20..150)));
        }
    }

    /// Follows a thread from the last id that was shown, each time at any node and for some time.
    fn follow(&self, key: &str, mut random: fastrand::Rng) {
        while !self.is_over.load(Ordering::Relaxed) {
            let base = self.cluster.any(&mut random);
            self.n_connections.fetch_add(1, Ordering::Relaxed);
            let time = Duration::from_millis(random.u64(20..2_000));
            follow(&base, key, Some(time), &self.seen);
        }
    }
}

/// Troubles of a cluster, each with the number of its node.
type Plan = Vec<(Trouble, usize)>;

/// Many troubles of all kinds.
fn troubles(random: &mut fastrand::Rng, n_nodes: usize, n_troubles: usize) -> Plan {
    let trouble = |n| {
        let trouble = match n {
            _ if n == n_troubles / 2 => Trouble::FrozenForLong,
            _ if n % 25 == 10 && trouble_of_database().is_some() => Trouble::OfDatabase,
            _ => Trouble::any(random),
        };
        (trouble, random.usize(0..n_nodes))
    };
    (0..n_troubles).map(trouble).collect()
}

fn run(from: u64, n_nodes: usize, n_troubles: usize) {
    let mut random = fastrand::Rng::with_seed(from);
    let plan = troubles(&mut random, n_nodes, n_troubles);
    let hit = run_plan(from, &Cluster::start(n_nodes, "effect", &program()), plan);
    assert!(hit.models > 0, "no trouble met a model that was speaking");
}

/// Returns what the troubles have hit.
fn run_plan(from: u64, cluster: &Cluster, plan: Plan) -> Hit {
    let n_nodes = cluster.n_nodes();
    println!("seed {from}: {} troubles of {n_nodes} nodes", plan.len());
    let mut random = fastrand::Rng::with_seed(from);
    let keys: Vec<String> = (0..THREADS).map(|n| format!("t{n}")).collect();
    for key in &keys {
        let made = cluster
            .node(0)
            .post("/api/v1/threads", &json!({ "key": key }));
        made.unwrap();
    }
    let campaign = Campaign {
        cluster,
        seen: Mutex::default(),
        is_over: AtomicBool::new(false),
        n_connections: AtomicU64::new(0),
    };
    let mut met: BTreeMap<Trouble, usize> = BTreeMap::new();
    std::thread::scope(|scope| {
        for key in &keys {
            let (posting, following) = (random.fork(), random.fork());
            let campaign = &campaign;
            scope.spawn(move || campaign.post(key, posting));
            scope.spawn(move || campaign.follow(key, following));
        }
        for (trouble, node) in plan {
            std::thread::sleep(Duration::from_millis(random.u64(50..500)));
            *met.entry(trouble).or_default() += 1;
            cluster.meet(trouble, node, &mut random);
        }
        campaign.is_over.store(true, Ordering::Relaxed);
    });
    let node = cluster.node(random.usize(0..n_nodes));
    for key in &keys {
        wait_for_all(&node, key);
    }
    let seen = campaign.seen.into_inner().unwrap();
    let mut hit = Hit::default();
    for key in &keys {
        hit.add(&check(&node, key, &seen, &cluster.ledger(), "effect"));
    }
    println!(
        "seed {from}: {met:?}; {} messages, {} events shown over {} connections, hit {hit:?}",
        seen.n_items(),
        seen.n_events(),
        campaign.n_connections.into_inner(),
    );
    hit
}

#[test]
fn a_hundred_troubles_of_two_nodes_lose_and_double_nothing() {
    for n in 0..u64::from(soak_repeats()) {
        run(seed_or(1 + 100 * n), 2, 100);
    }
}

#[test]
fn troubles_of_three_nodes_lose_and_double_nothing() {
    let n_troubles = if soak_repeats() == 1 { 20 } else { 100 };
    for n in 0..u64::from(soak_repeats()) {
        run(seed_or(2 + 100 * n), 3, n_troubles);
    }
}

/// In `scripts/soak-upgrade`, the program before the upgrade is an older one.
#[test]
fn an_upgrade_of_one_server_after_the_other_loses_and_doubles_nothing() {
    for n in 0..u64::from(soak_repeats()) {
        let from = seed_or(3 + 100 * n);
        let mut random = fastrand::Rng::with_seed(from);
        let mut plan = Plan::new();
        for trouble in [Trouble::Upgraded, Trouble::Downgraded, Trouble::Upgraded] {
            for node in 0..2 {
                plan.push((trouble, node));
                // Both versions work for some time.
                plan.push((Trouble::Slow, random.usize(0..2)));
            }
        }
        run_plan(from, &Cluster::start(2, "effect", &former_program()), plan);
    }
}

#[test]
fn a_streamed_answer_goes_on_at_another_node() {
    let cluster = Cluster::start(2, "effect", &program());
    let other = cluster.node(1);
    let body = json!({"content": "slow 50ms say 200 words", "policy": "queue"});
    let sent = cluster.node(0).post("/api/v1/threads/t/messages", &body);
    sent.unwrap();
    wait_for_chunk(&other, "t", 0, "text-delta");
    let start = Instant::now();
    cluster.kill(0);
    wait_for_chunk(&other, "t", 0, "data-step-reset");
    // The lease of a node takes 12 s, and others look each two seconds.
    assert!(start.elapsed() < Duration::from_secs(40));
    other.rest("t");
    let runs = other.get("/api/v1/threads/t/runs").unwrap();
    assert_eq!(runs["runs"][0]["status"], "completed", "{runs}");
}
