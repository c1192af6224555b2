//! The calls that waited at an earlier position of a thread.

use super::pending_questions::{CallAddress, Pending};
use super::relations::MAX_DEPTH;
use crate::error::RuntimeError;
use crate::runtime::Runtime;
use crate::thread_page::{Chain, Span};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use store::{Filter, StoreError, TenantId, inherited};
use timeline::{Entry, Open, Seq, ThreadId};

impl Runtime {
    /// The calls that waited after an event of the thread's own log: those of the thread, and those of
    /// its sub-agents as they were when the thread began to wait for them. The cost is proportional to
    /// the execution that left them open.
    ///
    /// # Errors
    ///
    /// [`RuntimeError::BeyondEnd`] if the thread has no such event.
    pub async fn pending_at(
        &self,
        tenant: &TenantId,
        key: &str,
        at: Seq,
    ) -> Result<Vec<Pending>, RuntimeError> {
        let id = self.inner.store.find(tenant, key).await?.thread.id;
        let chain = self.chain_at(tenant, key, at).await?;
        let mut found = Vec::new();
        let place = (id, key.to_owned());
        self.gather_past(tenant, chain, place, &mut Vec::new(), &mut found)
            .await?;
        Ok(found)
    }

    fn gather_past<'a>(
        &'a self,
        tenant: &'a TenantId,
        chain: Chain<'a>,
        (thread_id, key): (ThreadId, String),
        path: &'a mut Vec<CallAddress>,
        found: &'a mut Vec<Pending>,
    ) -> BoxFuture<'a, Result<(), RuntimeError>> {
        async move {
            let Some(Open { execution, calls }) = open_at(&chain).await? else {
                return Ok(());
            };
            let place = |call: &str| CallAddress {
                thread_id: thread_id.clone(),
                key: key.clone(),
                tool_call_id: call.to_owned(),
            };
            found.extend(calls.iter().map(|call| Pending {
                path: path.clone(),
                address: place(&call.tool_call_id),
                execution_id: execution.id.clone(),
                call: call.clone(),
            }));
            if path.len() >= MAX_DEPTH {
                return Ok(());
            }
            let mut children = Vec::new();
            for call in &calls {
                for child in &call.children {
                    children.push((call.tool_call_id.as_str(), child));
                }
            }
            for (call, child) in children {
                if child.is_over {
                    continue;
                }
                let row = self.seen_child_row(tenant, &thread_id, &child.thread_id);
                let Some(row) = row.await? else { continue };
                let chain = match Chain::of(self.inner.store.as_ref(), row).await {
                    Ok(chain) => chain.until(child.seq),
                    Err(StoreError::NotFound) => continue,
                    Err(error) => return Err(error.into()),
                };
                path.push(place(call));
                let at = (child.thread_id.clone(), child.key.clone());
                self.gather_past(tenant, chain, at, path, found).await?;
                path.pop();
            }
            Ok(())
        }
        .boxed()
    }
}

/// The calls that the thread waits for at the end of this chain.
async fn open_at(chain: &Chain<'_>) -> Result<Option<Open>, RuntimeError> {
    let Some(run) = chain.run_before(chain.last.next()).await? else {
        return Ok(None);
    };
    if run.finished.is_none() || !chain.triggers_after(run.last, 1).await?.is_empty() {
        return Ok(None);
    }
    let (first, last) = (run.created, run.last);
    let read = chain.read(Span { first, last }, Filter::Facts).await?;
    let reaction = read
        .entries
        .into_iter()
        .rev()
        .find_map(|entry| match entry {
            Entry::Reaction(reaction) => Some(reaction),
            Entry::Item(_) => None,
        });
    let open = reaction.and_then(|reaction| {
        let calls = reaction.open_calls();
        let execution = reaction.execution;
        (!calls.is_empty()).then_some(Open { execution, calls })
    });
    Ok(match chain.own_seq(run.created) {
        Some(_) => open,
        None => open.and_then(inherited),
    })
}
