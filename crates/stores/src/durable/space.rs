//! The space of a store by kind, by tenant and by thread.

use std::collections::BTreeMap;
use timeline::Event;

/// The space of a store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreStorage {
    /// The bytes of the file; of the tables and indexes, if the store is a database server.
    pub file: u64,
    /// The bytes of the write-ahead log; 0 if the store is a database server.
    pub log: u64,
    /// The bytes of the file's free pages; 0 if the store is a database server.
    pub free: u64,
    /// The bytes of the pages of each kind of data, the largest first.
    pub kinds: Vec<(String, u64)>,
    /// The tenants, the largest first.
    pub tenants: Vec<TenantStorage>,
}

/// The content of a tenant, without indexes and unused parts of pages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TenantStorage {
    /// The name.
    pub tenant: String,
    /// The number of threads.
    pub threads: u64,
    /// The number of events.
    pub events: u64,
    /// The bytes of the blocks with the events.
    pub blocks: u64,
    /// The bytes of idempotency tokens and their answers.
    pub tokens: u64,
    /// The bytes of objects.
    pub objects: u64,
    /// The bytes of files.
    pub files: u64,
    /// The bytes of checkpoints.
    pub checkpoints: u64,
}

impl TenantStorage {
    /// All bytes.
    pub fn bytes(&self) -> u64 {
        self.blocks + self.tokens + self.objects + self.files + self.checkpoints
    }
}

/// The content of a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadStorage {
    /// The thread.
    pub id: String,
    /// Its key.
    pub key: Option<String>,
    /// The number of events.
    pub events: u64,
    /// The bytes of the blocks with the events.
    pub blocks: u64,
    /// The blocks whose content was erased.
    pub erased_blocks: u64,
    /// The bytes of idempotency tokens and their answers.
    pub tokens: u64,
    /// The bytes of objects that belong to it.
    pub objects: u64,
    /// The bytes of the texts of events, by kind: `items`, `parts`, `chunks`, `others`. Empty in lists.
    pub texts: BTreeMap<&'static str, u64>,
}

/// The kind of data that a table and its indexes have.
pub(crate) fn kind_of_table(table: &str) -> String {
    let known = match table {
        "thread_blocks" => "events",
        "thread_contexts" | "thread_items" | "thread_executions" | "thread_steps"
        | "thread_parts" | "thread_removals" | "thread_waits" => "tables",
        "thread_threads" => "threads",
        "thread_tokens" => "tokens",
        "tenant_objects" => "objects",
        "tenant_contents" => "files",
        "agent_checkpoints" => "checkpoints",
        "tenant_usage" | "sqlite_schema" | "sqlite_sequence" | "nodes" | "schema_version" => {
            "other"
        }
        table if table.starts_with("thread_words") => "search index",
        table => table,
    };
    known.to_owned()
}

/// The kind of an event in a thread's storage.
pub(crate) fn kind_of_event(event: &Event) -> &'static str {
    if matches!(event, Event::ItemCreated { .. }) {
        "items"
    } else if matches!(event, Event::PartCreated { .. } | Event::PartUpdated { .. }) {
        "parts"
    } else if matches!(event, Event::ChunkEmitted { .. }) {
        "chunks"
    } else {
        "others"
    }
}
