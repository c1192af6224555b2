//! Finds the pending calls of a thread and of the threads below it.

use super::records::{Ended, Spawned};
use super::relations::MAX_DEPTH;
use super::repeated::Among;
use super::wake::{open_calls, waited_for};
use crate::error::RuntimeError;
use crate::runtime::Runtime;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::collections::BTreeSet;
use store::{StoreError, TenantId};
use timeline::{ExecutionId, OpenCall, Seq, State, ThreadId};

/// Selects calls of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Calls {
    /// The calls that a thread at rest waits for.
    Waiting,
    /// The calls that may be answered now, also while an execution acts on answers to others.
    Unanswered,
}

impl Calls {
    /// These calls of a thread, each with the execution that left it open.
    fn of(self, state: &State) -> Vec<(&ExecutionId, &OpenCall)> {
        let execution = match (state.active(), state.open()) {
            (Some(active), _) => &active.execution.id,
            (None, Some(open)) => &open.execution.id,
            (None, None) => return Vec::new(),
        };
        let calls = match self {
            Self::Waiting => state.open().map(|open| open.calls.iter().collect()),
            Self::Unanswered => Some(state.unanswered()),
        };
        let calls = calls.unwrap_or_default().into_iter();
        calls.map(|call| (execution, call)).collect()
    }
}

/// A call, and the thread that has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallAddress {
    /// The thread.
    pub thread_id: ThreadId,
    /// Its key.
    pub key: String,
    /// The call.
    pub tool_call_id: String,
}

/// A waiting call on a thread or on a sub-agent's thread below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pending {
    /// The calls above it whose sub-agents led to it, the first one first; none for the thread's own.
    pub path: Vec<CallAddress>,
    /// The address of the call.
    pub address: CallAddress,
    /// The execution that left it open.
    pub execution_id: ExecutionId,
    /// The call.
    pub call: OpenCall,
}

/// The destination of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Addressed {
    /// To the thread with this key.
    To(String),
    /// Calls of several sub-agents have the id, so the thread must be named.
    Ambiguous,
    /// The named thread is not below the other one.
    OtherThread,
}

impl Runtime {
    /// The calls that wait for outside answers, on a thread and on those of its sub-agents at any
    /// depth, and the last event of the thread. A thread with a running execution has none of its
    /// own, but its sub-agents may. The cost is proportional to the waiting calls and to the
    /// unfinished threads below.
    pub async fn pending(
        &self,
        tenant: &TenantId,
        key: &str,
    ) -> Result<(Vec<Pending>, Seq), RuntimeError> {
        self.calls(tenant, key, Calls::Waiting).await
    }

    /// The calls that may be answered now, on a thread and on those of its sub-agents at any depth.
    /// They are the waiting calls, and the calls that an execution which acts on other answers
    /// leaves waiting. The cost is that of [`Runtime::pending`].
    pub async fn unanswered(
        &self,
        tenant: &TenantId,
        key: &str,
    ) -> Result<Vec<Pending>, RuntimeError> {
        Ok(self.calls(tenant, key, Calls::Unanswered).await?.0)
    }

    async fn calls(
        &self,
        tenant: &TenantId,
        key: &str,
        calls: Calls,
    ) -> Result<(Vec<Pending>, Seq), RuntimeError> {
        let row = self.inner.store.find(tenant, key).await?;
        let head = self.inner.store.head(&row.thread.id).await?;
        let mut found = Vec::new();
        let place = (row.thread.id, key.to_owned());
        let seen = (&head.state, calls);
        self.gather(tenant, seen, place, &mut Vec::new(), &mut found)
            .await?;
        Ok((found, head.tail))
    }

    fn gather<'a>(
        &'a self,
        tenant: &'a TenantId,
        (state, calls): (&'a State, Calls),
        (thread_id, key): (ThreadId, String),
        path: &'a mut Vec<CallAddress>,
        found: &'a mut Vec<Pending>,
    ) -> BoxFuture<'a, Result<(), RuntimeError>> {
        async move {
            let place = |call: &str| CallAddress {
                thread_id: thread_id.clone(),
                key: key.clone(),
                tool_call_id: call.to_owned(),
            };
            let own = calls.of(state).into_iter();
            found.extend(own.map(|(execution, call)| Pending {
                path: path.clone(),
                address: place(&call.tool_call_id),
                execution_id: execution.clone(),
                call: call.clone(),
            }));
            if path.len() >= MAX_DEPTH {
                return Ok(());
            }
            for (child, call) in children(state) {
                let row = self.seen_child_row(tenant, &thread_id, &child).await?;
                let Some(row) = row else { continue };
                let head = match self.inner.store.head(&child).await {
                    Ok(head) => head,
                    Err(StoreError::NotFound) => continue,
                    Err(error) => return Err(error.into()),
                };
                let key = row.thread.key.unwrap_or_else(|| child.to_string());
                path.push(place(&call));
                self.gather(tenant, (&head.state, calls), (child, key), path, found)
                    .await?;
                path.pop();
            }
            Ok(())
        }
        .boxed()
    }

    /// Finds the thread that an answer belongs to: this thread or one below it. `named` is the key
    /// of the thread that has the call. Without it, the pending calls are searched, the thread's
    /// own first. A repeated answer with the same token belongs to the thread that accepted it.
    pub async fn addressed(
        &self,
        tenant: &TenantId,
        key: &str,
        call: &str,
        named: Option<&str>,
        token: Option<&str>,
    ) -> Result<Addressed, RuntimeError> {
        let own = || Addressed::To(key.to_owned());
        if let Some(named) = named {
            let is_below = named == key || self.is_below(tenant, key, named).await?;
            return Ok(if is_below {
                Addressed::To(named.to_owned())
            } else {
                Addressed::OtherThread
            });
        }
        let row = self.inner.store.find(tenant, key).await?;
        let thread = row.thread.id;
        if let Some(token) = token {
            if self.inner.store.answer(&thread, token).await?.is_some() {
                return Ok(own());
            }
            let known = self.taken_by(tenant, &thread, token, Among::Waiting);
            if let Some(key) = known.await? {
                return Ok(Addressed::To(key));
            }
        }
        let state = self.inner.store.head(&thread).await?.state;
        if open_calls(&state).iter().any(|it| it.tool_call_id == call) {
            return Ok(own());
        }
        let (pending, _) = self.pending(tenant, key).await?;
        let mut keys = pending.into_iter();
        let mut keys = keys.by_ref().filter(|it| it.call.tool_call_id == call);
        Ok(match (keys.next(), keys.next()) {
            (None, _) => {
                // Only what fits nothing is looked for in all that there was.
                let known = match token {
                    Some(token) => self.taken_by(tenant, &thread, token, Among::All).await?,
                    None => None,
                };
                known.map_or_else(own, Addressed::To)
            }
            (Some(only), None) => Addressed::To(only.address.key),
            (Some(_), Some(_)) => Addressed::Ambiguous,
        })
    }

    /// Whether a thread was made for a sub-agent of another one, at any depth.
    async fn is_below(
        &self,
        tenant: &TenantId,
        above: &str,
        key: &str,
    ) -> Result<bool, RuntimeError> {
        let above = self.inner.store.find(tenant, above).await?.thread.id;
        Ok(self.towards(tenant, &above, key).await?.is_some())
    }
}

/// The threads of all sub-agents of the running step, or of the step that left calls open.
pub(super) fn started(state: &State) -> Vec<ThreadId> {
    let step = state.active().and_then(|active| active.step.as_ref());
    let parts = step.map(|step| step.parts.as_slice()).unwrap_or_default();
    let waited = open_calls(state).iter().flat_map(|call| &call.children);
    let waited = waited.map(|child| child.thread_id.clone());
    let spawned = parts.iter().filter_map(Spawned::read);
    let all: BTreeSet<ThreadId> = waited
        .chain(spawned.map(|it| it.spawned_thread_id))
        .collect();
    all.into_iter().collect()
}

/// The threads of sub-agents that have not ended, each with its call, in the order they started.
pub(crate) fn children(state: &State) -> Vec<(ThreadId, String)> {
    let step = state.active().and_then(|active| active.step.as_ref());
    let parts = step.map(|step| step.parts.as_slice()).unwrap_or_default();
    let ended = parts.iter().filter_map(Ended::read);
    let ended: Vec<ThreadId> = ended.map(|ended| ended.thread_id).collect();
    let waited = waited_for(state);
    let waited = waited.map(|(call, it)| (it.thread_id.clone(), call.tool_call_id.clone()));
    let spawned = parts.iter().filter_map(Spawned::read);
    let spawned = spawned.map(|it| (it.spawned_thread_id, it.tool_call_id));
    let mut known = BTreeSet::new();
    let mut children = Vec::new();
    for (thread, call) in waited.chain(spawned) {
        if !ended.contains(&thread) && known.insert(thread.clone()) {
            children.push((thread, call));
        }
    }
    children
}
