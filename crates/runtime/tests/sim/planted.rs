//! Bugs that are planted in the runtime: the simulation finds each of them.

use crate::scenario;
use crate::world::{Faults, Habit};
use loomline_runtime as runtime;
use runtime::planted::{Bug, plant};
use std::time::Instant;

/// Seeds until the simulation finds each planted bug, at most.
const MAX_SEEDS: u64 = 2_000;

/// Makes the faults more frequent that a bug needs.
fn bias(bug: Bug) -> impl Fn(&mut Faults) {
    move |faults| match bug {
        Bug::SleepsUnguarded => {
            faults.habit = Habit::Children;
            faults.weights = [0; 4];
            (faults.delay_ms, faults.hint_ms) = ([200, 1, 1], 50);
        }
        Bug::LeavesChildToParent => {
            faults.habit = Habit::Children;
            // A node that stops offers the child while its parent runs at another node.
            (faults.calm_ms, faults.weights) = (1_500, [1, 0, 0, 3]);
        }
        Bug::TakesUnknownAsRefused => faults.loses_answer = 100,
        _ => {}
    }
}

/// The seed with which the simulation finds this bug, and nothing without it.
fn found(bug: Bug) -> Option<(u64, String)> {
    (0..MAX_SEEDS).find_map(|seed| {
        plant(Some(bug));
        let violation = scenario::run_biased(seed, false, bias(bug)).violation;
        plant(None);
        let violation = violation?;
        let is_sound = scenario::run_biased(seed, false, bias(bug))
            .violation
            .is_none();
        is_sound.then_some((seed, violation))
    })
}

fn check_found(bugs: impl IntoIterator<Item = Bug>) {
    let mut missed = Vec::new();
    for bug in bugs {
        let began = Instant::now();
        match found(bug) {
            Some((seed, violation)) => println!(
                "{bug:?} is found after {} seeds ({:.1?}): {violation}",
                seed + 1,
                began.elapsed()
            ),
            None => missed.push(bug),
        }
    }
    assert_eq!(missed, [], "these are not found");
}

#[test]
fn planted_bugs_are_found() {
    let rare = Bug::SleepsUnguarded;
    check_found(Bug::ALL.into_iter().filter(|bug| *bug != rare));
}

#[test]
fn a_planted_lost_wake_up_is_found() {
    check_found([Bug::SleepsUnguarded]);
}
