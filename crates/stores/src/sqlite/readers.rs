//! The threads that read, each with its own connection.

use super::error::failed;
use super::health::Health;
use rusqlite::Connection;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use store::StoreError;
use tokio::sync::{mpsc, oneshot};

type Job = Box<dyn FnOnce(&Connection) + Send>;

const QUEUE: usize = 1024;

#[derive(Debug)]
pub(super) struct Readers {
    queue: Mutex<Option<mpsc::Sender<Job>>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    health: Arc<Health>,
}

impl Readers {
    pub(super) fn start(
        connections: Vec<Connection>,
        health: Arc<Health>,
    ) -> Result<Self, StoreError> {
        let (queue, jobs) = mpsc::channel(QUEUE);
        let jobs = Arc::new(Mutex::new(jobs));
        let spawn = |(n, conn)| {
            let jobs = jobs.clone();
            let thread = std::thread::Builder::new().name(format!("store-read-{n}"));
            thread.spawn(move || work(&jobs, &conn)).map_err(failed)
        };
        let threads = (0..)
            .zip(connections)
            .map(|(n, conn): (usize, _)| spawn((n, conn)));
        Ok(Self {
            threads: Mutex::new(threads.collect::<Result<_, _>>()?),
            queue: Mutex::new(Some(queue)),
            health,
        })
    }

    /// Does a piece of reading on the next free thread.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let queue = self
            .queue
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let (answer, answered) = oneshot::channel();
        let job: Job = Box::new(move |conn| {
            // Nobody may be waiting any more.
            let _ = answer.send(read(conn));
        });
        queue
            .ok_or(StoreError::Closed)?
            .send(job)
            .await
            .map_err(|_| StoreError::Closed)?;
        let answer = answered.await.map_err(|_| StoreError::Closed)?;
        answer.inspect_err(|error| self.health.read_failed(error))
    }

    /// Closes the queue; the threads end after the queued requests.
    pub(super) fn close(&self) -> Vec<JoinHandle<()>> {
        self.queue
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
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

fn work(jobs: &Mutex<mpsc::Receiver<Job>>, conn: &Connection) {
    loop {
        let job = jobs
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .blocking_recv();
        let Some(job) = job else { return };
        // A reading that panics drops its answer; the thread reads on.
        let _ = catch_unwind(AssertUnwindSafe(|| job(conn)));
    }
}
