//! The cases of the bench `agents` in turn, over and over: on a machine that others use too, all of
//! them are slowed alike, so that their medians compare. `cargo bench -p loomline-benches --bench agents_paired`
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a bench")]

mod floor;
mod model;
mod setup;

use agents::{Agent, AgentState};
use loomline_benches::percentile;
use model::{Deltas, INPUT, Replies};
use std::hint::black_box;
use std::time::{Duration, Instant};
use upp::Request;

/// How often each case is timed.
const ROUNDS: usize = 500;

/// The length of the long history.
const LONG: usize = 2_000;

/// How many pieces an answer is streamed in.
const DELTAS: u16 = 1_000;

/// What is timed.
struct Case<'a> {
    name: &'static str,
    /// Runs in a row for one sample.
    n_runs: u32,
    /// By how much a sample is divided.
    parts: f64,
    run: Box<dyn FnMut() + 'a>,
    samples: Vec<Duration>,
}

impl<'a> Case<'a> {
    fn new(name: &'static str, n_runs: u32, run: impl FnMut() + 'a) -> Self {
        Self {
            name,
            n_runs,
            parts: f64::from(n_runs),
            run: Box::new(run),
            samples: Vec::with_capacity(ROUNDS),
        }
    }

    fn sample(&mut self) {
        // The one before has left its own data in the caches.
        (self.run)();
        let start = Instant::now();
        for _ in 0..self.n_runs {
            (self.run)();
        }
        self.samples.push(start.elapsed());
    }

    fn print(&mut self) {
        let [best, tenth, median, most] =
            [0.0, 0.1, 0.5, 0.9].map(|share| percentile(&mut self.samples, share) / self.parts);
        let name = self.name;
        println!("{name:48} best {best:9.3}  p10 {tenth:9.3}  p50 {median:9.3}  p90 {most:9.3} µs");
    }
}

fn main() {
    let tokio = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let (replies, text, codec) = (model::replies(), setup::text(), model::codec());
    let (request, empty, long) = (
        Request::default(),
        AgentState::initial(),
        setup::history(LONG),
    );
    let json = long.to_json().unwrap();
    let parsed = setup::hooked(Replies::parsed());
    let ready = setup::hooked(Replies::ready());
    let deltas = setup::hooked(Deltas::new(DELTAS.into()));
    let plain = Agent::new(setup::options(Replies::parsed())).unwrap();
    let watch = |agent: &Agent, state: &AgentState| {
        black_box(tokio.block_on(setup::watched(agent, INPUT, state.clone())));
    };
    let mut history = Vec::new();
    let mut cases = [
        Case::new("floor: plain Rust", 10, || {
            history.clear();
            black_box(floor::run(&mut history, INPUT, &replies, &text));
        }),
        Case::new("the codec alone: four replies read", 10, || {
            for body in &replies {
                black_box(model::decode(&codec, &request, body));
            }
        }),
        Case::new("replies parsed", 10, || watch(&parsed, &empty)),
        Case::new("replies parsed, after 2,000 messages", 10, || {
            watch(&parsed, &long);
        }),
        Case::new("replies ready", 10, || watch(&ready, &empty)),
        Case::new("replies ready, after 2,000 messages", 10, || {
            watch(&ready, &long);
        }),
        Case::new("replies parsed, no hooks, nobody watches", 10, || {
            black_box(
                tokio
                    .block_on(plain.generate(INPUT, empty.clone()))
                    .unwrap(),
            );
        }),
        Case {
            parts: f64::from(DELTAS),
            ..Case::new("one event of 1,000, streamed and read", 1, || {
                watch(&deltas, &empty);
            })
        },
        Case::new("2,000 messages, to_json", 1, || {
            black_box(long.to_json().unwrap());
        }),
        Case::new("2,000 messages, from_json", 1, || {
            black_box(AgentState::from_json(&json).unwrap());
        }),
        Case::new("2,000 messages, there and back", 1, || {
            black_box(AgentState::from_json(&long.to_json().unwrap()).unwrap());
        }),
    ];
    for _ in 0..ROUNDS {
        cases.iter_mut().for_each(Case::sample);
    }
    cases.iter_mut().for_each(Case::print);
    println!("the JSON has {} bytes", json.len());
}
