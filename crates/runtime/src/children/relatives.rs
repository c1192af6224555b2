//! The threads around a thread: those that it comes from, its forks, and its sub-agents' threads.

use super::relations::spawned_from_call;
use crate::error::RuntimeError;
use crate::runtime::Runtime;
use std::collections::{BTreeSet, VecDeque};
use store::{KeyPattern, StoreError, TenantId, ThreadRow, ThreadRows};
use timeline::ThreadId;

/// Maximum number of ancestors that are followed.
const MAX_ANCESTORS: usize = 64;

/// A thread around another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Relative {
    /// The thread.
    pub row: ThreadRow,
    /// The thread that it was forked from, or the thread with the call.
    pub parent: Option<ThreadId>,
    /// The call that its sub-agent was started for; none if it is no sub-agent's thread.
    pub call: Option<String>,
}

/// The threads around a thread, each after its parent.
#[derive(Clone, Debug, Default)]
pub struct Relatives {
    /// The threads, the root first.
    pub list: Vec<Relative>,
    /// Whether there are more.
    pub more: bool,
}

impl Relative {
    fn of(row: ThreadRow) -> Self {
        let spawned = spawned_from_call(row.thread.metadata.as_ref());
        let (spawned, call) = spawned.unzip();
        let fork = row.thread.fork.as_ref().map(|fork| fork.thread_id.clone());
        let call = call.filter(|_| fork.is_none());
        Self {
            parent: fork.or(spawned),
            call,
            row,
        }
    }
}

impl Runtime {
    /// The threads around a thread, at most `limit`: the path from the root, then the forks and the
    /// sub-agents' threads of the thread, then those of the root. Forks and ancestors whose keys the
    /// caller may not see are left out, with everything below them. The cost is proportional to the
    /// number of threads.
    ///
    /// A sub-agent's thread is found by its key. If its parent's key is so long that the key does not
    /// begin with it, the thread is not found.
    pub async fn relatives(
        &self,
        tenant: &TenantId,
        key: &str,
        limit: usize,
        may_see: &(dyn Fn(&str) -> bool + Send + Sync),
    ) -> Result<Relatives, RuntimeError> {
        let store = self.inner.store.as_ref();
        let is_visible = |row: &ThreadRow| {
            row.tenant == *tenant && row.thread.key.as_deref().is_some_and(may_see)
        };
        let mut path = vec![Relative::of(store.find(tenant, key).await?)];
        while let Some(parent) = path.last().and_then(|it| it.parent.clone()) {
            let row = match store.row(&parent).await {
                Ok(row) if is_visible(&row) => row,
                Ok(_) | Err(StoreError::NotFound) => break,
                Err(error) => return Err(error.into()),
            };
            path.push(Relative::of(row));
            if path.len() > MAX_ANCESTORS {
                break;
            }
        }
        path.reverse();
        if let Some(root) = path.first_mut() {
            root.parent = None;
        }
        let mut around = Around {
            known: BTreeSet::new(),
            found: Relatives::default(),
            limit,
        };
        // The thread's own first: the limit may cut off others.
        let mut next: VecDeque<ThreadRow> = path.iter().rev().map(|it| it.row.clone()).collect();
        for relative in path {
            around.add(relative);
        }
        let mut seen = BTreeSet::new();
        while let Some(row) = next.pop_front() {
            if around.is_full() || !seen.insert(row.thread.id.clone()) {
                continue;
            }
            let forks = store.forks(&row.thread.id).await?;
            let forks: Vec<Relative> = forks.into_iter().map(Relative::of).collect();
            let spawned = spawned_from_call(row.thread.metadata.as_ref());
            // The list of its parent has those below a sub-agent's thread.
            let children = if spawned.is_some_and(|(parent, _)| around.known.contains(&parent)) {
                Vec::new()
            } else {
                self.spawned_below(tenant, &row, &mut around).await?
            };
            for relative in forks
                .into_iter()
                .filter(|it| is_visible(&it.row))
                .chain(children)
            {
                let row = relative.row.clone();
                if around.add(relative) {
                    next.push_back(row);
                }
            }
        }
        Ok(around.found)
    }

    /// The thread whose run led to this one: the first above it that is no sub-agent's, or the thread
    /// itself. The search ends below a thread whose key the caller may not see.
    pub async fn outermost(
        &self,
        tenant: &TenantId,
        key: &str,
        may_see: &(dyn Fn(&str) -> bool + Send + Sync),
    ) -> Result<ThreadRow, RuntimeError> {
        let store = self.inner.store.as_ref();
        let mut found = store.find(tenant, key).await?;
        for _ in 0..MAX_ANCESTORS {
            let Some((parent, _)) = spawned_from_call(found.thread.metadata.as_ref()) else {
                break;
            };
            found = match store.row(&parent).await {
                Ok(row)
                    if row.tenant == *tenant && row.thread.key.as_deref().is_some_and(may_see) =>
                {
                    row
                }
                Ok(_) | Err(StoreError::NotFound) => break,
                Err(error) => return Err(error.into()),
            };
        }
        Ok(found)
    }

    /// The threads of sub-agents below a thread, found by their keys.
    async fn spawned_below(
        &self,
        tenant: &TenantId,
        row: &ThreadRow,
        around: &mut Around,
    ) -> Result<Vec<Relative>, RuntimeError> {
        let Some(key) = &row.thread.key else {
            return Ok(Vec::new());
        };
        let limit = around.left().saturating_add(1);
        let page = ThreadRows {
            key: Some(KeyPattern::Prefix(format!("{key}/"))),
            limit,
            ..ThreadRows::default()
        };
        let rows = self.inner.store.list(tenant, page).await?;
        around.found.more |= rows.len() == limit;
        let mut spawned: Vec<Relative> = rows.into_iter().map(Relative::of).collect();
        spawned.retain(|it| it.call.is_some());
        // A parent's key is shorter than those of its sub-agents.
        spawned.sort_by_key(|it| {
            (
                it.row.thread.key.as_ref().map_or(0, String::len),
                it.row.thread.created_at,
            )
        });
        Ok(spawned)
    }
}

/// The threads found so far.
struct Around {
    known: BTreeSet<ThreadId>,
    found: Relatives,
    limit: usize,
}

impl Around {
    fn is_full(&self) -> bool {
        self.found.more && self.left() == 0
    }

    fn left(&self) -> usize {
        self.limit.saturating_sub(self.found.list.len())
    }

    /// Adds a thread whose parent is known; true if it is new.
    fn add(&mut self, relative: Relative) -> bool {
        let parent = relative.parent.as_ref();
        if parent.is_some_and(|parent| !self.known.contains(parent))
            || self.known.contains(&relative.row.thread.id)
        {
            return false;
        }
        if self.left() == 0 {
            self.found.more = true;
            return false;
        }
        self.known.insert(relative.row.thread.id.clone());
        self.found.list.push(relative);
        true
    }
}
