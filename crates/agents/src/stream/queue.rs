//! The events between a run and its reader.

use crate::event::AgentStreamEvent;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::task::{Poll, Waker};

/// Number of events that are buffered for a slow reader before the run waits.
const N_WAITING: usize = 64;

/// A bounded queue between one run and its reader, who polls the run when the queue is empty.
///
/// So the run adds events only while its reader polls it, and the reader takes them only in
/// between. During a poll the queue is in a thread-local ([`lent`](Self::lent)) and needs no lock.
/// A lock for some dozens of events would cost as much as all their other processing.
#[derive(Debug, Default)]
pub(super) struct Queue {
    events: VecDeque<AgentStreamEvent>,
    /// Wakers of senders that wait for room. Tools run concurrently, so there may be several.
    blocked: Vec<Waker>,
    is_closed: bool,
}

thread_local! {
    /// The queue of the run that is polled; closed if there is none.
    static LENT: RefCell<Queue> = const { RefCell::new(Queue::closed()) };
}

/// Restores the queue on drop, also after a panic of the run.
struct Back<'a>(&'a mut Queue);

impl<'a> Back<'a> {
    fn new(queue: &'a mut Queue) -> Self {
        let mut back = Self(queue);
        back.swap();
        back
    }

    fn swap(&mut self) {
        LENT.with_borrow_mut(|lent| std::mem::swap(lent, self.0));
    }
}

impl Drop for Back<'_> {
    fn drop(&mut self) {
        self.swap();
    }
}

impl Queue {
    const fn closed() -> Self {
        Self {
            events: VecDeque::new(),
            blocked: Vec::new(),
            is_closed: true,
        }
    }

    /// Polls a run whose events go to this queue. Wakes waiting senders first, as the queue is
    /// empty.
    pub(super) fn lent<T>(&mut self, poll: impl FnOnce() -> T) -> T {
        self.wake();
        let _back = Back::new(self);
        poll()
    }

    /// The next event to be read.
    pub(super) fn pop(&mut self) -> Option<AgentStreamEvent> {
        self.events.pop_front()
    }

    /// Closes the queue, because the reader is gone: events are discarded from now on.
    pub(super) fn close(&mut self) {
        self.is_closed = true;
        self.events.clear();
        self.wake();
    }

    fn wake(&mut self) {
        self.blocked.drain(..).for_each(Waker::wake);
    }

    /// Adds an event, or returns it if the queue is full.
    fn add(&mut self, event: AgentStreamEvent) -> Result<(), AgentStreamEvent> {
        if self.is_closed || self.events.len() >= N_WAITING {
            return Err(event);
        }
        // A list that grows is copied each time, and most runs have some dozens of events.
        if self.events.capacity() == 0 {
            self.events.reserve_exact(N_WAITING);
        }
        self.events.push_back(event);
        Ok(())
    }
}

/// Adds an event to the queue of the polled run, or returns it if the queue is full.
pub(super) fn try_push(event: AgentStreamEvent) -> Option<AgentStreamEvent> {
    let (left, is_closed) = LENT.with_borrow_mut(|lent| (lent.add(event).err(), lent.is_closed));
    left.filter(|_| !is_closed)
}

/// Adds an event, when there is room.
pub(super) async fn push(event: AgentStreamEvent) {
    let mut waiting = Some(event);
    poll_fn(|cx| {
        waiting = waiting.take().and_then(try_push);
        if waiting.is_none() {
            return Poll::Ready(());
        }
        let waker = cx.waker().clone();
        LENT.with_borrow_mut(|lent| lent.blocked.push(waker));
        Poll::Pending
    })
    .await;
}
