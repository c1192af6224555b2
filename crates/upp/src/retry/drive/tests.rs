use super::*;
use crate::retry::{ExponentialBackoff, LinearBackoff};
use futures_util::stream;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use tokio::time::Instant;

fn error(code: Code) -> Error {
    Error::new(code, "p", "m")
}

fn cancelled() -> Error {
    error(Code::Cancelled)
}

/// Counts attempts; fails with `code` until `good`.
struct Attempts {
    made: AtomicU32,
    good: u32,
    code: Code,
}

impl Attempts {
    fn new(good: u32, code: Code) -> Arc<Self> {
        let made = AtomicU32::new(0);
        Arc::new(Self { made, good, code })
    }

    fn next(&self) -> Result<u32, Error> {
        let made = self.made.fetch_add(1, Ordering::Relaxed) + 1;
        if made < self.good {
            return Err(error(self.code));
        }
        Ok(made)
    }

    fn made(&self) -> u32 {
        self.made.load(Ordering::Relaxed)
    }
}

#[tokio::test(start_paused = true)]
async fn three_retries_are_four_requests() {
    let strategy = LinearBackoff::default();
    let signal = CancellationToken::new();
    let start = Instant::now();
    let attempts = Attempts::new(4, Code::Timeout);
    let outcome = with_retries(&strategy, &signal, cancelled, async || attempts.next()).await;
    assert_eq!(outcome.unwrap(), 4);
    assert_eq!(start.elapsed(), Duration::from_secs(1 + 2 + 3));
    let attempts = Attempts::new(5, Code::Timeout);
    let outcome = with_retries(&strategy, &signal, cancelled, async || attempts.next()).await;
    assert_eq!(
        (outcome.unwrap_err().code, attempts.made()),
        (Code::Timeout, 4)
    );
}

#[tokio::test]
async fn an_error_the_strategy_does_not_know_is_given_back_at_once() {
    let signal = CancellationToken::new();
    let attempts = Attempts::new(2, Code::InvalidRequest);
    let strategy = ExponentialBackoff::default();
    let outcome = with_retries(&strategy, &signal, cancelled, async || attempts.next()).await;
    assert_eq!(
        (outcome.unwrap_err().code, attempts.made()),
        (Code::InvalidRequest, 1)
    );
}

#[tokio::test(start_paused = true)]
async fn a_strategy_is_asked_before_every_attempt_and_told_of_the_success() {
    #[derive(Clone, Default)]
    struct Listens(Arc<Mutex<Vec<&'static str>>>);
    impl RetryStrategy for Listens {
        fn on_retry(&self, _: &Error, _: u32) -> Option<Duration> {
            self.0.lock().unwrap().push("retry");
            Some(Duration::ZERO)
        }
        fn before_request(&self) -> Option<Duration> {
            self.0.lock().unwrap().push("before");
            Some(Duration::from_secs(1))
        }
        fn reset(&self) {
            self.0.lock().unwrap().push("reset");
        }
        fn fork(&self) -> Arc<dyn RetryStrategy> {
            self.0.lock().unwrap().push("fork");
            Arc::new(self.clone())
        }
    }
    let strategy = Listens::default();
    let attempts = Attempts::new(2, Code::ProviderError);
    let signal = CancellationToken::new();
    let start = Instant::now();
    with_retries(&strategy, &signal, cancelled, async || attempts.next())
        .await
        .unwrap();
    assert_eq!(
        *strategy.0.lock().unwrap(),
        ["fork", "before", "retry", "before", "reset"]
    );
    assert_eq!(start.elapsed(), Duration::from_secs(2));
}

#[tokio::test(start_paused = true)]
async fn cancelling_ends_a_wait_and_an_attempt() {
    let strategy = LinearBackoff::default();
    let signal = CancellationToken::new();
    let attempts = Attempts::new(9, Code::Timeout);
    let run = with_retries(&strategy, &signal, cancelled, async || attempts.next());
    let (outcome, ()) = tokio::join!(run, async {
        tokio::time::sleep(Duration::from_millis(1_500)).await;
        signal.cancel();
    });
    assert_eq!(
        (outcome.unwrap_err().code, attempts.made()),
        (Code::Cancelled, 2)
    );
    let signal = CancellationToken::new();
    let run = with_retries(&strategy, &signal, cancelled, || {
        std::future::pending::<Result<(), Error>>()
    });
    let (outcome, ()) = tokio::join!(run, async { signal.cancel() });
    assert_eq!(outcome.unwrap_err().code, Code::Cancelled);
    // What is cancelled before it begins sends nothing.
    let attempts = Attempts::new(1, Code::Timeout);
    let outcome = with_retries(&strategy, &signal, cancelled, async || attempts.next()).await;
    assert!(outcome.is_err() && attempts.made() == 0);
}

#[tokio::test(start_paused = true)]
async fn a_stream_is_opened_again_only_while_nothing_has_come() {
    let opened = Arc::new(AtomicU32::new(0));
    let run = |begins: bool| {
        let opened = Arc::clone(&opened);
        opened.store(0, Ordering::Relaxed);
        retry_stream(
            &LinearBackoff::default(),
            CancellationToken::new(),
            cancelled,
            move || {
                let made = opened.fetch_add(1, Ordering::Relaxed) + 1;
                let failure = (made < 3 || begins).then(|| Err(error(Code::NetworkError)));
                let item = (made == 3 || begins).then_some(Ok(made));
                stream::iter(item.into_iter().chain(failure)).boxed()
            },
        )
    };
    let items: Vec<_> = run(false).collect().await;
    assert_eq!(items.len(), 1);
    assert_eq!(*items[0].as_ref().unwrap(), 3);
    let items: Vec<_> = run(true).collect().await;
    assert_eq!(opened.load(Ordering::Relaxed), 1);
    assert!(items[0].is_ok());
    assert_eq!(items[1].as_ref().unwrap_err().code, Code::NetworkError);
    assert_eq!(items.len(), 2);
}
