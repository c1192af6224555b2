//! A cancellation signal that costs nothing until a task waits for it.

use std::future::poll_fn;
use std::ops::Deref;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::{Arc, OnceLock};
use std::task::Poll;
use tokio_util::sync::{CancellationToken, WaitForCancellationFuture};

/// Signals that something is no longer needed. Clones are one signal; cancelling a
/// [child](Signal::child) does not cancel its parent.
///
/// A run makes one for each model call and each tool, and hardly any task waits for one. So it is a flag
/// until its [token](Signal::token) is first requested.
#[derive(Clone, Debug, Default)]
pub struct Signal(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    parent: Option<Signal>,
    is_cancelled: AtomicBool,
    token: OnceLock<CancellationToken>,
}

impl Signal {
    /// A signal that is not cancelled.
    pub fn new() -> Self {
        Self::default()
    }

    /// A signal that is also cancelled when this one is.
    #[must_use]
    pub fn child(&self) -> Self {
        Self(Arc::new(Inner {
            parent: Some(self.clone()),
            is_cancelled: AtomicBool::new(false),
            token: OnceLock::new(),
        }))
    }

    /// Cancels.
    pub fn cancel(&self) {
        self.0.is_cancelled.store(true, Ordering::SeqCst);
        // Either the token is seen here, or who makes it sees the flag.
        fence(Ordering::SeqCst);
        if let Some(token) = self.0.token.get() {
            token.cancel();
        }
    }

    /// Whether it was cancelled, or its parent was.
    pub fn is_cancelled(&self) -> bool {
        let inner = &*self.0;
        // The token hears it last: once this was true, a token that was made meanwhile must not say
        // otherwise.
        inner.is_cancelled.load(Ordering::SeqCst)
            || match inner.token.get() {
                Some(token) => token.is_cancelled(),
                None => inner.parent.as_ref().is_some_and(Self::is_cancelled),
            }
    }

    /// The signal as a token, for tasks that wait.
    pub fn token(&self) -> &CancellationToken {
        let inner = &*self.0;
        let token = inner.token.get_or_init(|| match &inner.parent {
            Some(parent) => parent.token().child_token(),
            None => CancellationToken::new(),
        });
        fence(Ordering::SeqCst);
        if inner.is_cancelled.load(Ordering::SeqCst) {
            token.cancel();
        }
        token
    }

    /// Waits until it is cancelled.
    pub fn cancelled(&self) -> WaitForCancellationFuture<'_> {
        self.token().cancelled()
    }

    /// The output of `future`, or `None` if this is cancelled first. A listener is registered only when
    /// the future has to wait.
    pub async fn run_until_cancelled<F: Future>(&self, future: F) -> Option<F::Output> {
        let mut future = pin!(future);
        let mut cancelled = pin!(None);
        poll_fn(|cx| {
            let is_cancelled = match cancelled.as_mut().as_pin_mut() {
                Some(cancelled) => WaitForCancellationFuture::poll(cancelled, cx).is_ready(),
                None => self.is_cancelled(),
            };
            if is_cancelled {
                return Poll::Ready(None);
            }
            if let Poll::Ready(output) = future.as_mut().poll(cx) {
                return Poll::Ready(Some(output));
            }
            if cancelled.is_none() {
                cancelled.set(Some(self.cancelled()));
                if let Some(cancelled) = cancelled.as_mut().as_pin_mut() {
                    return cancelled.poll(cx).map(|()| None);
                }
            }
            Poll::Pending
        })
        .await
    }
}

/// Makes the token.
impl Deref for Signal {
    type Target = CancellationToken;

    fn deref(&self) -> &CancellationToken {
        self.token()
    }
}

impl From<CancellationToken> for Signal {
    /// The token itself.
    fn from(token: CancellationToken) -> Self {
        Self(Arc::new(Inner {
            parent: None,
            is_cancelled: AtomicBool::new(false),
            token: token.into(),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;
    use futures_util::future::{pending, ready};

    #[test]
    fn a_parent_cancels_its_children_and_no_child_its_parent() {
        // The token is made never, before and after.
        for (before, after) in [(false, false), (true, false), (false, true)] {
            let parent = Signal::new();
            let (child, other) = (parent.child(), parent.child());
            if before {
                child.token();
            }
            let grandchild = child.child();
            child.cancel();
            if after {
                child.token();
                grandchild.token();
            }
            assert!(child.is_cancelled() && child.clone().is_cancelled());
            assert!(grandchild.is_cancelled() && grandchild.token().is_cancelled());
            assert!(!parent.is_cancelled() && !other.is_cancelled());
            parent.cancel();
            assert!(other.is_cancelled() && other.token().is_cancelled());
            assert!(parent.child().is_cancelled());
        }
    }

    #[test]
    fn a_token_and_the_signal_of_it_are_one() {
        let token = CancellationToken::new();
        let signal = Signal::from(token.clone());
        signal.child().cancel();
        assert!(!token.is_cancelled());
        token.cancel();
        assert!(signal.is_cancelled() && signal.child().is_cancelled());
        let (token, signal) = (CancellationToken::new(), Signal::new());
        Signal::from(token.clone()).cancel();
        assert!(token.is_cancelled());
        signal.token().cancel();
        assert!(signal.is_cancelled());
    }

    #[test]
    fn what_was_cancelled_stays_so_while_its_token_has_not_heard_it() {
        let signal = Signal::new();
        signal.0.is_cancelled.store(true, Ordering::SeqCst);
        assert!(signal.is_cancelled());
        // Another thread makes the token, and has not looked at the flag.
        signal.0.token.get_or_init(CancellationToken::new);
        assert!(signal.is_cancelled());
        assert!(signal.token().is_cancelled());
    }

    #[tokio::test]
    async fn what_waits_ends_with_the_signal_and_what_does_not_wait_makes_no_token() {
        let signal = Signal::new().child();
        assert_eq!(signal.run_until_cancelled(ready(1)).await, Some(1));
        assert!(signal.0.token.get().is_none());
        let waits = signal.run_until_cancelled(pending::<()>());
        let (outcome, ()) = tokio::join!(waits, async { signal.cancel() });
        assert_eq!(outcome, None);
        assert_eq!(
            signal.run_until_cancelled(ready(1)).now_or_never(),
            Some(None)
        );
    }
}
