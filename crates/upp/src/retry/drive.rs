//! Repeats failed requests according to a strategy.

use super::RetryStrategy;
use crate::error::{Code, Error};
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// One request and its retries.
struct Round<C> {
    strategy: Arc<dyn RetryStrategy>,
    signal: CancellationToken,
    cancelled: C,
    /// The number of the next retry.
    attempt: u32,
}

impl<C: Fn() -> Error> Round<C> {
    fn new(strategy: &dyn RetryStrategy, signal: CancellationToken, cancelled: C) -> Self {
        Self {
            strategy: strategy.fork(),
            signal,
            cancelled,
            attempt: 1,
        }
    }

    async fn wait(&self, delay: Option<Duration>) -> Result<(), Error> {
        if self.signal.is_cancelled() {
            return Err((self.cancelled)());
        }
        let Some(delay) = delay.filter(|delay| !delay.is_zero()) else {
            return Ok(());
        };
        let slept = self.signal.run_until_cancelled(tokio::time::sleep(delay));
        slept.await.ok_or_else(&self.cancelled)
    }

    async fn before(&self) -> Result<(), Error> {
        self.wait(self.strategy.before_request()).await
    }

    /// Waits before the next attempt; returns the error if there is none.
    async fn failed(&mut self, error: Error) -> Result<(), Error> {
        if self.signal.is_cancelled() || error.code == Code::Cancelled {
            return Err(error);
        }
        let Some(delay) = self.strategy.on_retry(&error, self.attempt) else {
            return Err(error);
        };
        tracing::debug!(
            code = error.code.as_str(),
            attempt = self.attempt,
            delay_ms = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX),
            "the request is sent again"
        );
        self.attempt = self.attempt.saturating_add(1);
        self.wait(Some(delay)).await
    }
}

/// Runs `attempt` until it succeeds or the strategy gives up; returns the last error.
///
/// The strategy is forked for this request and decides the wait before every attempt. If `signal` is
/// cancelled during a wait or an attempt, that is dropped and `cancelled` makes the error. A `CANCELLED`
/// error is never retried.
pub async fn with_retries<T, F>(
    strategy: &dyn RetryStrategy,
    signal: &CancellationToken,
    cancelled: impl Fn() -> Error,
    mut attempt: impl FnMut() -> F,
) -> Result<T, Error>
where
    F: Future<Output = Result<T, Error>>,
{
    let mut round = Round::new(strategy, signal.clone(), cancelled);
    loop {
        round.before().await?;
        let outcome = signal.run_until_cancelled(attempt()).await;
        match outcome.unwrap_or_else(|| Err((round.cancelled)())) {
            Ok(value) => {
                round.strategy.reset();
                return Ok(value);
            }
            Err(error) => round.failed(error).await?,
        }
    }
}

/// Opens a stream, and opens it again according to the strategy while it has not yielded an item.
///
/// An error after the first item is not retried, because the output would be shown twice. Otherwise like
/// [`with_retries`].
pub fn retry_stream<T: Send + 'static>(
    strategy: &dyn RetryStrategy,
    signal: CancellationToken,
    cancelled: impl Fn() -> Error + Send + Sync + 'static,
    mut open: impl FnMut() -> BoxStream<'static, Result<T, Error>> + Send + 'static,
) -> BoxStream<'static, Result<T, Error>> {
    let mut round = Round::new(strategy, signal, cancelled);
    async_stream::try_stream! {
        'attempts: loop {
            round.before().await?;
            let mut stream = open();
            let mut begun = false;
            loop {
                let next = round.signal.run_until_cancelled(stream.next()).await;
                match next.ok_or_else(&round.cancelled)? {
                    Some(Ok(item)) => {
                        begun = true;
                        yield item;
                    }
                    Some(Err(error)) if begun => Err(error)?,
                    Some(Err(error)) => {
                        drop(stream);
                        round.failed(error).await?;
                        continue 'attempts;
                    }
                    None => break 'attempts,
                }
            }
        }
        round.strategy.reset();
    }
    .boxed()
}

#[cfg(test)]
mod tests;
