//! `SIGTERM` and `SIGINT`: the first one stops the server, the second one ends the process.
//!
//! A separate thread receives them, so that a server ends even if all its workers hang.

use crate::error::CliError;
use crate::signal::Signal;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The exit code of a server that did not stop within its grace period.
const NOT_STOPPED: i32 = 1;

/// Whether a server has stopped in order. Clones share it.
#[derive(Clone, Default)]
pub(super) struct Stopped(Arc<AtomicBool>);

impl Stopped {
    /// Notes that it has. A slow end, such as the sending of the last spans, does not change the exit code.
    pub(super) fn note(&self) {
        self.0.store(true, Ordering::Release);
    }
}

/// From now on the first signal cancels `shutdown`. The process ends at the second signal, and `grace`
/// after the first one.
pub(super) fn install(shutdown: CancellationToken, grace: Duration) -> Result<Stopped, CliError> {
    let stopped = Stopped::default();
    let noted = stopped.clone();
    let (ready, is_ready) = sync_channel(1);
    let thread = std::thread::Builder::new().name("signals".into());
    let receive = move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        match runtime {
            Ok(runtime) => runtime.block_on(async {
                let signals = Signals::install();
                let _ = match signals {
                    Ok(signals) => {
                        let _ = ready.send(Ok(()));
                        signals.received(&shutdown, grace, &noted).await;
                        Ok(())
                    }
                    Err(error) => ready.send(Err(error)),
                };
            }),
            Err(error) => {
                let _ = ready.send(Err(error));
            }
        }
    };
    let spawned = thread.spawn(receive);
    let installed = spawned.and_then(|_| is_ready.recv().unwrap_or_else(|_| Err(gone())));
    installed.map_err(CliError::io("listen for signals"))?;
    Ok(stopped)
}

fn gone() -> io::Error {
    io::Error::other("the thread for signals has ended")
}

#[cfg(unix)]
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(not(unix))]
struct Signals;

impl Signals {
    #[cfg(unix)]
    fn install() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    #[cfg(not(unix))]
    #[expect(clippy::unnecessary_wraps, reason = "as where there are signals")]
    fn install() -> io::Result<Self> {
        Ok(Self)
    }

    #[cfg(unix)]
    async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.interrupt.recv() => Signal::Interrupt,
            _ = self.terminate.recv() => Signal::Terminate,
        }
    }

    #[cfg(not(unix))]
    async fn next(&mut self) -> Signal {
        let _ = tokio::signal::ctrl_c().await;
        Signal::Interrupt
    }

    async fn received(mut self, shutdown: &CancellationToken, grace: Duration, stopped: &Stopped) {
        self.next().await;
        shutdown.cancel();
        tokio::select! {
            signal = self.next() => {
                tracing::warn!("a second signal ends the server at once; what is written is kept");
                std::process::exit(signal.exit_code().into());
            }
            () = tokio::time::sleep(grace) => {
                if stopped.0.load(Ordering::Acquire) {
                    std::process::exit(0);
                }
                tracing::warn!(?grace, "the server did not stop within its grace period and is ended; what is written is kept");
                std::process::exit(NOT_STOPPED);
            }
        }
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::environment;
    use std::process::{Command, Stdio};
    use std::time::Instant;

    const CHILD: &str = "LOOMLINE_TEST_CHILD";

    /// Simulates a process whose only worker hangs, and whose main thread waits for it.
    fn hang(has_stopped: bool) {
        let stopped = install(CancellationToken::new(), Duration::from_millis(200)).unwrap();
        if has_stopped {
            stopped.note();
        }
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let hung = runtime.spawn(async {
            println!("hangs");
            loop {
                std::thread::sleep(Duration::from_secs(1));
            }
        });
        let _: Result<(), _> = runtime.block_on(hung);
    }

    /// The exit code of the process of a test that hangs, after a signal.
    fn code_after_signal(test: &str) -> Option<i32> {
        let name = format!("serve::signals::tests::{test}");
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", &name, "--nocapture"])
            .env(CHILD, "1")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = io::BufRead::lines(io::BufReader::new(child.stdout.take().unwrap()));
        assert!(lines.any(|line| line.unwrap().contains("hangs")));
        let pid = child.id().to_string();
        Command::new("kill").args(["-TERM", &pid]).status().unwrap();
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            if let Some(status) = child.try_wait().unwrap() {
                return status.code();
            }
            if Instant::now() > deadline {
                child.kill().unwrap();
                panic!("the process does not end");
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    #[test]
    fn a_server_whose_workers_all_hang_ends_after_its_grace_period() {
        if environment(CHILD).is_some() {
            return hang(false);
        }
        let test = "a_server_whose_workers_all_hang_ends_after_its_grace_period";
        assert_eq!(code_after_signal(test), Some(NOT_STOPPED));
    }

    #[test]
    fn a_server_that_has_stopped_exits_with_0_although_its_end_hangs() {
        if environment(CHILD).is_some() {
            return hang(true);
        }
        let test = "a_server_that_has_stopped_exits_with_0_although_its_end_hangs";
        assert_eq!(code_after_signal(test), Some(0));
    }
}
