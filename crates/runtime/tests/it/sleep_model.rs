//! A model of a parent that falls asleep over its children, with a node for each thread. It explores every order of
//! their reads and appends, and every crash of a child's node.
//!
//! A child first records that it continues, then reads the parent, and wakes it if it sleeps. The parent reads its
//! children, and falls asleep if all of them wait. Between a read and the append that follows from it, others append.

use stateright::{Checker as _, Model, Property};

/// Children of the parent.
const CHILDREN: usize = 3;

/// Whether an append of the parent names the logs that it was decided by.
#[derive(Clone, Copy)]
struct Sleep {
    is_guarded: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Parent {
    /// Its run is at work.
    Runs,
    /// It has read that all its children wait, and will append that it sleeps.
    WillSleep,
    /// Its log says that it sleeps.
    Sleeps,
    /// Its log has an item that wakes it.
    IsWoken,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Child {
    /// It waits for an answer from outside.
    Waits,
    /// Its log says that it continues. Its node has not read the parent yet, or has crashed.
    Continues,
    /// It has read that the parent sleeps, at this end of its log.
    WillWake { end: u8 },
    /// Its run is over.
    Ended,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Threads {
    parent: Parent,
    /// The end of the parent's log.
    parent_end: u8,
    children: [Child; CHILDREN],
    /// The ends of the children's logs.
    ends: [u8; CHILDREN],
    /// Those that the parent has read.
    read: [u8; CHILDREN],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    ParentReads,
    ParentAppends,
    AnswerArrives(usize),
    ChildReads(usize),
    ChildWakes(usize),
    ChildCrashes(usize),
}

impl Model for Sleep {
    type State = Threads;
    type Action = Act;

    fn init_states(&self) -> Vec<Threads> {
        vec![Threads {
            parent: Parent::Runs,
            parent_end: 0,
            children: [Child::Waits; CHILDREN],
            ends: [0; CHILDREN],
            read: [0; CHILDREN],
        }]
    }

    fn actions(&self, state: &Threads, actions: &mut Vec<Act>) {
        match state.parent {
            Parent::Runs => actions.push(Act::ParentReads),
            Parent::WillSleep => actions.push(Act::ParentAppends),
            Parent::Sleeps | Parent::IsWoken => {}
        }
        for (n, child) in state.children.iter().enumerate() {
            match child {
                Child::Waits => actions.push(Act::AnswerArrives(n)),
                Child::Continues => actions.push(Act::ChildReads(n)),
                Child::WillWake { .. } => {
                    actions.extend([Act::ChildWakes(n), Act::ChildCrashes(n)]);
                }
                Child::Ended => {}
            }
        }
    }

    fn next_state(&self, last: &Threads, act: Act) -> Option<Threads> {
        let mut next = last.clone();
        match act {
            Act::ParentReads => {
                // It stays at work for a child that continues, and hears how that one ends.
                if last.children.iter().any(|child| *child != Child::Waits) {
                    return None;
                }
                next.read = last.ends;
                next.parent = Parent::WillSleep;
            }
            Act::ParentAppends if self.is_guarded && last.read != last.ends => {
                next.parent = Parent::Runs;
            }
            Act::ParentAppends => {
                next.parent = Parent::Sleeps;
                next.parent_end += 1;
            }
            Act::AnswerArrives(n) => {
                next.children[n] = Child::Continues;
                next.ends[n] += 1;
            }
            Act::ChildReads(n) => {
                next.children[n] = match last.parent {
                    Parent::Sleeps => Child::WillWake {
                        end: last.parent_end,
                    },
                    Parent::Runs | Parent::WillSleep | Parent::IsWoken => Child::Ended,
                };
            }
            Act::ChildWakes(n) => {
                let Child::WillWake { end } = last.children[n] else {
                    return None;
                };
                if end == last.parent_end {
                    next.parent = Parent::IsWoken;
                    next.parent_end += 1;
                    next.children[n] = Child::Ended;
                } else {
                    next.children[n] = Child::Continues;
                }
            }
            Act::ChildCrashes(n) => next.children[n] = Child::Continues,
        }
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let is_woken = |_: &Self, state: &Threads| {
            let has_ended = state.children.contains(&Child::Ended);
            !(has_ended && state.parent == Parent::Sleeps)
        };
        let sleeps = |_: &Self, state: &Threads| state.parent == Parent::Sleeps;
        vec![
            Property::always(WOKEN, is_woken),
            Property::sometimes("a parent falls asleep", sleeps),
        ]
    }
}

const WOKEN: &str = "a parent sleeps over no child that has ended";

#[test]
fn a_parent_with_guarded_appends_loses_no_wake_up() {
    let checked = Sleep { is_guarded: true }.checker().spawn_bfs().join();
    checked.assert_properties();
    assert!(checked.unique_state_count() > 50);
}

#[test]
fn the_model_finds_the_lost_wake_up_of_an_append_without_guards() {
    let checked = Sleep { is_guarded: false }.checker().spawn_bfs().join();
    let path = checked.discovery(WOKEN).unwrap();
    let acts = path.into_actions();
    let first = [Act::ParentReads, Act::AnswerArrives(0), Act::ChildReads(0)];
    assert_eq!(acts, [&first[..], &[Act::ParentAppends]].concat());
}
