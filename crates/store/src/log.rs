//! The log of a thread: what is appended to it and read from it.

use crate::{NodeId, Ownership, StoreError, TenantId};
use futures_util::future::BoxFuture;
use jiff::Timestamp;
use std::fmt::Debug;
use std::sync::Arc;
use timeline::{Event, Record, Seq, State, Thread, ThreadId, chunk_type};

/// The fencing token of the node that owns a thread's run. It rises when another node takes the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Epoch(pub u64);

impl Epoch {
    /// The epoch of a new thread.
    pub const FIRST: Self = Self(1);
}

/// A record to be appended: the event and its text, encoded once.
#[derive(Clone, Debug)]
pub struct NewRecord {
    /// When it is written.
    pub at: Timestamp,
    event: Event,
    text: Arc<str>,
}

impl NewRecord {
    /// Encodes an event that is to be appended.
    ///
    /// # Errors
    ///
    /// If the event can't be encoded as JSON.
    pub fn new(at: Timestamp, event: Event) -> Result<Self, serde_json::Error> {
        let text = event.encode()?.into();
        Ok(Self { at, event, text })
    }

    /// The event.
    pub fn event(&self) -> &Event {
        &self.event
    }

    /// The event's JSON.
    pub fn text(&self) -> &Arc<str> {
        &self.text
    }

    /// The record at its position in a log.
    pub fn logged(self, seq: Seq) -> Logged {
        let Self { at, event, text } = self;
        Logged {
            record: Record { seq, at, event },
            text,
            large: None,
        }
    }

    /// The new thread, if these records create one.
    pub fn thread_of(first: &[Self]) -> Option<&Thread> {
        first.iter().find_map(|record| {
            let Event::ThreadCreated { thread } = record.event() else {
                return None;
            };
            Some(thread)
        })
    }
}

/// A record of the log with its text.
#[derive(Clone, Debug)]
pub struct Logged {
    /// Place, time and event.
    pub record: Record,
    /// The event's JSON, as it was appended.
    pub text: Arc<str>,
    /// The permit to hold the record in memory, if it is large and was read for followers. Code that
    /// holds `text` longer than the record must hold this too.
    pub large: Option<Arc<LargeRecord>>,
}

/// The permit to hold one large record in memory, returned when the last holder drops it.
#[derive(Debug)]
pub struct LargeRecord {
    _permit: Box<dyn Debug + Send + Sync>,
}

impl LargeRecord {
    /// Wraps a permit of the reader's own budget.
    pub fn holding(permit: impl Debug + Send + Sync + 'static) -> Self {
        Self {
            _permit: Box::new(permit),
        }
    }
}

impl PartialEq for Logged {
    fn eq(&self, other: &Self) -> bool {
        (&self.record, &self.text) == (&other.record, &other.text)
    }
}

impl Eq for Logged {}

/// A client's name for its request: the same token never appends twice to one thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// The client's text.
    pub token: String,
    /// The first answer, which a repeated request gets too.
    pub answer: String,
}

/// Records that are appended together, or not at all.
#[derive(Clone, Debug)]
pub struct Append {
    /// The thread.
    pub thread: ThreadId,
    /// The expected epoch.
    pub epoch: Epoch,
    /// The expected tail.
    pub tail: Seq,
    /// The owner of the thread's run after it.
    pub ownership: Ownership,
    /// The records to append.
    pub records: Vec<NewRecord>,
    /// The client's token, if it sent one.
    pub token: Option<Token>,
    /// Whether it is refused if the tenant would exceed its limit of bytes.
    pub is_limited: bool,
    /// Other threads, and where their logs must still end. The records were decided by what they say.
    pub unmoved: Vec<(ThreadId, Seq)>,
}

/// The end of a log after an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// The last event.
    pub tail: Seq,
    /// The epoch: a higher one than before if the append took the run.
    pub epoch: Epoch,
}

/// The end of a thread's log, with its state.
#[derive(Clone, Debug)]
pub struct Head {
    /// The thread's tenant.
    pub tenant: TenantId,
    /// The current epoch.
    pub epoch: Epoch,
    /// The living node that owns the thread's run.
    pub owner: Option<NodeId>,
    /// The last event.
    pub tail: Seq,
    /// The instant of the last event.
    pub last_at: Timestamp,
    /// The fold of the log.
    pub state: State,
}

/// The result of get-or-create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Created {
    /// The thread with that key.
    pub thread: ThreadId,
    /// The epoch of the new thread; `None` if the thread existed.
    pub epoch: Option<Epoch>,
}

impl Created {
    /// Whether it was made just now.
    pub fn is_new(&self) -> bool {
        self.epoch.is_some()
    }
}

/// Maximum size of the texts of the records that one [`EventLog::read`] returns, in bytes. A larger
/// record is a page of its own.
pub const PAGE_BYTES: usize = 256 << 10;

/// Counts the bytes of a page.
#[derive(Debug, Default)]
pub struct PageSize {
    bytes: usize,
}

impl PageSize {
    /// Adds a record with a text of this many bytes. False if the page is full without it.
    pub fn add(&mut self, bytes: usize) -> bool {
        let is_first = self.bytes == 0;
        self.bytes = self.bytes.saturating_add(bytes);
        is_first || self.bytes <= PAGE_BYTES
    }
}

/// Which records are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Filter {
    /// All of them.
    #[default]
    All,
    /// All but the chunks that only show: what a transcript is folded from. The
    /// [markers](chunk_type::MARKERS) are facts.
    Facts,
}

impl Filter {
    /// Whether the filter accepts this event.
    pub fn keeps(self, event: &Event) -> bool {
        match (self, event) {
            (Self::Facts, Event::ChunkEmitted { chunk_type, .. }) => {
                chunk_type::MARKERS.contains(&chunk_type.as_str())
            }
            _ => true,
        }
    }
}

/// The logs of threads, written and read in order.
///
/// Every method is atomic. A result is durable: a reopened store has it.
pub trait EventLog: Send + Sync {
    /// Finds the tenant's thread by the key in `first`, or creates it with these records. Of concurrent
    /// callers, exactly one creates it (EK-2).
    ///
    /// `first` begins with the `thread.created` and `context.created` events of the new thread. `token`
    /// is the token of the request whose records follow them; it is stored with a created thread. `owner`
    /// is the node that owns the run that they start.
    fn get_or_create<'a>(
        &'a self,
        tenant: &'a TenantId,
        first: Vec<NewRecord>,
        token: Option<Token>,
        owner: Option<NodeId>,
    ) -> BoxFuture<'a, Result<Created, StoreError>>;

    /// Appends all records, or none: refused if the epoch or the tail differs from the expected one.
    /// Answers after the records are durable.
    fn append(&self, append: Append) -> BoxFuture<'_, Result<Appended, StoreError>>;

    /// The stored answer to this token on this thread, if the token was used.
    fn answer<'a>(
        &'a self,
        thread: &'a ThreadId,
        token: &'a str,
    ) -> BoxFuture<'a, Result<Option<String>, StoreError>>;

    /// The end of a thread's log, and its state. Costs what the running step holds, not the thread.
    fn head<'a>(&'a self, thread: &'a ThreadId) -> BoxFuture<'a, Result<Head, StoreError>>;

    /// Reads a page of the records after `after`, in order: at most `limit` records, and at most
    /// [`PAGE_BYTES`] unless one record alone is larger. Only an empty page marks the end.
    fn read<'a>(
        &'a self,
        thread: &'a ThreadId,
        after: Seq,
        limit: usize,
        filter: Filter,
    ) -> BoxFuture<'a, Result<Vec<Logged>, StoreError>>;
}
