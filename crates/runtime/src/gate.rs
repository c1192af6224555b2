//! Checks of posted items under the thread's lock, before they are written.

use crate::error::RuntimeError;
use crate::live::{Live, LockedThread};
use crate::request::ReactRequest;
use crate::runtime::Runtime;
use futures_util::future::BoxFuture;
use jiff::Timestamp;
use std::sync::Arc;
use store::TenantId;
use timeline::{Command, NewItem, Seq, ThreadId};

/// The items that are about to be written to a thread.
#[derive(Debug)]
pub struct GateRequest<'a> {
    /// The thread; none if the request is about to create it.
    pub thread: Option<&'a ThreadId>,
    /// The last event of its log. Nothing is written between it and the checked items.
    pub tail: Seq,
    /// The time that the items will have.
    pub at: Timestamp,
    /// The items, in order. The gate can change only those that are no part of an answer.
    pub items: &'a mut [NewItem],
}

/// A check of posted items before they are written.
///
/// The runtime calls it while it holds the thread's lock, so its findings stay true until the items
/// are in the log. It must not call a [`Runtime`]'s methods that write. It should cost no more than
/// the size of the items. A repeated request gets the first answer without another check. If
/// another client created the thread first, the items are checked again on that thread.
pub trait Gate: Send + Sync {
    /// Prepares the check of items on a thread whose log ends near `_tail`. The thread's lock is
    /// not held, so no other request waits. A missing thread is no error.
    fn prepare<'a>(
        &'a self,
        _thread: &'a ThreadId,
        _tail: Seq,
    ) -> BoxFuture<'a, Result<(), RuntimeError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Checks the items. If they are refused, nothing of the request is written.
    ///
    /// # Errors
    ///
    /// [`RuntimeError::TurnedAway`] with the reason, which the caller receives unchanged.
    fn check<'a>(&'a self, entering: GateRequest<'a>) -> BoxFuture<'a, Result<(), RuntimeError>>;
}

/// Conditions that are checked under a thread's lock before a request is accepted.
#[derive(Clone, Default)]
pub struct Preconditions {
    /// Checks the posted items.
    pub gate: Option<Arc<dyn Gate>>,
    /// Requires that no message was posted and nothing ran in the thread's own log after this
    /// event. If several clients continue from one event, one succeeds; the others get
    /// [`RuntimeError::Followed`].
    pub after: Option<Seq>,
}

impl Preconditions {
    /// Checks all posted items with this gate.
    pub fn through(gate: Arc<dyn Gate>) -> Self {
        Self {
            gate: Some(gate),
            after: None,
        }
    }

    /// Requires that no message was posted and nothing ran after this event.
    pub fn after(seq: Seq) -> Self {
        Self {
            gate: None,
            after: Some(seq),
        }
    }
}

impl Runtime {
    /// Like [`Runtime::record_all`], under preconditions.
    pub async fn record_on(
        &self,
        tenant: &TenantId,
        key: &str,
        items: Vec<NewItem>,
        terms: Preconditions,
    ) -> Result<Seq, RuntimeError> {
        let live = self.existing(tenant, key).await?;
        let runtime = self.clone();
        self.run_to_completion(async move {
            if let Some(gate) = &terms.gate {
                gate.prepare(&live.thread, live.end()).await?;
            }
            live.decided(async || {
                let mut held = live.hold().await?;
                if let Some(seq) = terms.after {
                    runtime.check_last(&live, &mut held, seq).await?;
                }
                let (mut items, mut at) = (items.clone(), None);
                if let Some(gate) = &terms.gate {
                    at = Some(judged(&live, &mut held, gate.as_ref(), &mut items).await?);
                }
                let commands = items.into_iter();
                let commands = commands.map(|item| (at, Command::Record { item }));
                runtime
                    .append_held(&live, held, None, commands.collect())
                    .await
            })
            .await
        })
        .await
    }
}

/// Runs a gate on items; returns the time with which to write them.
pub(crate) async fn judged(
    live: &Live,
    held: &mut LockedThread<'_>,
    gate: &dyn Gate,
    items: &mut [NewItem],
) -> Result<Timestamp, RuntimeError> {
    let (tail, at) = held.next_position()?;
    let is_there = !held.core()?.is_pending();
    let entering = GateRequest {
        thread: is_there.then_some(&live.thread),
        tail: if is_there { tail } else { Seq::ZERO },
        at,
        items,
    };
    gate.check(entering).await?;
    Ok(at)
}

/// Runs the gate on the trigger of a run and on the messages before it.
pub(crate) async fn judged_trigger(
    live: &Live,
    held: &mut LockedThread<'_>,
    gate: &dyn Gate,
    request: &mut ReactRequest,
) -> Result<Timestamp, RuntimeError> {
    let mut items = std::mem::take(&mut request.before);
    items.push(request.item.clone());
    let at = judged(live, held, gate, &mut items).await?;
    request.item = items.pop().ok_or(RuntimeError::BrokenOff)?;
    request.before = items;
    Ok(at)
}
