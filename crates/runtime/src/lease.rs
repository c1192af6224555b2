//! The lease of this process as a node of a store.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use store::{Lease, NodeId};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

/// The lease of a node that has none yet, for its pauses.
const LEASE: Duration = Duration::from_secs(12);
/// The part of a lease between two renewals.
const RENEWAL: u32 = 4;
/// The part of a lease between two searches for due threads, without the part that differs between nodes…
const SWEEP: u32 = 8;
/// …and the maximum of that part.
const SWEEP_JITTER: u32 = 12;

/// A renewal after more than this part of a lease is late. Other nodes may have been frozen together with this one.
const LATE: u32 = 2;

/// A node that has not renewed its lease for this number of leases gives up its runs, and its followers must read at
/// another one.
const LOST: u32 = 5;

/// Why a node must not serve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LeaseFault {
    /// Other nodes may take its runs.
    #[error("this node's lease has ended, because the database does not answer")]
    Ended,
    /// Deadlines and the order of lists would be wrong.
    #[error("this machine's clock differs from the database's by more than 5 s")]
    Skewed,
}

/// This process as a node.
pub(crate) struct Node {
    pub(crate) name: String,
    id: AtomicU64,
    n_nodes: Arc<AtomicUsize>,
    /// Wakes the search for due threads.
    pub(crate) has_due: Notify,
    lease: Mutex<LeaseState>,
    /// Changes when the store has not answered for so long that followers must read at another node.
    lost: watch::Sender<()>,
}

/// The last known state of this node's lease.
#[derive(Clone, Copy, Debug, Default)]
struct LeaseState {
    /// When the last renewal was sent, and how long the lease lasts from then on.
    renewed: Option<(Instant, Duration)>,
    /// Since when each renewal has succeeded.
    steady_since: Option<Instant>,
    /// Whether the node's clock differs too much from the store's.
    is_skewed: bool,
}

impl Node {
    /// `n_nodes` receives the number of living nodes.
    pub(crate) fn new(name: String, n_nodes: Arc<AtomicUsize>) -> Self {
        Self {
            name,
            id: AtomicU64::new(NodeId::ALONE.0),
            n_nodes,
            has_due: Notify::new(),
            lease: Mutex::default(),
            lost: watch::Sender::default(),
        }
    }

    /// The id since the node has joined last.
    pub(crate) fn id(&self) -> NodeId {
        NodeId(self.id.load(Ordering::Acquire))
    }

    fn lease_state(&self) -> LeaseState {
        *self.lease.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a renewal that was sent at this time.
    pub(crate) fn renewed(&self, sent: Instant, lease: &Lease, is_skewed: bool) {
        self.n_nodes.store(lease.n_nodes, Ordering::Relaxed);
        let mut state = self.lease.lock().unwrap_or_else(PoisonError::into_inner);
        // A process that was frozen must not judge the nodes that were frozen with it.
        let is_late =
            |(before, left): (Instant, Duration)| sent.duration_since(before) >= left / LATE;
        if state.renewed.is_some_and(is_late) {
            state.steady_since = None;
        }
        state.renewed = Some((sent, lease.left));
        state.steady_since.get_or_insert(sent);
        state.is_skewed = is_skewed;
    }

    /// Notes that the lease was not renewed. Returns whether its runs must end here.
    pub(crate) fn not_renewed(&self) -> bool {
        let mut state = self.lease.lock().unwrap_or_else(PoisonError::into_inner);
        state.steady_since = None;
        let is_lost = |(sent, left): (Instant, Duration)| sent.elapsed() >= left * LOST;
        let is_lost = state.renewed.is_some_and(is_lost);
        if is_lost {
            self.lost.send_replace(());
        }
        is_lost
    }

    /// Changes when followers must read at another node.
    pub(crate) fn lost(&self) -> watch::Receiver<()> {
        self.lost.subscribe()
    }

    /// Notes the id of this node from now on.
    pub(crate) fn joined(&self, id: NodeId) {
        self.id.store(id.0, Ordering::Release);
    }

    /// The number of living nodes, as of the last renewal.
    pub(crate) fn n_nodes(&self) -> usize {
        self.n_nodes.load(Ordering::Relaxed)
    }

    /// Why the node must not serve; none if its lease lasts and its clock agrees with the store's.
    pub(crate) fn fault(&self) -> Option<LeaseFault> {
        let state = self.lease_state();
        let lasts = |(sent, left): (Instant, Duration)| sent.elapsed() < left;
        if !state.renewed.is_some_and(lasts) {
            return Some(LeaseFault::Ended);
        }
        state.is_skewed.then_some(LeaseFault::Skewed)
    }

    /// The length of the last lease.
    fn length(&self) -> Duration {
        self.lease_state().renewed.map_or(LEASE, |(_, left)| left)
    }

    /// The time between two renewals.
    pub(crate) fn renewal(&self) -> Duration {
        self.length() / RENEWAL
    }

    /// Whether each renewal has succeeded in time for the whole length of a lease.
    pub(crate) fn is_steady(&self) -> bool {
        let LeaseState {
            renewed,
            steady_since,
            is_skewed,
        } = self.lease_state();
        let Some(((sent, left), since)) = renewed.zip(steady_since) else {
            return false;
        };
        !is_skewed && sent.elapsed() < left / LATE && since.elapsed() >= left
    }

    /// The time until the next search for due threads. It differs between nodes and searches.
    pub(crate) fn pause(&self, n_searches: u64) -> Duration {
        let length = self.length();
        length / SWEEP + self.spread(length / SWEEP_JITTER, n_searches)
    }

    /// A part of this time, which differs between nodes and between numbers.
    pub(crate) fn spread(&self, time: Duration, n: u64) -> Duration {
        let mixed = (self.id().0 ^ n.rotate_left(17)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let most = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        Duration::from_millis((mixed >> 33) % most.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;
    use tokio::time::advance;

    const LEFT: Duration = Duration::from_secs(12);

    fn renew(node: &Node) {
        let lease = Lease {
            left: LEFT,
            n_nodes: 2,
            now: Timestamp::now(),
        };
        node.renewed(Instant::now(), &lease, false);
    }

    #[tokio::test(start_paused = true)]
    async fn a_node_is_steady_after_renewals_for_a_whole_lease() {
        let node = Node::new("n".into(), Arc::default());
        for n in 0..=RENEWAL {
            renew(&node);
            assert_eq!(node.is_steady(), n == RENEWAL);
            advance(LEFT / RENEWAL).await;
        }
        assert_eq!(node.n_nodes(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_node_that_was_frozen_is_not_steady_for_a_whole_lease() {
        let node = Node::new("n".into(), Arc::default());
        for n in 0..10 {
            renew(&node);
            assert_eq!(node.is_steady(), (4..6).contains(&n), "{n}");
            // A freeze of less than the lease.
            let time = LEFT / if n == 5 { 2 } else { RENEWAL };
            advance(time).await;
            if n == 5 {
                assert!(!node.is_steady(), "others may have been frozen with it");
            }
        }
        renew(&node);
        assert!(node.is_steady());
    }
}
