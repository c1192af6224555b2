//! What a store must do (architecture rules 1 and 2).

use crate::checkpoint::CheckpointTable;
use crate::limit::LimitReached;
use crate::objects::ObjectTable;
use crate::pages::LargeRecord;
use crate::request::Run;
use crate::storage::Usage;
use crate::view::ViewRefused;
use futures_util::future::BoxFuture;
use jiff::Timestamp;
use std::sync::Arc;
use timeline::{
    Event, Execution, ExecutionId, ItemId, ItemType, Record, Removed, Seq, State, StepId, Thread,
    ThreadId, chunk_type,
};

/// Whose thread it is. There is no default tenant (EK §12).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TenantId(Arc<str>);

impl TenantId {
    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for TenantId {
    fn from(id: &str) -> Self {
        Self(id.into())
    }
}

impl std::fmt::Display for TenantId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// The fencing token of a thread's writer: each claim is higher than the one before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Epoch(pub u64);

impl Epoch {
    /// The claim of who makes a thread.
    pub const FIRST: Self = Self(1);
}

/// A record to be appended: the event and its text, encoded once.
#[derive(Clone, Debug)]
pub struct NewRecord {
    /// When it is written.
    pub at: Timestamp,
    /// The event.
    pub event: Event,
    /// The event's JSON.
    pub text: Arc<str>,
}

impl NewRecord {
    /// The thread that these records begin, if they begin one.
    pub fn thread_of(first: &[Self]) -> Option<&Thread> {
        first.iter().find_map(|record| {
            let Event::ThreadCreated { thread } = &record.event else {
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
    /// The right to keep it in memory, if it is large and was read for followers. Whoever keeps `text`
    /// longer than the record keeps this, too.
    pub large: Option<Arc<LargeRecord>>,
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
    /// What was answered; a repetition gets the same.
    pub answer: String,
}

/// Records that are appended together, or not at all.
#[derive(Clone, Debug)]
pub struct Append {
    /// The thread.
    pub thread: ThreadId,
    /// The writer's claim; an older one is refused.
    pub epoch: Epoch,
    /// Where the log must end.
    pub tail: Seq,
    /// What is appended.
    pub records: Vec<NewRecord>,
    /// The client's token, if it gave one.
    pub token: Option<Token>,
    /// Whether it is refused where the tenant would store more bytes than it may.
    pub is_limited: bool,
}

/// Where a thread's log stands.
#[derive(Clone, Debug)]
pub struct Head {
    /// Whose it is.
    pub tenant: TenantId,
    /// The last event.
    pub tail: Seq,
    /// The instant of the last event.
    pub last_at: Timestamp,
    /// The fold of the log.
    pub state: State,
}

/// A claim of a thread.
#[derive(Clone, Debug)]
pub struct Claim {
    /// The claimant's epoch; all older ones are void.
    pub epoch: Epoch,
    /// Where the log stands.
    pub head: Head,
}

/// What get-or-create found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Created {
    /// The thread with that key.
    pub thread: ThreadId,
    /// The claim of who has made it just now; none where it was there.
    pub claim: Option<Epoch>,
}

impl Created {
    /// Whether it was made just now.
    pub fn is_new(&self) -> bool {
        self.claim.is_some()
    }
}

/// A thread in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadRow {
    /// Whose it is.
    pub tenant: TenantId,
    /// The thread as it stands.
    pub thread: Thread,
    /// The last event.
    pub tail: Seq,
    /// The bytes its events take in the log.
    pub bytes: u64,
    /// The number of its last change among those of its tenant's threads, in the order in which they
    /// were written. Lists are in this order, whatever clocks say.
    pub change: u64,
}

/// A page of a list: the most recently changed first.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// Only threads after the one with this [`change`](ThreadRow::change) in the list.
    pub after: Option<u64>,
    /// Only threads whose key begins so.
    pub prefix: Option<String>,
    /// At most so many.
    pub limit: usize,
}

/// Maximum size of the texts of the records that one [`Store::read`] gives, in bytes. A larger record
/// is a page of its own.
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
    /// Whether it lets this event through.
    pub fn keeps(self, event: &Event) -> bool {
        match (self, event) {
            (Self::Facts, Event::ChunkEmitted { chunk_type, .. }) => {
                chunk_type::MARKERS.contains(&chunk_type.as_str())
            }
            _ => true,
        }
    }
}

/// Something in a log that can be looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Landmark<'a> {
    /// An item. One that an execution answers though it had to wait stands where that began.
    Item(&'a ItemId),
    /// An execution.
    Execution(&'a ExecutionId),
    /// A step.
    Step(&'a StepId),
}

/// An execution as its log has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ran {
    /// The execution.
    pub execution_id: ExecutionId,
    /// Where the item was kept that it answers.
    pub trigger: Seq,
    /// What that item is.
    pub trigger_type: ItemType,
    /// Whether it goes on with the execution before it ([`Ran::continues`]).
    pub goes_on: bool,
    /// Its first event.
    pub created: Seq,
    /// Its last event, `thread.finished`; none while it runs.
    pub finished: Option<Seq>,
}

impl Ran {
    /// Whether an execution with a trigger of this type goes on with the one before it on its thread:
    /// it acts on answers to that one's calls, or an agent has handed over to its own.
    pub fn continues(execution: &Execution, trigger: ItemType) -> bool {
        trigger == ItemType::ActionResult || Run::of(execution.run.as_ref()).handoffs > 0
    }
}

/// Why a store can't be opened with the key that was given, or with none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// It is not encrypted, and a key was given.
    #[error(
        "the store is not encrypted, and a key was given: leave the key out, or encrypt the store with `loomline rekey`"
    )]
    NotEncrypted,
    /// It is encrypted, and no key was given.
    #[error(
        "the file is no store of loomline, or an encrypted one: give another directory, or let `[store] key_env` name the \
         variable with its key"
    )]
    Missing,
    /// It is encrypted with another key.
    #[error("the store is encrypted with another key, or damaged")]
    Wrong,
    /// This program was built without encryption.
    #[error("this loomline was built without encryption: build it with `--features encryption`")]
    Unsupported,
}

/// Why a store did not do it.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// There is no such thread, or it is another tenant's.
    #[error("there is no such thread")]
    NotFound,
    /// The key is taken.
    #[error("a thread with key {0:?} exists already")]
    KeyTaken(String),
    /// The log no longer ends where the writer thought.
    #[error("the log of thread {thread} ends at {found}, not at {expected}")]
    Conflict {
        /// The thread.
        thread: ThreadId,
        /// Where the writer thought it ends.
        expected: Seq,
        /// Where it ends.
        found: Seq,
    },
    /// Another writer has claimed the thread since.
    #[error("thread {thread} has been claimed by another writer")]
    Fenced {
        /// The thread.
        thread: ThreadId,
    },
    /// The token was used before; this was answered.
    #[error("this request was answered before")]
    Repeated {
        /// The answer.
        answer: String,
    },
    /// There is no such object, or it is another tenant's.
    #[error("there is no {kind} {id:?}")]
    NoSuchObject {
        /// What kind of object.
        kind: String,
        /// Its id.
        id: String,
    },
    /// Other threads are forked from it.
    #[error("thread {thread} has forks; delete them first")]
    HasForks {
        /// The thread.
        thread: ThreadId,
    },
    /// The tenant stores as much as it may. Nothing was written.
    #[error(transparent)]
    LimitReached(#[from] LimitReached),
    /// An id of the records is in use already.
    #[error("an id is in use already: {0}")]
    Duplicate(String),
    /// The data is not what this program wrote. The store has logged it.
    #[error("the store is damaged: {0}")]
    Damaged(String),
    /// The schema is newer than this program.
    #[error(
        "the store has schema version {found}, this program knows {known}: use a newer loomline"
    )]
    TooNew {
        /// The version found.
        found: u32,
        /// The newest version known.
        known: u32,
    },
    /// There is a write-ahead log and no database that it belongs to: somebody has deleted or
    /// emptied the database.
    #[error(
        "the database {path} is missing or empty, and its write-ahead log {path}-wal holds {bytes} bytes of it: \
         put the database back beside the log, or a whole backup in place of both; \
         to begin with an empty store instead, move the log away"
    )]
    OrphanedLog {
        /// The database.
        path: String,
        /// The size of the log, in bytes.
        bytes: u64,
    },
    /// It is encrypted, or not, and what was given to open it does not fit.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// What a request reads of threads at once is bounded.
    #[error(transparent)]
    View(#[from] ViewRefused),
    /// Another process has it open for writing.
    #[error("another process serves this store ({0}); stop it first, or talk to it over HTTP")]
    InUse(String),
    /// The store is closing.
    #[error("the store is closed")]
    Closed,
    /// The database or the disk failed. The store has logged it, once per second at most.
    #[error("the store failed")]
    Failed(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl StoreError {
    /// Whether the same call may succeed later.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Failed(_))
    }
}

/// A store of threads: an append-only log each, and what can be looked up in it.
///
/// Every method is atomic. What a call has answered is durable: a store that is opened again has
/// it. [`suite`](crate::suite) holds every implementation to this.
pub trait Store: Send + Sync {
    /// Finds the tenant's thread by the key in `first`, or makes it with these first records. Of
    /// any number of callers at once, exactly one makes it (EK-2), and has claimed it with that.
    ///
    /// `first` begins with the `thread.created` and `context.created` events of the new thread. The
    /// token is that of what `first` goes on with; it is kept with a thread that is made.
    fn get_or_create<'a>(
        &'a self,
        tenant: &'a TenantId,
        first: Vec<NewRecord>,
        token: Option<Token>,
    ) -> BoxFuture<'a, Result<Created, StoreError>>;

    /// Finds a thread by its key.
    fn find<'a>(
        &'a self,
        tenant: &'a TenantId,
        key: &'a str,
    ) -> BoxFuture<'a, Result<ThreadRow, StoreError>>;

    /// Finds a thread by its id, whoever asks; for following forks and for recovery.
    fn row<'a>(&'a self, thread: &'a ThreadId) -> BoxFuture<'a, Result<ThreadRow, StoreError>>;

    /// Lists the tenant's threads.
    fn list<'a>(
        &'a self,
        tenant: &'a TenantId,
        page: Page,
    ) -> BoxFuture<'a, Result<Vec<ThreadRow>, StoreError>>;

    /// The threads that are forked from this one itself, in the order they were made.
    fn forks<'a>(
        &'a self,
        thread: &'a ThreadId,
    ) -> BoxFuture<'a, Result<Vec<ThreadRow>, StoreError>>;

    /// Deletes a thread, everything of it, and the [objects](ObjectTable) that lie beside it.
    fn delete<'a>(
        &'a self,
        tenant: &'a TenantId,
        thread: &'a ThreadId,
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Where a thread's log stands, without a claim: for readers. Costs what a claim costs.
    fn head<'a>(&'a self, thread: &'a ThreadId) -> BoxFuture<'a, Result<Head, StoreError>>;

    /// Becomes the only writer of a thread. Costs what the running step holds, not the thread.
    fn claim<'a>(&'a self, thread: &'a ThreadId) -> BoxFuture<'a, Result<Claim, StoreError>>;

    /// Appends all records, or none: refused when the claim is void or the log ends elsewhere.
    /// Answers with the new end of the log, once that is durable.
    fn append(&self, append: Append) -> BoxFuture<'_, Result<Seq, StoreError>>;

    /// What was answered to this token on this thread, if it was used.
    fn answer<'a>(
        &'a self,
        thread: &'a ThreadId,
        token: &'a str,
    ) -> BoxFuture<'a, Result<Option<String>, StoreError>>;

    /// Reads a page of the records after `after`, in order: at most `limit` records, and at most
    /// [`PAGE_BYTES`] unless one record alone is larger. Only an empty page means that there are no
    /// more.
    fn read<'a>(
        &'a self,
        thread: &'a ThreadId,
        after: Seq,
        limit: usize,
        filter: Filter,
    ) -> BoxFuture<'a, Result<Vec<Logged>, StoreError>>;

    /// Where in the thread's own log something stands: the event that made it. What a fork has of
    /// its parent is in the parent's log.
    fn place_of<'a>(
        &'a self,
        thread: &'a ThreadId,
        landmark: Landmark<'a>,
    ) -> BoxFuture<'a, Result<Option<Seq>, StoreError>>;

    /// The places, before this one in the thread's own log, of messages that were said to the
    /// agents: kept, or answered by an execution. The last comes first.
    fn triggers_before<'a>(
        &'a self,
        thread: &'a ThreadId,
        before: Seq,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Seq>, StoreError>>;

    /// Positions of messages to the agents after this one, the first one first.
    fn triggers_after<'a>(
        &'a self,
        thread: &'a ThreadId,
        after: Seq,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Seq>, StoreError>>;

    /// The last execution that began before this place of the thread's own log.
    fn run_before<'a>(
        &'a self,
        thread: &'a ThreadId,
        before: Seq,
    ) -> BoxFuture<'a, Result<Option<Ran>, StoreError>>;

    /// The first execution that began after this place of the thread's own log.
    fn run_after<'a>(
        &'a self,
        thread: &'a ThreadId,
        after: Seq,
    ) -> BoxFuture<'a, Result<Option<Ran>, StoreError>>;

    /// Which of these the thread's own log has removed, and where.
    fn removals<'a>(
        &'a self,
        thread: &'a ThreadId,
        of: Vec<Removed>,
    ) -> BoxFuture<'a, Result<Vec<(Removed, Seq)>, StoreError>>;

    /// The threads with an execution to resume or a trigger to answer.
    fn unfinished(&self) -> BoxFuture<'_, Result<Vec<ThreadId>, StoreError>>;

    /// What each tenant stores that has stored something. Reads no thread.
    fn usage(&self) -> BoxFuture<'_, Result<Vec<(TenantId, Usage)>, StoreError>>;

    /// The checkpoints that lie beside the threads.
    fn checkpoints(&self) -> &dyn CheckpointTable;

    /// The objects that lie beside the threads.
    fn objects(&self) -> &dyn ObjectTable;

    /// Writes out what is buffered and closes. Later calls answer [`StoreError::Closed`].
    fn close(&self) -> BoxFuture<'_, Result<(), StoreError>>;
}
