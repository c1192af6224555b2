//! What the server does during an attack, seen from outside.

use crate::server::Server;
use crate::wire;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// What was seen.
#[derive(Default)]
pub(crate) struct Figures {
    /// The highest resident memory, in MiB.
    pub(crate) rss: u64,
    /// The highest number of open descriptors.
    pub(crate) descriptors: usize,
    /// The longest time that `/healthz` took.
    pub(crate) health: Duration,
    /// How often `/healthz` did not answer 200.
    pub(crate) n_unhealthy: usize,
    /// How often the other tenant was not answered 200.
    pub(crate) n_refused: usize,
    /// How long the other tenant's requests took, in order.
    latencies: Vec<Duration>,
}

impl Figures {
    pub(crate) fn p50(&self) -> Duration {
        self.quantile(50)
    }

    pub(crate) fn p99(&self) -> Duration {
        self.quantile(99)
    }

    fn quantile(&self, percent: usize) -> Duration {
        let last = self.latencies.len().saturating_sub(1);
        let found = self.latencies.get(last * percent / 100);
        found.copied().unwrap_or_default()
    }
}

/// Threads that watch the server until they are stopped.
pub(crate) struct Monitor {
    stop: Arc<AtomicBool>,
    process: JoinHandle<(u64, usize)>,
    health: JoinHandle<(Duration, usize)>,
    other: JoinHandle<(Vec<Duration>, usize)>,
}

impl Monitor {
    pub(crate) fn start(server: &Server) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (address, key, probe) = (server.address, server.other.clone(), server.probe());
        let is_stopped = |stop: &Arc<AtomicBool>| {
            let stop = Arc::clone(stop);
            move || stop.load(Ordering::Relaxed)
        };
        let is_over = is_stopped(&stop);
        let process = std::thread::spawn(move || {
            let (mut rss, mut descriptors) = (0, 0);
            while !is_over() {
                rss = rss.max(probe.rss());
                descriptors = descriptors.max(probe.descriptors());
                std::thread::sleep(Duration::from_millis(20));
            }
            (rss, descriptors)
        });
        let is_over = is_stopped(&stop);
        let health = std::thread::spawn(move || {
            let (mut longest, mut n_unhealthy) = (Duration::ZERO, 0);
            while !is_over() {
                let begin = Instant::now();
                let answer = wire::ask(address, "GET", "/healthz", "", None);
                longest = longest.max(begin.elapsed());
                n_unhealthy += usize::from(answer.status != 200);
                std::thread::sleep(Duration::from_millis(50));
            }
            (longest, n_unhealthy)
        });
        let is_over = is_stopped(&stop);
        let other = std::thread::spawn(move || {
            let (mut latencies, mut n_refused) = (Vec::new(), 0);
            let body = r#"{"model":"demo","input":"Good morning"}"#;
            while !is_over() {
                let begin = Instant::now();
                let answer = wire::ask(address, "POST", "/v1/responses", &key, Some(body));
                latencies.push(begin.elapsed());
                n_refused += usize::from(answer.status != 200);
                std::thread::sleep(Duration::from_millis(10));
            }
            latencies.sort_unstable();
            (latencies, n_refused)
        });
        Self {
            stop,
            process,
            health,
            other,
        }
    }

    pub(crate) fn stop(self) -> Figures {
        self.stop.store(true, Ordering::Relaxed);
        let (rss, descriptors) = self.process.join().unwrap();
        let (health, n_unhealthy) = self.health.join().unwrap();
        let (latencies, n_refused) = self.other.join().unwrap();
        Figures {
            rss,
            descriptors,
            health,
            n_unhealthy,
            n_refused,
            latencies,
        }
    }
}
