//! Positions behind chunks that are not stored yet: an exhaustive search of short histories.

#![allow(
    clippy::unwrap_used,
    reason = "a failed expectation is the test's failure"
)]

use loomline_timeline::{Event, Payload, ReadPosition, Seq, StepOutcome, StepStatus, chunk_type};

/// What happens to a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    /// The owner of the run streams a chunk.
    Stream,
    /// The owner stores its chunks.
    Spill,
    /// The owner stores its chunks and a fact, such as a part.
    Fact,
    /// Another process appends while the owner has chunks that are not stored.
    Elsewhere,
    /// The owner dies. The next one resets the step before it streams.
    Crash,
    /// Another process ends the step. The owner then can't store its chunks.
    End,
}

const ACTS: [Act; 6] = [
    Act::Stream,
    Act::Spill,
    Act::Fact,
    Act::Elsewhere,
    Act::Crash,
    Act::End,
];

/// Number of acts in a history.
const N_ACTS: usize = 6;

/// An event with its identity.
#[derive(Clone, Debug, PartialEq)]
struct Told {
    id: u32,
    event: Event,
}

/// A reader that follows the thread.
#[derive(Clone, Debug, PartialEq)]
struct Reader {
    position: ReadPosition,
    seen: Vec<(Told, ReadPosition)>,
}

#[derive(Clone, Default)]
struct World {
    n_events: u32,
    log: Vec<Told>,
    unstored: Vec<Told>,
    owes_reset: bool,
    readers: Vec<Reader>,
}

fn chunk(kind: &str) -> Event {
    Event::ChunkEmitted {
        chunk_type: kind.to_owned(),
        context_id: "c".into(),
        execution_id: Some("e".into()),
        step_id: Some("s".into()),
        data: None,
    }
}

fn part() -> Event {
    Event::PartCreated {
        part_key: "s:0".into(),
        step_id: "s".into(),
        idx: 0,
        part: Payload::from_text("{}".into()).unwrap(),
    }
}

fn end() -> Event {
    Event::StepStatusChanged {
        step_id: "s".into(),
        from: StepStatus::Running,
        to: StepStatus::Failed,
        outcome: StepOutcome::default(),
    }
}

impl World {
    fn told(&mut self, event: Event) -> Told {
        self.n_events += 1;
        let id = self.n_events;
        Told { id, event }
    }

    fn append(&mut self, event: Event) {
        let told = self.told(event);
        self.log.push(told);
    }

    fn act(&mut self, act: Act) {
        let writes = matches!(act, Act::Stream | Act::Spill | Act::Fact);
        if writes && std::mem::take(&mut self.owes_reset) {
            self.append(chunk(chunk_type::STEP_RESET));
        }
        match act {
            Act::Stream => {
                let told = self.told(chunk("text-delta"));
                self.unstored.push(told);
            }
            Act::Spill => self.log.append(&mut self.unstored),
            Act::Fact => {
                self.log.append(&mut self.unstored);
                self.append(part());
            }
            Act::Elsewhere => self.append(chunk(chunk_type::THREAD_UPDATED)),
            Act::Crash => {
                self.unstored.clear();
                self.owes_reset = true;
            }
            Act::End => {
                self.unstored.clear();
                self.append(end());
            }
        }
    }

    /// All readers read to the end.
    fn read(&mut self) {
        let (log, unstored) = (&self.log, &self.unstored);
        for reader in &mut self.readers {
            let Reader { position, seen } = reader;
            let first = usize::try_from(position.seq.0).unwrap();
            for (seq, told) in (1..).zip(log).skip(first) {
                if position.pass(Seq(seq), &told.event) {
                    seen.push((told.clone(), *position));
                }
            }
            for told in position.lacking(unstored) {
                position.pass_unstored();
                seen.push((told.clone(), *position));
            }
        }
    }

    /// For each position that a reader has seen, a reader that resumes there.
    fn resume(&mut self) {
        for reader in self.readers.clone() {
            for n in 0..=reader.seen.len() {
                let seen = reader.seen[..n].to_vec();
                let position = seen.last().map_or_else(Default::default, |(_, it)| *it);
                let resumed = Reader { position, seen };
                if !self.readers.contains(&resumed) {
                    self.readers.push(resumed);
                }
            }
        }
    }

    fn check(&self, acts: &[Act]) {
        for reader in &self.readers {
            let about = || format!("{acts:?}\n{reader:#?}\n{:#?}", self.log);
            let positions: Vec<ReadPosition> = reader.seen.iter().map(|(_, at)| *at).collect();
            assert!(positions.is_sorted_by(|a, b| a < b), "{}", about());
            let alive = self.log.iter().chain(&self.unstored);
            for told in alive.clone() {
                let n_seen = reader.seen.iter().filter(|(it, _)| it == told).count();
                assert_eq!(n_seen, 1, "{}", about());
            }
            let mut is_lost = false;
            for (told, _) in &reader.seen {
                let is_alive = alive.clone().any(|it| it == told);
                if !is_alive {
                    assert!(told.event.is_streamed(), "{}", about());
                    is_lost = true;
                } else if told.event.voids_unstored() {
                    is_lost = false;
                } else if told.event.is_streamed() {
                    assert!(!is_lost, "{}", about());
                }
            }
        }
    }
}

/// Continues a history in all ways; returns their number, and how often a reader lost a chunk.
fn search(world: &World, acts: &mut Vec<Act>) -> (usize, usize) {
    let lost = |reader: &&Reader| {
        let alive = |told: &Told| world.log.iter().chain(&world.unstored).any(|it| it == told);
        reader.seen.iter().any(|(told, _)| !alive(told))
    };
    let n_lost = world.readers.iter().filter(lost).count();
    if acts.len() == N_ACTS {
        return (1, n_lost);
    }
    let mut found = (0, 0);
    for act in ACTS {
        let mut world = world.clone();
        acts.push(act);
        world.act(act);
        world.resume();
        world.read();
        world.check(acts);
        let (n, n_lost) = search(&world, acts);
        found = (found.0 + n, found.1 + n_lost);
        acts.pop();
    }
    found
}

#[test]
fn readers_that_resume_anywhere_miss_nothing_and_see_what_was_lost() {
    let world = World {
        readers: vec![Reader {
            position: ReadPosition::default(),
            seen: Vec::new(),
        }],
        ..World::default()
    };
    let (n, n_lost) = search(&world, &mut Vec::new());
    assert_eq!(n, ACTS.len().pow(u32::try_from(N_ACTS).unwrap()));
    assert!(n_lost > 10_000, "{n_lost} readers lost a chunk");
}
