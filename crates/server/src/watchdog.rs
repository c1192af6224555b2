//! A thread that detects when the async runtime is blocked.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;

/// Time for the runtime to run a probe, after which a stall is logged.
const LIMIT: Duration = Duration::from_secs(5);
/// Pause between two probes.
const PERIOD: Duration = Duration::from_secs(1);

/// Watches a runtime until it is dropped.
pub(crate) struct Watchdog {
    signals: Sender<Signal>,
}

enum Signal {
    /// The runtime has run the probe.
    Ran,
    Stop,
}

/// An observation of the watchdog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Notice {
    /// The runtime has not run a probe for this long.
    Stalls(Duration),
    /// The runtime has run the probe, after this long.
    Recovered(Duration),
}

impl Watchdog {
    /// Watches this runtime from a separate thread.
    pub(crate) fn start(runtime: Handle) -> std::io::Result<Self> {
        Self::with(runtime, LIMIT, PERIOD, log)
    }

    fn with(
        runtime: Handle,
        limit: Duration,
        period: Duration,
        tell: impl Fn(Notice) + Send + 'static,
    ) -> std::io::Result<Self> {
        let (signals, received) = channel();
        let probe = signals.clone();
        let watch = move || {
            // Ends when the watchdog is dropped.
            let _ = watch(&runtime, &probe, &received, (limit, period), &tell);
        };
        let thread = std::thread::Builder::new().name("watchdog".into());
        thread.spawn(watch)?;
        Ok(Self { signals })
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        let _ = self.signals.send(Signal::Stop);
    }
}

struct Stopped;

fn watch(
    runtime: &Handle,
    probe: &Sender<Signal>,
    received: &Receiver<Signal>,
    (limit, period): (Duration, Duration),
    tell: &dyn Fn(Notice),
) -> Result<(), Stopped> {
    loop {
        let asked = Instant::now();
        let answer = probe.clone();
        runtime.spawn(async move {
            let _ = answer.send(Signal::Ran);
        });
        if !has_run(received, limit)? {
            tell(Notice::Stalls(asked.elapsed()));
            while !has_run(received, limit)? {}
            tell(Notice::Recovered(asked.elapsed()));
        }
        // No probe is under way, so only a stop can come.
        has_run(received, period)?;
    }
}

/// Whether the runtime runs the probe within this time.
fn has_run(received: &Receiver<Signal>, within: Duration) -> Result<bool, Stopped> {
    match received.recv_timeout(within) {
        Ok(Signal::Ran) => Ok(true),
        Ok(Signal::Stop) | Err(RecvTimeoutError::Disconnected) => Err(Stopped),
        Err(RecvTimeoutError::Timeout) => Ok(false),
    }
}

fn log(notice: Notice) {
    match notice {
        Notice::Stalls(took) => {
            tracing::error!(
                ?took,
                "the server stalls: its async runtime has run no task for this time"
            );
        }
        Notice::Recovered(took) => {
            tracing::warn!(
                ?took,
                "the server runs tasks again after it stalled for this time"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    fn wait_until(is_so: impl Fn() -> bool) {
        let start = Instant::now();
        while !is_so() {
            assert!(start.elapsed() < Duration::from_secs(30), "it never came");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn a_runtime_that_runs_no_task_is_reported_once_and_once_when_it_recovers() {
        // Nothing drives this runtime until `block_on`.
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let notices: Arc<Mutex<Vec<Notice>>> = Arc::default();
        let told = Arc::clone(&notices);
        let ms = Duration::from_millis;
        let tell = move |notice| told.lock().unwrap().push(notice);
        let watchdog = Watchdog::with(runtime.handle().clone(), ms(50), ms(10), tell).unwrap();
        let n = || notices.lock().unwrap().len();
        wait_until(|| n() == 1);
        std::thread::sleep(ms(200));
        assert_eq!(n(), 1);
        runtime.block_on(async {
            while n() < 2 {
                tokio::time::sleep(ms(5)).await;
            }
        });
        let seen = notices.lock().unwrap().clone();
        assert!(
            matches!(seen[..2], [Notice::Stalls(_), Notice::Recovered(_)]),
            "{seen:?}"
        );
        drop(watchdog);
    }

    #[test]
    fn a_watchdog_ends_with_its_owner() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let alive = Arc::new(());
        let held = Arc::clone(&alive);
        let ms = Duration::from_millis;
        let tell = move |_| drop(Arc::clone(&held));
        let watchdog = Watchdog::with(runtime.handle().clone(), ms(10), ms(10), tell).unwrap();
        assert_eq!(Arc::strong_count(&alive), 2);
        drop(watchdog);
        wait_until(|| Arc::strong_count(&alive) == 1);
    }
}
