//! Runs long work on threads of its own, so that it does not block a worker of the runtime.

use std::sync::mpsc;
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread::Builder;
use std::time::Duration;
use tokio::runtime::{Handle, RuntimeFlavor};

/// Maximum time that a job may run, and that it may wait for a thread.
pub(super) const TIME: Duration = Duration::from_millis(250);
/// Stack size of each thread, in bytes. Only the used part occupies memory.
pub(super) const STACK: usize = 16 << 20;
/// Maximum number of threads.
const MAX_THREADS: usize = 2;

static N_THREADS: Mutex<usize> = Mutex::new(0);
static ENDED: Condvar = Condvar::new();

/// A place among the threads that may run at once.
struct Slot;

impl Slot {
    fn wait() -> Option<Self> {
        let n_threads = N_THREADS.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = ENDED.wait_timeout_while(n_threads, TIME, |n| *n >= MAX_THREADS);
        let (mut n_threads, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if *n_threads >= MAX_THREADS {
            return None;
        }
        *n_threads += 1;
        Some(Self)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        *N_THREADS.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        ENDED.notify_one();
    }
}

/// Runs a job on a thread of its own and waits for it. Returns nothing if no thread is free in
/// time, or if the job takes twice its time. A worker of a multi-threaded runtime passes on its
/// other tasks before it waits.
pub(super) fn run<T: Send + 'static>(job: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let wait = || {
        let slot = Slot::wait()?;
        let (sender, receiver) = mpsc::sync_channel(1);
        let work = move || {
            let _slot = slot;
            // Nobody hears a job that was given up.
            let _ = sender.send(job());
        };
        let thread = Builder::new().name("json-schema".into()).stack_size(STACK);
        thread.spawn(work).ok()?;
        receiver.recv_timeout(2 * TIME).ok()
    };
    let flavor = Handle::try_current().map(|it| it.runtime_flavor());
    match flavor {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(wait),
        Ok(_) | Err(_) => wait(),
    }
}
