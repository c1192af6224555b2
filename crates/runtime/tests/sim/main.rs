//! Several nodes over one store, simulated: time, chances and faults follow from one seed.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a failed expectation is the test's failure; seeds come from the environment"
)]

mod agents;
mod clients;
mod follower;
mod link;
mod nodes;
#[cfg(feature = "planted-bugs")]
mod planted;
mod scenario;
mod seen_log;
mod world;

use std::process::Command;
use std::time::Instant;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Runs these seeds. A failure names its seed, and the command that runs it alone.
fn run_seeds(seeds: impl IntoIterator<Item = u64>) {
    let (began, mut n) = (Instant::now(), 0_u32);
    for seed in seeds {
        let outcome = scenario::run(seed, false);
        n += 1;
        if let Some(violation) = outcome.violation {
            panic!(
                "{}\nseed {seed}: {violation}\nLOOMLINE_SEED={seed} cargo test -p loomline-runtime --test sim one_seed -- --nocapture",
                outcome.trace
            );
        }
    }
    let minutes = began.elapsed().as_secs_f64() / 60.0;
    println!("{n} seeds, {:.0} per minute", f64::from(n) / minutes);
}

#[test]
fn one_seed() {
    let seed = number("LOOMLINE_SEED").unwrap_or(1);
    let outcome = scenario::run(seed, true);
    println!("{}\nhash {:016x}", outcome.trace, outcome.hash);
    assert_eq!(outcome.violation, None, "seed {seed}");
}

#[test]
fn a_seed_has_one_trace() {
    for seed in 0..20 {
        let [first, second] = [(); 2].map(|()| scenario::run(seed, true));
        let mut lines = first.trace.lines().zip(second.trace.lines());
        let differs = lines.position(|(one, other)| one != other);
        let at = differs.map(|at| (first.trace.lines().nth(at), second.trace.lines().nth(at)));
        assert_eq!(first.hash, second.hash, "seed {seed}: {at:?}");
    }
}

#[test]
fn a_seed_has_the_same_trace_in_another_process() {
    for seed in 100..103 {
        let here = scenario::run(seed, false).hash;
        let mut other = Command::new(std::env::current_exe().unwrap());
        other.args(["one_seed", "--exact", "--nocapture"]);
        let output = other
            .env("LOOMLINE_SEED", seed.to_string())
            .output()
            .unwrap();
        let output = String::from_utf8(output.stdout).unwrap();
        let there = output.lines().find_map(|line| line.strip_prefix("hash "));
        assert_eq!(there, Some(format!("{here:016x}").as_str()), "seed {seed}");
    }
}

/// The seeds of each test: tests run at the same time, each in a process of its own.
const SHARE: u64 = 250;

/// Tests that share the first seeds.
macro_rules! shares {
    ($($name:ident: $share:literal,)*) => {$(
        #[test]
        fn $name() {
            run_seeds($share * SHARE..($share + 1) * SHARE);
        }
    )*};
}

shares! {
    nodes_lose_and_double_nothing_1: 0,
    nodes_lose_and_double_nothing_2: 1,
    nodes_lose_and_double_nothing_3: 2,
    nodes_lose_and_double_nothing_4: 3,
    nodes_lose_and_double_nothing_5: 4,
    nodes_lose_and_double_nothing_6: 5,
    nodes_lose_and_double_nothing_7: 6,
    nodes_lose_and_double_nothing_8: 7,
}

/// A hundred more seeds, or as many as the environment names.
#[test]
fn more_seeds_lose_and_double_nothing() {
    let first = number("LOOMLINE_FIRST_SEED").unwrap_or(2_000);
    let n = number("LOOMLINE_SEEDS").unwrap_or(100);
    run_seeds(first..first + n);
}
