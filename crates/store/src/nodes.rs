//! The processes that share a store, and the runs that they own.

use crate::{EventLog, StoreError, TenantId};
use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream};
use jiff::Timestamp;
use std::time::Duration;
use timeline::{Seq, ThreadId};

/// A process that runs threads of a store. Each start of a process is another node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodeId(pub u64);

impl NodeId {
    /// The only process of a store, or one that has not joined. Other nodes may take its runs at any time.
    pub const ALONE: Self = Self(0);
}

/// The owner of a thread's run after an append.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ownership {
    /// The owner stays. Any node may append so, also without owning the run.
    #[default]
    Keep,
    /// This node owns the run from now on. The epoch rises, so appends of the former owner are refused.
    Take(NodeId),
    /// No node owns the run, and the thread has work: it is [due](NodeTable::due) at once.
    Offer,
    /// No node owns a run, because the thread has no work.
    Rest,
}

/// A renewed lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    /// How long the node lives without the next renewal, from the time when this one was sent.
    pub left: Duration,
    /// The number of nodes that live.
    pub n_nodes: usize,
    /// The time of the store's clock.
    pub now: Timestamp,
}

/// A search for threads with work whose run no living node owns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DueSearch {
    /// Maximum number of threads.
    pub limit: usize,
    /// Threads of these tenants are not searched for.
    pub without_tenants: Vec<TenantId>,
    /// These threads are not searched for.
    pub without: Vec<ThreadId>,
}

impl DueSearch {
    /// At most this number of threads.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            ..Self::default()
        }
    }
}

/// A change that another node has made. Hints may be lost, late, or doubled. The log is read, never the hint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hint {
    /// The log of a thread ends at this event, or later.
    Grown(ThreadId, Seq),
    /// The thread is deleted.
    Gone(ThreadId),
    /// Content of the thread was erased from the store.
    Erased(ThreadId),
    /// Somebody follows the thread at another node.
    Watched(ThreadId),
    /// A thread is due.
    Due,
    /// Hints were lost: each thread of interest may have changed.
    Lost,
}

/// The nodes that share a store. A store of one process has no others, as in the implementations here.
pub trait NodeTable: EventLog {
    /// Whether other processes may write to the store at the same time.
    fn is_shared(&self) -> bool {
        false
    }

    /// Adds a node. An earlier node of the same name is dead from then on, so its threads are due.
    fn join<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<NodeId, StoreError>> {
        let _ = name;
        Box::pin(std::future::ready(Ok(NodeId::ALONE)))
    }

    /// Renews the lease of a node.
    ///
    /// # Errors
    ///
    /// [`StoreError::DeadNode`] if the lease has ended and other nodes may have taken its threads.
    fn renew(&self, node: NodeId) -> BoxFuture<'_, Result<Lease, StoreError>> {
        let _ = node;
        let lease = Lease {
            left: Duration::MAX,
            n_nodes: 1,
            now: Timestamp::now(),
        };
        Box::pin(std::future::ready(Ok(lease)))
    }

    /// Ends the lease of a node. The threads whose runs it owns are due.
    fn leave(&self, node: NodeId) -> BoxFuture<'_, Result<(), StoreError>> {
        let _ = node;
        Box::pin(std::future::ready(Ok(())))
    }

    /// Declares the nodes dead whose lease has ended, so that their threads are due. Returns their number.
    ///
    /// After an outage of the store all leases may have ended. So a node calls it only after its own lease was renewed
    /// without a failure for the length of a lease.
    fn declare_dead(&self) -> BoxFuture<'_, Result<usize, StoreError>> {
        Box::pin(std::future::ready(Ok(0)))
    }

    /// Where the logs of these threads end. A deleted thread is left out.
    fn tails(
        &self,
        threads: Vec<ThreadId>,
    ) -> BoxFuture<'_, Result<Vec<(ThreadId, Seq)>, StoreError>> {
        Box::pin(async move {
            let mut tails = Vec::new();
            for thread in threads {
                match self.head(&thread).await {
                    Ok(head) => tails.push((thread, head.tail)),
                    Err(StoreError::NotFound) => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(tails)
        })
    }

    /// Threads with work whose run no living node owns.
    fn due(&self, search: DueSearch) -> BoxFuture<'_, Result<Vec<ThreadId>, StoreError>>;

    /// Threads with work whose run this node owns.
    fn owned(&self, node: NodeId) -> BoxFuture<'_, Result<Vec<ThreadId>, StoreError>> {
        let _ = node;
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    /// Gives other nodes a hint. The store itself hints at what it appends and deletes.
    fn announce(&self, hint: Hint) {
        let _ = hint;
    }

    /// The changes that other nodes make from now on.
    fn hints(&self) -> BoxStream<'static, Hint> {
        stream::pending().boxed()
    }
}
