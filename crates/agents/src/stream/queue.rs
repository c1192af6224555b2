//! The events between a run and its reader.

use crate::event::AgentStreamEvent;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

/// How many events wait for a slow reader before the run does.
const N_WAITING: usize = 64;

/// A bounded queue for one run and one reader, who are polled by the same task.
///
/// So it is never contended, and the reader, who polls the run when there is nothing to read, need
/// not be woken by it: a lock and a list are enough. Only what waits for room is woken.
#[derive(Debug, Default)]
pub(super) struct Queue(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    events: VecDeque<AgentStreamEvent>,
    /// Who waits for room. Tools run side by side, so there may be several.
    blocked: Vec<Waker>,
    is_closed: bool,
}

impl Queue {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an event, or gives it back where there is no room. Once closed it takes all and keeps
    /// nothing.
    pub(super) fn try_push(&self, event: AgentStreamEvent) -> Option<AgentStreamEvent> {
        let mut inner = self.inner();
        if inner.is_closed {
            return None;
        }
        if inner.events.len() >= N_WAITING {
            return Some(event);
        }
        // A list that grows is copied each time, and most runs have some dozens of events.
        if inner.events.capacity() == 0 {
            inner.events.reserve_exact(N_WAITING);
        }
        inner.events.push_back(event);
        None
    }

    /// Adds an event, when there is room.
    pub(super) async fn push(&self, event: AgentStreamEvent) {
        let mut waiting = Some(event);
        poll_fn(|cx| {
            let Some(event) = waiting.take() else {
                return Poll::Ready(());
            };
            let mut inner = self.inner();
            if inner.is_closed {
                return Poll::Ready(());
            }
            if inner.events.len() < N_WAITING {
                inner.events.push_back(event);
                return Poll::Ready(());
            }
            waiting = Some(event);
            inner.blocked.push(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }

    /// Takes all events that are there, and leaves the empty list in their place.
    pub(super) fn take(&self, empty: &mut VecDeque<AgentStreamEvent>) {
        let mut inner = self.inner();
        std::mem::swap(&mut inner.events, empty);
        let blocked = std::mem::take(&mut inner.blocked);
        drop(inner);
        blocked.into_iter().for_each(Waker::wake);
    }

    /// Nobody reads any more.
    pub(super) fn close(&self) {
        let mut inner = self.inner();
        inner.is_closed = true;
        let unread = std::mem::take(&mut inner.events);
        let blocked = std::mem::take(&mut inner.blocked);
        drop(inner);
        drop(unread);
        blocked.into_iter().for_each(Waker::wake);
    }
}
