//! The world of one seed: its store, its chances, and the record of all that took effect.

use crate::link::Link;
use crate::seen_log::SeenLog;
use jiff::{SignedDuration, Timestamp};
use loomline_runtime::{Clock, Ids};
use std::collections::BTreeMap;
use std::fmt::{Arguments, Write as _};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;
use store::{
    Append, Appended, Created, Epoch, Hint, Logged, MemoryStore, NewRecord, NodeId, Ownership,
    TenantId,
};
use timeline::{Event, Seq, ThreadId, chunk_type};
use tokio::time::Instant;

/// The number of trace lines that a failure shows.
const SHOWN_LINES: usize = 80;

pub(crate) fn tenant() -> TenantId {
    "acme".into()
}

/// What agents and clients do most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Habit {
    Everything,
    /// Agents call sub-agents that ask, and clients answer at once or stop what waits.
    Children,
    /// Agents use tools with effects.
    Effects,
    /// Clients talk to one thread, and agents only answer.
    Talk,
}

/// How often things go wrong under this seed, in permille. Some seeds have none of a kind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Faults {
    /// Longest delay of a call of each node, and of its answer, in milliseconds.
    pub(crate) delay_ms: [u64; 3],
    /// A call fails before it takes effect.
    pub(crate) fails: u64,
    /// The answer is lost after the call took effect.
    pub(crate) loses_answer: u64,
    pub(crate) loses_hint: u64,
    pub(crate) doubles_hint: u64,
    /// Longest delay of a hint, in milliseconds.
    pub(crate) hint_ms: u64,
    /// Mean time between two crashes, freezes or cuts, in milliseconds.
    pub(crate) calm_ms: u64,
    /// What agents and clients do most under this seed.
    pub(crate) habit: Habit,
    /// Weights of a crash, a freeze, a cut and a shutdown.
    pub(crate) weights: [u64; 4],
}

impl Faults {
    fn drawn(dice: &mut fastrand::Rng) -> Self {
        let mut rate = |rates: &[u64]| rates[dice.usize(..rates.len())];
        Self {
            delay_ms: [0; 3].map(|_| rate(&[0, 5, 50, 50])),
            fails: rate(&[0, 0, 10, 50]),
            loses_answer: rate(&[0, 0, 10, 50]),
            loses_hint: rate(&[0, 100, 500, 1000]),
            doubles_hint: rate(&[0, 200]),
            hint_ms: rate(&[0, 50, 2_000]),
            calm_ms: rate(&[1_500, 4_000, 10_000]),
            habit: [
                Habit::Everything,
                Habit::Children,
                Habit::Effects,
                Habit::Talk,
            ][usize::try_from(rate(&[0, 1, 1, 2, 3])).unwrap()],
            weights: [rate(&[0, 3]), rate(&[0, 3]), rate(&[0, 2]), rate(&[0, 1])],
        }
    }
}

#[derive(Default)]
struct Trace {
    hash: u64,
    lines: Vec<String>,
}

pub(crate) struct World {
    pub(crate) store: Arc<MemoryStore>,
    pub(crate) faults: Faults,
    dice: Mutex<fastrand::Rng>,
    n_ids: AtomicU64,
    began: Instant,
    /// No more faults.
    pub(crate) is_calm: AtomicBool,
    pub(crate) logs: Mutex<BTreeMap<ThreadId, SeenLog>>,
    leases: Mutex<BTreeMap<NodeId, Instant>>,
    /// The last node of each name.
    names: Mutex<BTreeMap<String, NodeId>>,
    links: Mutex<BTreeMap<usize, Weak<Link>>>,
    /// The process of each node that has run an effect tool, by call.
    pub(crate) ledger: Mutex<BTreeMap<String, Vec<String>>>,
    trace: Mutex<Trace>,
    violations: Mutex<Vec<String>>,
}

impl World {
    /// The world of a seed, whose faults are changed by `bias`.
    pub(crate) fn new(seed: u64, bias: impl FnOnce(&mut Faults)) -> Arc<Self> {
        let mut dice = fastrand::Rng::with_seed(seed);
        let mut faults = Faults::drawn(&mut dice);
        bias(&mut faults);
        Arc::new(Self {
            store: Arc::new(MemoryStore::new()),
            faults,
            dice: Mutex::new(dice),
            n_ids: AtomicU64::new(0),
            began: Instant::now(),
            is_calm: AtomicBool::new(false),
            logs: Mutex::default(),
            leases: Mutex::default(),
            names: Mutex::default(),
            links: Mutex::default(),
            ledger: Mutex::default(),
            trace: Mutex::default(),
            violations: Mutex::default(),
        })
    }

    /// A new name, with this first part.
    pub(crate) fn mint(&self, what: &str) -> String {
        format!("{what}-{:06}", self.n_ids.fetch_add(1, Ordering::Relaxed))
    }

    /// A number below `n`.
    pub(crate) fn roll(&self, n: u64) -> u64 {
        self.dice.lock().unwrap().u64(..n.max(1))
    }

    pub(crate) fn index(&self, n: usize) -> usize {
        self.dice.lock().unwrap().usize(..n.max(1))
    }

    /// Whether something that happens so often happens now.
    pub(crate) fn happens(&self, permille: u64) -> bool {
        permille > 0 && self.roll(1000) < permille
    }

    pub(crate) fn pick<T: Copy>(&self, of: &[T]) -> T {
        of[self.index(of.len())]
    }

    /// Whether a fault that happens so often happens now.
    pub(crate) fn fails(&self, permille: u64) -> bool {
        !self.is_calm() && self.happens(permille)
    }

    pub(crate) fn is_calm(&self) -> bool {
        self.is_calm.load(Ordering::Relaxed)
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// The time of the store.
    pub(crate) fn now(&self) -> Timestamp {
        let passed = SignedDuration::try_from(self.elapsed()).unwrap();
        Timestamp::from_second(1_700_000_000).unwrap() + passed
    }

    pub(crate) async fn pause(&self, up_to_ms: u64) {
        let ms = self.roll(up_to_ms + 1);
        if ms > 0 {
            tokio::time::sleep(Duration::from_millis(ms)).await;
        }
    }

    /// Adds a line to the trace.
    pub(crate) fn note(&self, line: Arguments<'_>) {
        let ms = self.elapsed().as_millis();
        let mut trace = self.trace.lock().unwrap();
        let line = format!("{ms:>7} {line}");
        for byte in line.bytes().chain([b'\n']) {
            // FNV-1a.
            trace.hash = (trace.hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        trace.lines.push(line);
    }

    pub(crate) fn violate(&self, what: impl Into<String>) {
        let what = what.into();
        self.note(format_args!("VIOLATION {what}"));
        self.violations.lock().unwrap().push(what);
    }

    pub(crate) fn check(&self, is_so: bool, what: impl FnOnce() -> String) {
        if !is_so {
            self.violate(what());
        }
    }

    pub(crate) fn violation(&self) -> Option<String> {
        self.violations.lock().unwrap().first().cloned()
    }

    pub(crate) fn hash(&self) -> u64 {
        self.trace.lock().unwrap().hash
    }

    /// The last lines of the trace, or all of them.
    pub(crate) fn trace(&self, all: bool) -> String {
        let trace = self.trace.lock().unwrap();
        let skip = trace.lines.len().saturating_sub(SHOWN_LINES);
        let shown = if all {
            &trace.lines
        } else {
            &trace.lines[skip..]
        };
        shown.join("\n")
    }

    pub(crate) fn connect(&self, place: usize, link: &Arc<Link>) {
        self.links
            .lock()
            .unwrap()
            .insert(place, Arc::downgrade(link));
    }

    // --- leases

    pub(crate) fn lease(&self, node: NodeId, length: Duration) -> usize {
        let mut leases = self.leases.lock().unwrap();
        leases.insert(node, Instant::now() + length);
        leases.len()
    }

    /// The nodes whose leases have ended.
    pub(crate) fn expired(&self) -> Vec<NodeId> {
        let now = Instant::now();
        let mut leases = self.leases.lock().unwrap();
        let ended = leases.iter().filter(|(_, until)| **until <= now);
        let ended: Vec<NodeId> = ended.map(|(node, _)| *node).collect();
        leases.retain(|node, _| !ended.contains(node));
        ended
    }

    /// A node has joined: the earlier one of that name is dead.
    pub(crate) fn joined(&self, name: &str, node: NodeId) {
        let before = self.names.lock().unwrap().insert(name.to_owned(), node);
        if let Some(before) = before {
            self.end_lease(before);
        }
    }

    pub(crate) fn end_lease(&self, node: NodeId) {
        self.leases.lock().unwrap().remove(&node);
    }

    fn lives(&self, node: NodeId) -> bool {
        self.leases.lock().unwrap().contains_key(&node)
    }

    // --- what took effect

    /// Checks an append that took effect through the link of this node.
    pub(crate) fn appended(&self, link: &Link, append: &Append, appended: Appended) {
        let thread = &append.thread;
        let mut logs = self.logs.lock().unwrap();
        let log = logs.entry(thread.clone()).or_default();
        let tail = log.tail();
        self.check(append.tail == tail && append.epoch == log.epoch, || {
            format!(
                "{thread}: an append at {} of epoch {:?} landed at {tail} of {:?}",
                append.tail, append.epoch, log.epoch
            )
        });
        let starts = |record: &NewRecord| matches!(record.event(), Event::ExecutionCreated { .. });
        let is_owned_elsewhere = |owner: NodeId| !link.is_node(owner) && self.lives(owner);
        let owner = log.owner;
        match append.ownership {
            Ownership::Keep => {}
            Ownership::Take(taker) => {
                let is_taken = owner.is_some_and(is_owned_elsewhere);
                self.check(!is_taken || append.records.iter().any(starts), || {
                    format!("{thread}: node {taker:?} has taken the run of {owner:?}, which lives")
                });
                log.owner = Some(taker);
                log.epoch = Epoch(log.epoch.0 + 1);
            }
            Ownership::Offer | Ownership::Rest => log.owner = None,
        }
        let is_work = append
            .records
            .iter()
            .any(|record| is_output(record.event()));
        let is_owner = owner.is_some_and(|owner| link.is_node(owner))
            || matches!(append.ownership, Ownership::Take(_));
        self.check(!is_work || is_owner, || {
            let place = link.place;
            format!("{thread}: n{place} has written into the step of a run that {owner:?} owns")
        });
        self.check(appended.epoch == log.epoch, || {
            format!("{thread}: wrong epoch")
        });
        self.extend(log, &append.records);
        if let Some(wrong) = log.misowned(append.ownership) {
            self.violate(format!("{thread} {wrong}"));
        }
        self.check(appended.tail.0 == log.records.len() as u64, || {
            format!("{thread}: wrong tail")
        });
    }

    pub(crate) fn created(&self, created: &Created, first: &[NewRecord], owner: Option<NodeId>) {
        let Some(epoch) = created.epoch else { return };
        let mut logs = self.logs.lock().unwrap();
        let log = logs.entry(created.thread.clone()).or_default();
        self.check(log.records.is_empty(), || {
            format!("{} was made twice", created.thread)
        });
        (log.epoch, log.owner) = (epoch, owner);
        self.extend(log, first);
    }

    fn extend(&self, log: &mut SeenLog, records: &[NewRecord]) {
        for record in records {
            if let Some(wrong) = log.push(record) {
                self.violate(wrong);
            }
        }
    }

    pub(crate) fn deleted(&self, thread: &ThreadId) {
        if let Some(log) = self.logs.lock().unwrap().get_mut(thread) {
            log.is_deleted = true;
        }
    }

    /// Hints the other nodes of a change, as the store would.
    pub(crate) fn hint(&self, from: usize, hint: &Hint) {
        let links: Vec<_> = self
            .links
            .lock()
            .unwrap()
            .iter()
            .map(|(place, link)| (*place, link.clone()))
            .collect();
        for (place, link) in links {
            if place != from
                && let Some(link) = link.upgrade()
            {
                link.hinted(hint);
            }
        }
    }

    /// The number of the first record of a thread that this is true of, and how many there are in its log.
    pub(crate) fn found(
        &self,
        thread: &ThreadId,
        is_it: impl Fn(&Logged) -> bool,
    ) -> (Option<Seq>, usize) {
        let logs = self.logs.lock().unwrap();
        let mut found = logs
            .get(thread)
            .into_iter()
            .flat_map(|log| &log.records)
            .filter(|it| is_it(it));
        let first = found.next().map(|logged| logged.record.seq);
        (first, usize::from(first.is_some()) + found.count())
    }
}

/// Whether only the owner of a run writes this event.
fn is_output(event: &Event) -> bool {
    event.is_streamed() || matches!(event, Event::PartCreated { .. })
}

/// The names of the events of records, in short.
pub(crate) fn names(records: &[NewRecord]) -> String {
    let mut names = String::new();
    for record in records {
        let event = record.event();
        let name = match event {
            Event::ChunkEmitted { chunk_type, .. }
                if chunk_type::MARKERS.contains(&chunk_type.as_str()) =>
            {
                chunk_type
            }
            _ => event.event_type().name(),
        };
        let _ = write!(names, " {name}");
    }
    names
}

/// The time of one node.
pub(crate) struct SimClock {
    pub(crate) world: Arc<World>,
    pub(crate) skew: SignedDuration,
}

impl Clock for SimClock {
    fn now(&self) -> Timestamp {
        self.world.now() + self.skew
    }
}

pub(crate) struct SimIds(pub(crate) Arc<World>);

impl Ids for SimIds {
    fn mint(&self) -> String {
        self.0.mint("id")
    }
}
