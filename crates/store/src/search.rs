//! Threads found by the words of their texts, and what lists show of threads.

mod texts;
mod words;

pub use texts::{TEXT_BYTES, text_of_content, text_of_part};
pub use words::{Excerpt, SearchWords, WordsRefused, distinct_words, spaced};

use crate::{KeyPattern, StoreError, TenantId, ThreadFilter, ThreadRow};
use futures_util::future::BoxFuture;
use timeline::{Role, Seq, ThreadId};

/// Maximum number of hits that one thread of a result shows.
pub const HITS_PER_THREAD: usize = 3;

/// Maximum number of characters of [`ThreadPreview::last_text`].
pub const PREVIEW_CHARS: usize = 200;

/// A page of the threads with a text, or a title, that has all words.
#[derive(Clone, Debug, Default)]
pub struct Search {
    /// The words. Without any, nothing is found.
    pub words: SearchWords,
    /// Only threads whose key matches one of these; all threads when absent.
    pub keys: Option<Vec<KeyPattern>>,
    /// Only these threads.
    pub filter: ThreadFilter,
    /// Only threads after this [`FoundThreads::next`].
    pub after: Option<u64>,
    /// Maximum number of threads.
    pub limit: usize,
}

/// A page of found threads: first those whose title has the words, then the one with the newest text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundThreads {
    /// The threads.
    pub threads: Vec<FoundThread>,
    /// The cursor of the next page. `None` at the end. A page with fewer threads than its limit can have
    /// one: a store limits how many texts it reads for a page.
    pub next: Option<u64>,
}

/// A found thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundThread {
    /// The thread.
    pub row: ThreadRow,
    /// Its hits, the title first, then the newest text: at least one, at most [`HITS_PER_THREAD`]. A store
    /// may leave out older ones.
    pub hits: Vec<SearchHit>,
}

/// A text that has the words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchHit {
    /// The event with the text; `None` for the title.
    pub seq: Option<Seq>,
    /// The role of the author, [`Role::Assistant`] for an agent's text; `None` for the title.
    pub role: Option<Role>,
    /// The text around the first match.
    pub excerpt: Excerpt,
}

/// The data of a thread that a list shows besides its row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadPreview {
    /// The agent of its last own run, if the run names one.
    pub agent: Option<String>,
    /// The key of the thread that it was forked from.
    pub forked_from: Option<String>,
    /// The beginning of its newest own text, at most [`PREVIEW_CHARS`]. `None` if the event with the
    /// text is larger than 256 KiB.
    pub last_text: Option<String>,
    /// Whether something in it waits for a person, or may.
    pub may_wait: bool,
}

/// Finds threads by words.
///
/// Texts are the messages that were posted and the texts of agents' parts; of each, the first
/// [`TEXT_BYTES`]. Chunks, reasoning, arguments and results of tools are not searched. A text leaves the
/// index when its item or step is [removed](timeline::Removed), its step is reset, or its thread is
/// deleted. Texts that a fork inherits are found in the thread that has them.
pub trait TextIndex: Send + Sync {
    /// The tenant's threads with a text or title that has all words.
    fn search<'a>(
        &'a self,
        tenant: &'a TenantId,
        search: Search,
    ) -> BoxFuture<'a, Result<FoundThreads, StoreError>>;

    /// The previews of these threads, in the order of the ids. A thread that does not exist has an empty one.
    fn previews(
        &self,
        threads: Vec<ThreadId>,
    ) -> BoxFuture<'_, Result<Vec<ThreadPreview>, StoreError>>;
}
