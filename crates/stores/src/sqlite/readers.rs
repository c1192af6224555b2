//! The threads that read, each with its own connection.

use super::error::failed;
use crate::durable::Health;
use rusqlite::Connection;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use store::StoreError;
use tokio::sync::{Semaphore, oneshot};

type Job = Box<dyn FnOnce(&Connection) + Send>;

/// Maximum number of jobs that wait or are at work.
const JOBS: usize = 1024;

/// The jobs that wait. One job wakes one thread.
#[derive(Default)]
struct Queue {
    waiting: Mutex<Waiting>,
    has_changed: Condvar,
}

#[derive(Default)]
struct Waiting {
    jobs: VecDeque<Job>,
    is_closed: bool,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the job is in the queue. It is not if the queue is closed.
    fn add(&self, job: Job) -> bool {
        let mut waiting = self.lock();
        if waiting.is_closed {
            return false;
        }
        waiting.jobs.push_back(job);
        drop(waiting);
        self.has_changed.notify_one();
        true
    }

    /// Waits for a job. `None` if the queue is closed and empty.
    fn next(&self) -> Option<Job> {
        let waiting = self
            .has_changed
            .wait_while(self.lock(), |it| it.jobs.is_empty() && !it.is_closed);
        let mut waiting = waiting.unwrap_or_else(PoisonError::into_inner);
        waiting.jobs.pop_front()
    }

    fn close(&self) {
        self.lock().is_closed = true;
        self.has_changed.notify_all();
    }
}

pub(super) struct Readers {
    queue: Arc<Queue>,
    places: Arc<Semaphore>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    health: Arc<Health>,
}

impl std::fmt::Debug for Readers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Readers").finish_non_exhaustive()
    }
}

impl Readers {
    pub(super) fn start(
        connections: Vec<Connection>,
        health: Arc<Health>,
    ) -> Result<Self, StoreError> {
        let queue = Arc::<Queue>::default();
        let spawn = |(n, conn)| {
            let queue = queue.clone();
            let thread = std::thread::Builder::new().name(format!("store-read-{n}"));
            thread.spawn(move || work(&queue, &conn)).map_err(failed)
        };
        let threads = (0..)
            .zip(connections)
            .map(|(n, conn): (usize, _)| spawn((n, conn)));
        let threads = threads.collect::<Result<_, _>>();
        Ok(Self {
            threads: Mutex::new(threads.inspect_err(|_| queue.close())?),
            queue,
            places: Arc::new(Semaphore::new(JOBS)),
            health,
        })
    }

    /// Does a piece of reading on the next free thread.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let place = self.places.clone().acquire_owned().await;
        let place = place.map_err(|_| StoreError::Closed)?;
        let (answer, answered) = oneshot::channel();
        let job: Job = Box::new(move |conn| {
            // Nobody may be waiting any more.
            let _ = answer.send(read(conn));
            drop(place);
        });
        if !self.queue.add(job) {
            return Err(StoreError::Closed);
        }
        let answer = answered.await.map_err(|_| StoreError::Closed)?;
        answer.inspect_err(|error| self.health.read_failed(error))
    }

    /// Closes the queue; the threads end after the queued requests.
    pub(super) fn close(&self) -> Vec<JoinHandle<()>> {
        self.queue.close();
        std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        for thread in self.close() {
            let _ = thread.join();
        }
    }
}

fn work(queue: &Queue, conn: &Connection) {
    while let Some(job) = queue.next() {
        // A reading that panics drops its answer; the thread reads on.
        let _ = catch_unwind(AssertUnwindSafe(|| job(conn)));
    }
}
